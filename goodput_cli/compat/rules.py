"""The query of the reference library, and the rules by which it counts time in other categories: one for every possible
movement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from goodput_cli.accounting.options import HOW
from goodput_cli.vocabulary.categories import Category, CategoryKey
from goodput_cli.vocabulary.option import bounded, option
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


class DifferingRule(NamedTuple):
    """A rule of the library that differs from ours."""

    title: str
    """A short title, for a table."""
    text: str
    """The behavior of the library, and ours, in sentences."""


RULES: dict[str, DifferingRule] = {
    "outage_productive": DifferingRule(
        "outage is productive",
        "The library counts all time between two consecutive steps as productive, also an outage right after a "
        "checkpoint, which repeats no step. goodput counts it as recovery.",
    ),
    "stop_productive": DifferingRule(
        "planned stop is productive",
        "The library counts a planned stop between two consecutive steps as productive. goodput counts it as stopped.",
    ),
    "startup_productive": DifferingRule(
        "start-up not detected",
        "The library looks for start-up only in the job's first step and in repeated steps. The first step of any "
        "other restart is productive.",
    ),
    "stall_productive": DifferingRule(
        "stall is productive",
        "The library accepts a step of any length. goodput counts a stall beyond a multiple of the usual step time.",
    ),
    "lost_productive": DifferingRule(
        "lost steps are productive",
        "The library counts steps as lost only if their numbers repeat after the last recorded step. goodput "
        "counts every step that is not part of the final progress.",
    ),
    "between_steps_productive": DifferingRule(
        "between two steps",
        "The library counts all time between two consecutive steps as productive, except custom events entirely "
        "inside it. goodput gives each event its own time.",
    ),
    "end_productive": DifferingRule(
        "up to the job's end",
        "The library counts all time from the last step's start to `job_end_time` as productive. goodput counts a "
        "step of usual length, and later events separately.",
    ),
    "startup_by_mean": DifferingRule(
        "start-up beyond the mean",
        "The library counts the first step's time beyond the mean of the others (with outages and stalls) as "
        "start-up. goodput counts its time beyond the median, if it is an outlier.",
    ),
    "in_flight_recovery": DifferingRule(
        "recovery from last step",
        "In the library, recovery begins at the start of the last recorded step. In goodput, it begins at the last "
        "log activity; the step in progress is lost, or kept if its checkpoint was used.",
    ),
    "kept_wasted": DifferingRule(
        "kept steps are wasted",
        "The library counts repeated steps as wasted from the first repeated number on. goodput keeps progress up "
        "to the checkpoint that the final progress is based on.",
    ),
    "redone_with_gaps": DifferingRule(
        "gaps between lost steps",
        "The library counts all time between repeated steps as wasted, including outages. goodput counts only "
        "training.",
    ),
    "named_in_lost": DifferingRule(
        "event among lost steps",
        "The library gives saves, restores and data loading inside lost training their own type. goodput counts "
        "them as lost.",
    ),
    "phase": DifferingRule(
        "phase has its own type",
        "In the library, a phase has its type from its start line to its end line. In goodput, downtime or an "
        "event inside it takes precedence.",
    ),
    "load_counted": DifferingRule(
        "load inside a step",
        "The library counts the first data load, and the loads right before and after a repeated step, as badput, "
        "even during a step. In goodput, a load inside a step overlaps training.",
    ),
    "load_not_counted": DifferingRule(
        "load between steps",
        "The library treats other data loads as asynchronous. goodput counts a load outside of steps as badput.",
    ),
    "checkpoint_mean": DifferingRule(
        "mean of a step's saves",
        "The library uses the mean of all save or restore lines of a step, over hosts and attempts. goodput uses "
        "the union of the hosts' intervals, and counts a second save again.",
    ),
    "save_subtracted": DifferingRule(
        "save subtracted",
        "The library subtracts all saves from productive time, even those outside of it.",
    ),
    "steps_left_out": DifferingRule(
        "steps not consecutive",
        "The library counts time between two step records only if their numbers are consecutive: a log of every "
        "tenth step has no productive time.",
    ),
    "back_to_step_0": DifferingRule("back to step 0", "If step 0 repeats, the library ignores all earlier steps."),
    "no_job_end": DifferingRule(
        "no job end",
        "Without `job_end_time`, the library ignores everything after the last step's start. goodput counts events "
        "and terminations.",
    ),
    "no_steps": DifferingRule("no steps", "Without recorded steps, the library counts nothing as productive or lost."),
    "no_start_line": DifferingRule(
        "restart without a start",
        "Without a start line before a repeated step, the library ignores the time between the last step and it.",
    ),
    "before_first_step": DifferingRule(
        "before the first step",
        "Between a start line and the first step, the library counts only events that have their own type.",
    ),
    "custom_outside_step": DifferingRule(
        "custom not in one step",
        "The library counts a custom event only between two consecutive kept steps, not across the start of a step.",
    ),
    "events_overlap": DifferingRule(
        "overlapping events",
        "The library subtracts the full length of each custom event of a step, even if they overlap.",
    ),
    "unclaimed": DifferingRule("in no category", "The library has no type for this time; it is part of OTHER."),
    "counted_twice": DifferingRule(
        "seconds counted twice",
        "Types of the library overlap (a restore inside training preparation, a phase between two steps). Such "
        "seconds count in each type (marked with +) and reduce OTHER.",
    ),
    "counted_outside": DifferingRule(
        "outside of the total",
        "The library counts time before the first start line and after the last `job_end_time`, although its total "
        "does not.",
    ),
    "outside_total": DifferingRule(
        "total ends earlier",
        "The library's total ends with the last `job_end_time`, even if the job continues. goodput's ends with the "
        "last event.",
    ),
    "excluded": DifferingRule("excluded here", "You excluded this time; the library analyzed the whole job."),
    "no_reference": DifferingRule(
        "no reference step time",
        "The library has no reference step time: slow kept training is fully productive.",
    ),
    "job_end_before_last_step": DifferingRule(
        "job end before last step",
        "In the library, a `job_end_time` before the last step makes that step's time negative.",
    ),
    "set_to_zero": DifferingRule(
        "impossible amount",
        "The library sets a type to 0 if it is negative or longer than the total.",
    ),
    "other_below_zero": DifferingRule(
        "OTHER is never below 0",
        "If the library's types add up to more than the total, it sets OTHER to 0 and the percentages exceed 100.",
    ),
    "other_reason": DifferingRule("counted elsewhere", "The library counts this time under another type."),
}
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
