"""Disruptions as a `Sheet`: one row each, the totals above, the lines that show it below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from goodput_cli.analysis.disruptions.cost import cost_columns, people_cost_columns
from goodput_cli.analysis.disruptions.rows import (
    AT_LEAST,
    COLUMNS,
    EVIDENCE_COLUMNS,
    FIRST,
    PEOPLE_COLUMNS,
    Disruption,
    DisruptionColumns,
    Disruptions,
)
from goodput_cli.analysis.price import Price
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import ordered, seen_by, table_rows
from goodput_cli.vocabulary.text import duration, duration_of_seconds, exact, number, percent, period, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

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
    columns = (*_people_columns(rows, price), *_table_columns(price))
    return Sheet(
        title=f"Disruptions of {analysis.job.name}",
        summary=tuple(_summary(analysis, price)),
        columns=columns,
        rows=table_rows(columns, len(rows), rows.parts),
        notes=tuple(_notes(analysis, rows)),
        answer=lambda: _answer(analysis, price),
    )


def _answer(analysis: Analysis, price: Price | None) -> Answer:
    from goodput_cli.analysis.disruptions.answer import disruptions_answer  # msgspec: only where JSON is written

    return disruptions_answer(analysis, price)


def _people_columns(rows: Disruptions, price: Price | None) -> Iterator[Column]:
    """What people see, in the order of what they can least do without: the last ones are left out where there is no
    room."""
    shown = PEOPLE_COLUMNS if price is None else PEOPLE_COLUMNS | people_cost_columns(price)
    hidden = {"ended"} if price is not None else set()
    if not rows.column("queued_ns").any():
        hidden.add("queued")
    columns = (shown[place] for place in sorted(shown) if shown[place].name not in hidden)
    yield from (replace(one, values=_lost) if one.name == "steps lost" else one for one in columns)
    if len(rows.column("ranks_before")) or len(rows.column("ranks_after")):
        yield Column("ranks", "text", Audience.PEOPLE, _ranks)


def _table_columns(price: Price | None) -> tuple[Column, ...]:
    """What CSV and Parquet have."""
    evidence = (replace(one, name=f"evidence_{one.name}") for one in EVIDENCE_COLUMNS)
    columns = (*COLUMNS, *cost_columns(price), *evidence)
    return ordered(seen_by(Audience.TABLES, columns), *FIRST)


def _lost(part: DisruptionColumns) -> list[int | str | None]:
    """How many steps were lost, `>=12` where there may have been more."""
    pairs = zip(part.values("steps_lost"), part.values("steps_lost_is"), strict=True)
    return [f">={steps}" if bound == "at_least" else steps for steps, bound in pairs]


def _ranks(part: DisruptionColumns) -> list[str | None]:
    pairs = zip(part.values("ranks_before"), part.values("ranks_after"), strict=True)
    return [None if before is after is None else f"{_count(before)} > {_count(after)}" for before, after in pairs]


def _count(ranks: int | None) -> str:
    return "?" if ranks is None else str(ranks)


def _summary(analysis: Analysis, price: Price | None) -> Iterator[str]:
    window, rows, reliability = analysis.window, analysis.disruptions, analysis.reliability
    yield f"{period(window.start_ns, window.end_ns)} ({duration(window.ns)})"
    assert reliability is not None
    low, high = reliability.mtbf_ci95_seconds
    planned = len(rows) - len(rows.unplanned)
    beside = f" and {plural(planned, 'planned scale-up')}" if planned else ""
    up = f"{plural(len(rows) - planned, 'disruption')}{beside} in {duration(reliability.exposure_ns)} of being up"
    if reliability.mtbf_seconds is None:
        yield up + ("" if low is None else f": MTBF at least {duration_of_seconds(low)} (95 %)")
    else:
        bounds = (
            f"{duration_of_seconds(low)} to {duration_of_seconds(high)}"
            if low is not None and high is not None
            else "unknown"
        )
        yield f"{up}: MTBF {duration_of_seconds(reliability.mtbf_seconds)} (95 %: {bounds})"
    means = []
    if reliability.mean_downtime_seconds is not None:
        means.append(f"mean downtime {duration_of_seconds(reliability.mean_downtime_seconds)}")
    if reliability.mean_time_to_regain_seconds is not None:
        means.append(f"mean time to regain progress {duration_of_seconds(reliability.mean_time_to_regain_seconds)}")
    if means:
        yield ", ".join(means)
    longest = reliability.longest_unproductive
    idle = f", longest unproductive stretch {duration(longest[1] - longest[0])} ({period(*longest)})" if longest else ""
    yield f"ETTR {percent(100 * reliability.ettr)}{idle}"
    if price is not None:
        yield _cost_text(rows, price)


def _cost_text(rows: Disruptions, price: Price) -> str:
    lost = int(rows.column("lost_ns").sum())
    words = f"cost: {duration(lost)} x {exact(price.accelerators)} accelerators = {number(price.hours(lost))} h"
    if price.per_hour is None:
        return words
    return f"{words} x {exact(price.per_hour)} = {price.hours(lost) * price.per_hour:,.2f}"


def _notes(analysis: Analysis, rows: Disruptions) -> Iterator[str]:
    if rows:
        yield "steps lost: those that had to be trained again; wasted: the time they had taken"
        if (rows.column("steps_lost_is") == AT_LEAST).any():
            yield ">=: at least so many, because the last lines of a silent death may be missing"
        yield "regained: from the last sign of life until training was past the old last step again"
    if rows.column("undetermined_ns").any():
        yield (
            "downtime holds time that may have been training: these attempts died at an unlogged moment between their "
            "last checkpoint and the next start (died_between in the JSON)"
        )
    one_source = len(analysis.table.sources) == 1
    for row in rows[:_MOST_EVIDENCE]:
        yield f"no. {row.number}, attempt {row.attempt}{_steps(row)}; {_evidence(row, one_source)}"
    if len(rows) > _MOST_EVIDENCE:
        yield f"the lines behind the other {len(rows) - _MOST_EVIDENCE} are in JSON and CSV"
    if rows and one_source:
        yield f"evidence: lines of {analysis.table.sources[0]}"


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
    return f"{'lines' if one_source else 'evidence'}: {', '.join(shown)}"
