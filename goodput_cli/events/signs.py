"""Signs of a recovery: moments that lines name between the end of one attempt and the training of the next, a table
beside the events. A sign is no event: it moves no end, no start and no second of the ledger (docs/accounting.md §10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, TypeVar

from goodput_cli.events.text.stamps import Stamp
from goodput_cli.vocabulary.when import NS_PER_SECOND


class Point(IntEnum):
    """The moments of an outage, in the order in which they come."""

    LAST_PROGRESS = 0
    FAILED = 1
    DETECTED = 2
    DECIDED = 3
    TERMINATED = 4
    REQUEUED = 5
    ALLOCATED = 6
    RENDEZVOUS_BEGUN = 7
    HEALTH_CHECKED = 8
    RENDEZVOUS_DONE = 9
    WORKERS_STARTED = 10
    INITIALISED = 11
    RESTORED = 12
    TRAINING_AGAIN = 13
    CAUGHT_UP = 14

    @property
    def words(self) -> str:
        """As people and JSON read it."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Sign:
    """One line that names a moment."""

    job: str
    point: Point
    time: int
    """ns since 1970 UTC."""
    where: str
    """`file:line`, or the insertId of an entry."""
    host: str = ""
    rank: int | None = None
    facts: Mapping[str, str | int] = field(default_factory=dict)
    """What else the line says: `by` (launcher, agent, scheduler, hand), `left` and `of` (restarts left and
    allowed), `timeout_ns` (of a watchdog), `exact` (1 where a moment was worked out from the line's own words),
    `allocation` (a scheduler's number), `left_nodes`, `came_nodes`, `standby`. Untrusted text."""


@dataclass(frozen=True)
class Cycle:
    """The time between two rendezvous of a job, as NVRx' launcher writes it into a file: who trained, who stood by."""

    job: str
    allocation: str
    """The scheduler's number of the job. Untrusted text."""
    attempt: int
    """How often the scheduler had started it again."""
    number: int
    """From 0 in each attempt; a failure raises it."""
    begin: int
    """ns since 1970 UTC: right behind the rendezvous."""
    end: int | None
    """When the launcher closed it, which is no moment of a recovery; None: nobody says."""
    active: tuple[str, ...]
    """The nodes that trained. Untrusted text."""
    standby: tuple[str, ...]
    """The nodes that waited to stand in."""
    where: str = ""
    """`file:line`."""

    @property
    def standby_ns(self) -> int | None:
        """ns of all nodes that stood by, added up; None where nobody says when it ended."""
        return None if self.end is None else len(self.standby) * (self.end - self.begin)

    def left_since(self, before: Cycle) -> tuple[str, ...]:
        """The nodes that trained in the cycle before, and do not in this one."""
        here = set(self.active)
        return tuple(one for one in before.active if one not in here)

    def came_since(self, before: Cycle) -> tuple[str, ...]:
        """The nodes that train in this cycle, and did not in the one before."""
        there = set(before.active)
        return tuple(one for one in self.active if one not in there)

    def of_job(self, job: str, where: str) -> Cycle:
        """The same, of a job that is known by now."""
        return replace(self, job=job, where=where)


class CycleFile(NamedTuple):
    """What a file says, before its job is known."""

    source: int
    line: int
    generation: int
    """How often it was written anew."""
    cycle: Cycle
    log: str
    """The log that it names. Untrusted text."""


@dataclass(frozen=True, slots=True)
class SaidSign:
    """What the words of a line say of a moment: all of a sign but when and where it was written."""

    point: Point
    facts: Mapping[str, str | int] = field(default_factory=dict)
    host: str = ""
    rank: int | None = None


@dataclass(slots=True)
class UntimedSign:
    """A sign before its time and job are known."""

    said: SaidSign
    line: int
    """From 1; 0 for what has none."""
    stamp: Stamp
    entry: int = -1
    """The code of the Cloud Logging entry that says it; -1: none does."""
    allocation: str = ""
    """The number of a scheduler whose row says it."""


@dataclass(frozen=True, slots=True)
class RecordedSign:
    """A sign of a record, whose time and job are known."""

    said: SaidSign
    ns: int
    job: int
    """Its code, as that of the source."""
    source: int
    line: int


MOST_SIGNS = 10_000
"""So many signs a job are kept: nobody can fill memory with lines."""
_MINUTE = 60 * NS_PER_SECOND
_OneSign = TypeVar("_OneSign")


def fewer(signs: Sequence[_OneSign], when: Callable[[_OneSign], tuple[Point, int]]) -> list[_OneSign]:
    """At most `MOST_SIGNS` of some signs, in their order: the first and the last of each point in each minute, or in
    each of as many minutes as it takes. when: of a sign, which point and ns."""
    kept, length = list(signs), _MINUTE
    while len(kept) > MOST_SIGNS:
        bounds: dict[tuple[Point, int], tuple[_OneSign, _OneSign]] = {}
        for one in kept:
            point, ns = when(one)
            first, last = bounds.get((point, ns // length), (one, one))
            bounds[point, ns // length] = (
                one if ns < when(first)[1] else first,
                one if ns >= when(last)[1] else last,
            )
        wanted = {id(one) for pair in bounds.values() for one in pair}
        kept, length = [one for one in kept if id(one) in wanted], 2 * length
    return kept


def in_order(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    """The signs in order of time, whatever the order of their files."""
    return tuple(sorted(signs, key=lambda sign: (sign.time, sign.job, sign.point, sign.where, sign.host)))


_LONGEST_NAME = 80


def plain(text: str) -> str:
    """A name in a log as it is kept: 80 printable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_NAME])
