"""Where the original has its modules."""
