"""`goodput monitor`: the analysis of a running job, published again and again, in a process beside the job."""
