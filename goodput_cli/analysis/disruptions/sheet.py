"""Disruptions as a `Sheet`: one row each, the totals above, the lines that show it below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from goodput_cli.analysis.disruptions.as_json import disruption_dicts, reliability_dict
from goodput_cli.analysis.disruptions.cost import Price
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Cell, Column, ColumnKind, Sheet
from goodput_cli.vocabulary.text import duration, exact, iso, number, percent, period, plural

CellOf = Callable[[Disruption], Cell]
_EVIDENCE = (
    "last_step",
    "last_sign_of_life",
    "ended",
    "next_start",
    "next_up",
    "resumed_step",
    "first_step",
    "regained",
)
_SHOWN_EVIDENCE = {
    "last_step": "last step",
    "last_sign_of_life": "last sign of life",
    "next_start": "next start",
    "resumed_step": "resumed",
    "regained": "regained",
}
_MOST_EVIDENCE = 10


def disruptions_sheet(analysis: Analysis, price: Price | None) -> Sheet:
    """The disruptions of the window, and what they cost where the price is known."""
    rows = analysis.disruptions
    window = analysis.window
    fields = _fields(rows, price)
    return Sheet(
        title=f"Disruptions of {analysis.job.name}",
        summary=tuple(_summary(analysis, price)),
        columns=tuple(column for column, _ in fields),
        rows=tuple(tuple(cell(row) for _, cell in fields) for row in rows),
        notes=tuple(_notes(analysis, rows)),
        data={
            "job": {"name": analysis.job.name, "start": iso(analysis.job.start_ns), "end": iso(analysis.job.end_ns)},
            "window": {"start": iso(window.start_ns), "end": iso(window.end_ns), "seconds": window.ns / 1e9},
            "disruptions": [
                found | _cost(row.lost_ns, price) for found, row in zip(disruption_dicts(rows), rows, strict=True)
            ],
            "reliability": reliability_dict(analysis.reliability),
            "cost": None if price is None else _total_cost(rows, price),
        },
    )


def _fields(rows: Sequence[Disruption], price: Price | None) -> list[tuple[Column, CellOf]]:
    """The columns and how each is filled. What the eye sees stands in the order of what it can least do without: the
    last ones are left out where there is no room."""
    queued = any(row.queued_ns for row in rows)
    fields: list[tuple[Column, CellOf]] = [
        (Column("no.", "count", "eye"), lambda row: row.number),
        (Column("number", "count", "data"), lambda row: row.number),
        (Column("attempt", "count", "data"), lambda row: row.attempt),
        (Column("down since", "instant", "eye"), lambda row: row.last_sign_of_life_ns),
        (Column("ended", "text", "all" if price is None else "data"), lambda row: row.ended),
        (Column("lost", "count", "eye"), lambda row: row.steps_lost),
        (Column("wasted", "duration"), lambda row: row.wasted_ns),
        (Column("downtime", "duration"), lambda row: row.downtime_ns),
    ]
    if price is not None:
        fields.append((Column("accel. h", "number", "eye"), lambda row: round(price.hours(row.lost_ns), 2)))
    if price is not None and price.per_hour is not None:
        fields.append((Column("cost", "number", "eye"), lambda row: round(price.money(row.lost_ns) or 0.0, 2)))
    fields.append((Column("regained", "duration", "eye"), lambda row: row.regained_after_ns))
    fields.append((Column("queued", "duration", "all" if queued else "data"), lambda row: row.queued_ns))
    if any(_ranks(row) for row in rows):
        fields.append((Column("ranks", "text", "eye"), _ranks))
    return fields + _data_fields(price)


def _data_fields(price: Price | None) -> list[tuple[Column, CellOf]]:
    """Columns that only programs read."""
    fields: list[tuple[str, ColumnKind, CellOf]] = [
        ("last_step", "count", lambda row: row.last_step),
        ("last_sign_of_life", "instant", lambda row: row.last_sign_of_life_ns),
        ("died_before", "instant", lambda row: row.death_latest_ns),
        ("next_start", "instant", lambda row: row.next_start_ns),
        ("next_up", "instant", lambda row: row.next_up_ns),
        ("resumed_step", "count", lambda row: row.resumed_step),
        ("steps_lost", "count", lambda row: row.steps_lost),
        ("undetermined", "duration", lambda row: row.undetermined_ns),
        ("restart", "duration", lambda row: row.restart_ns),
        ("lost", "duration", lambda row: row.lost_ns),
        ("time_to_first_step", "duration", lambda row: row.time_to_first_step_ns),
        ("regained_after", "duration", lambda row: row.regained_after_ns),
        ("ranks_before", "count", lambda row: row.ranks_before),
        ("ranks_after", "count", lambda row: row.ranks_after),
        ("accelerator_hours", "number", lambda row: None if price is None else price.hours(row.lost_ns)),
        ("cost", "number", lambda row: None if price is None else price.money(row.lost_ns)),
        *((f"evidence_{name}", "text", _place_of(name)) for name in _EVIDENCE),
    ]
    return [(Column(name, kind, "data"), cell) for name, kind, cell in fields]


def _place_of(name: str) -> CellOf:
    return lambda row: getattr(row.evidence, name)


def _ranks(row: Disruption) -> str | None:
    if row.ranks_before is None and row.ranks_after is None:
        return None
    before, after = (str(ranks) if ranks is not None else "?" for ranks in (row.ranks_before, row.ranks_after))
    return f"{before} > {after}"


def _cost(ns: int, price: Price | None) -> dict[str, Any]:
    return {
        "accelerator_hours": None if price is None else price.hours(ns),
        "cost": None if price is None else price.money(ns),
    }


def _total_cost(rows: Sequence[Disruption], price: Price) -> dict[str, Any]:
    lost = sum(row.lost_ns for row in rows)
    return {
        "accelerators": price.accelerators,
        "price_per_hour": price.per_hour,
        "lost_seconds": lost / 1e9,
        **_cost(lost, price),
    }


def _summary(analysis: Analysis, price: Price | None) -> Iterator[str]:
    window, rows, found = analysis.window, analysis.disruptions, analysis.reliability
    yield f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)})"
    assert found is not None
    low, high = found.mtbf_ci95_seconds
    up = f"{plural(len(rows), 'disruption')} in {duration(found.exposure_ns)} of being up"
    if found.mtbf_seconds is None:
        yield up + ("" if low is None else f": MTBF at least {_seconds(low)} (95 %)")
    else:
        bounds = f"{_seconds(low)} to {_seconds(high)}" if low is not None and high is not None else "unknown"
        yield f"{up}: MTBF {_seconds(found.mtbf_seconds)} (95 %: {bounds})"
    means = []
    if found.mean_downtime_seconds is not None:
        means.append(f"mean downtime {_seconds(found.mean_downtime_seconds)}")
    if found.mean_time_to_regain_seconds is not None:
        means.append(f"mean time to regain progress {_seconds(found.mean_time_to_regain_seconds)}")
    if means:
        yield ", ".join(means)
    longest = found.longest_unproductive
    idle = f", longest unproductive stretch {duration(longest[1] - longest[0])} ({period(*longest)})" if longest else ""
    yield f"ETTR {percent(100 * found.ettr)}{idle}"
    if price is not None:
        yield _cost_text(rows, price)


def _cost_text(rows: Sequence[Disruption], price: Price) -> str:
    lost = sum(row.lost_ns for row in rows)
    words = f"cost: {duration(lost)} x {exact(price.accelerators)} accelerators = {number(price.hours(lost))} h"
    if price.per_hour is None:
        return words
    return f"{words} x {exact(price.per_hour)} = {price.hours(lost) * price.per_hour:,.2f}"


def _notes(analysis: Analysis, rows: Sequence[Disruption]) -> Iterator[str]:
    if rows:
        yield "lost: steps that had to be trained again, and wasted the time they had taken"
        yield "regained: from the last sign of life until training was past the old last step again"
    if any(row.undetermined_ns for row in rows):
        yield (
            "downtime holds time that may have been training: these attempts died at an unlogged moment between their "
            "last checkpoint and the next start (died_between in the JSON)"
        )
    one_source = len(analysis.table.sources) == 1
    for row in rows[:_MOST_EVIDENCE]:
        yield f"no. {row.number}, attempt {row.attempt}{_steps(row)}: {_evidence(row, one_source)}"
    if len(rows) > _MOST_EVIDENCE:
        yield f"the lines behind the other {len(rows) - _MOST_EVIDENCE} are in JSON and CSV"
    if rows and one_source:
        yield f"lines of {analysis.table.sources[0]}"


def _steps(row: Disruption) -> str:
    if row.last_step is None:
        return ", no step"
    resumed = "" if row.resumed_step is None else f", resumed at {row.resumed_step}"
    return f", last step {row.last_step}{resumed}"


def _evidence(row: Disruption, one_source: bool) -> str:
    """The lines behind a disruption; without the file where it is the same everywhere."""
    places = asdict(row.evidence)
    shown = []
    for name, words in _SHOWN_EVIDENCE.items():
        place = places[name]
        if place is not None:
            line = place.rpartition(":")[2]
            shown.append(f"{words} {line if one_source and line.isdigit() else place}")
    return ", ".join(shown)


def _seconds(seconds: float) -> str:
    return duration(round(seconds * 1e9))
