"""Diagnostics of the accounting: problems and assumptions in one job's events (docs/diagnostics.md).

Also lists the categories without evidence: these are "not recorded", which is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS, Attempts
from goodput_cli.accounting.attempts.endings import End, is_job_end_believed
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.claims import second_writers
from goodput_cli.accounting.columns import codes_in, distinct, is_sorted, of_kind, rows_of, search
from goodput_cli.accounting.training.kept import ALL_KEPT
from goodput_cli.accounting.training.progress import gaps_of_means
from goodput_cli.analysis.disruptions.losses import first_and_last_steps
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, Diagnostic
from goodput_cli.events.schema import BEGINS_RUN, NO_STEP, NONE, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE, Category
from goodput_cli.vocabulary.text import duration, percent, period, rough_duration
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND


def diagnostic_at(
    code: str, table: EventTable, rows: Rows, message: str, count: int | None = None, *, mild: bool = False
) -> Diagnostic:
    """Return a diagnostic at some rows of a table, its locations sorted by source and line.

    count: how often it occurred, if not once per row. mild: a mild case of its code. Raises ValueError for a code
    without a row in the table of codes.
    """
    named = distinct(rows)[:MAX_PLACES].tolist() if len(rows) else []  # Most checks find nothing.
    places = sorted({(table.sources[table.source[row]], int(table.line[row]), table.where(row)) for row in named})
    number = len(rows) if count is None else count
    return Diagnostic.of(code, message, number, tuple(place for _, _, place in places), mild=mild)


_AT_ONCE_NS = 10 * NS_PER_SECOND
"""Starts without a rank that follow each other within this time may be one start of several hosts."""
_MOST_GAPS = 5
"""Maximum number of named gaps between step ends."""
_UNEXPLAINED = (Category.RECOVERY, Category.UNDETERMINED, Category.OTHER)
_LEAST_GAP_NS = 3600 * NS_PER_SECOND
_LARGE_GAP = 0.25
"""Share of the job: a gap between two files of at least this share is named."""
_FAR_NS = 30 * NS_PER_DAY
"""A gap without lines of this length (ns) is reported, whatever the lines on both sides contain."""
_SLIGHTLY = 0.01
"""A reference that is beaten by a smaller share counts as correct."""


def findings(timeline: Timeline) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of the accounting, in a fixed order."""
    return tuple(diagnostic for check in _CHECKS for diagnostic in check(timeline) if diagnostic.count)


