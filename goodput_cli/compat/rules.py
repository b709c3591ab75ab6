"""The query of the reference library, and the rules by which it counts time in other categories: one for every possible
movement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goodput_cli.accounting.options import HOW
from goodput_cli.vocabulary.categories import Category, CategoryKey
from goodput_cli.vocabulary.option import TomlRows, bounded, option
from goodput_cli.vocabulary.when import ACCEPTED_DURATIONS

_DOWN = (Category.RECOVERY.id, Category.UNDETERMINED.id, Category.QUEUED.id)
_WASTED = Category.WASTED.id
OUTSIDE: CategoryKey = ("outside", None)
"""Not part of the job's time in one of the systems."""
_KEPT = (Category.PRODUCTIVE.id, Category.PROGRAM_STARTUP.id, Category.STALL.id)
_NAMED = {"phase": "phase", "checkpoint": "checkpoint_mean", "inside_a_step": "phase", "load": "load_counted"}
_OF_EVENTS = {
    Category.CUSTOM.id: "custom_outside_step",
    Category.DATA_LOADING_SYNC.id: "load_not_counted",
    Category.SAVE.id: "checkpoint_mean",
    Category.RESTORE.id: "checkpoint_mean",
}
_BETWEEN_STEPS = {
    **dict.fromkeys(_DOWN, "outage_productive"),
    Category.STOPPED.id: "stop_productive",
    Category.PROGRAM_STARTUP.id: "startup_productive",
    Category.STALL.id: "stall_productive",
    _WASTED: "lost_productive",
}


@dataclass(frozen=True, kw_only=True)
class ReconcileTimeout:
    """Query of the reference library."""

    timeout: float = option(
        600.0,
        HOW,
        "Time limit for the reference library.  [default: 10m]",
        about="Time limit for the reference library in seconds.",
        metavar="DURATION",
        read=bounded(
            float,
            f"is not a positive duration; use one such as {ACCEPTED_DURATIONS}, or a number of seconds",
            above=0,
            most=9e9,
            unit=1,
        ),
    )


@dataclass(frozen=True)
class DifferingRule:
    """A rule of the library that differs from ours: a table of `rules.toml`."""

    title: str
    """A short title, for a table."""
    text: str
    """The behavior of the library, and ours, in sentences."""


RULES: Mapping[str, DifferingRule] = TomlRows(Path(__file__).with_name("rules.toml"), DifferingRule)
"""Description of a rule, by its code. The codes are part of the JSON."""

SURPLUS = ("counted_twice", "counted_outside", "load_counted")
"""Rules that count time again: it moves from the library's own `other`, which is the remainder of its types."""
_BY_CLAIM = {
    "to_the_job_end": "end_productive",
    "from_the_last_step": "in_flight_recovery",
    "above_the_mean": "startup_by_mean",
    "steps_left_out": "steps_left_out",
    "back_to_step_0": "back_to_step_0",
    "no_job_end": "no_job_end",
    "no_start_line": "no_start_line",
    "no_steps": "no_steps",
    "before_the_first_step": "before_first_step",
    "save_subtracted": "save_subtracted",
    "job_end_before_last_step": "job_end_before_last_step",
    "load_between_steps": "load_not_counted",
    "events_overlap": "events_overlap",
    "unclaimed": "unclaimed",
}


def name_rule(claim: str, here: CategoryKey, there: CategoryKey) -> str:
    """Return the code of the rule by which the library's claim (`LibraryClaim.rule`) moves time from `here` to
    `there`."""
    ours, theirs = here[0], there[0]
    if ours == Category.EXCLUDED.id or there == OUTSIDE:
        return "excluded" if ours == Category.EXCLUDED.id else "outside_total"
    if theirs in (Category.OTHER.id, Category.PRODUCTIVE.id) and ours in _OF_EVENTS:
        return _OF_EVENTS[ours]
    if claim == "first_step" and ours == Category.PROGRAM_STARTUP.id:
        return "startup_by_mean"
    if claim in ("between_steps", "first_step"):
        return _BETWEEN_STEPS.get(ours, "between_steps_productive")
    if claim == "recorded_again":
        return "kept_wasted" if ours in _KEPT else "redone_with_gaps"
    if claim in _NAMED:  # an event with a separate type there, in another category here
        return "named_in_lost" if ours == _WASTED else _NAMED[claim]
    return _BY_CLAIM.get(claim, "other_reason")


def name_surplus(claim: str, here: CategoryKey, inside: bool) -> str:
    """Return the code of the rule by which the library counts time of `here` again, or time that is not part of its
    total (not `inside`)."""
    if not inside:
        return "counted_outside"
    return "load_counted" if claim == "load" and here[0] in _KEPT else "counted_twice"


CALCULATOR = "resiliency calculator"
CALCULATOR_RULES = {
    "own_event": "the calculator adds one event",
    "ranks_start_once": "goodput counts the start lines of many ranks as one start",
    "before_the_job": "in goodput, the job begins with its first scheduled or start line",
    "after_the_last_event": "the last event has another time",
    "excluded": "you excluded time in goodput",
    "counted_but_not_kept": "steps between the lowest load and the highest save that are not in the final progress",
    "kept_but_not_counted": "kept steps below the lowest load or above the highest save count only in goodput",
    "other_runtime": "the runtime differs",
}
"""Description of a rule, by its code. The codes are part of the JSON."""
