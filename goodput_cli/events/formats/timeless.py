"""Files of trainers that hold no times (`trainer_state.json`, metrics.csv, results.csv of older Ultralytics, Keras'
CSVLogger, MaxText's metrics): recognised only to say which other file to use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records

COLUMNS = frozenset({"epoch", "step"})
"""Of Lightning's metrics.csv, beside the metrics."""
_STATE = frozenset({"log_history", "global_step"})
_ULTRALYTICS = frozenset({"epoch", "lr/pg0"})
_KERAS = frozenset({"epoch", "loss"})
_MAXTEXT = frozenset({"perf/step_time_seconds", "run_name"})
_INSTEAD = {
    _STATE: "the state of Hugging Face's trainer holds no time; name its TensorBoard folder instead (runs/, with "
    "report_to='tensorboard'), or use the callback of goodput's recorder",
    _ULTRALYTICS: "results.csv of this version of Ultralytics holds no time (newer ones have a column `time`); name "
    "its TensorBoard folder instead, or its text",
    COLUMNS: "a metrics.csv of Lightning holds no time; name its TensorBoard folder instead (lightning_logs/), or use "
    "the callback of goodput's recorder",
    _KERAS: "a table of Keras' CSVLogger holds no time; name the folder of its TensorBoard callback instead",
    _MAXTEXT: "MaxText's metrics file holds no time; name its stdout, its TensorBoard folder or its Cloud Logging "
    "instead",
}


class Timeless:
    """Reads metrics files without times: no events, and a diagnostic that names the file to use instead."""

    name = "timeless"
    keys = frozenset().union(*_INSTEAD)

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """By the keys of each."""
        return _kind(record) is not None

    def any_key(self, _records: Records) -> bool:
        """Metrics have names of their own."""
        return True

    def job_of(self, _records: Records) -> str:
        """They make no events, so that nobody asks."""
        return self.name

    def translate(self, records: Records, output: Output) -> Mask:
        """A sentence, and no row."""
        kind = _kind(records.records[0]) if len(records) else None
        if kind is not None:
            output.report("no_time_in_log", _INSTEAD[kind], records, records.every())
        return records.every()


def _kind(record: Mapping[str, Any]) -> frozenset[str] | None:
    return kind_of(record.keys())


_TIMED = re.compile(r"time|elapsed|second|stamp|date|clock", re.IGNORECASE)
_COUNTED = re.compile(r"step|iter|batch", re.IGNORECASE)


def kind_of(names: Iterable[str]) -> frozenset[str] | None:
    """The kind of a file whose records or columns have these names; None for no such kind."""
    names = frozenset(names)
    found = next((keys for keys in _INSTEAD if keys <= names), None)
    if found in (COLUMNS, _ULTRALYTICS, _KERAS) and any(map(_TIMED.search, names)):
        return None
    return None if found == _KERAS and any(map(_COUNTED.search, names)) else found
