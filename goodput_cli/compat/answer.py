"""What `goodput reconcile --format json` answers: of a recorder log; of a checkpoint log, see `checkpoints`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodput_cli.analysis.answers import NamedJob, named_job
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.written import written
from goodput_cli.compat.library import NAME
from goodput_cli.compat.reconcile import Movement, ReconciledRow, Reconciliation


@written("other_side", "the system on the other side")
@dataclass(frozen=True)
class OtherSide:
    """The system on the other side."""

    name: str
    """ml-goodput-measurement, or the resiliency calculator"""
    version: str | None
    """of the library; null for the calculator, whose formula is used"""
    failed: str | None
    """what the library raised, where it refuses to answer"""


@written("percent_of_both")
@dataclass(frozen=True)
class PercentOfBoth:
    """A share on both sides."""

    here: float | None
    """here"""
    there: float | None
    """on the other side; null where it does not answer"""


@written("count_of_both")
@dataclass(frozen=True)
class CountOfBoth:
    """An amount on both sides."""

    here: int | None
    """here"""
    there: int | None
    """on the other side; null where it does not answer"""


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
    rows: Sequence[ReconciledRow]
    """productive first, then by difference"""
    why: Sequence[Movement]
    """the largest first; their sums are the differences of the rows"""
    not_explained_ns: int | None
    """sum over the rows, signs left out"""


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
        rows=reconciliation.rows,
        why=reconciliation.movements,
        not_explained_ns=reconciliation.not_explained_ns,
    )
