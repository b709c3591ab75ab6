"""`goodput check`: what is wrong with event logs."""
