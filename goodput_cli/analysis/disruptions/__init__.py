"""`goodput disruptions`: interruptions of the job, and their losses."""
