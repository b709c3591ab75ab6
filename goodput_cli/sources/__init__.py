"""Where log lines come from: one module per kind of place, found by the scheme of the URI."""
