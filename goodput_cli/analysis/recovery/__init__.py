"""Recovery of outages: who noticed, restarted and resumed a job, and when."""
