"""What `goodput reconcile --format json` answers: of a recorder log, and of a checkpoint log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from goodput_cli.analysis.answers import NamedJob, named_job
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.wire import Part
from goodput_cli.analysis.written import written
from goodput_cli.compat.library import NAME
from goodput_cli.compat.reconcile import Movement, Reconciliation
from goodput_cli.compat.rules import CALCULATOR, CALCULATOR_RULES, RULES

if TYPE_CHECKING:
    from goodput_cli.compat.checkpoints import CheckpointReconciliation, CheckpointRow


class OtherSide(Part):
    """the system on the other side"""

    name: str
    """ml-goodput-measurement, or the resiliency calculator"""
    version: str | None
    """of the library; null for the calculator, whose formula is used"""
    failed: str | None
    """what the library raised, where it refuses to answer"""


class PercentOfBoth(Part):
    here: float | None
    """here"""
    there: float | None
    """on the other side; null where it does not answer"""


class CountOfBoth(Part):
    here: int | None
    """here"""
    there: int | None
    """on the other side; null where it does not answer"""


class ReconciledCategory(Part):
    """a category of either side"""

    category: str
    label: str | None
    here_ns: int
    here_percent: float | None
    """of the window without what is excluded"""
    there_ns: int | None
    """null where the library does not answer"""
    there_percent: float | None
    """of the library's total"""
    difference_ns: int | None
    """there less here"""
    difference_points: float | None
    """the same in percentage points"""
    not_explained_ns: int | None
    """what the movements leave over of the difference"""


class Place(Part):
    """where time stands"""

    category: str
    """a category, or outside: no part of the job's time on that side"""
    label: str | None
    """of custom_badput_events"""


class MovedTime(Part):
    """a movement; counted twice, it comes out of the library's own `other`"""

    rule: str
    """code of the rule (docs/compatibility.md)"""
    text: str
    """the rule in words"""
    here: Place
    there: Place
    beside: Place | None
    """of time counted more than once: where it stands there already"""
    ns: int
    """time that stands under `here` here and under `there` there"""


@written(
    "reconcile_answer",
    "goodput reconcile --format json: recorder logs, beside ml-goodput-measurement",
    kind="reconciliation",
)
@dataclass(frozen=True, kw_only=True)
class ReconcileAnswer:
    """goodput reconcile --format json: recorder logs, beside ml-goodput-measurement"""

    job: NamedJob
    other_side: OtherSide
    goodput_percent: PercentOfBoth
    """goodput of both sides"""
    total_ns: CountOfBoth
    """what percentages are of"""
    disruptions: CountOfBoth
    """disruptions"""
    data_loading_async_ns: CountOfBoth
    """data loading inside steps, beside both accounts"""
    rows: Sequence[ReconciledCategory]
    """productive first, then by difference"""
    why: Sequence[MovedTime]
    """the largest first; their sums are the differences of the rows"""
    not_explained_ns: int | None
    """sum over the rows, signs left out"""


class CheckpointReason(Part):
    """what a rule adds to the difference"""

    rule: str
    text: str
    amount: float
    """in the unit of the row"""


class ReconciledRow(Part):
    """a row"""

    name: str
    """a row of the calculator's table"""
    unit: Literal["count", "seconds", "percent"]
    here: float | None
    there: float | None
    difference: float | None
    """there less here"""
    why: Sequence[CheckpointReason]
    not_explained: float | None
    """what the rules leave over"""


@written(
    "reconcile_checkpoints_answer",
    "goodput reconcile --format json, checkpoint logs: beside the resiliency calculator",
    kind="checkpoint_reconciliation",
)
@dataclass(frozen=True, kw_only=True)
class ReconcileCheckpointsAnswer:
    """goodput reconcile --format json, checkpoint logs: beside the resiliency calculator"""

    job: NamedJob
    other_side: OtherSide
    reference_step_time_seconds: float | None
    """of both sides; null where there is none"""
    reference_from_the_log: bool
    """whether it was taken from the log itself"""
    rows: Sequence[ReconciledRow]


def reconcile_answer(analysis: Analysis, reconciliation: Reconciliation) -> ReconcileAnswer:
    """Both accounts of a recorder log."""
    answer = reconciliation.answer
    return ReconcileAnswer(
        job=named_job(analysis),
        other_side=OtherSide(name=NAME, version=answer.version, failed=answer.failed),
        goodput_percent=PercentOfBoth(here=analysis.goodput.percent, there=answer.goodput_percent),
        total_ns=CountOfBoth(here=reconciliation.here_total_ns, there=reconciliation.there_total_ns),
        disruptions=CountOfBoth(here=reconciliation.disruptions_here, there=answer.disruptions),
        data_loading_async_ns=CountOfBoth(here=reconciliation.overlapped[0], there=reconciliation.overlapped[1]),
        rows=[
            ReconciledCategory(
                category=row.category,
                label=row.label,
                here_ns=row.here_ns,
                here_percent=row.here_percent,
                there_ns=row.there_ns,
                there_percent=row.there_percent,
                difference_ns=row.difference_ns,
                difference_points=row.difference_points,
                not_explained_ns=row.not_explained_ns,
            )
            for row in reconciliation.rows
        ],
        why=[_movement(one) for one in reconciliation.movements],
        not_explained_ns=reconciliation.not_explained_ns,
    )


def _movement(one: Movement) -> MovedTime:
    return MovedTime(
        rule=one.rule,
        text=RULES[one.rule].text,
        here=_place(one.here),
        there=_place(one.there),
        beside=None if one.beside is None else _place(one.beside),
        ns=one.ns,
    )


def _place(key: tuple[str, str | None]) -> Place:
    return Place(category=key[0], label=key[1])


def reconcile_checkpoints_answer(
    analysis: Analysis, reconciliation: CheckpointReconciliation
) -> ReconcileCheckpointsAnswer:
    """The calculator's table, both sides."""
    return ReconcileCheckpointsAnswer(
        job=named_job(analysis),
        other_side=OtherSide(name=CALCULATOR, version=None, failed=None),
        reference_step_time_seconds=reconciliation.reference_seconds,
        reference_from_the_log=reconciliation.auto,
        rows=[_row(row) for row in reconciliation.rows],
    )


def _row(row: CheckpointRow) -> ReconciledRow:
    return ReconciledRow(
        name=row.name,
        unit=row.unit,
        here=row.here,
        there=row.there,
        difference=row.difference,
        why=[CheckpointReason(rule=rule, text=CALCULATOR_RULES[rule], amount=amount) for rule, amount in row.why],
        not_explained=row.not_explained,
    )
