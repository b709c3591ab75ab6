"""Advice as a `Sheet`: the verdict above, the levers as rows, the curve of goodput against the interval below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goodput_cli.analysis.advice.chart import interval_chart, worth_showing
from goodput_cli.analysis.advice.job import JobAdvice
from goodput_cli.analysis.advice.phrases import facts, scenario_lines, verdict_lines
from goodput_cli.analysis.advice.published import published
from goodput_cli.analysis.advice.results import Advice, CurvePoint, Lever
from goodput_cli.analysis.sheet import Audience, Cell, Column, Sheet
from goodput_cli.analysis.table import attribute, columns_of, each

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

LEVERS = columns_of(Lever, attribute)
"""What programs see of a lever."""
_MOST_LEVERS = 10
_MOST_POINTS = 12


def levers_sheet(advice: Advice) -> Sheet:
    """The advice alone."""
    people = tuple(_people(advice))
    rows = [*advice.levers, *([advice.bound] if advice.bound else []), *_scenario(advice)]
    shown = [*advice.levers[:_MOST_LEVERS], *([advice.bound] if advice.bound else [])]
    columns = (*people, *LEVERS)
    return Sheet(
        title=f"Advice for {advice.job}",
        columns=columns,
        rows=_cells(columns, rows),
        grouped_rows=_cells(columns, shown),
        summary=(*verdict_lines(advice), *_what_if(advice)),
        notes=tuple(_notes(advice)),
        sections=tuple(_curve(advice)),
    )


def advice_sheet(advised: JobAdvice) -> Sheet:
    """The whole advice, with the job that it is about."""
    alone = levers_sheet(advised.advice)
    return replace(
        alone,
        summary=(*facts(advised), *alone.summary),
        answer=lambda: _answer(advised),
        chart=interval_chart(advised.advice, _headlines(advised)),
        published=lambda: published(advised),
    )


def _headlines(advised: JobAdvice) -> tuple[str, str]:
    """The job and the advice, above the picture."""
    return advised.analysis.job.name, next(verdict_lines(advised.advice))


def _answer(advised: JobAdvice) -> Answer:
    from goodput_cli.analysis.advice.answer import advice_answer  # msgspec: only where JSON is written

    return advice_answer(advised)


def _cells(columns: Sequence[Column], rows: Sequence[Lever]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip(*(column.values(rows) for column in columns if column.values is not None), strict=True))


def _people(advice: Advice) -> Iterator[Column]:
    people = Audience.PEOPLE
    yield Column("what would buy most", "text", people, attribute("label"))
    yield Column("time gained", "duration", people, each(lambda lever: round(lever.seconds * 1e9)))
    yield Column("points", "points", people, attribute("points"))
    if not any(lever.cost is not None for lever in advice.levers):  # no room for all in 80 columns
        yield Column("goodput", "percent", people, attribute("goodput_percent"))
    if any(lever.accelerator_hours is not None for lever in advice.levers):
        yield Column("accelerator h", "number", people, each(lambda lever: round(lever.accelerator_hours or 0, 2)))
    if any(lever.cost is not None for lever in advice.levers):
        yield Column("cost", "number", people, each(lambda lever: round(lever.cost or 0, 2)))
    yield Column("how", "text", people, attribute("how"))


def _scenario(advice: Advice) -> Iterator[Lever]:
    """The scenario as a row for programs; one that never ends has no seconds and is no row."""
    scenario = advice.scenario
    if scenario is not None and scenario.seconds is not None:
        text = ", ".join(scenario.changes)
        share = 100 * scenario.seconds / advice.recorded.seconds
        yield Lever(
            "scenario", text, text, "all changes together", scenario.how, scenario.seconds, scenario.ns, share,
            scenario.points, scenario.goodput_percent, scenario.accelerator_hours, scenario.cost, {},
        )  # fmt: skip


def _what_if(advice: Advice) -> Iterator[str]:
    if advice.scenario is not None:
        yield from scenario_lines(advice.scenario)


def _notes(advice: Advice) -> Iterator[str]:
    yield from (f"{lever.label}: {lever.assumption}" for lever in advice.levers if lever.name == "async_saves")
    today, recorded = advice.interval.today_percent, advice.recorded.goodput_percent
    against = "" if today is None else f"; average: against {today:.2f} %, not {recorded:.2f} %"
    if advice.levers:
        yield f"levers overlap: they do not add up{against}"
    averages = [lever.points for lever in advice.levers if lever.how == "average"]
    if advice.bound is not None and max(averages, default=0) > advice.bound.points:
        yield "at most: of what this job lost; on average such failures cost more"


def _curve(advice: Advice) -> Iterator[Sheet]:
    points = _thinned(advice.curve)
    if not points:
        return
    percents = [point.goodput_percent for point in points]
    low, high = min(percents), max(percents)
    base = max(low - (high - low) / 10, 0.0)
    columns = (
        Column("every steps", "count", values=attribute("every_steps")),
        Column("every", "duration", values=each(lambda point: round(point.every_seconds * 1e9))),
        Column("average", "percent", values=attribute("goodput_percent")),
        Column("95 % from", "percent", values=each(lambda point: point.ci95_percent[0])),
        Column("95 % to", "percent", values=each(lambda point: point.ci95_percent[1])),
        Column("replayed", "percent", values=attribute("replayed_percent")),
        Column("", "share", values=each(lambda point: (point.goodput_percent - base) / ((high - base) or 1))),
    )
    yield Sheet(
        title="Goodput by interval of saves",
        columns=columns,
        rows=tuple(zip(*(column.values(points) for column in columns if column.values is not None), strict=True)),
        notes=(
            f"bars begin at {base:.1f} %; replayed: this job's own failures again, which no other job will meet",
            "both ends of a gain see the same failures: it is surer than two 95 % ranges look",
        ),
    )


def _thinned(curve: tuple[CurvePoint, ...]) -> list[CurvePoint]:
    """Intervals worth showing, evenly spread over the ratio."""
    good = list(worth_showing(curve))
    step = -(-len(good) // _MOST_POINTS) or 1
    return good[::step]
