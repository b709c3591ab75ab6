"""Metrics of google-cloud-mldiagnostics in Cloud Logging: only the entry around a payload names metric and run.

They say when steps were done, when a process began and that hosts are alive; what they measured is kept beside the
events and never feeds the ledger (docs/formats.md, ML Diagnostics).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Entry, Output, Records, labels_of
from goodput_cli.events.formats.fields import CONFIGS, HOST, PROCESS, RUNS, STEP, UNIT, VALUES


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
