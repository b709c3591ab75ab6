"""Claims (accounting §5): which stretch of time an event wants."""