def _evidence(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report unused lines about failures (docs/causes.md)."""
    causes = timeline.causes
    for code, rows, message in (
        ("evidence_of_other_hosts", causes.other_hosts, "failure messages from hosts that did not run the job"),
        ("hosts_unknown", causes.unknown_hosts, "failure messages of hosts, but the hosts of the job are not logged"),
        (
            "evidence_without_clock",
            causes.without_clock,
            "failure messages without a timestamp could not be assigned to an attempt",
        ),
    ):
        if rows:
            yield Diagnostic.of(code, message, sum(one.count for one in rows), tuple(one.where for one in rows[:20]))
    for source, count in timeline.table.observed.dropped.items():
        yield Diagnostic.of("too_many_observations", "too many failure messages; the rest is ignored", count, (source,))


def _identity(timeline: Timeline) -> Iterator[Diagnostic]:
    ordered = timeline.ordered
    message = "identical log lines; each counts once"
    yield diagnostic_at("duplicate_events", ordered.original, ordered.duplicates, message)


def _gap(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report the longest unexplained stretch after which the job continues: two jobs may have been read as one."""
    segments, table = timeline.segments, timeline.table
    far = _far_apart(timeline)
    if far is not None:
        yield far
        return
    open_ = np.flatnonzero(of_kind(segments.category, _UNEXPLAINED))
    if len(open_) == 0:
        return
    longest = open_[np.argmax(segments.end[open_] - segments.start[open_])]
    start, end = int(segments.start[longest]), int(segments.end[longest])
    if end - start < _LEAST_GAP_NS or end >= timeline.end:
        return
    after = int(np.searchsorted(table.time, end))
    share = (end - start) / (timeline.end - timeline.start)
    files = bool(0 < after < len(table) and table.source[after - 1] != table.source[after])
    if _is_one_job(timeline, start, end, files):
        return
    if end - start >= NS_PER_DAY or (files and share >= _LARGE_GAP):
        yield diagnostic_at(
            "long_gap",
            table,
            np.array([min(after, len(table) - 1)]),
            f"one gap covers {percent(100 * share, 0)} of the job: {duration(end - start)}, {period(start, end)}; if "
            "these are two jobs, analyze each one alone",
        )


def _far_apart(timeline: Timeline) -> Diagnostic | None:
    """Report a month or more without a line, apart from excluded time: a timestamp is wrong, or lines are missing."""
    table, segments = timeline.table, timeline.segments
    if timeline.end - timeline.start < _FAR_NS or len(table) < 2:
        return None
    apart = np.diff(table.time)
    if apart.max() < _FAR_NS:
        return None
    before = int(np.argmax(apart))
    start, end = int(table.time[before]), int(table.time[before + 1])
    left_out = segments.category == Category.EXCLUDED
    inside = np.minimum(segments.end[left_out], end) - np.maximum(segments.start[left_out], start)
    if end - start - int(np.maximum(inside, 0).sum()) < _FAR_NS:
        return None
    return diagnostic_at(
        "long_gap",
        table,
        np.array([before + 1]),
        f"no log lines for {duration(end - start)}, {period(start, end)}: a timestamp is wrong, lines are missing, or "
        "these are two jobs",
    )


def _is_one_job(timeline: Timeline, start: int, end: int, files: bool) -> bool:
    """Return True if the log shows that the attempts on both sides of a gap from `start` to `end` (ns) are one job's.

    The step numbers must continue after the gap from a step that the previous attempt had reached. In one file a logged
    end is enough, because the attempt was ended on purpose and the next one was started. Such a gap is an outage, and
    its cost is reported without a warning.
    """
    attempts = timeline.attempts
    began, last = first_and_last_steps(timeline)
    later = max(int(np.searchsorted(attempts.begin, end, side="right")) - 1, 0)
    before = np.flatnonzero(began[:later] != NO_STEP)
    behind = later + np.flatnonzero(began[later:] != NO_STEP)
    if attempts.begin[later] < start or len(before) == 0 or len(behind) == 0:
        return False
    if not files and attempts.first_ending[later - 1] >= 0:
        return True
    earlier, step = int(before[-1]), int(began[behind[0]])
    stride = timeline.records.stride(earlier) if timeline.records is not None else 1
    return bool(began[earlier] < step <= last[earlier] + stride)


def _has_first_start(timeline: Timeline) -> bool:
    """Return True if the log shows where its first attempt began, in a format that has no start line."""
    table = timeline.table
    if BEGINS_RUN not in table.details:
        return False
    rows = np.flatnonzero(table.detail == table.details.index(BEGINS_RUN))
    return len(rows) > 0 and int(table.time[rows[0]]) <= int(table.time[timeline.attempts.begin_row[0]])


def _starts(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts = timeline.table, timeline.attempts
    if len(attempts) and not attempts.started[0] and not _has_first_start(timeline):
        yield diagnostic_at(
            "starts_mid_run",
            table,
            attempts.begin_row[:1],
            "the log begins in the middle of a run, without a start line before the first step or checkpoint; earlier "
            "time is not in the window",
        )
    second = second_writers(table)
    yield diagnostic_at(
        "two_writers",
        table,
        second,
        f"two processes wrote at the same time, and both logged {len(attempts.dropped)} steps: the result may be wrong "
        "for both",
    )
    if len(second) == 0:
        yield diagnostic_at(
            "multi_host_duplicates",
            table,
            attempts.dropped,
            "steps reported by several hosts; the earliest report counts. Let only one host write the log",
        )
    yield diagnostic_at(
        "rolled_back",
        table,
        attempts.begin_row[attempts.rolled_back],
        "steps were rolled back in a running process: repeated training counts as wasted, and no new attempt begins",
    )
    yield diagnostic_at(
        "restart_or_rollback",
        table,
        attempts.begin_row[attempts.perhaps_rolled_back],
        "steps went back, but the log does not show whether the process restarted; this counts as a restart",
    )
    unseen = np.flatnonzero(~attempts.started & ~attempts.rolled_back)
    yield diagnostic_at(
        "restart_without_start",
        table,
        attempts.begin_row[unseen[unseen > 0]],
        "attempts without a start line: steps went back, or events follow an end line",
    )


def _ends_and_runs(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts = timeline.table, timeline.attempts
    if attempts.step_log:
        claimed = attempts.closing[of_kind(table.kind[attempts.closing], CLEAN_KINDS)]
        crashed = timeline.endings.how[attempts.of_row[claimed]] != End.CLEAN
        yield diagnostic_at(
            "end_not_believed",
            table,
            claimed[crashed],
            "job ends followed by repeated steps or a crash; they count as terminations",
        )
    yield from _stops(timeline)
    starts = timeline.runs
    if len(starts) > 1:
        yield diagnostic_at(
            "restarted_from_scratch",
            table,
            np.array(starts[1:], dtype=np.intp),
            f"{len(starts)} runs share this name and are counted as one job, so earlier runs count as wasted; use "
            "--run last or --run N for one run",
        )


def _stops(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report disruptions that may have been planned stops.

    Their attempt saved after its last step, and one of the two conditions of a planned stop is true (accounting §3):
    the job's end is logged, or no work was repeated. Attempts with a known cause of their end are omitted.
    """
    attempts, table = timeline.attempts, timeline.table
    if not attempts.step_log or timeline.rules.method.planned is not None:
        return
    ended = timeline.failed & (timeline.endings.how == End.TERMINATED) & (timeline.preempted_saves < 0)
    ended &= _saved_last(table, attempts) if ended.any() else False
    if not ended.any():
        return
    said = np.zeros(len(attempts), dtype=bool)
    said[attempts.of_row[attempts.closing[table.kind[attempts.closing] == Kind.JOB_END]]] = True
    stepping = attempts.step_bounds[1:] > attempts.step_bounds[:-1]
    went_on = stepping & (np.arange(len(attempts)) < np.flatnonzero(stepping).max(initial=-1))
    unexplained = np.array([one.code == UNKNOWN_CAUSE for one in timeline.causes.why], dtype=bool)
    redone, resumed = ended & said, ended & ~said & went_on & unexplained & is_job_end_believed(table, attempts)
    parts = (
        (redone, "with a job end after a checkpoint, but repeated steps"),
        (resumed, "with an unexplained termination after a checkpoint, but no repeated steps"),
    )
    listed = " and ".join(f"{some.sum()} {words}" for some, words in parts if some.any())
    doubted = np.flatnonzero(redone | resumed)
    message = f"stops between attempts may have been planned, but count as disruptions: {listed}"
    yield diagnostic_at("planned_or_not", table, attempts.first_ending[doubted], message)


def _saved_last(table: EventTable, attempts: Attempts) -> Mask:
    """Return, by attempt, True if a save was made after its last step and completed before the attempt ended."""
    rows = rows_of(table.kind, (Kind.SAVE, Kind.SAVED))
    rows = rows[attempts.of_row[rows] >= 0]
    owner = attempts.of_row[rows]
    ending = attempts.first_ending[owner]
    behind = (rows > attempts.last_progress[owner]) & (ending >= 0) & (table.end[rows] <= table.time[ending])
    saved = np.zeros(len(attempts), dtype=np.bool_)
    saved[owner[behind]] = True
    return saved


def _starts_without_rank(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report attempts that did nothing and ended without a logged end right before another start."""
    table, attempts = timeline.table, timeline.attempts
    idle = (attempts.last_recorded[:-1] < 0) & (timeline.endings.how[:-1] == End.NOT_LOGGED)
    before = np.flatnonzero(idle & (np.diff(attempts.begin) <= _AT_ONCE_NS))
    if len(before) == 0:
        return
    row, next_row = attempts.begin_row[before], attempts.begin_row[before + 1]
    bare = attempts.started[before] & attempts.started[before + 1]
    bare &= (table.rank[row] == NONE) & (table.rank[next_row] == NONE)
    bare &= (table.writer[row] == NONE) & (table.writer[next_row] == NONE)
    chosen = np.flatnonzero(bare)
    if len(chosen):
        rows = np.concatenate((row[chosen], next_row[chosen]))
        message = "start lines without a rank directly follow each other; they may be one start of several hosts"
        yield diagnostic_at("starts_without_rank", table, rows, message, len(chosen))


def _intervals(timeline: Timeline) -> Iterator[Diagnostic]:
    phases, loads = timeline.phases, timeline.loads
    opened = np.concatenate((phases.row[phases.end_row < 0], loads.row[loads.end_row < 0], loads.dropped))
    yield diagnostic_at(
        "open_interval",
        timeline.table,
        np.sort(opened).astype(np.intp),
        "start lines without an end line; each ends at the next step or checkpoint, or with its attempt. A data load "
        "without an end is not counted if training follows it",
    )
    yield diagnostic_at(
        "orphan_end",
        timeline.table,
        np.sort(np.concatenate((phases.orphans, loads.orphans))).astype(np.intp),
        "end lines without a start line; ignored",
    )


def _unrecorded(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report attempts of step logs whose last steps are not logged although the job resumed after them."""
    records, lineage = timeline.records, timeline.lineage
    if records is None:
        return
    resumed = (lineage.limit > records.last) & (lineage.limit != ALL_KEPT) & records.has_records & ~lineage.reached
    attempt = np.flatnonzero(resumed)
    spans = timeline.training.spans
    last = search(spans.attempt, attempt, side="right") - 1
    missing = lineage.limit[attempt] - records.last[attempt] - (not timeline.attempts.step_ends)
    proved = spans.stop[last] == lineage.limit[attempt]
    for chosen, message, mild in (
        (proved, "after them: the writer lost its last lines; they count as trained", True),
        (~proved, "after them, and nothing can have trained them: an attempt or its log is missing, or the checkpoint "
         "belongs to another job; they do not count", False),
    ):  # fmt: skip
        rows, count = records.last_row[attempt[chosen]], int(missing[chosen].sum())
        text = f"steps that are not logged, although the job resumed {message}"
        yield diagnostic_at("unrecorded_steps", timeline.table, rows, text, count, mild=mild)


def _step_ends(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report the largest unexplained gaps where the mean step times and the time between step ends differ."""
    table, records = timeline.table, timeline.records
    if records is None or records.beginnings is None:
        return
    same = np.flatnonzero(records.owner[1:] == records.owner[:-1])
    steps = records.number[same + 1].astype(np.int64) - records.number[same]
    pairs = np.column_stack((records.rows[same], records.rows[same + 1]))
    start, end = records.time[same], records.time[same + 1]
    gap, slack = gaps_of_means(table.step_time[pairs[:, 1]], end, end - start, steps)
    long = np.flatnonzero(gap > slack)
    unexplained = timeline.ledger.time_in(Category.OTHER, start[long], start[long] + gap[long])
    largest = [at for at in np.argsort(-unexplained, kind="stable")[:_MOST_GAPS].tolist() if unexplained[at]]
    if largest:
        total = rough_duration(int(unexplained.sum()))
        message = f"{total} between step records is explained neither by the step times nor by any other line"
        count = int(np.count_nonzero(unexplained))
        yield diagnostic_at("gap_between_steps", table, pairs[long[largest]].ravel(), message, count)
    yield diagnostic_at(
        "step_longer_than_gap",
        table,
        pairs[-gap > slack, 1],
        "step records whose mean step time is longer than the time since the previous record",
    )


def _progress(timeline: Timeline) -> Iterator[Diagnostic]:
    progress = timeline.progress
    if progress is None:
        return
    yield diagnostic_at(
        "no_checkpoint_loaded",
        timeline.table,
        timeline.attempts.begin_row[progress.without_load],
        "attempts with progress but without a checkpoint_loaded line; their first step is inferred",
    )
    if progress.asynchronous and not timeline.rules.method.async_saves:
        yield Diagnostic.of(
            "async_saves_detected",
            "saves are asynchronous (steps finished during a save, or the log reports it): they take no time from "
            "training, and start-up is not inferred",
        )


def _reference(timeline: Timeline) -> Iterator[Diagnostic]:
    reference = timeline.reference_ns
    if reference is None:
        return
    if timeline.origin == "auto":
        value = repr(float(reference) / 1e9)
        yield Diagnostic.of(
            "reference_auto",
            f"the reference step time {value} s was estimated from this log; fix it with --reference-step-time {value}",
        )
    negative = bool(timeline.kept_training.slowdown.sum() < 0)
    if timeline.origin == "auto" and not negative:
        return  # Only a tenth of the steps were faster.
    median = _median_step_time(timeline)
    if negative or (median is not None and median < float(reference)):
        yield _too_slow(timeline, median)


def beaten_reference(timeline: Timeline, diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of an answer that shows more than 100 % for some window, with `reference_too_slow` added.
    Over the whole job the steps may be slower than the reference."""
    said = any(diagnostic.code == "reference_too_slow" for diagnostic in diagnostics)
    if said or timeline.reference_ns is None:
        return tuple(diagnostics)
    return (*diagnostics, _too_slow(timeline, _median_step_time(timeline)))


def _median_step_time(timeline: Timeline) -> float | None:
    """Return the median net time (ns) of the measured steps; None without any."""
    training = timeline.training
    chosen = training.sample & ~training.spans.opening
    rates = timeline.kept_training.net(chosen) / training.spans.steps[chosen]
    return float(np.median(rates)) if len(rates) else None


def _too_slow(timeline: Timeline, median_ns: float | None) -> Diagnostic:
    """Report the measured value that beats the reference: the median of steps, or the mean of kept training."""
    assert timeline.reference_ns is not None
    reference = float(timeline.reference_ns)
    steps = float(timeline.kept_training.counted_steps.sum())
    mean = reference + float(timeline.kept_training.slowdown.sum()) / steps if steps else reference
    measured = [("mean", mean)] if median_ns is None else [("mean", mean), ("median", median_ns)]
    shown = " and ".join(f"{name} {value / 1e9:.6g} s" for name, value in measured)
    ahead = 1 - min(value for _, value in measured) / reference
    return Diagnostic.of(
        "reference_too_slow",
        f"steps are {100 * ahead:.2g} % faster than the reference step time of {reference / 1e9:.6g} s (measured: "
        f"{shown}): goodput is overstated by that amount, and training_slowdown may be negative",
        mild=ahead < _SLIGHTLY,
    )


def _loading(timeline: Timeline) -> Iterator[Diagnostic]:
    """Report `input_bound`: loading covers more than half of the time in which steps were in flight."""
    if len(timeline.loading[0]) == 0 or timeline.records is None:
        return
    covered = union_length(*timeline.loading)
    spans = timeline.training.spans
    stepping = int((spans.end - spans.start).sum())
    if stepping > 0 and 2 * covered > stepping:
        yield Diagnostic.of(
            "input_bound",
            f"data loading runs during {100 * covered / stepping:.0f} % of the step time, and training may wait for "
            "it; use --data-loading blocking to count that time",
        )


_CHECKS = (
    _identity, _gap, _starts, _starts_without_rank, _ends_and_runs, _intervals, _unrecorded, _step_ends, _progress,
    _reference, _loading, _evidence,
)  # fmt: skip
"""All checks, in the order of their findings."""


class CoveredTime:
    """Time covered by intervals, which may overlap, up to a given time."""

    def __init__(self, start: I64, end: I64) -> None:
        order = np.argsort(start, kind="stable")
        self._start, self._end = start[order], np.maximum.accumulate(end[order])
        self._start[1:] = np.maximum(self._start[1:], self._end[:-1])  # Overlapping time counts once.
        self._total = np.append(0, np.cumsum(np.maximum(self._end - self._start, 0)))

    def covered_before(self, time: I64) -> I64:
        """Return the ns covered before each time."""
        place = np.searchsorted(self._start, time, side="right")
        return np.asarray(self._total[place] - np.maximum(np.append(0, self._end)[place] - time, 0) * (place > 0))

    def within(self, start: I64, end: I64) -> I64:
        """Return the ns covered in each interval."""
        return self.covered_before(end) - self.covered_before(start)


def union_length(start: I64, end: I64) -> int:
    """Return the length (ns) of the union of intervals."""
    some = start < end
    if not some.all():
        start, end = start[some], end[some]
    if len(start) == 0:
        return 0
    if not is_sorted(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    gaps = start[1:] - reach[:-1]
    return int(reach[-1] - start[0] - np.maximum(gaps, 0, out=gaps).sum())


_EVIDENCE = {category: frozenset(Kind[name] for name in category.row.evidence) for category in Category}
"""Kinds of events that are evidence of a category; empty if a category needs no separate line."""


def not_recorded(timeline: Timeline) -> tuple[str, ...]:
    """Return the names of the categories without evidence in the job's events, in the order of `Category`.

    A category whose lines the job never wrote is unknown. So is a value that could not be measured: startup without a
    usual step time, stalls if they are not looked for, slowdown without a reference.
    """
    table, progress = timeline.table, timeline.progress
    kinds = {Kind(value) for value in codes_in(table.kind)}
    for kind in (Kind.SAVE, Kind.RESTORE):  # The log does not show how long they took.
        if not (table.edge[table.kind == kind] == Edge.INTERVAL).any():
            kinds.discard(kind)
    missing = {category for category, evidence in _EVIDENCE.items() if evidence and not kinds & evidence}
    if progress is not None:  # A save between a step's end and its line, or a restore before a load, has no line.
        missing -= {Category.SAVE} if len(progress.saves) else set()
        missing -= {Category.RESTORE} if (progress.load_row >= 0).any() else set()
    missing |= _not_measured(timeline)
    occurring = {category for category, _ in timeline.ledger.keys}
    return tuple(category.id for category in sorted(missing - occurring))


def _not_measured(timeline: Timeline) -> set[Category]:
    """Return the categories that cannot be measured because the usual step time or a reference is missing."""
    missing: set[Category] = set()
    progress, no_usual_step = timeline.progress, np.isnan(timeline.usual_step.median).all()
    if no_usual_step or (progress is not None and progress.asynchronous):
        missing.add(Category.PROGRAM_STARTUP)
    measured = timeline.records is not None and timeline.reference_ns is None and timeline.rules.method.stall_factor > 0
    if not measured or no_usual_step:
        missing.add(Category.STALL)
    if timeline.reference_ns is None:
        missing.add(Category.SLOWDOWN)
    return missing
