"""The commands for one job, comparisons of jobs, fleets, logs, running jobs, this installation, and the recorder."""
