"""What happens inside steps: how long each phase took, by rank; a table beside the events, as metrics are.

A phase is an amount within steps. It claims no time and feeds no figure of the ledger; the module says which phases
there are, and keeps what was read in bounded memory (docs/inside-steps.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Mask

Statistic = Literal["rank", "job", "min", "max"]
"""Whose time a number is: one rank's, the whole job's (whoever logs it), or the least or most of all ranks."""
NOT_LOGGED = -1
"""In columns of ns: no line says it."""
JOB, FEWEST, MOST = -1, -2, -3
"""In place of a rank, by statistic: whole job, min, max."""
RANKS: Mapping[Statistic, int] = {"job": JOB, "min": FEWEST, "max": MOST}
MOST_RANKS = 1 << 20
MOST_PHASES = 64
"""So many names of phases a job are kept: nobody can fill memory with names."""
LONGEST_NAME = 80
LONGEST_NS = 10**18
"""A phase or a step that is longer is no time that can be."""
TIMES_ITS_STEP = 3
"""A phase that is so many times as long as its steps is none: a wrong unit, or the time of something else."""
MOST_CELLS = 16_000_000
"""Ranks x records x phases (8 bytes each) of a job; beyond it two blocks of steps become one."""


class PhaseClass(StrEnum):
    """What a phase can say about a rank."""

    OWN = "own"
    """Done without waiting for other ranks."""
    MIXED = "mixed"
    """Collectives hide inside: it may be waiting."""
    WAIT = "wait"
    """Waiting, or moving data between ranks."""
    RL = "rl"
    """A part of a step of reinforcement learning that is work."""
    LEDGER = "in the ledger"
    """It has a category of its own, and is no part of the net step time."""
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
"""Every phase and its class, in the order of tables. What a mapping names otherwise is mixed: nobody knows."""
STEP_TIME = "step"
"""In place of a phase: the time of the whole step."""


def class_of(phase: str) -> PhaseClass:
    """The class of a phase."""
    return CLASSES.get(phase, PhaseClass.MIXED)


class PhaseName(NamedTuple):
    """A phase as a log names it."""

    name: str
    """As it was logged. Untrusted text."""
    phase: str
    """Which of `CLASSES` it is, or the name itself."""
    parent: str = ""
    """The phase whose time holds it; "": it adds up with the others of the step."""


class PhaseTime(NamedTuple):
    """What one line says of one phase."""

    name: PhaseName
    ns: int
    of: Literal["each", "all", "last"] = "each"
    """Whether it is the mean of one step, the sum of all steps since the record before, or the last step alone."""
    rank: int = JOB
    """A rank, or one of `RANKS`."""
    host: str = ""


@dataclass(frozen=True)
class RankSteps:
    """Time by phase of one rank of one process (or of whatever `rank` stands for): n records in order of steps."""

    job: str
    pool: str
    """Which program of the job, such as trainer or generator; pools are never added up. "": the only one."""
    rank: int
    host: str
    process: tuple[int, int] | None
    """(step resumed from, how often this rank had resumed from there before): the same of all ranks of one launch.
    None: the records' times say which attempt they are of."""
    time: I64
    """ns since 1970 UTC by the clock of its host: when the last step of a record was done."""
    step: I64
    """The last step of each record, from 1."""
    count: I64
    """How many steps it stands for."""
    first: Mask
    """Whether it is the first step of its process alone, which compiles."""
    took: I64
    """ns of all its steps, with whatever the program did in them; NOT_LOGGED where no line says it."""
    names: tuple[PhaseName, ...]
    ns: I64
    """int64[n, len(names)]: ns of each phase in all steps of the record; NOT_LOGGED."""
    summed: int = 1
    """Steps a block, where blocks were summed to save memory."""
    source: str = ""

    def __len__(self) -> int:
        return len(self.step)

    @property
    def statistic(self) -> Statistic:
        """Whose time it is."""
        return next((name for name, code in RANKS.items() if code == self.rank), "rank")


def in_blocks(one: RankSteps, size: int) -> RankSteps:
    """The same with the steps of each block of `size` as one record; a first step stays one of its own."""
    if not len(one):
        return one
    block = np.where(one.first, -1 - np.arange(len(one)), (one.step - 1) // size)
    return replace(_summed(one, block), summed=size)


def _summed(one: RankSteps, block: I64) -> RankSteps:
    """The same with neighbours of one block as one record."""
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
    """Ranks of one launch, whose records may end at different steps: those of each are summed up to steps at which no
    record of another one is under way."""
    if any(len(one) and (np.diff(one.step) <= 0).any() for one in ranks):
        return [*ranks]  # steps went back
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
    """The same in bounded memory: all with blocks of one size, doubled until they fit."""
    found, size = tuple(parts), 1
    while sum(one.ns.size for one in found) > most and any(len(one) > 2 for one in found):
        size *= 2
        found = tuple(in_blocks(one, size) for one in found)
    return found


def is_too_long(ns: I64, took: I64) -> Mask:
    """Which phases are longer than their steps can be. took: ns of the steps, or NOT_LOGGED."""
    return np.asarray((took != NOT_LOGGED) & (ns // TIMES_ITS_STEP > took))


def safe_name(text: str) -> str:
    """The name of a phase as it is kept: 80 printable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:LONGEST_NAME])


def few_names(names: Iterable[PhaseName]) -> tuple[PhaseName, ...]:
    """Each name once, in order, at most 64."""
    return tuple(dict.fromkeys(names))[:MOST_PHASES]
