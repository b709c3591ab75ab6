"""`goodput monitor`: analyzes a running job and publishes the results repeatedly, in a process next to the job."""
