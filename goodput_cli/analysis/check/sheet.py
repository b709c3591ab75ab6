"""What a check found as a sheet: a row a code for the eye, with what it means below; every finding for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from goodput_cli.analysis.check.check import CheckReport, Finding
from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.vocabulary.text import plural

_MESSAGES = 2
"""How many different messages of one code are shown if not all are asked for."""
_PLACES_IN_A_CELL = 20
_NAMES = 3


def check_sheet(report: CheckReport, *, every_place: bool = False) -> Sheet:
    """The findings of all jobs. every_place: name every message, job and place in the notes."""
    several = report.jobs > 1
    columns = (
        Column("severity", "text"),
        Column("code", "text"),
        Column("count", "count"),
        Column("jobs", "count", "eye" if several else "data"),
        Column("job", "text", "data"),
        Column("first at", "text", "eye"),
        Column("message", "text", "data"),
        Column("effect", "text", "data"),
        Column("advice", "text", "data"),
        Column("where", "text", "data"),
    )
    groups = [list(group) for _, group in groupby(report.findings, key=lambda one: (one.severity, one.code))]
    return Sheet(
        title=_title(report),
        columns=columns,
        rows=tuple(_row(finding) for finding in report.findings),
        folded=tuple(_folded(group) for group in groups),
        data={
            "jobs": report.jobs,
            "runs": report.runs,
            "events": report.events,
            "findings": [_as_dict(finding) for finding in report.findings],
        },
        summary=(_checked(report),),
        notes=tuple(note for group in groups for note in _notes(group, several, every_place)),
    )


def _title(report: CheckReport) -> str:
    if not report.findings:
        return "Nothing is wrong"
    counts = [(report.count("error"), "error"), (report.count("warning"), "warning"), (report.count("info"), "info")]
    return ", ".join(plural(count, noun) for count, noun in counts if count)


def _checked(report: CheckReport) -> str:
    counts = (plural(report.events, "event"), plural(report.jobs, "job"), plural(report.runs, "run"))
    return f"checked {counts[0]} of {counts[1]} ({counts[2]})"


def _row(finding: Finding) -> tuple[Cell, ...]:
    return (
        finding.severity,
        finding.code,
        finding.count,
        None if finding.job is None else 1,
        finding.job,
        _first_place([finding]),
        finding.message,
        finding.effect,
        finding.advice,
        _some(finding.where, _PLACES_IN_A_CELL, finding.count, "; "),
    )


def _folded(group: Sequence[Finding]) -> tuple[Cell, ...]:
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


def _as_dict(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "job": finding.job,
        "count": finding.count,
        "message": finding.message,
        "effect": finding.effect,
        "advice": finding.advice,
        "where": list(finding.where),
    }
