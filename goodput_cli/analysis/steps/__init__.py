"""`goodput steps`: step times."""
