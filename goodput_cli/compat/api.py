"""`goodput_cli.reconcile(...)`: our account of a job next to that of the system for which its log was written.

For recorder logs that is the reference library, ml-goodput-measurement, which runs on the same events. For checkpoint
logs it is the resiliency calculator, whose documented formula is computed here: effective computation time = (highest
step saved - lowest step loaded) x reference step time, goodput = effective computation time / time from the first to
the last event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from goodput_cli.accounting.attempts.attempts import PROGRESS_KINDS
from goodput_cli.accounting.columns import rows_of
from goodput_cli.analysis.analysis_data import NamedJob, named_job
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.json_fields import written
from goodput_cli.analysis.sheet import Audience, Cell, Column, Sheet
from goodput_cli.api.analyze import analyze
from goodput_cli.api.options import JOB, Source, parsed_options, takes
from goodput_cli.compat.answer import ReferenceResult
from goodput_cli.compat.library import NAME, ask_library, require_library
from goodput_cli.compat.reconcile import Reconciliation, events_seen
from goodput_cli.compat.reconcile import reconcile as reconcile_log
from goodput_cli.compat.rules import CALCULATOR, CALCULATOR_RULES, ReconcileTimeout
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.schema import REFERENCE_LIBRARY, Edge, Kind
from goodput_cli.vocabulary.option import Keywords
from goodput_cli.vocabulary.text import duration, exact, number, percent

if TYPE_CHECKING:
    from goodput_cli.api.keywords import ReconcileOptions


Unit = Literal["count", "seconds", "percent"]
_ALIKE = ("checkpoints_loaded", "checkpoints_saved", "min_loaded_step", "max_saved_step", "step_difference")
"""Rows that are equal in both systems, by their names in the reference."""
_OWN_EVENT = 1
"""The calculator adds one event: 27 for the documented run of 26 lines."""


@written("checkpoint_reason", "contribution of a rule to the difference", keys="rule text amount")
@dataclass(frozen=True)
class CheckpointReason:
    """Contribution of a rule to the difference."""

    rule: str
    """code of the rule (docs/compatibility.md)"""
    amount: float
    """in the unit of the row"""

    @property
    def text(self) -> str:
        return CALCULATOR_RULES[self.rule]


@written("reconciled_row", "a row", keys="name unit here there difference why not_explained")
@dataclass(frozen=True)
class CheckpointRow:
    """One row of the calculator's table."""

    name: str
    """a row of the calculator's table"""
    unit: Unit
    """unit of the numbers"""
    here: float | None
    """in goodput"""
    there: float | None
    """in the calculator"""
    why: tuple[CheckpointReason, ...] = ()
    """rules that cause the difference"""

    @property
    def difference(self) -> float | None:
        """difference, reference minus goodput"""
        return None if self.here is None or self.there is None else self.there - self.here

    @property
    def not_explained(self) -> float | None:
        """difference that no rule explains"""
        return None if self.difference is None else self.difference - sum(reason.amount for reason in self.why)


@dataclass(frozen=True)
class CheckpointReconciliation:
    """The calculator's table next to ours."""

    rows: tuple[CheckpointRow, ...]
    """The calculator's rows, in its order."""
    reference_seconds: float | None
    """The reference step time of both systems; None without one."""
    auto: bool
    """True if the reference step time comes from the log."""


@written(
    "reconcile_checkpoints_answer",
    "goodput reconcile --format json: checkpoint logs, compared with the resiliency calculator",
    kind="checkpoint_reconciliation",
)
@dataclass(frozen=True, kw_only=True)
class ReconcileCheckpointsAnswer:
    """goodput reconcile --format json: checkpoint logs, compared with the resiliency calculator"""

    job: NamedJob
    other_side: ReferenceResult
    reference_step_time_seconds: float | None
    """of both systems; null without one"""
    reference_from_the_log: bool
    """true if it comes from the log"""
    rows: Sequence[CheckpointRow]


def reconcile_checkpoints(analysis: Analysis) -> CheckpointReconciliation:
    """Return the calculator's table by its documented formula, next to ours."""
    reference = analysis.reference
    timeline = analysis.timeline
    starts = int(np.count_nonzero(timeline.table.kind == Kind.START))
    events, started = reference.total_events, reference.job_started_count
    rows = [
        _row("total_events", "count", events, events + _OWN_EVENT, (("own_event", _OWN_EVENT),)),
        _row("job_started_count", "count", started, starts, (("ranks_start_once", starts - started),)),
        *(_row(name, "count", getattr(reference, name), getattr(reference, name)) for name in _ALIKE),
        *_amounts(analysis),
    ]
    return CheckpointReconciliation(tuple(rows), reference.step_time_seconds, reference.origin == "auto")


