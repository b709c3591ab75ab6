"""Formats whose records say something only beside others, and are collected until all are there: Slurm's accounting,
Google's ML Diagnostics, and rows of experiment trackers (docs/formats.md).

`sacct -P` prints when jobs were submitted, started and ended, in local time without a zone: the only common log that
shows queueing. Of ML Diagnostics only the entry around a payload names metric and run; what it measured never feeds
the ledger. Rows of trackers, exported as JSON lines or tables, are told by their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import (
    CONFIGS,
    HOST,
    MLFLOW,
    PROCESS,
    RAY,
    RUNS,
    SACCT,
    STEP,
    UNIT,
    VALUES,
    WANDB,
    Entry,
    Output,
    Records,
    labels_of,
)
from goodput_cli.sources.layouts import RUN_KEY

SACCT_HEADER = frozenset({"JobID", "State", "Start"})
SACCT_DELIMITERS = ("|", ",")


class Sacct:
    """Reads the rows that Slurm's `sacct -P` prints."""

    name = SACCT
    keys = SACCT_HEADER

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A row with the columns that `sacct` always prints."""
        return {"JobID", "State"} <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """sacct has a hundred columns."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by files, as those of text are."""
        return SACCT

    def translate(self, records: Records, output: Output) -> Mask:
        """Marks of allocations; steps of a job (`812.batch`) are parts of it."""
        from goodput_cli.events.text.entries import collect_allocations  # few logs hold any

        collect_allocations(records, output)
        return records.every()


class MlDiagnostics:
    """Reads metrics of google-cloud-mldiagnostics from entries of Cloud Logging."""

    name = RUNS
    keys = frozenset({VALUES, STEP, CONFIGS, UNIT, PROCESS, HOST, "accelerator_type", "accelerator_labels"})

    def __init__(self) -> None:
        self._alive: dict[tuple[str, str], int] = {}

    def recognises(self, _record: Mapping[str, Any]) -> bool:
        """Never by the payload alone: it names neither its metric nor its run."""
        return False

    def recognises_entry(self, entry: Entry) -> bool:
        """An entry of a generic node with a namespace, whose payload is a metric or the run's configuration."""
        labels = labels_of(entry)
        return "namespace" in labels and "node_id" in labels

    def any_key(self, _records: Records) -> bool:
        """Metrics carry the labels of who records them."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by the runs of the whole log."""
        return RUNS

    def translate(self, records: Records, output: Output) -> Mask:
        """Marks of the runs, and what was measured."""
        from goodput_cli.events.text.entries import collect_metrics  # few logs hold any

        return collect_metrics(records, output, self._alive)


HISTORY = frozenset({"_timestamp", "_step"})
"""Of every row of a history of Weights & Biases."""
TRIAL = frozenset({"training_iteration", "timestamp", "time_this_iter_s"})
"""Of every result of a trial of Ray Train and Tune."""
TRACKER_HEADERS = (HISTORY, TRIAL)
"""Columns that a table of one of them has."""


class _TrackerRows:
    """Collects records until all are there: what rows mean is seen beside those before and behind them."""

    name = ""
    keys: frozenset[str] = frozenset()

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """By its keys."""
        return self.keys <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """What is measured has names of its own."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by files, or by ids in the rows."""
        return self.name

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.tables import collect_rows  # few logs hold any

        return collect_rows(self.name, records, output)


class WandbHistory(_TrackerRows):
    """Reads rows of a history of Weights & Biases."""

    name = WANDB
    keys = HISTORY


class RayTrial(_TrackerRows):
    """Reads results of trials of Ray."""

    name = RAY
    keys = TRIAL


class MlflowRows(_TrackerRows):
    """Reads what a database of MLflow holds."""

    name = MLFLOW
    keys = frozenset({RUN_KEY})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.mlflow import collect_rows  # few logs hold any

        return collect_rows(records, output)


TRACKED = (WandbHistory, RayTrial, MlflowRows)
