"""`goodput compare`: runs side by side."""
