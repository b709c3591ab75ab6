"""`goodput disruptions`: what stopped the job, and what that lost."""
