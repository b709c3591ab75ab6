"""How the reference library is asked, and why it puts time elsewhere than we do: a rule for every way in which a second
can move."""

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
"""Not part of the job's time on one of the sides."""
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
class Asking:
    """How the reference library is asked."""

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
    """A few words, for a table."""
    text: str
    """What the library does, and what we do, in sentences."""


RULES: dict[str, DifferingRule] = {
    "outage_productive": DifferingRule(
        "outage is productive",
        "An outage after which no step is recorded again (a crash right after a checkpoint) lies between two steps in a"
        " row, and all time between these is productive there. Here it is recovery.",
    ),
    "stop_productive": DifferingRule(
        "planned stop is productive",
        "A stop after which the next step follows lies between two steps in a row, so it is productive there. Here it"
        " is stopped.",
    ),
    "startup_productive": DifferingRule(
        "start-up not seen",
        "Start-up is looked for only in the first step of the job and of a step number that comes again. The first step"
        " of any other restart is productive in full there.",
    ),
    "stall_productive": DifferingRule(
        "stall is productive",
        "A step may take any time there. Here what goes beyond a multiple of the usual step time is a stall.",
    ),
    "lost_productive": DifferingRule(
        "lost steps are productive",
        "Steps are lost there only where their numbers come again behind the last step recorded before. Here all steps"
        " are lost from which the final progress does not descend.",
    ),
    "between_steps_productive": DifferingRule(
        "between two steps",
        "All time between two steps in a row is productive there but for custom events wholly inside. Here events claim"
        " their own time wherever they lie.",
    ),
    "end_productive": DifferingRule(
        "up to the job's end",
        "All time from the last step's start to `job_end_time` is productive there. Here the last step counts as long"
        " as a usual one, and events behind it claim their own time.",
    ),
    "startup_by_mean": DifferingRule(
        "start-up beyond the mean",
        "Start-up is what the first step takes beyond the mean of the other steps there, outages and stalls among them."
        " Here it is what it takes beyond the median, if it is an outlier.",
    ),
    "in_flight_recovery": DifferingRule(
        "recovery from last step",
        "Recovery begins at the start of the last step recorded there. Here it begins at the last sign of life, and the"
        " step in flight is lost or, if its checkpoint was used, kept.",
    ),
    "kept_wasted": DifferingRule(
        "kept steps are wasted",
        "Steps recorded again are wasted there from the number that came again first. Here progress is kept up to the"
        " checkpoint that the final progress descends from.",
    ),
    "redone_with_gaps": DifferingRule(
        "gaps between lost steps",
        "All time between steps that are recorded again is wasted there, outages too. Here only training is lost.",
    ),
    "named_in_lost": DifferingRule(
        "event among lost steps",
        "A save, a restore or a load inside training that was lost has its own type there. Here it is lost with it.",
    ),
    "phase": DifferingRule(
        "phase has its own type",
        "A phase has its own type there from its start line to its end line. Here another claim on that time may be"
        " stronger: downtime, or an event inside it.",
    ),
    "load_counted": DifferingRule(
        "load inside a step",
        "The first data load, the last one before a repeated step and the first one after it are badput there, whether"
        " or not a step is in flight, whose time counts as well. Here a load inside a step overlaps training.",
    ),
    "load_not_counted": DifferingRule(
        "load between steps",
        "Other data loads are asynchronous there. Here a load with no step in flight is badput.",
    ),
    "checkpoint_mean": DifferingRule(
        "mean of a step's saves",
        "A save or restore of a step counts the mean of all its lines there, of every host and attempt. Here several"
        " hosts' intervals count as their union, and a second save of a step counts again.",
    ),
    "save_subtracted": DifferingRule(
        "save taken off",
        "Saves are taken off productive time wherever they lie there, also where no productive time is.",
    ),
    "steps_left_out": DifferingRule(
        "steps not in a row",
        "Time between two records counts there only if their numbers follow each other: a log of every tenth step has"
        " no productive time. Here the steps between are training.",
    ),
    "back_to_step_0": DifferingRule(
        "back to step 0",
        "If step 0 is recorded again, all steps before count nowhere there, not even as wasted.",
    ),
    "no_job_end": DifferingRule(
        "no job end",
        "Without `job_end_time` nothing from the last step's start on counts there. Here events and a termination do.",
    ),
    "no_steps": DifferingRule(
        "no steps",
        "Without a recorded step nothing is productive or lost there.",
    ),
    "no_start_line": DifferingRule(
        "restart without a start",
        "If no start line lies before a repeated step, the time from the last step to it counts nowhere there.",
    ),
    "before_first_step": DifferingRule(
        "before the first step",
        "From a start line to the first step only events with a type of their own count there.",
    ),
    "custom_outside_step": DifferingRule(
        "custom not in one step",
        "A custom event counts there only between two steps in a row that are kept: not before the first step, not"
        " after the last, not across the start of a step.",
    ),
    "events_overlap": DifferingRule(
        "overlapping events",
        "Custom events of one step that overlap come off its productive time with all of their lengths there.",
    ),
    "unclaimed": DifferingRule("in no category", "No type of the library claims this time; it is part of OTHER."),
    "counted_twice": DifferingRule(
        "seconds counted twice",
        "Types overlap there (a restore inside training preparation, a phase between two steps): such seconds count"
        " under each, here marked with +, and OTHER is smaller by as much.",
    ),
    "counted_outside": DifferingRule(
        "outside of its total",
        "Time before the first start line or behind the last `job_end_time` is not part of its total, but is counted.",
    ),
    "outside_total": DifferingRule(
        "its total ends earlier",
        "Its total runs from the first start line to the last `job_end_time`, though the job may go on. Here the job"
        " ends with its last event.",
    ),
    "excluded": DifferingRule("excluded here", "You took this time out; the library was asked about the whole job."),
    "no_reference": DifferingRule(
        "no reference step time",
        "The library has no reference step time: kept training is productive however slow it was.",
    ),
    "job_end_before_last_step": DifferingRule(
        "job end before last step",
        "A `job_end_time` that is older than the last step makes its time negative there; it comes off what is"
        " productive.",
    ),
    "set_to_zero": DifferingRule(
        "impossible amount",
        "A type that is negative or longer than the total is set to 0 there.",
    ),
    "other_below_zero": DifferingRule(
        "OTHER is never below 0",
        "Where types add up to more than the total, OTHER is 0 there: its percentages then add up to more than 100.",
    ),
    "other_reason": DifferingRule("counted elsewhere", "The library's claim on this time has another type than ours."),
}
"""Code of a rule -> what it says. The codes are part of the JSON."""

