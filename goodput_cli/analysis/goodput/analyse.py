"""The main question: where every second of a window went. Cumulative is one window, an interval is one window.

Saves: the number of saved checkpoints, and their distances. Their cost is in the ledger.

Slice efficiency (accounting §9): the share of the job's slices that were stepping, and that were available. The counts
apply from their record to the next one. Time before the first record is unknown and omitted. So is time after a record
without counts (or with a total of 0).

Thresholds: each expression judged on an analysis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.accounting.options import Limits
from goodput_cli.accounting.training.kept import ALL_KEPT
from goodput_cli.analysis.disruptions.find import count_disruptions, find_disruptions, reliability
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.findings import findings, not_recorded, union_length
from goodput_cli.analysis.goodput.phrases import limits_text, open_question
from goodput_cli.analysis.goodput.thresholds import CAUSE, INSIGHT, OOM, PHASE
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.analysis.measures import GOODPUT, PREFIXES, decimal, percent_of, value_of
from goodput_cli.analysis.results import (
    AtRisk,
    CategoryTime,
    CategoryTimes,
    Job,
    Reference,
    Saves,
    SliceEfficiency,
    Window,
)
from goodput_cli.analysis.saves import Completion, JudgedSaves, judge_saves, saves_made
from goodput_cli.analysis.steps.times import step_statistics
from goodput_cli.analysis.summary import Summary, summary_of
from goodput_cli.analysis.threshold import PERCENT, Expression, Threshold, judged, judged_between
from goodput_cli.arrays import F64, I64, blocks
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.schema import NO_STEP, EventTable, Kind, LogFormat
from goodput_cli.vocabulary.categories import CATEGORIES, CAUSES, OUT_OF_MEMORY, OVERLAPPED, Category
from goodput_cli.vocabulary.text import did_you_mean, iso_to_the_second


def saves_inside(timeline: Timeline, start: int, end: int) -> Saves | None:
    """Return the saves that began inside [start, end) (ns); None if the job logs none."""
    made = saves_made(timeline)
    if len(made) == 0:
        return None
    inside = made.take((made.begin >= start) & (made.begin < end))
    apart = inside.apart_ns
    timed = int(np.count_nonzero(timeline.ledger.time_in(Category.SAVE, inside.begin, inside.end)))
    return Saves(len(inside), None if apart is None else apart / 1e9, None if timeline.records is None else timed)


_MOST_LABELS = 5
Value = TypeVar("Value", np.int64, np.float64)


class Share(Struct, frozen=True):
    """A share of slices that changes at `time` (ns, sorted, n values); `value`: float64[n], NaN if unknown."""

    time: I64
    value: F64

    def mean(self, start: I64, end: I64) -> F64:
        """Return the time-weighted mean over the known time of each window [start, end); NaN without known time."""
        known = self.known_ns(start, end)
        weighted = self._integral(np.nan_to_num(self.value), end) - self._integral(np.nan_to_num(self.value), start)
        return np.where(known > 0, weighted / np.where(known > 0, known, 1.0), np.nan)

    def known_ns(self, start: I64, end: I64) -> I64:
        """Return the known time (ns, exact) of each window [start, end)."""
        known = (~np.isnan(self.value)).astype(np.int64)
        return self._integral(known, end) - self._integral(known, start)

    def _integral(self, value: NDArray[Value], time: I64) -> NDArray[Value]:
        """Return the integral of `value` (0 before the first record) up to each time."""
        if len(self.time) == 0:
            return np.zeros(len(time), dtype=value.dtype)
        before = np.append(value[:1] * 0, np.cumsum(value[:-1] * np.diff(self.time)))
        place = np.searchsorted(self.time, time, side="right") - 1
        at = np.maximum(place, 0)
        return np.where(place >= 0, before[at] + value[at] * (time - self.time[at]), 0)


class SliceCounts(Struct, frozen=True):
    """Slice counts of a job. stepping: active/total; available: available/total."""

    stepping: Share
    available: Share


def slice_counts(table: EventTable) -> SliceCounts:
    """Return the slice counts of a job's events, which are in time order."""
    rows = np.flatnonzero(table.kind == Kind.SLICES)
    codes = table.detail[rows].tolist()
    by_code = {code: _shares(table.details[code]) for code in set(codes)}
    shares = np.array([by_code[code] for code in codes], dtype=np.float64).reshape(len(rows), 2)
    return SliceCounts(Share(table.time[rows], shares[:, 0]), Share(table.time[rows], shares[:, 1]))


