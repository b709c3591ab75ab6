"""`goodput jobs`: every job of a log in a line."""
