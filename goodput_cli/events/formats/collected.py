"""Formats whose records are meaningful only together, and are collected until all have been read: Slurm's accounting,
Google's ML Diagnostics, and rows of experiment trackers (docs/formats.md).

`sacct -P` prints when jobs were submitted, started and ended, in local time without a zone. It is the only common log
with queueing. For ML Diagnostics, only the entry around a payload contains metric and run; the values never affect the
ledger. Rows of trackers, exported as JSON lines or tables, are recognized by their keys. Metrics files of trainers
without times (`trainer_state.json`, metrics.csv, results.csv of older Ultralytics, Keras' CSVLogger, MaxText's metrics)
are recognized only to name the file to use instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.accelerators.samples import TABLE, DevicePart
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
"""File to use instead of a metrics file without times, by columns or keys that such a file always has."""
_TIMED = re.compile(r"time|elapsed|second|stamp|date|clock", re.IGNORECASE)
_COUNTED = re.compile(r"step|iter|batch", re.IGNORECASE)


class CollectedFormat:
    """Common base of formats whose records are collected until all have been read. The meaning of a record depends on
    the records before and after it, and it may contain any metric of its program."""

    name = ""
    keys: frozenset[str] = frozenset()

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True if the record has the required keys."""
        return self.keys <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """Return True: other columns, labels and metrics may have any name."""
        return True

    def job_of(self, _records: Records) -> str:
        """Return "": jobs are identified by files, like those of text, or by ids in the records."""
        return self.name


class Sacct(CollectedFormat):
    """Format of the rows that Slurm's `sacct -P` prints."""

    name = SACCT
    keys = SACCT_HEADER

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a row with the columns that `sacct` always prints."""
        return {"JobID", "State"} <= record.keys()

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the log lines of allocations; steps of a job (`812.batch`) are parts of it."""
        from goodput_cli.events.text.entries import collect_allocations  # imported late: few logs contain any

        collect_allocations(records, output)
        return records.every()


class Torchtitan(CollectedFormat):
    """Format of torchtitan's structured logs: a line for the begin and the end of each span of a process."""

    name = "torchtitan"
    keys = frozenset({"log_type", "log_type_name", "time_us"})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the phases of each rank, and the events of the job."""
        from goodput_cli.events.text.programs.torchtitan import collect  # imported late: few logs contain any

        return collect(records, output)


class MlDiagnostics(CollectedFormat):
    """Format of metrics of google-cloud-mldiagnostics in entries of Cloud Logging."""

    name = RUNS
    keys = frozenset({VALUES, STEP, CONFIGS, UNIT, PROCESS, HOST, "accelerator_type", "accelerator_labels"})

    def __init__(self) -> None:
        self._alive: dict[tuple[str, str], int] = {}

    def recognises(self, _record: Mapping[str, Any]) -> bool:
        """Return False: the payload alone contains neither its metric nor its run."""
        return False

    def recognises_entry(self, entry: Entry) -> bool:
        """Return True for an entry of a generic node with a namespace and a metric or the run's configuration as
        payload."""
        labels = labels_of(entry)
        return "namespace" in labels and "node_id" in labels

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the log lines of the runs, and the metrics."""
        from goodput_cli.events.text.entries import collect_metrics  # imported late: few logs contain any

        return collect_metrics(records, output, self._alive)


HISTORY = frozenset({"_timestamp", "_step"})
"""Keys of every row of a Weights & Biases history."""
TRIAL = frozenset({"training_iteration", "timestamp", "time_this_iter_s"})
"""Keys of every result of a trial of Ray Train and Tune."""


def is_of_machine(keys: Iterable[str]) -> bool:
    """Return True if a row with such keys contains system metrics of a Weights & Biases export."""
    return "_timestamp" in (names := frozenset(keys)) and any(name.startswith(SYSTEM) for name in names)


TRACKER_HEADERS = (HISTORY, TRIAL)
"""Columns of tables of these trackers."""


class WandbHistory(CollectedFormat):
    """Format of the rows of a Weights & Biases history."""

    name = WANDB
    keys = HISTORY

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.tables import collect_rows  # imported late: few logs contain any

        return collect_rows(self.name, records, output)


class WandbEvents(CollectedFormat):
    """Format of the rows with system metrics of a Weights & Biases export, which are separate from its history."""

    name = WANDB

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True for a record with a time and names of system metrics."""
        return is_of_machine(record)

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the samples of accelerators."""
        from goodput_cli.events.trackers.tables import collect_events  # imported late: few logs contain any

        return collect_events(records, output)


class Prometheus(CollectedFormat):
    """Format of responses of Prometheus' query_range with the metrics of NVIDIA's exporter."""

    name = "prometheus"
    keys = frozenset({"status", "data"})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the series of devices; return True for records with such a response."""
        from goodput_cli.events.accelerators.samples import take_series  # imported late: few logs contain any

        part, used = DevicePart(), ~records.every()
        for at, record in enumerate(records.records):
            data = record["data"]
            result = data.get("result") if isinstance(data, dict) and data.get("resultType") == "matrix" else None
            used[at] = isinstance(result, list)
            for one in result if isinstance(result, list) else ():
                if isinstance(one, dict) and isinstance(one.get("metric"), dict):
                    take_series(part, int(records.origin.line[at]), one["metric"], one.get("values"))
        output.take_input(TABLE, records.origin.source, part)
        return used


class RayTrial(WandbHistory):
    """Format of the results of Ray's trials."""

    name = RAY
    keys = TRIAL


class MlflowRows(CollectedFormat):
    """Format of the contents of an MLflow database."""

    name = MLFLOW
    keys = frozenset({RUN_KEY})

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect the rows."""
        from goodput_cli.events.trackers.mlflow import collect_rows  # imported late: few logs contain any

        return collect_rows(records, output)


TRACKED = (WandbHistory, WandbEvents, RayTrial, MlflowRows, Prometheus)


class TimelessMetricsFormat(CollectedFormat):
    """Format of metrics files without times: no events, and a diagnostic that names the file to use instead."""

    name = "timeless"
    keys = frozenset().union(*_OTHER_FILE)

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True if the record has the keys of such a file."""
        return kind_without_time(record) is not None

    def translate(self, records: Records, output: Output) -> Mask:
        """Report the file to use instead; add no row."""
        kind = kind_without_time(records.records[0]) if len(records) else None
        if kind is not None:
            output.report("no_time_in_log", _OTHER_FILE[kind], records, records.every())
        return records.every()


def kind_without_time(names: Iterable[str]) -> frozenset[str] | None:
    """Return the kind of a file whose records or columns have these names; None if it is not such a kind."""
    names = frozenset(names)
    found = next((keys for keys in _OTHER_FILE if keys <= names), None)
    if found in (_LIGHTNING, _ULTRALYTICS, _KERAS) and any(map(_TIMED.search, names)):
        return None
    return None if found == _KERAS and any(map(_COUNTED.search, names)) else found
