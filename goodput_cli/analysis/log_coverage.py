"""Gaps of a log: missing ends, checkpoints and steps, and long silence.

Clocks and hosts of a log: implausible times, hosts whose clocks differ, missing ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, of_kind, rows_of, run_heads
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.analysis.goodput.findings import diagnostic_at, not_recorded
from goodput_cli.arrays import I64, Rows
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import NO_STEP, NONE, EventTable, Kind
from goodput_cli.vocabulary.categories import Category, in_group
from goodput_cli.vocabulary.text import duration, rough_duration
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_CHECKPOINT_KINDS = (Kind.SAVE, Kind.RESTORE, Kind.SAVED, Kind.LOAD)
_MUCH_UNEXPLAINED = 0.1
_LEAST_GAP_NS = 60 * NS_PER_SECOND
_GAP_FACTOR = 20
"""A gap is at least this many times longer than the usual time between two lines."""
_NOT_EXPLAINING = (*in_group("training"), Category.OTHER)


def check_coverage(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report missing information in the log of one job."""
    yield from _ends(timeline)
    yield from _checkpoints(timeline)
    yield from _steps(timeline)
    yield from _gaps(timeline)
    yield from _unexplained(timeline)


def _ends(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts, how = timeline.table, timeline.attempts, timeline.endings.how
    if len(attempts) == 0:
        return
    if how[-1] == End.NOT_LOGGED and not timeline.died[-1]:
        message = "the last attempt has no termination or end line"
        yield diagnostic_at("end_not_logged", table, np.array([len(table) - 1], dtype=np.intp), message)
    silent = np.flatnonzero((how[:-1] == End.NOT_LOGGED) & ~(attempts.gone_back | timeline.died)[:-1])
    if len(silent):
        rows = np.where(attempts.last_recorded[silent] >= 0, attempts.last_recorded[silent], attempts.begin_row[silent])
        message = "attempts without a logged end; the locations show their last progress"
        yield diagnostic_at("silent_death", table, rows, message)
    segments = np.flatnonzero(timeline.segments.category == Category.UNDETERMINED)
    if len(segments):
        lost = int((timeline.segments.end[segments] - timeline.segments.start[segments]).sum())
        rows = _rows_before(timeline, timeline.segments.start[segments])
        message = f"{duration(lost)} after the last checkpoints of attempts that ended at an unknown time"
        yield diagnostic_at("undetermined_time", table, rows, message)


def _checkpoints(timeline: Timeline) -> Iterator[Diagnostic]:
    table = timeline.table
    if not np.any(of_kind(table.kind, _CHECKPOINT_KINDS)):
        yield Diagnostic.of("no_checkpoint_events", "the log contains no checkpoint saves or restores")
    elif Category.SAVE.id in not_recorded(timeline):
        saves = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
        if len(saves):
            yield diagnostic_at("save_time_unknown", table, saves[:1], "saves without a duration", len(saves))


def _steps(timeline: Timeline) -> Iterator[Diagnostic]:
    records = timeline.records
    if records is None or len(records.rows) < 2:
        return
    distance = np.diff(records.number)
    distance[records.owner[1:] != records.owner[:-1]] = 0
    stride = np.array([records.stride(attempt) for attempt in range(records.attempts)], dtype=np.int64)
    jumps = np.flatnonzero(distance > stride[records.owner[:-1]])
    if len(jumps):
        message = f"step numbers jump further than usual, by up to {int(distance[jumps].max())}"
        yield diagnostic_at("missing_steps", timeline.table, records.rows[jumps + 1], message)


def _gaps(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report silence between two lines of one attempt that only training, stalls and `other` explain."""
    table = timeline.table
    rows = np.flatnonzero(timeline.attempts.of_row >= 0)
    if len(rows) < 3:
        return
    reach = np.maximum.accumulate(table.end[rows])[:-1]
    gap = table.time[rows[1:]] - reach
    same = timeline.attempts.of_row[rows[1:]] == timeline.attempts.of_row[rows[:-1]]
    usual = float(np.median(gap[same])) if same.any() else 0.0
    longer = np.flatnonzero(same & (gap > max(_LEAST_GAP_NS, _GAP_FACTOR * usual)))
    if len(longer) == 0:
        return
    amounts = timeline.ledger.between(reach[longer], reach[longer] + gap[longer])
    open_ = sum((ns for (category, _), ns in amounts.items() if category in _NOT_EXPLAINING), np.zeros(len(longer)))
    unexplained = longer[2 * open_ > gap[longer]]
    if len(unexplained):
        longest = duration(int(gap[unexplained].max()))
        message = f"no log output for up to {longest} inside an attempt; the locations show the lines before"
        yield diagnostic_at("log_gap", table, rows[unexplained], message)


def _unexplained(timeline: Timeline) -> Iterator[Diagnostic]:
    chosen = np.flatnonzero(timeline.segments.category == Category.OTHER)
    length = timeline.segments.end[chosen] - timeline.segments.start[chosen]
    total, window = int(length.sum()), timeline.end - timeline.start
    if total >= _MUCH_UNEXPLAINED * window:
        message = f"{duration(total)} of {duration(window)} are in `other` ({100 * total / window:.3g} %)"
        longest = chosen[np.argsort(-length, kind="stable")[:3]]
        rows = _rows_before(timeline, timeline.segments.start[longest])
        yield diagnostic_at("unexplained_time", timeline.table, rows, message, len(chosen))


def _rows_before(timeline: Timeline, time: I64) -> Rows:
    """Return the last row at or before each time."""
    place = np.searchsorted(timeline.table.time, time, side="right") - 1
    return np.maximum(place, 0)


TOLERANCE_NS = NS_PER_SECOND
"""Time (ns) by which a line may be earlier than the previous one: threads and ranks write concurrently."""
_LONELY_NS = 30 * NS_PER_DAY
_COARSE_BELOW_NS = 10 * NS_PER_SECOND
_COARSE_FROM_EVENTS = 10
_FAR = 10
"""Lonely events are farther away than this many times the span of all the others."""
_MOST_LONELY = 0.02
"""Lonely events are also fewer than this share of all (or three, if that is more)."""


def check_clocks(timeline: Timeline, now_ns: int) -> Iterator[Diagnostic]:
    """Report implausible times of one job. now_ns: the present, ns since 1970 UTC."""
    yield from _order_of_lines(timeline.ordered.original)
    yield from _coarse(timeline)
    yield from far_times(timeline.ordered.original, now_ns)


def _order_of_lines(table: EventTable) -> Iterator[Diagnostic]:
    """Report `out_of_order` and `clock_set_back`. A line of an interval is written at its end."""
    rows = np.flatnonzero(table.line > 0)
    rows = rows[np.lexsort((table.end[rows], table.line[rows], table.source[rows]))]
    if len(rows) < 2:
        return
    heads = np.flatnonzero(run_heads(table.source[rows]))
    time = table.end[rows]
    highest = np.concatenate([np.maximum.accumulate(part) for part in np.split(time, heads[1:])])
    late = rows[time < highest - TOLERANCE_NS]
    back = _set_back(table, rows)
    if len(back):
        worst = rough_duration(int((table.time[back[:, 0]] - table.time[back[:, 1]]).max()))
        message = f"steps with an earlier time than the step before, by up to {worst}"
        yield diagnostic_at("clock_set_back", table, back[:, 1], message)
    if len(late):
        share = f"{len(late)} of {len(rows)} lines ({100 * len(late) / len(rows):.3g} %)"
        yield diagnostic_at("out_of_order", table, late, f"{share} come after later lines of the same source")


def _set_back(table: EventTable, rows: Rows) -> NDArray[np.intp]:
    """Return pairs of step lines, (n, n + 1) in the order of the file, whose times decrease.

    In a shuffled file such pairs occur by chance: they count only if most of the steps follow each other.
    """
    steps = rows[table.kind[rows] == Kind.STEP]
    step, next_ = steps[:-1], steps[1:]
    follows = (table.step[next_] == table.step[step] + 1) & (table.source[next_] == table.source[step])
    if 2 * np.count_nonzero(follows) <= len(step):
        return np.zeros((0, 2), dtype=np.intp)
    back = follows & (table.time[next_] < table.time[step] - TOLERANCE_NS)
    return np.column_stack((step[back], next_[back]))


def _coarse(timeline: Timeline) -> Iterator[Diagnostic]:
    table, spans = timeline.table, timeline.training.spans
    if len(table) < _COARSE_FROM_EVENTS or len(spans) == 0:
        return
    if np.any(table.time % NS_PER_SECOND) or np.any(table.end % NS_PER_SECOND):
        return
    usual = float(np.median(spans.end - spans.start))
    if usual < _COARSE_BELOW_NS:
        what = "steps" if timeline.records is not None else "stretches between checkpoints"
        yield diagnostic_at(
            "coarse_clock",
            table,
            spans.row[:1],
            f"all {len(table)} times are whole seconds, and {what} take {rough_duration(usual)} (median)",
            len(table),
        )


def far_times(table: EventTable, now_ns: int) -> Iterator[Diagnostic]:
    """Report `lonely_time` and `future_times` in the events of one job, in time order."""
    early, late = _lonely(np.sort(table.end, kind="stable"))
    rows = np.flatnonzero((table.end < early) | (table.end > late))
    if len(rows):
        away = max(int(early - table.end[rows].min()), int(table.end[rows].max() - late))
        message = f"events up to {rough_duration(away)} away from the other {len(table) - len(rows)} events of the job"
        yield diagnostic_at("lonely_time", table, rows, message)
    future = np.flatnonzero(table.end > now_ns + NS_PER_DAY)
    if len(future):
        message = f"events up to {rough_duration(int(table.end.max()) - now_ns)} in the future"
        yield diagnostic_at("future_times", table, future, message)


def _lonely(time: I64) -> tuple[int, int]:
    """Return the first and last time (ns) of the events that belong together; `time` is sorted.

    Starting from the middle, events after a large gap do not belong if they are few. The gap is more than 30 days, and
    more than `_FAR` times the span before it.
    """
    size = len(time)
    few = max(3, int(size * _MOST_LONELY))
    if size < 2 * few + 2:
        return int(time[0]), int(time[-1])
    first, last = 0, size - 1
    gaps = np.flatnonzero(np.diff(time) > _LONELY_NS)
    for gap in gaps[gaps < few].tolist()[::-1]:
        rest = int(time[size - 1 - min(few, size - gap - 2)] - time[gap + 1])
        if gap + 1 < size - few and time[gap + 1] - time[gap] > _FAR * rest:
            first = max(first, gap + 1)
    for gap in gaps[gaps >= size - 1 - few].tolist():
        if gap > first and int(time[gap + 1] - time[gap]) > _FAR * int(time[gap] - time[first]):
            last = min(last, gap)
    return int(time[first]), int(time[last])


LEAST_NS = 2 * NS_PER_SECOND
"""Smaller skews (ns) are noise."""
LEAST_REPORTS = 3
_STEADY = 0.25
"""Maximum of the skew's median deviation, relative to the skew."""
_STARTS, _ENDS, _PROGRESS = 0, 1, 2
_SOURCES = 1 << 40
_PROGRESS_KINDS = (Kind.STEP, Kind.LOAD, Kind.FINISHED, Kind.SAVED)


@dataclass(frozen=True)
class Reports:
    """Reports of the same event by several writers, one each. Columns of one length."""

    row: Rows
    """Row of the table."""
    writer: I64
    """Rank; for lines without a rank `_SOURCES` + source."""
    family: NDArray[np.int8]
    """Family: start, end or progress."""
    offset: I64
    """Time (ns) after the reports of the others."""


def check_skew(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report `clock_skew`, one finding per rank or source."""
    reports = shared_reports(timeline)
    order = np.argsort(reports.writer, kind="stable")
    heads = np.flatnonzero(run_heads(reports.writer[order])) if len(order) else order
    for chosen in np.split(order, heads[1:]):
        skew = _skew(reports, chosen)
        if skew is None:
            continue
        table, first = timeline.table, reports.row[chosen[0]]
        rank = int(table.rank[first])
        who = f"rank {rank}" if rank != NONE else f"the source {table.sources[table.source[first]]}"
        side = "behind" if skew > 0 else "ahead of"
        message = f"{who} reports {rough_duration(skew)} {side} the others ({len(chosen)} reports compared)"
        yield diagnostic_at("clock_skew", table, reports.row[chosen], message)


def shared_reports(timeline: Timeline) -> Reports:
    """Return all reports of events that at least two writers reported."""
    table = timeline.table
    rows, family, thing = _things(timeline)
    writer = np.where(
        table.rank[rows] != NONE, table.rank[rows].astype(np.int64), _SOURCES + table.source[rows].astype(np.int64)
    )
    order = np.lexsort((table.time[rows], writer, thing))  # The earliest report of a writer about an event counts.
    rows, family, thing, writer = rows[order], family[order], thing[order], writer[order]
    first = run_heads(thing) | run_heads(writer)
    rows, family, thing, writer = rows[first], family[first], thing[first], writer[first]
    heads = np.flatnonzero(run_heads(thing)) if len(thing) else np.zeros(0, dtype=np.intp)
    size = np.diff(np.append(heads, len(thing)))
    time = table.time[rows]
    agreed = time[heads]  # For two reports this is the first writer's, for more the lower median.
    if len(heads):
        agreed = np.where(size > 2, time[np.lexsort((time, thing))][heads + (size - 1) // 2], agreed)
    offset = time - np.repeat(agreed, size)
    shared = np.repeat(size, size) > 1
    return Reports(rows[shared], writer[shared], family[shared], offset[shared])


def _things(timeline: Timeline) -> tuple[Rows, NDArray[np.int8], I64]:
    """Return rows of events that others may report as well, with their family and the number of the event."""
    table, attempts = timeline.table, timeline.attempts
    starts, ends = table.kind == Kind.START, of_kind(table.kind, ENDINGS)
    progress = of_kind(table.kind, _PROGRESS_KINDS) & (table.step != NO_STEP)
    told_apart = table.rank != NONE
    told_apart |= (table.kind == Kind.STEP) & (len(table.sources) > 1)
    rows = np.flatnonzero((starts | ends | progress) & told_apart)
    family = np.select([starts[rows], ends[rows]], [_STARTS, _ENDS], _PROGRESS).astype(np.int8)
    attempt = np.searchsorted(attempts.begin_row, rows, side="right") - 1
    owner = np.where(attempts.of_row[rows] >= 0, attempts.of_row[rows], attempt)
    kind = np.where(family == _ENDS, -1, table.kind[rows])
    step = np.where(family == _PROGRESS, table.step[rows], 0)
    return rows, family, _numbered(owner.astype(np.int64), kind.astype(np.int64), step)


def _numbered(*columns: I64) -> I64:
    """Return a number for each distinct row of the columns."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        new |= run_heads(column[order])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new)
    return number


def _skew(reports: Reports, chosen: Rows) -> float | None:
    """Return how much (ns) a writer's clock is ahead of the others'; None if it is not, or if that is unknown."""
    offset, family = reports.offset[chosen], reports.family[chosen]
    if len(chosen) < LEAST_REPORTS:
        return None
    skew = float(np.median(offset))
    if abs(skew) < LEAST_NS or np.median(np.abs(offset - skew)) > _STEADY * abs(skew):
        return None
    families = [np.median(offset[family == kind]) for kind in np.flatnonzero(np.bincount(family)).tolist()]
    agree = all(abs(median - skew) <= abs(skew) / 2 for median in families)
    return skew if agree and (len(families) > 1 or np.any(family == _PROGRESS)) else None


def check_hosts(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report problems of the hosts that write the log of one job."""
    table = timeline.table
    ranks = distinct(table.rank[table.rank != NONE])
    if len(ranks) > 1:
        message = f"{len(ranks)} ranks write the log ({ranks[0]} to {ranks[-1]})"
        yield Diagnostic.of("several_hosts", message, len(ranks))
    attempts = timeline.attempts
    starts = np.flatnonzero((table.kind == Kind.START) & (table.rank != NONE) & (attempts.of_row >= 0))
    if len(starts) == 0:
        return
    seen = distinct((attempts.of_row[starts].astype(np.int64) << 32) | table.rank[starts])
    up = np.bincount(seen >> 32, minlength=len(attempts))
    fewer = np.flatnonzero((up > 0) & (up < up.max()))
    if len(fewer):
        message = f"attempts in which fewer than {up.max()} ranks started (at least {up[fewer].min()})"
        yield diagnostic_at("rank_missing", table, attempts.begin_row[fewer], message)
