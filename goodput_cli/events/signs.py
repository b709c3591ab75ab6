"""Signs of a recovery: moments that lines name between the end of one attempt and the training of the next, a table
beside the events. A sign is no event: it moves no end, no start and no second of the ledger (docs/accounting.md §10).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


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
