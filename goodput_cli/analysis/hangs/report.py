"""Text and tables about hangs, about ranks that reports name as slow, and about slices that were missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, Literal

import numpy as np

from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.hangs.groups import WAITED
from goodput_cli.analysis.hangs.hang import (
    Hang,
    HangGroup,
    HangPosition,
    advice,
    hangs_of_timeline,
    operation_text,
    ranges,
    rank_count,
    ranks_text,
    sentence,
)
from goodput_cli.analysis.insights.kinds import Candidate
from goodput_cli.analysis.json_fields import Count, Json, written
from goodput_cli.analysis.sheet import Family, Labels, Sheet
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of, each
from goodput_cli.events.hangs.hooks import HANG_RECORDS
from goodput_cli.events.hangs.positions import DEFAULT_GROUP
from goodput_cli.events.hangs.reports import StragglerReport
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE
from goodput_cli.vocabulary.text import duration, plural


def hangs_of(analysis: AnalysisData) -> dict[int, Hang]:
    """Return the hang of each attempt of the job with waits, by its index."""
    return hangs_of_timeline(analysis.timeline)


def completed_candidate(analysis: AnalysisData, candidate: Candidate, hangs: Mapping[int, Hang]) -> Candidate:
    """Return an insight about a hang with who waited for whom. A cause of the failure other than the wait stays the
    headline: the insight then shows only how many ranks waited."""
    begins = analysis.timeline.attempts.begin
    attempt = int(np.searchsorted(begins, candidate.start_ns, side="right")) - 1
    hang, why = hangs.get(attempt), analysis.timeline.causes.why[attempt] if attempt >= 0 else None
    if hang is None or why is None:
        return candidate
    if why.code not in (WAITED, UNKNOWN_CAUSE) and "CollectiveFingerPrint" not in (why.text or ""):
        if not hang.waiting:
            return candidate
        waited = "" if hang.waited_ns is None else f" {duration(hang.waited_ns)}"
        text = f"{candidate.text}{candidate.sooner}; {plural(hang.waiting, 'rank')} waited{waited} for it"
        return replace(candidate, text=text, sooner="")
    if candidate.code == "last_end" and candidate.text.endswith(sentence(hang)):
        return candidate
    accused = advice(hang)
    sooner = "" if accused else candidate.sooner  # Two actions are one too many.
    text = f"{candidate.text}{sooner}; {sentence(hang)}"
    return replace(candidate, text=text, sooner="", advice=accused or candidate.advice)


def families(hang: Hang | None) -> Iterator[Family]:
    """Yield the verdict about the last attempt."""
    samples: list[tuple[Labels, str]] = []
    if hang is not None:
        samples = [({"verdict": hang.verdict, "certainty": hang.certainty}, "1")]
    yield Family("goodput_hang_info", "Verdict about the wait at the end of the last attempt.", samples)


# tables


@dataclass(frozen=True)
class _Row:
    ranks: str = column("text", "ranks with this progress", heading="ranks")
    collective: str = column("text", "operation in which they wait", heading="collective")
    joined: str = column("text", "whether they joined it", heading="joined")
    finished: str = column("text", "whether they finished it", heading="finished")
    waited_ns: int | None = column("duration", "the longest wait", heading="waited")
    evidence: str = column("text", "lines that show it", heading="evidence")


_ROWS = TableDeclaration("hang_row", "progress of ranks", columns_of(_Row, attribute))


def sheets(hang: Hang, attempt: int) -> Iterator[Sheet]:
    """Yield a table per group that waited. Other groups in which all members joined, and those that only wait for
    another group, are one line."""
    if not hang.groups:
        return
    first, *others = hang.groups
    whole: list[HangGroup] = []
    dependent: list[HangGroup] = []
    shown = [first]
    for one in others:
        (whole if _all_joined(one) else dependent if one.waits_for_group is not None else shown).append(one)
    sure = f" ({hang.certainty})" if hang.certainty == "confirmed" else ""
    count = len(dependent)
    more = [f"{plural(count, 'more group')} wait{'s' * (count == 1)} for another group"] if count else []
    more += [f"all members joined in {plural(len(whole), 'more group')}"] if whole else []
    notes = ["; ".join([f"{sentence(hang)}{sure}", *more])]
    notes += [f"most ranks wait in {hang.phase}"] if hang.phase and hang.verdict != "busy" else []
    if hang.ranks_without_report:
        notes.append(f"no line of {ranks_text(hang.ranks_without_report)} is about the wait")
    columns = _ROWS.people_columns()
    for group in shown[:8]:
        rows = [_row(one, group) for one in group.positions]
        rows += _absent_row(hang, rows) if group is first else []
        name = f"{group.description} {group.name}" if group.description else f"group {group.name}"
        label = name if group.description != DEFAULT_GROUP else DEFAULT_GROUP
        title = f"Waiting at the end of attempt {attempt}: {label}, {plural(group.size or 0, 'rank')}"
        cells = _ROWS.of_rows(rows).cells(columns)
        yield Sheet(title, columns, cells, notes=tuple(notes) if group is first else ())


def _all_joined(group: HangGroup) -> bool:
    """Return True if all members wait in one operation."""
    return group.size_known and len(group.positions) == 1 and rank_count(group.positions[0].ranks) == group.size


def _absent_row(hang: Hang, rows: Sequence[_Row]) -> list[_Row]:
    """Return the row of ranks that did not join and have no position in the group."""
    if hang.verdict not in ("absent", "busy") or not hang.ranks or any(row.joined == "no" for row in rows) or not rows:
        return []
    places = ", ".join(map(_short_place, hang.evidence[:3]))
    return [_Row(ranges(hang.ranks), rows[0].collective, "no", "-", None, places)]


def _short_place(place: str) -> str:
    """Return the line of a location in a log, and the name of a dump, which has no lines."""
    file, _, line = place.rpartition(":")
    return file.replace("\\", "/").rpartition("/")[2] if line == "1" else line


def _row(one: HangPosition, group: HangGroup) -> _Row:
    lines = [_short_place(place) for place in one.evidence[:3]]
    waits = one.sequence is not None
    top = max((each.sequence or 0 for each in group.positions), default=0)
    name = operation_text(one, group) if waits else f"after #{one.enqueued}"
    joined = "yes" if waits or (one.enqueued or 0) >= top else "no"
    more = "" if len(one.evidence) < 4 else f", +{len(one.evidence) - 3}"
    return _Row(one.ranks, name, joined, "no" if waits else "-", one.waited_ns, ", ".join(lines) + more)


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


# slices that were missing

_SLICES = "slices"


@written("capacity", "slices that trained, if the program logs their number with its steps; null otherwise")
@dataclass(frozen=True)
class SliceCapacity:
    """Slices that trained in the window."""

    unit: Literal["slice"]
    """what is counted"""
    most: Count
    """most slices that trained at once"""
    reduced_ns: Annotated[Count, Json("seconds")]
    """time of steps with fewer slices"""
    lost_ns: Annotated[Count, Json("seconds")]
    """that time multiplied by the share of slices that were missing; not part of the ledger"""


def capacity_of(analysis: AnalysisData) -> SliceCapacity | None:
    """Return the capacity of a job; None without numbers of slices. The number at the end of a step is that of the
    step, which began at the end of the one before it in the same attempt."""
    job, window = analysis.job.name, analysis.window
    logged = [one for one in analysis.table.metrics if one.job == job and one.name == _SLICES and len(one.value)]
    if not logged:
        return None
    time, value = (np.concatenate([getattr(one, name) for one in logged]) for name in ("time", "value"))
    order = np.argsort(time, kind="stable")
    time, value = time[order], value[order]
    most = float(value.max())
    attempt = np.searchsorted(analysis.timeline.attempts.begin, time, side="right")
    cut = np.clip(time, window.start_ns, window.end_ns)
    took = np.where(attempt[1:] == attempt[:-1], np.diff(cut), 0)
    if most <= 0 or value.min() < 0:
        return None
    lost = took * (1 - value[1:] / most)
    return SliceCapacity("slice", round(most), int(took[value[1:] < most].sum()), round(float(lost.sum())))


def capacity_text(found: SliceCapacity | None) -> str | None:
    """Return how much capacity was lost; None if nothing was."""
    if found is None or not found.lost_ns:
        return None
    reduced, lost = duration(found.reduced_ns), duration(found.lost_ns)
    return (
        f"steps with fewer than {found.most} slices took {reduced}: {lost} of capacity was lost while training "
        "continued (not in the categories)"
    )
