"""An analysis in each output format, one module a format."""
