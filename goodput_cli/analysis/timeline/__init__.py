"""`goodput timeline`: every segment of a window, with the log lines that bound it."""
