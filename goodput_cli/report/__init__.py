"""Output formats of answers, one module per format. A format lays out an answer and computes nothing."""
