"""`goodput rolling`: windows that move through the job."""
