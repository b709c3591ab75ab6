"""Bounds (accounting §7): limits of an amount if the log does not decide between two readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

GOODPUT = "goodput"
"""The quantity that is productive time."""
LEAST_POINTS = 0.5
"""Points of goodput. Readings that differ by no more are one number."""
RISEN_LEVEL = "risen_level"
"""Steps became slower and stayed so, and no reference step time was given (accounting §6)."""
NO_CLOCK = "no_clock"
"""No clock goes on across a restart, so that the downtime is unknown."""
EPOCH_OR_RESTART = "epoch_or_restart"
"""Steps begin to count again: as the next epoch, or in another process."""
ADVICE: Mapping[str, str] = {
    RISEN_LEVEL: "pass --reference-step-time",
    NO_CLOCK: "log the time of day",
    EPOCH_OR_RESTART: "log the epoch, or a line when a process starts",
}
"""The user's way to decide between the readings, by reason."""
Direction = Literal["at_least", "at_most"]


@dataclass(frozen=True)
class Bound:
    """One limit of an amount of time that the log leaves open."""

    quantity: str
    """Name of the measure: `goodput`, or a category such as `training_slowdown`."""
    direction: Direction
    """The side of the limit."""
    ns: int
    """The limit."""
    reason: str
    """Code of the reason. Bounds of one reason are readings of one question."""
    text: str
    """The reason in a sentence without a full stop."""
    lines: tuple[str, ...] = ()
    """First lines that show it, as `file:line`."""

    @property
    def seconds(self) -> float:
        """The limit in seconds."""
        return self.ns / 1e9


@dataclass(frozen=True)
class Limits:
    """Limits of a quantity (ns); None if a side is open."""

    at_least: int | None
    at_most: int | None


def question_of(bounds: Sequence[Bound]) -> str:
    """Return why an amount is open, and how the user can decide."""
    advice = ADVICE.get(bounds[0].reason)
    return bounds[0].text + (f"; {advice}" if advice else "")


def limits_of(bounds: Iterable[Bound], quantity: str, ns: int) -> Limits:
    """Return the limits of a quantity whose amount in the ledger is `ns`.

    Questions are independent, so their distances from the ledger add up. A question that states no limit on a side
    leaves that side open.
    """
    moves: dict[str, dict[Direction, int]] = {}
    for bound in bounds:
        if bound.quantity == quantity:
            moves.setdefault(bound.reason, {})[bound.direction] = bound.ns - ns

    def limit(direction: Direction) -> int | None:
        amounts = [one.get(direction) for one in moves.values()]
        return None if None in amounts else ns + sum(filter(None, amounts))

    return Limits(limit("at_least"), limit("at_most"))
