"""A table (`Sheet`) in each output format, one module a format."""
