"""Which run each allocation belongs to: that of its job's name which lies in its time, and the first of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from goodput_cli.fleet.inventory.allocations import STILL_HELD, Allocation

_Run = tuple[int, str, int]
"""A run as its owner: start (ns), job, number."""


class JoinedAllocations:
    """Allocations by the names of jobs, and whose each is once all runs are known."""

    def __init__(self, by_job: Mapping[str, Sequence[Allocation]], until: int) -> None:
        """until: where those end (ns) that had not ended when they were listed: the end of the last run."""
        self._by_job = {
            job: [replace(one, end=until) if one.end == STILL_HELD else one for one in found]
            for job, found in by_job.items()
        }
        self._owners: dict[Allocation, _Run] = {}

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def expect(self, job: str, run: int, start: int, end: int) -> None:
        """Said of every run (its window in ns) before anything is asked."""
        for one in self.overlapping(job, start, end):
            owner = (start, job, run)
            self._owners[one] = min(self._owners.get(one, owner), owner)

    def overlapping(self, job: str, start: int, end: int) -> list[Allocation]:
        """Those of a job that have something of [start, end) (ns)."""
        return [one for one in self._by_job.get(job, ()) if one.start < end and one.end > start]

    def of_run(self, job: str, run: int, start: int) -> list[Allocation]:
        """Those that belong to one run, which starts at `start` (ns), and to no other."""
        return [one for one in self._by_job.get(job, ()) if self._owners.get(one) == (start, job, run)]

    def without_run(self) -> Iterator[Allocation]:
        """Those that no run lies in."""
        return (one for found in self._by_job.values() for one in found if one not in self._owners)
