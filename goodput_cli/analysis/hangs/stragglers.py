"""Ranks that reports name as slow again and again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.json_fields import Count, written
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of, each
from goodput_cli.events.hangs.hooks import HANG_RECORDS
from goodput_cli.events.hangs.stragglers import StragglerReport

_LEAST_REPORTS, _LEAST_SHARE = 3, 0.75
"""A rank is named if at least so many reports of a period name it, and at least this share of the period's reports."""
_MOST_ROWS, _MOST_EVIDENCE = 16, 20


@written("straggler")
@dataclass(frozen=True)
class StragglerRank:
    """A rank that reports call slow."""

    rank: int = column("count", "its number", heading="rank")
    host: str | None = column("text", "its host; null: not logged", heading="host")
    named_in: Count = column("count", "reports that name it", heading="named")
    score: float | None = column(
        "number",
        "median of its speed relative to the fastest rank in these reports; null: not logged",
        heading="score",
        people_values=each(lambda row: None if row.score is None else f"{row.score:.2f}"),
    )
    slower: float | None = column(
        "number",
        "its time relative to the fastest rank's; null: not logged",
        heading="slower",
        people_values=each(lambda row: None if row.slower is None else f"{row.slower:.2f} x"),
    )
    evidence: Sequence[str] = column("text", "file:line of these reports")


@written("stragglers", "slow ranks according to reports in the log (docs/hangs.md); null without reports",
         keys="source reports ranks")  # fmt: skip
@dataclass(frozen=True)
class Stragglers:
    """Reports about slow ranks in the window."""

    source: str
    """nvrx or flagscale"""
    reports: Count
    """reports in the window"""
    ranks: Sequence[StragglerRank]
    """ranks that any report names, the most often named first"""
    every: Sequence[StragglerReport] = ()
    """The reports."""


def stragglers_of(analysis: AnalysisData) -> Stragglers | None:
    """Return the reports about slow ranks in the window; None without any."""
    window, job = analysis.window, analysis.job.name
    reports = [
        one for one in HANG_RECORDS.of(analysis.table)
        if isinstance(one, StragglerReport) and one.job == job
        and (one.time is None or window.start_ns <= one.time <= window.end_ns)
    ]  # fmt: skip
    if not reports:
        return None
    naming: defaultdict[int, list[StragglerReport]] = defaultdict(list)
    for one in reports:
        for rank in one.named:
            naming[rank].append(one)
    rows = [_rank(rank, some) for rank, some in naming.items()]
    rows.sort(key=lambda row: (-row.named_in, row.rank))
    return Stragglers(reports[0].source, len(reports), tuple(rows), tuple(reports))


def _rank(rank: int, reports: Sequence[StragglerReport]) -> StragglerRank:
    scores = [score for one in reports for each_rank, score in one.scores if each_rank == rank]
    hosts = [host for one in reports for each_rank, host in one.hosts if each_rank == rank and host]
    places = tuple(one.where for one in reports[:_MOST_EVIDENCE])
    score = median(scores) if scores else None
    return StragglerRank(
        rank, hosts[-1] if hosts else None, len(reports), score, round(1 / score, 4) if score else None, places
    )


def named_between(found: Stragglers, start: int, end: int) -> list[tuple[StragglerRank, int, int]]:
    """Return the ranks to name in a period (ns) of one step time, each with the reports that name it, and all of the
    period. A report at its start is about the steps before it."""
    inside = [one for one in found.every if one.time is not None and start < one.time <= end]
    counts = Counter(rank for one in inside for rank in one.named)
    return [
        (row, counts[row.rank], len(inside)) for row in found.ranks
        if counts[row.rank] >= _LEAST_REPORTS and counts[row.rank] >= _LEAST_SHARE * len(inside)
    ]  # fmt: skip


def slow_words(found: Stragglers, start: int, end: int) -> str:
    """Return which ranks the reports of a period name; "" without reports of it."""
    named = named_between(found, start, end)
    if not named:
        return ""
    row, count, total = named[0]
    at = f" ({row.host})" if row.host else ""
    more = f"; {len(named) - 1} more in `goodput steps --by rank`" if len(named) > 1 else ""
    return f"rank {row.rank}{at} is named in {count} of {total} straggler reports{more}"


_TABLE = TableDeclaration(
    "straggler_row", "a rank that reports call slow",
    columns_of(StragglerRank, attribute),
)  # fmt: skip


def straggler_sheets(found: Stragglers | None) -> Iterator[Sheet]:
    """Yield the table of ranks that reports name."""
    if found is None:
        return
    rows = found.ranks[:_MOST_ROWS]
    columns, notes = _TABLE.people_columns(), [f"{found.reports} straggler reports ({found.source})"]
    if not rows:
        notes.append("no report names a rank")
    elif rows[0].named_in < _LEAST_REPORTS:
        notes.append(f"no rank is named {_LEAST_REPORTS} times")
    left = len(found.ranks) - len(rows)
    notes += [f"{left} more ranks in JSON"] if left > 0 else []
    yield Sheet("Straggler reports", columns, _TABLE.of_rows(rows).cells(columns), notes=tuple(notes))