def _shares(detail: tuple[object, ...]) -> tuple[float, float]:
    """Return active and available slices as shares of all; NaN for missing values of a record."""
    active, total, available = (detail + (None,) * 3)[:3]
    if not isinstance(total, int) or total <= 0:
        return np.nan, np.nan
    stepping, ready = (count / total if isinstance(count, int) else np.nan for count in (active, available))
    return stepping, ready


def elastic_of(timeline: Timeline, start: int, end: int, goodput_percent: float | None) -> SliceEfficiency:
    """Return the slice efficiency of the window [start, end) (ns), and goodput times it."""
    slices = slice_counts(timeline.table)
    if len(slices.stepping.time) == 0:
        return SliceEfficiency(None, None, None, None)
    window = np.array([start]), np.array([end])
    means = (float(share.mean(*window)[0]) for share in (slices.stepping, slices.available))
    stepping, available = (None if math.isnan(mean) else mean for mean in means)
    unknown = end - start - int(slices.stepping.known_ns(*window)[0])
    both = None if stepping is None or goodput_percent is None else goodput_percent * stepping
    return SliceEfficiency(stepping, available, unknown, both)


def analyse_window(
    timeline: Timeline,
    name: str,
    formats: Sequence[LogFormat],
    start: int,
    end: int,
    diagnostics: Sequence[Diagnostic] = (),
) -> Analysis:
    """Return the analysis of [start, end) (ns), cut to the job window. Raise `NotEnoughData` if nothing of it
    remains."""
    start, end = max(start, timeline.start), min(end, timeline.end)
    if start >= end:
        first, last = iso_to_the_second(timeline.start), iso_to_the_second(timeline.end)
        raise NotEnoughData(f"the window lies outside the job, which runs from {first} to {last}")
    steps = step_statistics(timeline, start, end)  # Segments and ledger are made later: each takes much memory.
    job = _job(timeline, name, formats, start, end)
    amounts = timeline.ledger.in_window(start, end)
    excluded = amounts.pop((Category.EXCLUDED, -1), 0)
    window = Window(start, end, excluded)
    if window.counted_ns <= 0:
        raise NotEnoughData("the whole window is excluded")
    productive, counted = amounts.pop((Category.PRODUCTIVE, -1), 0), window.counted_ns
    percent, labels = 100 * productive / counted, timeline.table.labels
    badput = [
        CategoryTime(CATEGORIES[category], labels[label] if label >= 0 else None, ns, 100 * ns / counted)
        for (category, label), ns in amounts.items()
        if ns
    ]
    disruptions = find_disruptions(timeline, start, end)
    unjudged = bool(timeline.unknown(np.array([start]), np.array([end]))[0])
    bounds = () if unjudged else timeline.bounds(start, end)
    unknown = unjudged or bool(bounds)
    return Analysis(
        job=job,
        window=window,
        goodput=CategoryTime(CATEGORIES[Category.PRODUCTIVE], None, productive, percent),
        badput=CategoryTimes(sorted(badput, key=lambda row: (-row.ns, row.category, row.label or ""))),
        overlapped=_overlapped(timeline, start, end, counted),
        at_risk=at_risk(timeline),
        reference=_reference(timeline, productive),
        steps=steps,
        thresholds=(),
        not_recorded=not_recorded(timeline),
        diagnostics=(*diagnostics, *findings(timeline)),
        timeline=timeline,
        table=timeline.table,
        elastic=elastic_of(timeline, start, end, None if unknown else percent),
        disruptions=disruptions,
        reliability=reliability(timeline, disruptions, start, end, None if unknown else productive / counted),
        saves=saves_inside(timeline, start, end),
        method=timeline.rules.method,
        bounds=bounds,
    )


