"""What a person reads: an `Analysis` as text, one module per format. Renderers format and compute nothing."""
