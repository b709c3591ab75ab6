"""A log format for tests only: JSON lines with the number of finished steps at a time, and the length of one.

{"job_name": "j", "steps_done": 30, "steps_done_time": 1767225600, "mean_seconds": 0.5}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import JOB_NAME, Output, Records
from goodput_cli.events.schema import NONE, Edge, Kind

_DONE, _TIME, _MEAN = "steps_done", "steps_done_time", "mean_seconds"


class StepEndLines:
    """See `Format`."""

    name = "step-end-lines"
    keys = frozenset({JOB_NAME, _DONE, _TIME, _MEAN})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return _TIME in record

    def translate(self, records: Records, output: Output) -> Mask:
        time, timed = output.times(records, _TIME)
        step, whole = output.whole(records, _DONE)
        mean = np.full(len(records), NONE, dtype=np.int64)
        if _MEAN in records.keys:
            mean, _ = output.times(records, _MEAN)
        output.rows.add(records.origin, timed & whole, Kind.STEP, Edge.END, time, step=step, step_time=mean)
        return records.every()
