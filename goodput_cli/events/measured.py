"""What programs measured of themselves, collected while their lines are read: see `Metric`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from goodput_cli.events.schema import Metric

MOST_NAMES = 50
"""So many metrics a job are kept: nobody can fill memory with names."""


class Measurements:
    """Values by job and name; what was written twice counts once."""

    def __init__(self) -> None:
        self._found: defaultdict[int, dict[str, dict[tuple[int, int, float], None]]] = defaultdict(dict)

    def add(self, job: int, name: str, time: int, step: int, value: float) -> None:
        """A value. job: its code. time: ns since 1970 UTC. step: `NO_STEP` where it is of none."""
        names = self._found[job]
        if name in names or len(names) < MOST_NAMES:
            names.setdefault(name, {})[time, step, value] = None

    def metrics(self, jobs: Sequence[str]) -> tuple[Metric, ...]:
        """All of them, each in order of time. jobs: the names by their codes."""
        return tuple(
            _metric(jobs[job], name, sorted(rows))
            for job, names in self._found.items()
            for name, rows in sorted(names.items())
        )


def _metric(job: str, name: str, rows: Sequence[tuple[int, int, float]]) -> Metric:
    time, step, value = zip(*rows, strict=True)
    columns = np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
    return Metric(job, name, "", *columns)
