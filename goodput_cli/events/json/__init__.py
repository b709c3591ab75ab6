"""Documents of JSON: a record a line, or objects over many lines."""
