"""The public functions of the library: one module per function, each from sources and options to a result."""
