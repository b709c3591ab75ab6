"""The commands: about one job, jobs beside each other, fleets, logs, jobs that run, this installation, the recorder."""
