"""What a program calls: one module a function, each from sources and options to a result."""
