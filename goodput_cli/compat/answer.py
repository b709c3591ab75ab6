"""The result of `goodput reconcile --format json` for a recorder log; `checkpoints` has that of a checkpoint log.

Also `goodput reconcile` as a `Sheet`: both accounts side by side, and below them the rules that cause the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from goodput_cli.analysis.analysis_data import NamedJob, named_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.json_fields import written
from goodput_cli.analysis.sheet import Audience, Cell, Column, Sheet
from goodput_cli.compat.library import NAME
from goodput_cli.compat.reconcile import Movement, ReconciledRow, Reconciliation
from goodput_cli.compat.rules import OUTSIDE, RULES, SURPLUS
from goodput_cli.vocabulary.categories import brief_name, full_name
from goodput_cli.vocabulary.text import duration, percent, plural


@written("other_side", "the reference system")
@dataclass(frozen=True)
class ReferenceResult:
    """The reference system."""

    name: str
    """ml-goodput-measurement, or the resiliency calculator"""
    version: str | None
    """of the library; null for the calculator, whose formula is used"""
    failed: str | None
    """error of the library if it fails; otherwise null"""


@written("percent_of_both")
@dataclass(frozen=True)
class PercentOfBoth:
    """A share in both systems."""

    here: float | None
    """in goodput"""
    there: float | None
    """in the reference system; null without a result"""


@written("count_of_both")
@dataclass(frozen=True)
class CountOfBoth:
    """An amount in both systems."""

    here: int | None
    """in goodput"""
    there: int | None
    """in the reference system; null without a result"""


@written(
    "reconcile_answer",
    "goodput reconcile --format json: recorder logs, compared with ml-goodput-measurement",
    kind="reconciliation",
)
@dataclass(frozen=True, kw_only=True)
class ReconcileAnswer:
    """goodput reconcile --format json: recorder logs, compared with ml-goodput-measurement"""

    job: NamedJob
    other_side: ReferenceResult
    goodput_percent: PercentOfBoth
    """goodput in both systems"""
    total_ns: CountOfBoth
    """basis of the percentages"""
    disruptions: CountOfBoth
    """disruptions"""
    data_loading_async_ns: CountOfBoth
    """data loading inside steps, next to both accounts"""
    rows: Sequence[ReconciledRow]
    """productive first, then by difference"""
    why: Sequence[Movement]
    """the largest first; their sums equal the differences of the rows"""
    not_explained_ns: int | None
    """sum of the absolute values of all rows"""


def reconcile_answer(analysis: Analysis, reconciliation: Reconciliation) -> ReconcileAnswer:
    """Return both accounts of a recorder log."""
    answer = reconciliation.answer
    return ReconcileAnswer(
        job=named_job(analysis),
        other_side=ReferenceResult(name=NAME, version=answer.version, failed=answer.failed),
        goodput_percent=PercentOfBoth(here=analysis.goodput.percent, there=answer.goodput_percent),
        total_ns=CountOfBoth(here=reconciliation.here_total_ns, there=reconciliation.there_total_ns),
        disruptions=CountOfBoth(here=reconciliation.disruptions_here, there=answer.disruptions),
        data_loading_async_ns=CountOfBoth(here=reconciliation.overlapped[0], there=reconciliation.overlapped[1]),
        rows=reconciliation.rows,
        why=reconciliation.movements,
        not_explained_ns=reconciliation.not_explained_ns,
    )


_ROUNDING_NS = 1_000_000
"""Maximum rounding error: the library computes with floats, so differences below a millisecond are shown as 0 on
screens."""
_NOBODY = "not counted"
_ALSO = "+ "
"""Time that the library already counts under another type."""


def reconcile_sheet(analysis: Analysis, reconciliation: Reconciliation) -> Sheet:
    """Return every category of either system, then every movement, the largest first."""
    return Sheet(
        title=f"Goodput of {analysis.job.name}: goodput and {NAME} {reconciliation.answer.version}",
        summary=tuple(_summary(analysis, reconciliation)),
        columns=(
            Column("category", "text", Audience.TABLES),
            Column("label", "text", Audience.TABLES),
            Column("category", "text", Audience.PEOPLE, brief=brief_name),
            Column("here", "duration"),
            Column("library", "duration"),
            Column("difference", "change"),
            Column("points", "points", Audience.PEOPLE),
            Column("points", "number", Audience.TABLES),
            Column("here_percent", "percent", Audience.TABLES),
            Column("library_percent", "percent", Audience.TABLES),
            Column("not_explained", "duration", Audience.TABLES),
        ),
        rows=tuple(_cells(row) for row in reconciliation.rows),
        grouped_rows=tuple(_shown(row) for row in reconciliation.rows),
        notes=tuple(_notes(reconciliation)),
        sections=(_movement_lines(reconciliation),) if _large(reconciliation) else (),
        answer=lambda: reconcile_answer(analysis, reconciliation),
    )


def _cells(row: ReconciledRow) -> tuple[Cell, ...]:
    return (
        row.category,
        row.label,
        full_name(row.category, row.label),
        row.here_ns,
        row.there_ns,
        row.difference_ns,
        row.difference_points,
        row.difference_points,
        row.here_percent,
        row.there_percent,
        row.not_explained_ns,
    )


def _shown(row: ReconciledRow) -> tuple[Cell, ...]:
    cells = list(_cells(row))
    if row.difference_ns is not None and abs(row.difference_ns) < _ROUNDING_NS:
        cells[4:7] = [row.here_ns, 0, 0.0]
    return tuple(cells)


def _briefer_name(name: str) -> str:
    """Return the short name of a category, short enough to leave room for the rule in 80 columns."""
    return brief_name(name).replace("initialization", "init")


def _movement_lines(reconciliation: Reconciliation) -> Sheet:
    """Return the movements, and the text of each rule."""
    large = _large(reconciliation)
    return Sheet(
        title="Why",
        columns=(
            Column("time", "duration"),
            Column("here", "text", brief=_briefer_name),
            Column("library", "text", brief=_briefer_name),
            Column("rule", "text"),
        ),
        rows=tuple((one.ns, _from(one), _category_name(one.there), RULES[one.rule].title) for one in large),
        notes=tuple(f"{RULES[code].title}: {RULES[code].text}" for code in dict.fromkeys(one.rule for one in large)),
    )


def _large(reconciliation: Reconciliation) -> list[Movement]:
    return [one for one in reconciliation.movements if abs(one.ns) >= _ROUNDING_NS]


def _from(one: Movement) -> str:
    if one.beside is not None:
        return f"{_ALSO}{_category_name(one.beside)}"
    return _NOBODY if one.rule in SURPLUS else _category_name(one.here)


def _category_name(key: tuple[str, str | None]) -> str:
    return _NOBODY if key == OUTSIDE else full_name(*key)


def _summary(analysis: Analysis, reconciliation: Reconciliation) -> Iterator[str]:
    here, there = analysis.goodput.percent, reconciliation.answer.goodput_percent
    if reconciliation.answer.failed is not None:
        yield f"goodput {percent(here)} here; the library failed: {reconciliation.answer.failed}"
    elif there is not None:
        yield f"goodput {percent(here)} here, {percent(there)} by the library ({there - here:+.2f} points)"
    total = (
        "" if reconciliation.there_total_ns is None else f", {duration(reconciliation.there_total_ns)} by the library"
    )
    yield f"total {duration(reconciliation.here_total_ns)} here{total}"
    counted = (
        reconciliation.disruptions_there
        if reconciliation.answer.disruptions is None
        else reconciliation.answer.disruptions
    )
    yield f"{plural(reconciliation.disruptions_here, 'disruption')} here, {counted} by the library"


def _notes(reconciliation: Reconciliation) -> Iterator[str]:
    here, there = reconciliation.overlapped
    if here or there:
        yield f"not included: data loading inside steps ({duration(here)} here, {duration(there)} by the library)"
    left = reconciliation.not_explained_ns
    if left is None:
        yield "below: the result of the library's rules for this log"
    else:
        small = all(abs(row.not_explained_ns or 0) < _ROUNDING_NS for row in reconciliation.rows)
        yield (
            "every difference is explained"
            if small
            else f"NOT EXPLAINED: {duration(left)} (not_explained in JSON and CSV)"
        )
    if reconciliation.disruptions_here > reconciliation.disruptions_there:
        yield "the library detects a disruption only where a step number repeats"
