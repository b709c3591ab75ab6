"""Rows that experiment trackers export as JSON lines or tables: which records are of one, told by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.fields import MLFLOW, RAY, WANDB
from goodput_cli.sources.layouts import RUN_KEY

HISTORY = frozenset({"_timestamp", "_step"})
"""Of every row of a history of Weights & Biases."""
TRIAL = frozenset({"training_iteration", "timestamp", "time_this_iter_s"})
"""Of every result of a trial of Ray Train and Tune."""
HEADERS = (HISTORY, TRIAL)
"""Columns that a table of one of them has."""


class _Rows:
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


class WandbHistory(_Rows):
    """Reads rows of a history of Weights & Biases."""

    name = WANDB
    keys = HISTORY


class RayTrial(_Rows):
    """Reads results of trials of Ray."""

    name = RAY
    keys = TRIAL


class MlflowRows(_Rows):
    """Reads what a database of MLflow holds."""

    name = MLFLOW
    keys = frozenset({RUN_KEY})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.mlflow import collect_rows  # few logs hold any

        return collect_rows(records, output)


TRACKED = (WandbHistory, RayTrial, MlflowRows)
