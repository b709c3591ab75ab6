"""Advice as metrics and gates, for JUnit and OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterator

from goodput_cli.analysis.advice.job import JobAdvice
from goodput_cli.analysis.advice.phrases import verdict_lines
from goodput_cli.analysis.advice.results import Advice, IntervalAdvice
from goodput_cli.analysis.published import Family, Published
from goodput_cli.vocabulary.text import exact, finite, safe


def published(advised: JobAdvice) -> Published:
    """What is not known has no sample and no property."""
    analysis, advice = advised.analysis, advised.advice
    families = tuple(_families(advice))
    verdict, *more = verdict_lines(advice)
    return Published(
        job=analysis.job.name,
        end_ns=analysis.window.end_ns,
        headline=verdict,
        said=tuple(more),
        properties=(("advice.verdict", advice.interval.verdict), *_properties(families)),
        thresholds=advice.thresholds,
        diagnostics=(*analysis.diagnostics, *advice.diagnostics),
        families=families,
    )


def _families(advice: Advice) -> Iterator[Family]:
    interval = advice.interval
    gains = _bounds(interval.gain_points, interval.gain_ci95_points)
    yield _family("goodput_advice_gain_points", "Points of goodput that the advised interval gains.", "bound", gains)
    yield _family(
        "goodput_advice_interval_seconds", "Training between two saves, as advised.", "bound", _intervals(interval)
    )
    levers = [*advice.levers, *([advice.bound] if advice.bound else [])]
    yield _family(
        "goodput_advice_lever_seconds", "Time that would have been saved; levers overlap.", "lever",
        {lever.name: lever.seconds for lever in levers},
    )  # fmt: skip
    yield _family(
        "goodput_advice_lever_points", "Points of goodput that would have been gained; levers overlap.", "lever",
        {lever.name: lever.points for lever in levers},
    )  # fmt: skip


def _bounds(best: float | None, interval: tuple[float | None, float | None] | None) -> dict[str, float | None]:
    """A figure on average, and the ends of its 95 % interval."""
    low, high = interval or (None, None)
    return {"best": best, "low": low, "high": high}


def _intervals(interval: IntervalAdvice) -> dict[str, float | None]:
    """In seconds of training."""
    if interval.every_steps is None or interval.every_seconds is None:
        return {}
    pace = interval.every_seconds / interval.every_steps
    ends = interval.ci95_steps or (None, None)
    low, high = (None if steps is None else steps * pace for steps in ends)
    return _bounds(interval.every_seconds, (low, high))


def _family(name: str, meaning: str, label: str, values: dict[str, float | None] | dict[str, float]) -> Family:
    known = {key: finite(value) for key, value in values.items()}
    return Family(
        name, meaning, [({label: safe(key)}, exact(value)) for key, value in known.items() if value is not None]
    )


def _properties(families: tuple[Family, ...]) -> Iterator[tuple[str, str]]:
    """A property a sample: `advice.lever_seconds.restart`."""
    for family in families:
        name = family.name.replace("goodput_advice_", "advice.", 1)
        yield from ((".".join([name, *labels.values()]), value) for labels, value in family.samples)
