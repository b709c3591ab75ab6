"""The disruptions of a report: a table of all, and the first ones one by one with their evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.analysis.disruptions.sheet import disruptions_sheet
from goodput_cli.analysis.results import Analysis
from goodput_cli.report.sheets.html import HtmlTable, html_table, with_ids
from goodput_cli.vocabulary.text import clock, iso, seconds_text

MOST_ROWS = 500
"""How many rows a table of the report holds; the pages of the single commands hold more."""
MOST_DETAILS = 100
"""How many disruptions are shown with all their evidence."""
_EVIDENCE = {
    "last_step": "last step",
    "last_sign_of_life": "last sign of life",
    "ended": "how it ended",
    "next_start": "next start",
    "next_up": "next attempt up",
    "resumed_step": "resumed at",
    "first_step": "first step again",
    "regained": "progress regained",
}


@dataclass(frozen=True)
class Details:
    """One disruption with everything that is known of it, and the lines that show it."""

    number: int
    title: str
    facts: list[tuple[str, str]]
    evidence: list[tuple[str, str]]


@dataclass(frozen=True)
class Disruptions:
    """The disruptions as a table, the summary above, and the first ones one by one."""

    summary: tuple[str, ...]
    table: HtmlTable
    details: list[Details]
    left_out: int


def disruptions(analysis: Analysis) -> Disruptions:
    """All disruptions of the window."""
    sheet = disruptions_sheet(analysis, None)
    rows = analysis.disruptions
    return Disruptions(
        summary=sheet.summary[1:],
        table=with_ids(html_table(sheet, MOST_ROWS), "disruption-row"),
        details=[_details(row) for row in rows[:MOST_DETAILS]],
        left_out=max(len(rows) - MOST_DETAILS, 0),
    )


def _details(row: Disruption) -> Details:
    places = asdict(row.evidence)
    down_since = " ".join(clock(row.last_sign_of_life_ns))
    return Details(
        number=row.number,
        title=f"Disruption {row.number}: attempt {row.attempt}, {row.ended}, {down_since}",
        facts=list(_disruption_facts(row)),
        evidence=[(words, places[name]) for name, words in _EVIDENCE.items() if places[name] is not None],
    )


def _disruption_facts(row: Disruption) -> Iterator[tuple[str, str]]:
    """Everything that JSON holds of a disruption; amounts in seconds are exact."""
    yield "last step", _step(row.last_step)
    yield "last sign of life", iso(row.last_sign_of_life_ns)
    yield "died before", iso(row.death_latest_ns)
    yield "next start", iso(row.next_start_ns)
    yield "next attempt up", iso(row.next_up_ns)
    yield "resumed at step", _step(row.resumed_step)
    yield "steps lost", ("at least " if row.steps_lost_is == "at_least" else "") + _step(row.steps_lost)
    amounts = {
        "wasted": row.wasted_ns,
        "downtime": row.downtime_ns,
        "of it undetermined": row.undetermined_ns,
        "queued": row.queued_ns,
        "starting again": row.restart_ns,
        "lost in all": row.lost_ns,
        "time to the first step": row.time_to_first_step_ns,
        "regained after": row.regained_after_ns,
    }
    for name, ns in amounts.items():
        yield name, "not known" if ns is None else f"{seconds_text(ns)} s"
    if row.ranks_before is not None or row.ranks_after is not None:
        yield "ranks before and after", f"{_step(row.ranks_before)}, {_step(row.ranks_after)}"


def _step(value: int | None) -> str:
    return "not known" if value is None else str(value)