def _job(timeline: Timeline, name: str, formats: Sequence[LogFormat], start: int, end: int) -> Job:
    first, last = _step_range(timeline, start, end)
    attempts = timeline.attempts.count
    return Job(
        name=name,
        start_ns=timeline.start,
        end_ns=timeline.end,
        ending=timeline.ending,
        attempts=attempts,
        runs=len(timeline.runs),
        disruptions=count_disruptions(timeline, start, end),
        first_step=first,
        last_step=last,
        kept_steps=kept_steps(timeline, start, end),
        kept_range=_kept_range(timeline, start, end),
        log_formats=tuple(formats),
    )


def kept_steps(timeline: Timeline, start: int, end: int) -> float:
    """Return the kept steps inside [start, end) (ns); a span that the window cuts counts in proportion to its time."""
    return float(np.sum(timeline.kept_training.counted_between(start, end)))


def _kept_range(timeline: Timeline, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last step with kept parts inside the window. Kept spans rise with time."""
    kept_training, spans = timeline.kept_training, timeline.kept_training.spans
    inside = (kept_training.start < end) & (
        (kept_training.end > start) | (kept_training.start >= start)
    )  # A point in time counts too.
    kept = inside & (kept_training.kept_steps > 0)
    if not kept.any():
        return None
    first, last = int(np.argmax(kept)), len(kept) - 1 - int(np.argmax(kept[::-1]))
    stop = int(spans.first[last]) + math.ceil(kept_training.kept_steps[last])
    by_beginnings = timeline.records is not None and not timeline.attempts.step_ends
    return int(spans.first[first]) + timeline.attempts.step_ends, stop - by_beginnings


def _step_range(timeline: Timeline, start: int, end: int) -> tuple[int | None, int | None]:
    """Return the first and last step of the final progress inside the window: recorded ones in step logs, bounds of the
    spans in checkpoint logs."""
    if timeline.records is None:
        return _kept_range(timeline, start, end) or (None, None)
    limit = timeline.lineage.limit
    if timeline.attempts.step_ends:  # Here steps count when they are done.
        limit = np.where(limit == ALL_KEPT, limit, limit + 1)
        end += end == timeline.end  # A step that ends with the job was done in it.
    records, ranges = timeline.records, []
    for begin, stop in blocks(len(records.rows)):
        time, number = records.time[begin:stop], records.number[begin:stop]
        inside = number[(number < limit[records.owner[begin:stop]]) & (time >= start) & (time < end)]
        if len(inside):
            ranges += [int(inside.min()), int(inside.max())]
    return (min(ranges), max(ranges)) if ranges else (None, None)


def _overlapped(timeline: Timeline, start: int, end: int, counted: int) -> tuple[CategoryTime, ...]:
    """Return data loading outside the ledger: the union of its intervals inside the window; empty if not logged."""
    if not (timeline.table.kind == Kind.DATA).any():
        return ()
    begins, ends = timeline.loading
    ns = union_length(np.maximum(begins, start), np.minimum(ends, end))
    return (CategoryTime(OVERLAPPED, None, ns, 100 * ns / counted),)


def _saved_until(timeline: Timeline, complete: JudgedSaves) -> int:
    """Return the time (ns) from which training is not in the newest complete save. It is the save's begin, or in logs
    of step ends the previous record, which shows its step as done."""
    newest = int(np.argmax(complete.complete))
    begin, records = int(complete.begin[newest]), timeline.records
    if records is None or not timeline.attempts.step_ends or complete.step[newest] == NO_STEP:
        return begin
    before = int(np.searchsorted(records.time, begin, "right")) - 1
    done = before >= 0 and records.owner[before] == complete.owner[newest]
    return int(records.time[before]) if done and records.number[before] >= complete.step[newest] else begin


def _last_began(timeline: Timeline) -> int:
    """Return the begin (ns) of the training of the last attempt that trained."""
    spans = timeline.training.spans
    return int(spans.start[spans.attempt == spans.attempt[-1]][0]) if len(spans.attempt) else timeline.end


def at_risk(timeline: Timeline) -> AtRisk | None:
    """Return the kept progress after the last complete save. Training that began before that save began is in it.

    Nothing is at risk after a clean end; None if the log has no saves.
    """
    saves = judge_saves(timeline)
    if len(saves) == 0:
        return None
    if len(timeline.attempts) and timeline.endings.how[-1] == End.CLEAN:
        return AtRisk(0.0, 0)
    complete = saves.take(saves.are(Completion.COMPLETE))
    # Without a complete save in the log, the last attempt that trained resumed from one that the log does not show.
    last = _saved_until(timeline, complete) if len(complete) else _last_began(timeline)
    is_bound = bool((saves.are(Completion.UNKNOWN) & (saves.begin > last)).any())
    kept_training = timeline.kept_training
    first = int(np.searchsorted(kept_training.start, last))
    kept = kept_training.kept_steps[first:] > 0
    productive = kept_training.trained(first, len(kept_training)) - kept_training.slowdown[first:]
    stalled, stall = kept_training.stall.part(first, len(kept_training))
    productive[stalled] -= stall
    return AtRisk(float(kept_training.counted_steps[first:][kept].sum()), int(productive[kept].sum()), is_bound)


def _reference(timeline: Timeline, productive: int) -> Reference:
    table = timeline.table
    loads, saved = table.step[table.kind == Kind.LOAD], table.step[table.kind == Kind.SAVED]
    lowest = int(loads.min()) if len(loads) else None
    highest = int(saved.max()) if len(saved) else None
    reference = timeline.reference_ns
    return Reference(
        step_time_seconds=None if reference is None else float(reference / 10**9),
        origin=timeline.origin,
        effective_computation_ns=None if reference is None else productive,
        min_loaded_step=lowest,
        max_saved_step=highest,
        step_difference=None if lowest is None or highest is None else highest - lowest,
        total_events=_lines(table),
        job_started_count=int(timeline.attempts.started.sum()),
        checkpoints_loaded=int(np.count_nonzero(loads > 0)),
        checkpoints_saved=len(saved),
    )


def _lines(table: EventTable) -> int:
    """Return the number of log lines that the events came from.

    A line may contain several events, and an entry of a service has no line. Pairs of source and line are marked in an
    array if they are as dense as in files, otherwise sorted.
    """
    without = table.line <= 0
    entries = len(distinct((table.source[without].astype(np.int64) << 32) + table.entry[without]))
    room = int(table.line.max(initial=0)) + 1
    places = room * len(table.sources)
    if places > 64 * len(table):
        lined = table.line > 0
        return entries + len(distinct(table.source[lined].astype(np.int64) * room + table.line[lined]))
    seen = np.zeros(places, dtype=bool)
    for start, stop in blocks(len(table)):
        line = table.line[start:stop]
        seen[table.source[start:stop].astype(np.int64) * room + np.maximum(line, 0)] = True
    seen[::room] = False  # These are events without a line.
    return entries + int(np.count_nonzero(seen))


def evaluate(expressions: Sequence[Expression], analysis: Analysis) -> tuple[Threshold, ...]:
    """Judge each expression on the analysis, without using `analysis.thresholds`."""
    summary = summary_of(analysis)
    return tuple(_judged(one, summary, analysis) for one in expressions)


def _judged(expression: Expression, summary: Summary, analysis: Analysis) -> Threshold:
    """Judge the expression on its value, or on both bounds if only these are known (accounting §7)."""
    found = _open_insights(expression, analysis) if expression.name == INSIGHT else _open_row(expression, analysis)
    if found is None:
        value = _value(expression, summary, analysis)
        return judged(expression, value, _hint(expression, analysis) if value is None else None)
    limits, reason = found
    shares = expression.unit == PERCENT
    low, high = (
        None if ns is None else percent_of(summary, ns) if shares else Fraction(ns, 10**9)
        for ns in (limits.at_least, limits.at_most)
    )
    words = limits_text(limits, analysis.window.counted_ns if shares else None)
    return judged_between(expression, low, high, words, reason)


def _open_insights(expression: Expression, analysis: Analysis) -> tuple[Limits, str] | None:
    """Return the cost of a kind's insights without and with unconfirmed ones, and why these are unconfirmed. None if
    all are confirmed."""
    rows = [one for one in analysis.insights if one.code == expression.label]
    unconfirmed = next((one for one in rows if not one.confirmed), None)
    if unconfirmed is None:
        return None
    limits = Limits(sum(one.ns for one in rows if one.confirmed), sum(one.ns for one in rows))
    return limits, f"{unconfirmed.text}; {unconfirmed.advice}"


def _open_row(expression: Expression, analysis: Analysis) -> tuple[Limits, str] | None:
    """Return the limits of an expression's ledger row, and why it has no number; None if it has one."""
    name = GOODPUT if expression.name == Category.PRODUCTIVE.id else expression.name
    if not any(bound.quantity == name for bound in analysis.bounds):
        return None
    row = analysis.goodput if name == GOODPUT else next(row for row in analysis.badput if row.category == name)
    return analysis.limits_of(row), open_question(analysis) or ""


def _hint(expression: Expression, analysis: Analysis) -> str | None:
    """Return a hint for a label that no custom event of the log has."""
    labels = analysis.table.labels
    if expression.name == PHASE:
        phases = dict.fromkeys(row.phase for one in analysis.step_phases for row in one.phases)
        return f"the log has {', '.join(phases)}" if phases else None
    if expression.name not in PREFIXES.values() or expression.label is None or expression.label in labels:
        return None
    known = ", ".join(f"custom:{label}" for label in labels[:_MOST_LABELS])
    return did_you_mean(expression.label, (f"custom:{label}" for label in labels), known and f"the log has {known}")


def _value(expression: Expression, summary: Summary, analysis: Analysis) -> Fraction | None:
    """Return the exact value in the unit of the expression; None if the log does not record it."""
    if expression.name == INSIGHT:
        return _insight_value(expression, analysis)
    if expression.name == CAUSE:
        return _cause_value(expression, analysis)
    if expression.name == PHASE:
        return _phase_value(expression.label or "", analysis)
    value = value_of(summary, expression.name, expression.label, expression.unit)
    if value is None and expression.label is not None and expression.name not in analysis.not_recorded:
        table = analysis.table  # An event outside the window makes it zero, not unknown.
        codes = [code for code, label in enumerate(table.labels) if label == expression.label]
        return Fraction(0) if ((table.kind == Kind.CUSTOM) & np.isin(table.label, codes)).any() else None
    return value


def _phase_value(phase: str, analysis: Analysis) -> Fraction | None:
    """Return the share of net step time (%) of a phase on its slowest rank; the maximum over programs."""
    rows = (row for one in analysis.step_phases for row in one.phases if row.phase == phase)
    return decimal(max((row.percent for row in rows if row.percent is not None), default=None))


def _insight_value(expression: Expression, analysis: Analysis) -> Fraction | None:
    """Return the cost of the insights of a kind: 0 without any, None if the log cannot show any."""
    from goodput_cli.analysis.insights.find import is_judged  # This loads all finders, like `Analysis.insights`.

    ns = sum(insight.ns for insight in analysis.insights if insight.code == expression.label)
    if ns == 0 and not is_judged(BY_CODE[expression.label or ""], analysis):
        return None
    return percent_of(summary_of(analysis), ns) if expression.unit == PERCENT else Fraction(ns, 10**9)


def _cause_value(expression: Expression, analysis: Analysis) -> Fraction | None:
    """Return the number of disruptions with a cause, or their loss; None if no source could contain the cause."""
    rows = analysis.disruptions.unplanned
    label = expression.label or ""
    codes = OUT_OF_MEMORY if label == OOM else [code for code, row in CAUSES.items() if label in (code, row.group)]
    lost = [ns for ns, why in zip(rows.column("lost_ns").tolist(), rows.why, strict=True) if why.code in codes]
    if not lost and not analysis.table.observed.read:
        return None
    return Fraction(sum(lost), 10**9) if expression.unit == "s" else Fraction(len(lost))
