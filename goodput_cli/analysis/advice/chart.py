"""The curve of goodput against the interval of saves, as a picture shows it (docs/advice.md, *The chart*)."""

from __future__ import annotations

from dataclasses import dataclass

from goodput_cli.analysis.advice.results import Advice, CurvePoint
from goodput_cli.analysis.sheet import Chart
from goodput_cli.vocabulary.text import percent


@dataclass(frozen=True)
class IntervalChart(Chart):
    """Goodput in percent, intervals in steps; None where there is no such point."""

    title: tuple[str, str]
    """The job, and the advice in a line."""
    points: tuple[CurvePoint, ...]
    """Of the curve."""
    pace_seconds: float
    """s of training a step."""
    advised: tuple[float, float] | None
    """Interval and goodput."""
    today: tuple[float, float] | None
    """The same, on average."""
    recorded: tuple[float, float] | None
    """The same, as this job had it."""
    plateau: tuple[int, int] | None
    """Intervals that are as good."""
    formulas: tuple[tuple[str, float], ...]
    """Young's and Daly's intervals, by name."""


def interval_chart(advice: Advice, title: tuple[str, str]) -> IntervalChart | None:
    """None where there is no curve."""
    points = worth_showing(advice.curve)
    if not points:
        return None
    interval, saves, pace = advice.interval, advice.saves, advice.record.pace_seconds
    young_and_daly = (("Young", interval.formulas.young_seconds), ("Daly", interval.formulas.daly_seconds))
    return IntervalChart(
        words=_words(advice, points),
        title=title,
        points=points,
        pace_seconds=pace,
        advised=_point(interval.every_steps, interval.goodput_percent),
        today=_point(saves.every_steps, interval.today_percent),
        recorded=_point(saves.every_steps, advice.recorded.goodput_percent),
        plateau=interval.plateau_steps,
        formulas=tuple((name, seconds / pace) for name, seconds in young_and_daly if seconds is not None and pace > 0),
    )


def worth_showing(curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """Intervals with at least half the best goodput."""
    best = max((point.goodput_percent for point in curve), default=0.0)
    return tuple(point for point in curve if point.goodput_percent >= best / 2 and best > 0)


def _point(every: int | None, goodput: float | None) -> tuple[float, float] | None:
    return None if every is None or goodput is None else (float(every), goodput)


def _words(advice: Advice, points: tuple[CurvePoint, ...]) -> str:
    """The picture in a sentence or two."""
    best = max(points, key=lambda point: point.goodput_percent)
    said = [
        f"Average goodput against the steps between two saves, {points[0].every_steps} to {points[-1].every_steps}: "
        f"highest with {percent(best.goodput_percent)} at {best.every_steps} steps."
    ]
    if advice.interval.every_steps is not None and advice.interval.goodput_percent is not None:
        said.append(f"Advised: {advice.interval.every_steps} steps, with {percent(advice.interval.goodput_percent)}.")
    if advice.interval.today_percent is not None and advice.saves.every_steps is not None:
        said.append(f"Today, at {advice.saves.every_steps} steps: {percent(advice.interval.today_percent)}.")
    said.append("The table below holds the numbers.")
    return " ".join(said)
