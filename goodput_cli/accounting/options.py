"""Options of the accounting, and the bounds of an amount (accounting §7) as long as neither the log nor an option
decides between two readings.

A new option is a field of `Method`. The command line, the keywords of the library, settings, JSON and the reports use
the field. No NumPy here, because `--help` imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from goodput_cli.vocabulary.option import bounded, option
from goodput_cli.vocabulary.text import exact, plural

RULES = 3
"""Version of the rules (docs/accounting.md). A change that changes numbers increases it, and every answer contains it.
Answers without it are of version 1."""
DataLoading = Literal["overlapped", "blocking"]
Planned = Literal["yes", "no"]
UnknownFalls = Literal["restarts", "rollbacks"]
HOW, WHEN = "Accounting", "Time"
"""Headings in `--help`."""
_read_factor = bounded(float, "is not a factor; use a number such as 5, or 0 to switch it off", least=0)


@dataclass(frozen=True)
class Method:
    """Options of the accounting that do not depend on the job, except the reference step time."""

    data_loading: DataLoading = option(
        "overlapped",
        HOW,
        "Count data loading inside steps as badput (blocking) or not.",
        about="'blocking' counts data loading inside steps as badput; 'overlapped' does not.",
        choices=("overlapped", "blocking"),
        label="data loading",
        settings={"show_default": True},
    )
    async_saves: bool = option(
        False,
        HOW,
        "Do not count checkpoint saves as badput: they run in the background.",
        about="Do not count saves in a checkpoint log as badput.",
        label="saves",
        phrase=lambda on: "asynchronous" if on else "block training",
    )
    stall_factor: float = option(
        5.0,
        HOW,
        "Count a step beyond X times the usual step time as a stall; 0: off.  [default: 5]",
        about="A step longer than this multiple of the usual step time counts as a stall. 0: off.",
        metavar="X",
        read=_read_factor,
        label="stall factor",
        phrase=lambda factor: exact(factor) if factor else "off",
    )
    exclude_stopped: bool = option(
        False,
        HOW,
        "Exclude planned stops, between a clean end and the next start.",
        about="Exclude planned stops from the window.",
        label="excluded",
        phrase=lambda on: "planned stops" if on else "",
    )
    planned: Planned | None = option(
        None,
        HOW,
        "Treat ambiguous stops between attempts as planned (yes) or as failures (no).  [default: auto]",
        about="Treat ambiguous stops between attempts as planned ('yes') or failures ('no'). None: automatic.",
        choices=("yes", "no"),
        label="planned stops",
        phrase=lambda answer: {"yes": "all that the log shows", "no": "not by a job end alone"}.get(answer, ""),
    )
    hindsight: bool = option(
        True,
        WHEN,
        "Show each window as it was known at its end (slower).",
        about="Count steps that were repeated after the window as wasted.",
        negative=True,
        follows="every",
        label="hindsight",
        phrase=lambda on: "steps repeated later are wasted" if on else "as known at the end of the window",
    )


@dataclass(frozen=True)
class AccountingOptions:
    """Options of the accounting of one job."""

    method: Method = Method()
    reference_ns: Fraction | Literal["auto"] | None = None
    """The reference step time in ns, exact. A checkpoint log takes "auto" for None (accounting §6)."""
    exclusions: tuple[tuple[int, int], ...] = ()
    """Windows [start, end) in ns that the user excluded."""
    unknown_falls: UnknownFalls = "restarts"
    """How to treat step numbers that go back, if the log does not show whether the process kept running (§3)."""


GOODPUT = "goodput"
"""The quantity that is productive time."""
LEAST_POINTS = 0.5
"""Points of goodput. Readings that differ by no more are one number."""
RISEN_LEVEL = "risen_level"
"""Steps became slower and stayed so, and no reference step time was given (accounting §6)."""
NO_CLOCK = "no_clock"
"""No clock goes on across a restart, so that the downtime is unknown."""
UNTIMED_PHASES = "untimed_phases"
"""Saves or evaluations of unknown length, whose time may count as training."""
EPOCH_OR_RESTART = "epoch_or_restart"
"""Steps begin to count again: as the next epoch, or in another process."""
ADVICE: Mapping[str, str] = {
    RISEN_LEVEL: "pass --reference-step-time",
    NO_CLOCK: "log the time of day",
    UNTIMED_PHASES: "log how long saves and evaluations take",
    EPOCH_OR_RESTART: "log the epoch, or a line when a process starts",
}
"""The user's way to decide between the readings, by reason."""
OF_UNKNOWN_LENGTH: Mapping[str, Callable[[int], str]] = {
    NO_CLOCK: lambda count: f"downtime is not logged: no clock goes on across {plural(count, 'restart')}",
    UNTIMED_PHASES: lambda count: f"saves or evaluations of unknown length ({count}) may count as training",
}
"""The reason of a bound, by its code, for a number of lines."""
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


def both_bounds(
    quantity: str, least: int, most: int, reason: str, text: str, lines: tuple[str, ...]
) -> tuple[Bound, Bound]:
    """Return the bounds of a quantity on both sides (ns)."""
    return Bound(quantity, "at_least", least, reason, text, lines), Bound(
        quantity, "at_most", most, reason, text, lines
    )


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