def _row(
    name: str, unit: Unit, here: float | None, there: float | None, why: tuple[tuple[str, float], ...] = ()
) -> CheckpointRow:
    return CheckpointRow(
        name, unit, here, there, tuple(CheckpointReason(rule, amount) for rule, amount in why if amount)
    )


def _amounts(analysis: Analysis) -> list[CheckpointRow]:
    """Return steps, effective computation time, total runtime and goodput, if the log has them."""
    timeline, reference, window = analysis.timeline, analysis.reference, analysis.window
    table = timeline.table
    first, last = int(table.time.min()), int(table.end.max())
    total = (last - first) / 1e9
    counted = window.counted_ns / 1e9
    runtime = _row(
        "total_runtime",
        "seconds",
        counted,
        total,
        (
            ("before_the_job", (window.start_ns - first) / 1e9),
            ("after_the_last_event", (last - window.end_ns) / 1e9),
            ("excluded", window.excluded_ns / 1e9),
        ),
    )
    lowest, highest = reference.min_loaded_step, reference.max_saved_step
    if lowest is None or highest is None or reference.step_time_seconds is None:
        return [runtime]
    between, outside = _kept_steps(analysis, lowest, highest)
    steps = ("counted_but_not_kept", float(highest - lowest) - between), ("kept_but_not_counted", -outside)
    unit = reference.step_time_seconds
    effective_here, effective_there = analysis.goodput.seconds, (highest - lowest) * unit
    per_cent_of_runtime = 100 * effective_there / total - 100 * effective_there / counted if total else 0.0
    moved = tuple((rule, amount * unit) for rule, amount in steps)
    return [
        _row("kept_steps", "count", between + outside, float(highest - lowest), steps),
        runtime,
        _row("effective_computation_time", "seconds", effective_here, effective_there, moved),
        _row(
            "goodput_percentage",
            "percent",
            analysis.goodput.percent,
            100 * effective_there / total if total else None,
            (*((rule, 100 * amount / counted) for rule, amount in moved), ("other_runtime", per_cent_of_runtime)),
        ),
    ]


def _kept_steps(analysis: Analysis, lowest: int, highest: int) -> tuple[float, float]:
    """Return the kept steps among lowest <= step < highest, and all others. A span counts by the part of it inside the
    range."""
    kept_training = analysis.timeline.kept_training
    rows = np.flatnonzero(kept_training.kept_steps > 0)
    first, kept, steps = (
        kept_training.spans.first[rows],
        kept_training.kept_steps[rows],
        kept_training.counted_steps[rows],
    )
    between = np.clip(np.minimum(first + kept, highest) - np.maximum(first, lowest), 0, None)
    return float(np.sum(steps * between / kept)), float(np.sum(steps * (1 - between / kept)))


_TITLES = {
    "total_events": "Total Events",
    "job_started_count": "Job Started Count",
    "checkpoints_loaded": "Checkpoints Loaded",
    "checkpoints_saved": "Checkpoints Saved",
    "min_loaded_step": "Min Loaded Step",
    "max_saved_step": "Max Saved Step",
    "step_difference": "Step Difference",
    "kept_steps": "Steps counted",
    "total_runtime": "Total Runtime",
    "effective_computation_time": "Effective Computation Time",
    "goodput_percentage": "Goodput Percentage",
}


def reconcile_checkpoints_sheet(analysis: Analysis, reconciliation: CheckpointReconciliation) -> Sheet:
    """Return the calculator's table for both systems."""
    return Sheet(
        title=f"Goodput of {analysis.job.name}: goodput and the {CALCULATOR}",
        summary=tuple(_summary(reconciliation)),
        columns=(
            Column("row", "text", title="metric"),
            Column("unit", "text", Audience.TABLES),
            Column("here", "number"),
            Column("calculator", "number"),
            Column("difference", "number"),
            Column("not_explained", "number", Audience.TABLES),
        ),
        rows=tuple(
            (row.name, row.unit, row.here, row.there, row.difference, row.not_explained) for row in reconciliation.rows
        ),
        grouped_rows=tuple(_shown(row) for row in reconciliation.rows),
        notes=tuple(_notes(reconciliation)),
        answer=lambda: _answer(analysis, reconciliation),
    )


