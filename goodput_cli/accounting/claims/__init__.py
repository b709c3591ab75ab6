"""Claims (accounting §5): which span of time an event wants."""
