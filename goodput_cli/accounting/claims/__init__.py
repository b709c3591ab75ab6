"""Claims (accounting §5): which time each event claims, and which claim comes first."""
