"""A checkpoint log's account beside the resiliency calculator's, as a `Sheet`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.reconcile.checkpoints import CheckpointReconciliation, CheckpointRow
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.sheet import Audience, Cell, Column, Sheet
from goodput_cli.vocabulary.text import duration, exact, number, percent

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

NAME = "resiliency calculator"
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
RULES = {
    "own_event": "the calculator counts one event of its own",
    "ranks_start_once": "the start lines of many ranks are one start here",
    "before_the_job": "here the job begins with its first scheduled or start line",
    "after_the_last_event": "events end at another time",
    "excluded": "you took time out here",
    "counted_but_not_kept": "steps between the lowest load and the highest save that the final progress does not hold",
    "kept_but_not_counted": "kept steps below the lowest load or above the highest save count only here",
    "other_runtime": "the runtime differs",
}
"""Code of a rule -> what it says. The codes are part of the JSON."""


def reconcile_checkpoints_sheet(analysis: Analysis, reconciliation: CheckpointReconciliation) -> Sheet:
    """The calculator's table, both sides."""
    return Sheet(
        title=f"Goodput of {analysis.job.name}: here and by the {NAME}",
        summary=tuple(_summary(reconciliation)),
        columns=(
            Column("row", "text", title="metric"),
            Column("unit", "text", Audience.TABLES),
            Column("here", "number"),
            Column("calculator", "number"),
            Column("difference", "number"),
            Column("not_explained", "number", Audience.TABLES),
        ),
        rows=tuple(_cells(row) for row in reconciliation.rows),
        grouped_rows=tuple(_shown(row) for row in reconciliation.rows),
        notes=tuple(_notes(reconciliation)),
        answer=lambda: _answer(analysis, reconciliation),
    )


def _cells(row: CheckpointRow) -> tuple[Cell, ...]:
    return (row.name, row.unit, row.here, row.there, row.difference, row.not_explained)


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
    yield "the calculator is not run: its table is worked out by its documented formula"
    if reconciliation.reference_seconds is None:
        yield "no reference step time: the calculator has no answer without one"
    else:
        origin = "taken from the log itself; the calculator wants it given" if reconciliation.auto else "given"
        yield f"reference step time {exact(reconciliation.reference_seconds)} s on both sides ({origin})"


def _notes(reconciliation: CheckpointReconciliation) -> Iterator[str]:
    for row in reconciliation.rows:
        for rule, amount in row.why:
            yield f"{_TITLES[row.name]}: {_text(row, amount)}: {RULES[rule]}"
    for row in reconciliation.rows:
        if row.not_explained is not None and abs(row.not_explained) > 1e-6:
            yield f"{_TITLES[row.name]}: NOT EXPLAINED: {_text(row, row.not_explained)}"


def _answer(analysis: Analysis, reconciliation: CheckpointReconciliation) -> Answer:
    from goodput_cli.analysis.reconcile.answer import reconcile_checkpoints_answer  # msgspec: only for JSON

    return reconcile_checkpoints_answer(analysis, reconciliation)
