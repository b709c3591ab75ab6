"""The measures: a row each. Which group one is in decides where a comparison shows it."""

from __future__ import annotations

from collections.abc import Mapping

from goodput_cli.analysis.measures.measure import Measure, seconds_of
from goodput_cli.analysis.measures.reading import (
    ended,
    has_saves,
    has_timed_saves,
    mean,
    number,
    percent,
    save_time,
    time_in,
    undisrupted,
)
from goodput_cli.vocabulary.categories import OVERLAPPED, Category
from goodput_cli.vocabulary.endings import ENDED

GOODPUT = "goodput"
CUSTOM = Category.CUSTOM.id
PREFIXES: Mapping[str, str] = {"custom": CUSTOM, CUSTOM: CUSTOM}
"""What may stand before `:LABEL`, and the measure that has a value for each label."""
STEP_STATISTICS = ("ideal", "mean", "median", "p90", "p99")
"""How attempts end before a disruption."""

_SHARES = (
    Measure(
        GOODPUT,
        "share",
        "Productive share of the window, 0 to 1.",
        time_in(Category.PRODUCTIVE.id),
        metric="goodput_ratio",
    ),
    *(Measure(category.id, "share", category.row.meaning, time_in(category.id)) for category in Category),
    Measure(OVERLAPPED, "share", "Data loading inside a step.", time_in(OVERLAPPED)),
)
_OF_JOB = (
    Measure(
        "window",
        "time",
        "Length of the window without what is excluded.",
        lambda summary: seconds_of(summary.window.counted_ns),
        metric="goodput_window_seconds",
    ),
    Measure("attempts", "count", "Attempts of the job.", number("attempts"), metric="goodput_attempts"),
    Measure("runs", "count", "How often the job name was used.", number("runs")),
    Measure(
        "kept_steps",
        "count",
        "Steps of the window that are part of the final progress.",
        number("kept_steps"),
        metric="goodput_kept_steps",
    ),
)
_OF_DISRUPTIONS = (
    Measure(
        "disruptions",
        "count",
        "Disruptions in the window.",
        number("disruptions"),
        metric="goodput_disruptions",
        better="less",
    ),
    *(
        Measure(
            f"disruptions.{how}",
            "count",
            f"Disruptions that ended an attempt: {how}.",
            ended(how),
            better=None if how == "scale_up" else "less",
        )
        for how in ENDED
    ),
    Measure(
        "mtbf",
        "time",
        "Mean time between disruptions.",
        number("mtbf_seconds"),
        undisrupted,
        metric="goodput_mtbf_seconds",
        better="more",
    ),
    Measure(
        "mean_downtime",
        "time",
        "Mean downtime of a disruption.",
        number("mean_downtime_seconds"),
        undisrupted,
        metric="goodput_mean_downtime_seconds",
        better="less",
    ),
    Measure(
        "mean_time_to_regain",
        "time",
        "Mean time until lost progress was regained.",
        number("mean_time_to_regain_seconds"),
        undisrupted,
        metric="goodput_mean_time_to_regain_seconds",
        better="less",
    ),
    Measure(
        "mean_steps_lost",
        "count",
        "Mean number of steps that a disruption took back.",
        mean(lambda passage: passage.steps_lost),
        undisrupted,
        better="less",
    ),
    Measure(
        "mean_wasted",
        "time",
        "Mean training time that a disruption took back.",
        mean(lambda passage: passage.wasted_seconds),
        undisrupted,
        better="less",
    ),
    Measure(
        "longest_unproductive",
        "time",
        "Longest part of the window without productive time.",
        number("longest_unproductive_seconds"),
        better="less",
    ),
)
_OF_TRAINING = (
    Measure("steps.count", "count", "Step times that were recorded.", number("steps.count"), zero_is_unknown=True),
    *(
        Measure(
            f"steps.{name}",
            "time",
            "Step times.",
            number(f"steps.{name}_seconds"),
            metric="goodput_step_time_seconds",
            labels={"statistic": name},
            better="less",
        )
        for name in STEP_STATISTICS
    ),
    Measure("saves.count", "count", "Checkpoints that were saved.", number("saves.count")),
    Measure(
        "saves.time", "time", "Mean time for which a save blocks training.", save_time, has_timed_saves, better="less"
    ),
    Measure(
        "saves.interval",
        "time",
        "Median time between two saves of one attempt.",
        number("saves.interval_seconds"),
        has_saves,
    ),
    Measure(
        "at_risk",
        "time",
        "Kept training after the last completed save.",
        number("at_risk_seconds"),
        metric="goodput_at_risk_seconds",
        better="less",
    ),
    Measure(
        "at_risk.steps",
        "count",
        "Kept steps after the last completed save.",
        number("at_risk_steps"),
        metric="goodput_at_risk_steps",
        better="less",
    ),
)
_OF_SLICES = (
    Measure(
        "elastic.stepping",
        "ratio",
        "Share of the slices that were stepping.",
        percent("slices.stepping"),
        metric="goodput_stepping_slices_ratio",
        better="more",
    ),
    Measure(
        "elastic.available",
        "ratio",
        "Share of the slices that were available.",
        percent("slices.available"),
        metric="goodput_available_slices_ratio",
        better="more",
    ),
    Measure(
        "elastic.goodput",
        "ratio",
        "Goodput times the slices that were stepping.",
        number("slices.goodput_percent"),
        better="more",
    ),
)

FACTS = (*_OF_JOB, *_OF_DISRUPTIONS, *_OF_TRAINING, *_OF_SLICES)
"""What a comparison shows beside the categories, in this order."""
MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in (*_SHARES, *FACTS)}
"""Every measure by name."""
