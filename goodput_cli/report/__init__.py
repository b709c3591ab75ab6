"""What is written of an answer, one module a format. A format lays out what an answer offers, and computes nothing."""
