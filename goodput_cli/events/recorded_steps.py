"""Step breakdowns from goodput's recorder, kept until all is read: the steps of each process of each rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.inside import MOST_PHASES, NOT_LOGGED, PhaseName, RankSteps, with_common_ends, within_memory


class ProcessOfRank(NamedTuple):
    """One process of one rank of a job. job: its code."""

    job: int
    rank: int
    run_id: str
    host: str
    first_step: int


class ProcessStepRecords(NamedTuple):
    """Records of one process with the same phases: columns, and int64[n, len(names)] ns."""

    time: I64
    step: I64
    steps: I64
    """Number of steps in each record."""
    took: I64
    names: tuple[PhaseName, ...]
    ns: I64
    source: int
    """The code of the source."""


class RecordedStepCollector:
    """Collector of the records of all ranks."""

    def __init__(self) -> None:
        self._lives: defaultdict[ProcessOfRank, list[ProcessStepRecords]] = defaultdict(list)
        self._names: defaultdict[int, set[PhaseName]] = defaultdict(set)

    def __bool__(self) -> bool:
        return bool(self._lives)

    def counts_name(self, job: int, name: PhaseName) -> bool:
        """Return True if the name is among the counted names of the job, whose number is limited."""
        names = self._names[job]
        if name not in names and len(names) < MOST_PHASES:
            names.add(name)
        return name in names

    def has_name(self, job: int, name: PhaseName) -> bool:
        """Return True if a record of the job had this name and it counted."""
        return name in self._names[job]

    def names_of(self, job: int) -> int:
        """Return how many names of a job count so far."""
        return len(self._names[job])

    def add(self, life: ProcessOfRank, records: ProcessStepRecords) -> None:
        """Add records of a process."""
        self._lives[life].append(records)

    def tables(self, jobs: Sequence[str], sources: Sequence[str]) -> tuple[RankSteps, ...]:
        """Return the steps of all jobs. jobs, sources: the names by their codes.

        Ranks of one attempt are matched without clocks: by their first step, and by how often they started with it.
        """
        launches: defaultdict[tuple[int, tuple[int, int]], list[RankSteps]] = defaultdict(list)
        turns: defaultdict[tuple[int, int, int], list[str]] = defaultdict(list)
        for life in sorted(self._lives, key=self._begin_of):
            lives = turns[life.job, life.rank, life.first_step]
            if life.run_id not in lives:
                lives.append(life.run_id)
            process = life.first_step, lives.index(life.run_id)
            launches[life.job, process].append(_rank_steps(life, process, self._lives[life], jobs, sources))
        by_job: defaultdict[int, list[RankSteps]] = defaultdict(list)
        for (job, _), ranks in launches.items():
            by_job[job] += with_common_ends(ranks)
        return tuple(one for parts in by_job.values() for one in within_memory(parts))

    def _begin_of(self, life: ProcessOfRank) -> tuple[int, ProcessOfRank]:
        return min(int(records.time.min()) for records in self._lives[life]), life


def _rank_steps(
    life: ProcessOfRank,
    process: tuple[int, int],
    parts: Sequence[ProcessStepRecords],
    jobs: Sequence[str],
    sources: Sequence[str],
) -> RankSteps:
    one = _joined(parts)
    return RankSteps(
        jobs[life.job], "", life.rank, life.host, process,
        time=one.time,
        step=one.step,
        count=one.steps,
        first=(one.steps == 1) & (one.step == life.first_step),
        took=one.took,
        names=one.names,
        ns=one.ns,
        source=sources[one.source],
    )  # fmt: skip


def _joined(parts: Sequence[ProcessStepRecords]) -> ProcessStepRecords:
    """Return all records of a process, in order of time; duplicates count once."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    tables = []
    for part in parts:
        table = np.full((len(part.step), len(names)), NOT_LOGGED, dtype=np.int64)
        table[:, [names.index(name) for name in part.names]] = part.ns
        tables.append(table)
    ns = np.concatenate(tables)
    time, step, steps, took = (np.concatenate(column) for column in zip(*(part[:4] for part in parts), strict=True))
    _, rows = np.unique(np.column_stack((time, step)), axis=0, return_index=True)
    return ProcessStepRecords(time[rows], step[rows], steps[rows], took[rows], names, ns[rows], parts[0].source)
