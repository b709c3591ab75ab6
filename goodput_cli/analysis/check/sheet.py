"""What a check found as a sheet: a row a code for people, with what it means below; every finding for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from goodput_cli.analysis.check.check import CheckReport, Finding
from goodput_cli.analysis.sheet import Audience, Cell, Column, Sheet
from goodput_cli.analysis.table import attribute, each, seen_by, table_rows
from goodput_cli.diagnostics.codes import SEVERITIES
from goodput_cli.vocabulary.text import plural

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

_MESSAGES = 2
"""How many different messages of one code are shown if not all are asked for."""
_PLACES_IN_A_CELL = 20
_NAMES = 3


COLUMNS = (
    Column("code", "text", Audience.JSON, attribute("code"), "stable name, described in docs/diagnostics.md"),
    Column(
        "severity",
        "text",
        values=attribute("severity"),
        words="error: data was lost; warning: a number may be wrong; info: no number changes",
        json={"enum": list(SEVERITIES)},
    ),
    Column("code", "text", Audience.PEOPLE | Audience.TABLES, attribute("code")),
    Column("job", "text", Audience.JSON, attribute("job"), "null: about the log as a whole", nullable=True),
    Column("count", "count", values=attribute("count"), words="how often", least=0),
    Column("jobs", "count", Audience.PEOPLE | Audience.TABLES, each(lambda one: None if one.job is None else 1)),
    Column("job", "text", Audience.TABLES, attribute("job")),
    Column("where", "text", Audience.PEOPLE, each(lambda one: _first_place([one]))),
    Column("message", "text", Audience.PROGRAMS, attribute("message"), "what was found"),
    Column("effect", "text", Audience.PROGRAMS, attribute("effect"), "what it does to the numbers"),
    Column("advice", "text", Audience.PROGRAMS, attribute("advice"), "what to do"),
    Column(
        "where",
        "text",
        Audience.PROGRAMS,
        each(lambda one: _some(one.where, _PLACES_IN_A_CELL, one.count, "; ")),
        "file:line or insertId; may hold fewer than count places",
        json={"type": "array", "items": {"type": "string"}},
        json_values=attribute("where"),
    ),
)
"""What is said of a finding."""


def check_sheet(report: CheckReport, *, every_place: bool = False) -> Sheet:
    """The findings of all jobs. every_place: name every message, job and place in the notes."""
    several = report.jobs > 1
    columns = seen_by(Audience.PEOPLE | Audience.TABLES, COLUMNS)
    if not several:
        columns = tuple(replace(one, audience=Audience.TABLES) if one.name == "jobs" else one for one in columns)
    groups = [list(group) for _, group in groupby(report.findings, key=lambda one: (one.severity, one.code))]
    return Sheet(
        title=_title(report),
        columns=columns,
        rows=table_rows(columns, len(report.findings), lambda: [report.findings]),
        grouped_rows=tuple(_grouped(group) for group in groups),
        answer=lambda: _answer(report),
        summary=(_checked(report),),
        notes=tuple(note for group in groups for note in _notes(group, several, every_place)),
    )


def _answer(report: CheckReport) -> Answer:
    from goodput_cli.analysis.check.answer import check_answer  # msgspec: only where JSON is written

    return check_answer(report)


def _title(report: CheckReport) -> str:
    if not report.findings:
        return "Nothing is wrong"
    counts = [(report.count("error"), "error"), (report.count("warning"), "warning"), (report.count("info"), "info")]
    return ", ".join(plural(count, noun) for count, noun in counts if count)


def _checked(report: CheckReport) -> str:
    counts = (plural(report.events, "event"), plural(report.jobs, "job"), plural(report.runs, "run"))
    return f"checked {counts[0]} of {counts[1]} ({counts[2]})"


def _grouped(group: Sequence[Finding]) -> tuple[Cell, ...]:
    jobs = len({one.job for one in group if one.job is not None})
    count = sum(one.count for one in group)
    head = group[0]
    return (head.severity, head.code, count, jobs or None, None, _first_place(group), None, None, None, None)


def _first_place(group: Sequence[Finding]) -> str | None:
    return next((one.where[0] for one in group if one.where), None)


def _notes(group: Sequence[Finding], several: bool, every_place: bool) -> Iterator[str]:
    """What was found under one code: the messages, the effect and the advice."""
    head = group[0]
    messages = list(dict.fromkeys(one.message for one in group))
    shown = messages if every_place else messages[:_MESSAGES]
    more = f"; and {len(messages) - len(shown)} more" if len(messages) > len(shown) else ""
    jobs = list(dict.fromkeys(one.job for one in group if one.job is not None))
    where = f" (in {_some(jobs, len(jobs) if every_place else _NAMES, len(jobs), ', ')})" if several and jobs else ""
    yield f"{head.code}: {'; '.join(shown)}{more}{where}"
    yield f"  effect: {head.effect}"
    yield f"  advice: {head.advice}"
    if every_place:
        yield from (f"  at: {_some(one.where, len(one.where), one.count, ', ')}" for one in group if one.where)


def _some(items: Sequence[str], most: int, count: int, between: str) -> str:
    """The first items, and how many more there are."""
    shown = list(items[:most])
    more = max(count, len(items)) - len(shown)
    if shown and more > 0:
        shown.append(f"+{more} more")
    return between.join(shown)