SURPLUS = ("counted_twice", "counted_outside", "load_counted")
"""Rules that count time again: it moves from the library's own `other`, which is what its types leave over."""
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
    """The code of the rule by which the library's claim (`LibraryClaim.rule`) moves time from `here` to `there`."""
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
    if claim in _NAMED:  # an event that has a type of its own there, and here stands under something else
        return "named_in_lost" if ours == _WASTED else _NAMED[claim]
    return _BY_CLAIM.get(claim, "other_reason")


def name_surplus(claim: str, here: CategoryKey, inside: bool) -> str:
    """The code of the rule by which the library counts time of `here` that it has counted already, or that is not part
    of its total (not `inside`)."""
    if not inside:
        return "counted_outside"
    return "load_counted" if claim == "load" and here[0] in _KEPT else "counted_twice"


CALCULATOR = "resiliency calculator"
CALCULATOR_RULES = {
    "own_event": "the calculator counts one event of its own",
    "ranks_start_once": "the start lines of many ranks are one start here",
    "before_the_job": "here the job begins with its first scheduled or start line",
    "after_the_last_event": "events end at another time",
    "excluded": "you took time out here",
    "counted_but_not_kept": "steps between the lowest load and the highest save that the final progress does not hold",
    "kept_but_not_counted": "kept steps below the lowest load or above the highest save count only here",
    "other_runtime": "the runtime differs",
}
"""Code of a rule -> what it says. The codes are part of the JSON."""
