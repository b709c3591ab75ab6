"""Formats whose records say something only beside others, and are collected until all are there: Slurm's accounting,
Google's ML Diagnostics, and rows of experiment trackers (docs/formats.md).

`sacct -P` prints when jobs were submitted, started and ended, in local time without a zone: the only common log that
shows queueing. Of ML Diagnostics only the entry around a payload names metric and run; what it measured never feeds
the ledger. Rows of trackers, exported as JSON lines or tables, are told by their keys. Metrics files of trainers
without any time (`trainer_state.json`, metrics.csv, results.csv of older Ultralytics, Keras' CSVLogger, MaxText's
metrics) are recognised only to say which other file to use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.devices import DevicePart
from goodput_cli.events.formats.base import (
    CONFIGS,
    HOST,
    MLFLOW,
    PROCESS,
    RAY,
    RUNS,
    SACCT,
    STEP,
    SYSTEM,
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
_LIGHTNING = frozenset({"epoch", "step"})
_STATE = frozenset({"log_history", "global_step"})
_ULTRALYTICS = frozenset({"epoch", "lr/pg0"})
_KERAS = frozenset({"epoch", "loss"})
_MAXTEXT = frozenset({"perf/step_time_seconds", "run_name"})
_OTHER_FILE = {
    _STATE: "the state of Hugging Face's trainer contains no time; pass its TensorBoard directory instead (runs/, with "
    "report_to='tensorboard'), or use the callback of goodput's recorder",
    _ULTRALYTICS: "results.csv of this Ultralytics version contains no time (newer ones have a column `time`); pass "
    "its TensorBoard directory or its stdout instead",
    _LIGHTNING: "a metrics.csv of Lightning contains no time; pass its TensorBoard directory instead "
    "(lightning_logs/), or use the callback of goodput's recorder",
    _KERAS: "a table of Keras' CSVLogger contains no time; pass the directory of its TensorBoard callback instead",
    _MAXTEXT: "MaxText's metrics file contains no time; pass its stdout, its TensorBoard directory or its Cloud "
    "Logging instead",
}
"""What to use instead of a metrics file that holds no time, by columns or keys that such a file always has."""
_TIMED = re.compile(r"time|elapsed|second|stamp|date|clock", re.IGNORECASE)
_COUNTED = re.compile(r"step|iter|batch", re.IGNORECASE)


class Collected:
    """What formats have in common whose records are collected until all are there: what one means is seen beside those
    before and behind it, and beside it may stand whatever its program measures."""

    name = ""
    keys: frozenset[str] = frozenset()

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """By its keys."""
        return self.keys <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """Other columns, labels and metrics have names of their own."""
        return True

    def job_of(self, _records: Records) -> str:
        """Jobs are told by files, as those of text are, or by ids in the records."""
        return self.name


class Sacct(Collected):
    """Reads the rows that Slurm's `sacct -P` prints."""

    name = SACCT
    keys = SACCT_HEADER

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A row with the columns that `sacct` always prints."""
        return {"JobID", "State"} <= record.keys()

    def translate(self, records: Records, output: Output) -> Mask:
        """Log lines of allocations; steps of a job (`812.batch`) are parts of it."""
        from goodput_cli.events.text.entries import collect_allocations  # few logs hold any

        collect_allocations(records, output)
        return records.every()


class Torchtitan(Collected):
    """Reads torchtitan's structured logs: a line where each span of a process begins and ends."""

    name = "torchtitan"
    keys = frozenset({"log_type", "log_type_name", "time_us"})

    def translate(self, records: Records, output: Output) -> Mask:
        """Phases of each rank, and the events of the job."""
        from goodput_cli.events.text.programs.torchtitan import collect  # few logs hold any

        return collect(records, output)


class MlDiagnostics(Collected):
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

    def translate(self, records: Records, output: Output) -> Mask:
        """Log lines of the runs, and what was measured."""
        from goodput_cli.events.text.entries import collect_metrics  # few logs hold any

        return collect_metrics(records, output, self._alive)


HISTORY = frozenset({"_timestamp", "_step"})
"""Of every row of a history of Weights & Biases."""
TRIAL = frozenset({"training_iteration", "timestamp", "time_this_iter_s"})
"""Of every result of a trial of Ray Train and Tune."""


def is_of_machine(keys: Iterable[str]) -> bool:
    """Whether a row with such keys is one of the machine, of an export of Weights & Biases."""
    return "_timestamp" in (names := frozenset(keys)) and any(name.startswith(SYSTEM) for name in names)


TRACKER_HEADERS = (HISTORY, TRIAL)
"""Columns that a table of one of them has."""


class WandbHistory(Collected):
    """Reads rows of a history of Weights & Biases."""

    name = WANDB
    keys = HISTORY

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.tables import collect_rows  # few logs hold any

        return collect_rows(self.name, records, output)


class WandbEvents(Collected):
    """Reads rows of the machine of an export of Weights & Biases, which stand apart from its history."""

    name = WANDB

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A time, and names of the machine."""
        return is_of_machine(record)

    def translate(self, records: Records, output: Output) -> Mask:
        """What accelerators did."""
        from goodput_cli.events.trackers.tables import collect_events  # few logs hold any

        return collect_events(records, output)


class Prometheus(Collected):
    """Reads answers of Prometheus' query_range: what NVIDIA's exporter says of accelerators."""

    name = "prometheus"
    keys = frozenset({"status", "data"})

    def translate(self, records: Records, output: Output) -> Mask:
        """The series of devices; which records are such answers."""
        from goodput_cli.events.device_names import take_series  # few logs hold any

        part, used = DevicePart(), ~records.every()
        for at, record in enumerate(records.records):
            data = record["data"]
            result = data.get("result") if isinstance(data, dict) and data.get("resultType") == "matrix" else None
            used[at] = isinstance(result, list)
            for one in result if isinstance(result, list) else ():
                if isinstance(one, dict) and isinstance(one.get("metric"), dict):
                    take_series(part, int(records.origin.line[at]), one["metric"], one.get("values"))
        output.take_devices(records.origin.source, part)
        return used


class RayTrial(WandbHistory):
    """Reads results of trials of Ray."""

    name = RAY
    keys = TRIAL


class MlflowRows(Collected):
    """Reads what a database of MLflow holds."""

    name = MLFLOW
    keys = frozenset({RUN_KEY})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.mlflow import collect_rows  # few logs hold any

        return collect_rows(records, output)


TRACKED = (WandbHistory, WandbEvents, RayTrial, MlflowRows, Prometheus)


class Timeless(Collected):
    """Reads metrics files without times: no events, and a diagnostic that names the file to use instead."""

    name = "timeless"
    keys = frozenset().union(*_OTHER_FILE)

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """By the keys of each."""
        return kind_without_time(record) is not None

    def translate(self, records: Records, output: Output) -> Mask:
        """A sentence, and no row."""
        kind = kind_without_time(records.records[0]) if len(records) else None
        if kind is not None:
            output.report("no_time_in_log", _OTHER_FILE[kind], records, records.every())
        return records.every()


def kind_without_time(names: Iterable[str]) -> frozenset[str] | None:
    """The kind of a file whose records or columns have these names; None for no such kind."""
    names = frozenset(names)
    found = next((keys for keys in _OTHER_FILE if keys <= names), None)
    if found in (_LIGHTNING, _ULTRALYTICS, _KERAS) and any(map(_TIMED.search, names)):
        return None
    return None if found == _KERAS and any(map(_COUNTED.search, names)) else found
