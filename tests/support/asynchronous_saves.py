"""A log format for tests only: JSON lines that report a checkpoint saved while training continued.

{"job_name": "j", "saved_asynchronously": 30, "saved_asynchronously_time": 1767225600}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import JOB_NAME, Output, Records
from goodput_cli.events.schema import ASYNCHRONOUS, Edge, Kind

_STEP, _TIME = "saved_asynchronously", "saved_asynchronously_time"


class AsynchronousSaves:
    """See `Format`."""

    name = "asynchronous-saves"
    keys = frozenset({JOB_NAME, _STEP, _TIME})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return _TIME in record

    def translate(self, records: Records, output: Output) -> Mask:
        time, timed = output.times(records, _TIME)
        step, whole = output.whole(records, _STEP)
        detail = np.full(len(records), output.details.code(ASYNCHRONOUS), dtype=np.int32)
        output.rows.add(records.origin, timed & whole, Kind.SAVED, Edge.POINT, time, step=step, detail=detail)
        return records.every()
