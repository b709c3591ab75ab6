"""Files of trainers that hold no times (`trainer_state.json`, metrics.csv, MaxText's metrics): recognised only to say
which other file to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records

COLUMNS = frozenset({"epoch", "step"})
"""Of Lightning's metrics.csv, beside the metrics."""
_STATE = frozenset({"log_history", "global_step"})
_MAXTEXT = frozenset({"perf/step_time_seconds", "run_name"})
_INSTEAD = {
    _STATE: "the state of Hugging Face's trainer holds no time; name its TensorBoard folder instead (runs/, with "
    "report_to='tensorboard'), or use the callback of goodput's recorder",
    COLUMNS: "a metrics.csv of Lightning holds no time; name its TensorBoard folder instead (lightning_logs/), or use "
    "the callback of goodput's recorder",
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
    return next((keys for keys in _INSTEAD if keys <= record.keys()), None)
