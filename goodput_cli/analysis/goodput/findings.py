"""What looked wrong or was assumed in one job's events: diagnostics of the accounting (docs/diagnostics.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS
from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import of_kind
from goodput_cli.diagnostics.diagnostic import MAX_PLACES, Diagnostic, Severity
from goodput_cli.events.schema import EventTable

Rows = NDArray[np.intp]


def findings(timeline: Timeline) -> tuple[Diagnostic, ...]:
    """Everything the accounting noticed, in a fixed order."""
    return tuple(
        found
        for room in (_identity, _attempts, _intervals, _progress, _reference, _loading)
        for found in room(timeline)
        if found.count
    )


def _found(code: str, severity: Severity, table: EventTable, rows: Rows, message: str) -> Diagnostic:
    places = sorted({_place_key(table, row) for row in rows[:MAX_PLACES].tolist()})
    return Diagnostic(code, severity, message, len(rows), tuple(place for _, _, place in places))


def _place_key(table: EventTable, row: int) -> tuple[str, int, str]:
    return table.sources[table.source[row]], int(table.line[row]), table.where(row)


def _identity(timeline: Timeline) -> Iterator[Diagnostic]:
    ordered = timeline.ordered
    yield _found(
        "duplicate_events",
        "info",
        ordered.original,
        ordered.duplicates,
        "lines that say exactly what another line says; each counts once",
    )


def _attempts(timeline: Timeline) -> Iterator[Diagnostic]:
    table, attempts = timeline.table, timeline.attempts
    if len(attempts) and not attempts.started[0]:
        yield _found(
            "starts_mid_run",
            "warning",
            table,
            attempts.begin_row[:1],
            "the log begins in the middle of a run: no start line stands before its first step or checkpoint, so "
            "what came before is not in the window",
        )
    yield _found(
        "multi_host_duplicates",
        "warning",
        table,
        attempts.dropped,
        "steps that several hosts reported; the earliest report counts, so let one host write",
    )
    unseen = np.flatnonzero(~attempts.started)
    yield _found(
        "restart_without_start",
        "info",
        table,
        attempts.begin_row[unseen[unseen > 0]],
        "attempts that no start line opened: steps went back, or life went on after an end line",
    )
    if attempts.step_log:
        claimed = attempts.closing[of_kind(table.kind[attempts.closing], CLEAN_KINDS)]
        crashed = timeline.endings.how[attempts.of_row[claimed]] != End.CLEAN
        yield _found(
            "end_not_believed",
            "info",
            table,
            claimed[crashed],
            "job ends after which steps were redone or a crash was logged: they count as terminations",
        )
    starts = timeline.runs
    if len(starts) > 1:
        yield _found(
            "restarted_from_scratch",
            "warning",
            table,
            np.array(starts[1:], dtype=np.intp),
            f"the job name was used for {len(starts)} runs, and what the earlier ones did counts as wasted; "
            "--run N or --run last analyses one",
        )


def _intervals(timeline: Timeline) -> Iterator[Diagnostic]:
    phases, loads = timeline.phases, timeline.loads
    opened = np.concatenate((phases.row[phases.end_row < 0], loads.row[loads.end_row < 0], loads.dropped))
    yield _found(
        "open_interval",
        "warning",
        timeline.table,
        np.sort(opened).astype(np.intp),
        "start lines without an end line: each ends where the rules say (docs/accounting.md, open intervals); a data "
        "load after which training went on is dropped",
    )
    yield _found(
        "orphan_end",
        "warning",
        timeline.table,
        np.sort(np.concatenate((phases.orphans, loads.orphans))).astype(np.intp),
        "end lines without a start line; they claim nothing",
    )


def _progress(timeline: Timeline) -> Iterator[Diagnostic]:
    progress = timeline.progress
    if progress is None:
        return
    yield _found(
        "no_checkpoint_loaded",
        "info",
        timeline.table,
        timeline.attempts.begin_row[progress.without_load],
        "attempts that progressed without a checkpoint_loaded line: where they began is inferred",
    )
    if progress.asynchronous and not timeline.rules.async_saves:
        yield Diagnostic(
            "async_saves_detected",
            "info",
            "steps were finished while a save was under way: saves are asynchronous here and claim no time, and "
            "startup is not inferred",
        )


def _reference(timeline: Timeline) -> Iterator[Diagnostic]:
    reference = timeline.reference_ns
    if reference is None:
        return
    if timeline.origin == "auto":
        value = repr(float(reference) / 1e9)
        yield Diagnostic(
            "reference_auto",
            "info",
            f"the reference step time {value} s was estimated from this log: pin it with --reference-step-time {value}",
        )
    negative = bool(timeline.kept_training.slowdown.sum() < 0)
    if timeline.origin == "auto" and not negative:
        return  # a tenth of the steps were faster, no more
    median = _median_step_time(timeline)
    if negative or (median is not None and median < float(reference)):
        yield _too_slow(reference, median)


def beaten_reference(timeline: Timeline, diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics of an answer that shows more than 100 % for some window, with `reference_too_slow` among them:
    over the whole job the steps may be slower than the reference."""
    said = any(found.code == "reference_too_slow" for found in diagnostics)
    if said or timeline.reference_ns is None:
        return tuple(diagnostics)
    return (*diagnostics, _too_slow(timeline.reference_ns, _median_step_time(timeline)))


def _median_step_time(timeline: Timeline) -> float | None:
    """Of the steps that are measured, net (ns); None without any."""
    training = timeline.training
    chosen = training.sample & ~training.spans.opening
    rates = timeline.kept_training.net(chosen) / training.spans.steps[chosen]
    return float(np.median(rates)) if len(rates) else None


def _too_slow(reference_ns: Fraction, median_ns: float | None) -> Diagnostic:
    observed = "see steps" if median_ns is None else f"the observed median is {median_ns / 1e9:.6g} s"
    return Diagnostic(
        "reference_too_slow",
        "warning",
        f"steps are faster than the reference step time of {float(reference_ns) / 1e9:.6g} s ({observed}): goodput "
        "is overstated and training_slowdown negative",
    )


def _loading(timeline: Timeline) -> Iterator[Diagnostic]:
    """`input_bound`: loading covers more than half of the time in which steps were in flight."""
    loading = timeline.loading
    if len(loading) == 0 or timeline.records is None:
        return
    covered = union_length(loading.start, loading.end)
    spans = timeline.training.spans
    stepping = int((spans.end - spans.start).sum())
    if stepping > 0 and 2 * covered > stepping:
        yield Diagnostic(
            "input_bound",
            "warning",
            f"data loading runs during {100 * covered / stepping:.0f} % of the step time: training may be waiting for "
            "data; --data-loading blocking claims that time",
        )


def union_length(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Length (ns) of the union of intervals."""
    some = start < end
    start, end = start[some], end[some]
    if len(start) == 0:
        return 0
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    gaps = np.maximum(start[1:] - reach[:-1], 0)
    return int(reach[-1] - start[0] - gaps.sum())
