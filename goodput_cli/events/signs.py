"""Recovery events: events between the end of one attempt and the training of the next. They are a table next to the
events of the ledger, and move no end, no start and no second of it (docs/accounting.md §10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple, TypeVar

from goodput_cli.events.text.line_timestamps import Timestamp
from goodput_cli.vocabulary.when import NS_PER_SECOND


class RecoveryPhase(IntEnum):
    """The phases of a recovery, in order."""

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
        """Return the name for people and JSON."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class RecoveryEvent:
    """One line that proves a recovery event."""

    job: str
    point: RecoveryPhase
    time: int
    """ns since 1970 UTC."""
    where: str
    """`file:line`, or the insertId of an entry."""
    host: str = ""
    rank: int | None = None
    facts: Mapping[str, str | int] = field(default_factory=dict)
    """Other contents of the line: `by` (launcher, agent, scheduler, hand), `left` and `of` (restarts left and allowed),
    `timeout_ns` (of a watchdog), `exact` (1 if the time was derived from the line's text), `allocation` (a scheduler's
    number), `left_nodes`, `came_nodes`, `standby`. Untrusted text."""


@dataclass(frozen=True)
class Cycle:
    """The time between two rendezvous of a job, from a file of NVRx' launcher, with its active and standby nodes."""

    job: str
    allocation: str
    """The scheduler's number of the job. Untrusted text."""
    attempt: int
    """Number of earlier starts by the scheduler."""
    number: int
    """Number from 0 in each attempt; a failure increments it."""
    begin: int
    """ns since 1970 UTC: right after the rendezvous."""
    end: int | None
    """The time when the launcher closed it, which is not a recovery event; None: unknown."""
    active: tuple[str, ...]
    """The nodes that trained. Untrusted text."""
    standby: tuple[str, ...]
    """The standby nodes."""
    where: str = ""
    """`file:line`."""

    @property
    def standby_ns(self) -> int | None:
        """Return the total ns of all standby nodes; None if the end is unknown."""
        return None if self.end is None else len(self.standby) * (self.end - self.begin)

    def of_job(self, job: str, where: str) -> Cycle:
        """Return the cycle with its job and location."""
        return replace(self, job=job, where=where)


class CycleFile(NamedTuple):
    """The contents of a file, before its job is known."""

    source: int
    line: int
    generation: int
    """Number of times the file was rewritten."""
    cycle: Cycle
    log: str
    """The log that the file names. Untrusted text."""


@dataclass(frozen=True, slots=True)
class RecoveryEventText:
    """The recovery event in the text of a line, without its time and location."""

    point: RecoveryPhase
    facts: Mapping[str, str | int] = field(default_factory=dict)
    host: str = ""
    rank: int | None = None


@dataclass(slots=True)
class UntimedRecoveryEvent:
    """A recovery event before its time and job are known."""

    said: RecoveryEventText
    line: int
    """From 1; 0 if it has no line."""
    stamp: Timestamp
    entry: int = -1
    """The code of the Cloud Logging entry that contains it; -1: none."""
    allocation: str = ""
    """The number of the scheduler's row that contains it."""


@dataclass(frozen=True, slots=True)
class RecordedRecoveryEvent:
    """A recovery event of a record with a known time and job."""

    said: RecoveryEventText
    ns: int
    job: int
    """Its code, like that of the source."""
    source: int
    line: int


MOST_SIGNS = 10_000
"""Maximum number of recovery events per job: memory stays bounded for any log."""
_MINUTE = 60 * NS_PER_SECOND
_OneSign = TypeVar("_OneSign")


def thin_out(signs: Sequence[_OneSign], when: Callable[[_OneSign], tuple[RecoveryPhase, int]]) -> list[_OneSign]:
    """Return at most `MOST_SIGNS` recovery events, in their order: the first and the last of each phase in each minute,
    or in longer periods if necessary. when: returns the phase and ns of an event."""
    kept, length = list(signs), _MINUTE
    while len(kept) > MOST_SIGNS:
        bounds: dict[tuple[RecoveryPhase, int], tuple[_OneSign, _OneSign]] = {}
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


def in_order(signs: Iterable[RecoveryEvent]) -> tuple[RecoveryEvent, ...]:
    """Return the recovery events in order of time, independent of the order of their files."""
    return tuple(sorted(signs, key=lambda sign: (sign.time, sign.job, sign.point, sign.where, sign.host)))


_LONGEST_NAME = 80


def plain(text: str) -> str:
    """Return a name from a log as stored: 80 printable characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_NAME])