def _shown(row: CheckpointRow) -> tuple[Cell, ...]:
    texts = [_text(row, value) for value in (row.here, row.there, row.difference)]
    return (_TITLES[row.name], row.unit, *texts, None)


def _text(row: CheckpointRow, value: float | None) -> str | None:
    if value is None:
        return None
    if row.unit == "percent":
        return percent(value)
    return duration(round(value * 1e9)) if row.unit == "seconds" else number(value)


def _summary(reconciliation: CheckpointReconciliation) -> Iterator[str]:
    yield "the calculator's table is computed from its documented formula; the calculator itself is not run"
    if reconciliation.reference_seconds is None:
        yield "no reference step time: the calculator requires one"
    else:
        origin = "taken from this log; the calculator requires it as input" if reconciliation.auto else "given"
        yield f"reference step time {exact(reconciliation.reference_seconds)} s on both sides ({origin})"


def _notes(reconciliation: CheckpointReconciliation) -> Iterator[str]:
    for row in reconciliation.rows:
        for reason in row.why:
            yield f"{_TITLES[row.name]}: {_text(row, reason.amount)}: {reason.text}"
    for row in reconciliation.rows:
        if row.not_explained is not None and abs(row.not_explained) > 1e-6:
            yield f"{_TITLES[row.name]}: NOT EXPLAINED: {_text(row, row.not_explained)}"


def _answer(analysis: Analysis, reconciliation: CheckpointReconciliation) -> ReconcileCheckpointsAnswer:
    """Return the calculator's table for both systems."""
    return ReconcileCheckpointsAnswer(
        job=named_job(analysis),
        other_side=ReferenceResult(name=CALCULATOR, version=None, failed=None),
        reference_step_time_seconds=reconciliation.reference_seconds,
        reference_from_the_log=reconciliation.auto,
        rows=reconciliation.rows,
    )


SLOW_EVENTS = 20_000
"""Number of events from which on a message warns that the reference library is slow: it checks every custom event for
every step."""


RECONCILE = Keywords.of(
    "ReconcileOptions", "Options of `analyze`, and those of the reference library.", ReconcileTimeout, base=JOB
)


@takes(RECONCILE)
def reconcile(
    sources: Source | Sequence[Source], **options: Unpack[ReconcileOptions]
) -> Reconciliation | CheckpointReconciliation:
    """Analyze a job, and return both accounts of it side by side with the rules that explain each difference.

    The options are those of `goodput_cli.analyze` and one more, and so are the errors. Also raises UsageError if the
    reference library is needed and not installed, and GoodputError after the timeout. Errors of the library itself are
    part of the result.
    """
    asking, of_job = parsed_options(ReconcileTimeout, options)
    return reconcile_job(analyze(sources, **of_job), asking.timeout)


def is_checkpoint_log(analysis: Analysis) -> bool:
    """Return True if the resiliency calculator is the reference system.

    Raises NotEnoughData if neither system could account for the job: a log of only saves and restores.
    """
    systems = {one.other_system for one in analysis.job.log_formats}
    if analysis.timeline.attempts.step_log or REFERENCE_LIBRARY in systems:
        return False
    if not rows_of(analysis.table.kind, PROGRESS_KINDS).size and not analysis.reference.job_started_count:
        raise NotEnoughData("the log contains neither steps nor starts, so no reference system can analyze it")
    return True


def _check_readable(analysis: Analysis) -> None:
    """Raise NotEnoughData for a log with ends but no begins of steps: the library sees no step in it, and would count
    all of the job as lost."""
    table = analysis.table
    edges = table.edge[rows_of(table.kind, (Kind.STEP,))]
    if len(edges) and not (edges == Edge.POINT).any():
        names = ", ".join(one.name for one in analysis.job.log_formats)
        raise NotEnoughData(
            f"cannot compare: {NAME} cannot read this log ({names}), because it needs a line at the start of each step "
            "and this log has one at the end"
        )


def reconcile_job(analysis: Analysis, timeout: float = 600.0) -> Reconciliation | CheckpointReconciliation:
    """Return both accounts of a job, and the rules that explain each difference.

    timeout: seconds for the reference library. Raises UsageError if it is needed and not installed, GoodputError after
    the timeout, NotEnoughData if it cannot read such a log. Errors of the library itself are part of the result.
    """
    if is_checkpoint_log(analysis):
        return reconcile_checkpoints(analysis)
    _check_readable(analysis)
    require_library()
    timeline = analysis.timeline
    return reconcile_log(analysis, ask_library(events_seen(timeline), analysis.job.name, timeline.end, timeout))
