"""Names of fields by which a format recognises its records and what collects them reads them: declared here, since
formats are imported with every log and collectors only where records are theirs."""

from __future__ import annotations

RUNS = "mldiagnostics"
"""The format of google-cloud-mldiagnostics, whose lines tell runs."""
VALUES, STEP, CONFIGS = "values", "step_index", "userConfigs"
UNIT, PROCESS, HOST = "unit", "process_index", "hostname"

SACCT = "sacct"
"""The format of Slurm's accounting."""

WANDB, RAY, MLFLOW = "wandb", "ray", "mlflow"
"""Formats of experiment trackers."""
