"""Sources of log lines: one module per kind of source, found by the scheme of the URI."""
