"""Step breakdown: the time of each phase inside steps, by rank, and the steps of each process of a rank that
goodput's recorder wrote. It is a table next to the events, like metrics.

A phase is an amount of time within steps. It claims no time and does not affect the ledger. This module defines the
phases and keeps what was read in bounded memory (docs/inside-steps.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Mask

Statistic = Literal["rank", "job", "min", "max"]
"""Scope of a number: one rank, the whole job (whoever logs it), or the minimum or maximum over all ranks."""
NOT_LOGGED = -1
"""Value of ns columns that were not logged."""
JOB, FEWEST, MOST = -1, -2, -3
"""Values of `rank` for the other statistics: whole job, minimum, maximum."""
RANKS: Mapping[Statistic, int] = {"job": JOB, "min": FEWEST, "max": MOST}
MOST_RANKS = 1 << 20
MOST_PHASES = 64
"""Maximum number of phase names per job: memory stays bounded for any log."""
LONGEST_NAME = 80
LONGEST_NS = 10**18
"""Maximum duration of a phase or a step; a longer one is invalid."""
TIMES_ITS_STEP = 3
"""Maximum ratio of a phase to its steps. A larger one means a wrong unit, or the time of something else."""
MOST_CELLS = 16_000_000
"""Maximum number of cells of a job: ranks x records x phases (8 bytes each). Beyond it, two blocks of steps are
merged."""


class PhaseClass(StrEnum):
    """Use of a phase as evidence about a rank."""

    OWN = "own"
    """Work without waiting for other ranks."""
    MIXED = "mixed"
    """Work that may contain collectives, and so waiting."""
    WAIT = "wait"
    """Waiting, or moving data between ranks."""
    RL = "rl"
    """Work in a part of a step of reinforcement learning."""
    LEDGER = "in the ledger"
    """Time with a separate category, not part of the net step time."""
    REST = "rest"


CLASSES: Mapping[str, PhaseClass] = {
    "data": PhaseClass.OWN,
    "gc": PhaseClass.OWN,
    "forward": PhaseClass.OWN,
    "backward": PhaseClass.OWN,
    "forward_backward": PhaseClass.MIXED,
    "optimizer": PhaseClass.MIXED,
    "communication": PhaseClass.WAIT,
    "wait": PhaseClass.WAIT,
    "generate": PhaseClass.RL,
    "reward": PhaseClass.RL,
    "train": PhaseClass.RL,
    "sync": PhaseClass.RL,
    "save": PhaseClass.LEDGER,
    "evaluation": PhaseClass.LEDGER,
    "other": PhaseClass.REST,
}
"""Every phase and its class, in the order of tables. Other phases of a mapping are mixed, because their class is
unknown."""
STEP_TIME = "step"
"""Replaces the phase for the time of the whole step."""


def class_of(phase: str) -> PhaseClass:
    """Return the class of a phase."""
    return CLASSES.get(phase, PhaseClass.MIXED)


class PhaseName(NamedTuple):
    """A phase as a log names it."""

    name: str
    """The name as logged. Untrusted text."""
    phase: str
    """The phase in `CLASSES`, or the name itself."""
    parent: str = ""
    """The phase that contains this one; "": none, so that it adds up with the other phases of the step."""


class PhaseTime(NamedTuple):
    """The time of one phase in one line."""

    name: PhaseName
    ns: int
    of: Literal["each", "all", "last"] = "each"
    """Mean of one step, sum of all steps since the previous record, or the last step alone."""
    rank: int = JOB
    """A rank, or one of `RANKS`."""
    host: str = ""


@dataclass(frozen=True)
class RankSteps:
    """Time by phase of one rank of one process (or of another scope in `rank`): n records in order of steps."""

    job: str
    pool: str
    """The program of the job, such as trainer or generator; pools are never added up. "": the only one."""
    rank: int
    host: str
    process: tuple[int, int] | None
    """(step resumed from, number of earlier resumes of this rank from there): the same for all ranks of one attempt.
    None: the times of the records determine the attempt."""
    time: I64
    """End of the last step of a record: ns since 1970 UTC by the clock of its host."""
    step: I64
    """The last step of each record, from 1."""
    count: I64
    """Number of steps in each record."""
    first: Mask
    """True for a record of only the first step of its process, which compiles."""
    took: I64
    """ns of all its steps, including everything the program did in them; NOT_LOGGED if unknown."""
    names: tuple[PhaseName, ...]
    ns: I64
    """int64[n, len(names)]: ns of each phase in all steps of the record; NOT_LOGGED if unknown."""
    summed: int = 1
    """Steps per block, if blocks were summed to save memory."""
    source: str = ""

    def __len__(self) -> int:
        return len(self.step)

    @property
    def statistic(self) -> Statistic:
        """Return the scope of the numbers."""
        return next((name for name, code in RANKS.items() if code == self.rank), "rank")


def in_blocks(one: RankSteps, size: int) -> RankSteps:
    """Return the records with the steps of each block of `size` merged into one; a first step stays separate."""
    if not len(one):
        return one
    block = np.where(one.first, -1 - np.arange(len(one)), (one.step - 1) // size)
    return replace(_summed(one, block), summed=size)


def _summed(one: RankSteps, block: I64) -> RankSteps:
    """Return the records with neighbors of one block merged into one."""
    heads = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    lasts = np.append(heads[1:], len(one)) - 1
    logged = one.ns != NOT_LOGGED
    sums = np.add.reduceat(np.where(logged, one.ns, 0), heads, axis=0)
    known = np.add.reduceat(logged, heads, axis=0) > 0
    timed = np.minimum.reduceat(one.took, heads) != NOT_LOGGED
    return replace(
        one,
        time=one.time[lasts],
        step=one.step[lasts],
        count=np.add.reduceat(one.count, heads),
        first=one.first[heads],
        took=np.where(timed, np.add.reduceat(one.took, heads), NOT_LOGGED),
        ns=np.where(known, sums, NOT_LOGGED),
    )


def with_common_ends(ranks: Sequence[RankSteps]) -> list[RankSteps]:
    """Return the ranks of one attempt with common ends. The records of each rank are summed up to steps at which no
    record of another rank is incomplete."""
    if any(len(one) and (np.diff(one.step) <= 0).any() for one in ranks):
        return [*ranks]  # the step numbers went back
    ends = np.unique(np.concatenate([one.step for one in ranks]))
    apart = np.zeros(len(ends), dtype=np.bool_)
    for one in ranks:
        at = np.minimum(np.searchsorted(one.step, ends), len(one) - 1)
        begin = np.append(one.step[0] - one.count[0], one.step[:-1])
        apart |= (begin[at] < ends) & (ends < one.step[at])
    if not apart.any():
        return [*ranks]
    return [_summed(one, np.searchsorted(ends[~apart], one.step)) for one in ranks]


def within_memory(parts: Sequence[RankSteps], most: int = MOST_CELLS) -> tuple[RankSteps, ...]:
    """Return the parts in bounded memory: all with blocks of one size, doubled until they fit."""
    found, size = tuple(parts), 1
    while sum(one.ns.size for one in found) > most and any(len(one) > 2 for one in found):
        size *= 2
        found = tuple(in_blocks(one, size) for one in found)
    return found


def is_too_long(ns: I64, took: I64) -> Mask:
    """Return True for phases that are impossibly long for their steps. took: ns of the steps, or NOT_LOGGED."""
    return np.asarray((took != NOT_LOGGED) & (ns // TIMES_ITS_STEP > took))


def safe_name(text: str) -> str:
    """Return the name of a phase as stored: 80 printable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:LONGEST_NAME])


def few_names(names: Iterable[PhaseName]) -> tuple[PhaseName, ...]:
    """Return each name once, in order, at most 64."""
    return tuple(dict.fromkeys(names))[:MOST_PHASES]


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
