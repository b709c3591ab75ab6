"""Find the job of a file without events: that of the logs next to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from goodput_cli.events.schema import EventTable


def jobs_of_sources(table: EventTable) -> dict[int, set[str]]:
    """Return the jobs that have events in each source, by its code."""
    size = max(len(table.sources), 1)
    found: defaultdict[int, set[str]] = defaultdict(set)
    for pair in np.unique(table.job.astype(np.int64) * size + table.source).tolist():
        found[pair % size].add(table.jobs[pair // size])
    return found


def job_of_source(code: int, sources: Sequence[str], by_source: Mapping[int, set[str]]) -> str | None:
    """Return the job of a source if it has exactly one, otherwise that of the nearest parent folder with logs."""
    if by_source.get(code):
        return next(iter(by_source[code])) if len(by_source[code]) == 1 else None
    folder = sources[code].replace("\\", "/").rpartition("/")[0]
    while True:
        below = f"{folder}/" if folder else ""
        jobs = {
            job for code, own in by_source.items() if sources[code].replace("\\", "/").startswith(below) for job in own
        }
        if jobs:
            return jobs.pop() if len(jobs) == 1 else None
        if not folder:
            every = {job for own in by_source.values() for job in own}
            return every.pop() if len(every) == 1 else None
        folder = folder.rpartition("/")[0]
