"""Recorder logs for the tests of the question commands, written by hand: seconds after `EPOCH`, one fact a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EPOCH = 1_767_225_600  # 2026-01-01T00:00:00Z
NS = 10**9


class Recorder:
    """A log in the making; times in seconds after `EPOCH`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, **fact: Any) -> Recorder:
        self.lines.append(json.dumps({"job_name": "job", **fact}))
        return self

    def start(self, time: float) -> Recorder:
        return self.add(job_start_time=EPOCH + time)

    def steps(self, first: int, last: int, start: float, every: float) -> Recorder:
        for number in range(first, last + 1):
            self.add(step_count=number, step_start_time=EPOCH + start + every * (number - first))
        return self

    def end(self, time: float) -> Recorder:
        return self.add(job_end_time=EPOCH + time)

    def slices(self, time: float, active: int, total: int, available: int) -> Recorder:
        return self.add(
            elastic_slice_counts_timestamp=EPOCH + time,
            active_slices=active,
            total_slices=total,
            available_slices=available,
        )

    def custom(self, start: float, end: float, label: str) -> Recorder:
        self.add(custom_badput_event_start_time=EPOCH + start, custom_badput_event_type=label)
        return self.add(custom_badput_event_end_time=EPOCH + end, custom_badput_event_type=label)

    def write(self, path: Path) -> Path:
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path


def outage() -> Recorder:
    """Record steps 0 to 9 of 10 s from second 100 on, an outage to second 1000, steps 6 to 19 from 1010 on, an end at
    1150.

    Steps 6 to 9 of the first attempt are repeated.
    """
    log = Recorder().start(90).steps(0, 9, 100, 10)
    return log.start(1000).steps(6, 19, 1010, 10).end(1150)
