"""`goodput steps`: step times, slow periods, and the metrics in the log."""
