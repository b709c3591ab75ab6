"""Experiment trackers: runs of Weights & Biases, MLflow and Ray become steps, starts and ends of jobs."""
