"""Many jobs at once: what `goodput jobs` and `goodput fleet` answer, job by job, on one processor or on a cluster."""
