"""`goodput_cli.reconcile(...)`: our account of a job next to that of the system for which its log was written.

For recorder logs that is the reference library, ml-goodput-measurement, which runs on the same events. For checkpoint
logs it is the resiliency calculator, whose documented formula is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.accounting.attempts.attempts import PROGRESS_KINDS
from goodput_cli.accounting.columns import rows_of
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.analyze import analyze
from goodput_cli.api.options import JOB, Source, parsed_options, takes
from goodput_cli.compat.checkpoints import CheckpointReconciliation, reconcile_checkpoints
from goodput_cli.compat.library import NAME, ask_library, require_library
from goodput_cli.compat.reconcile import Reconciliation, events_seen
from goodput_cli.compat.reconcile import reconcile as reconcile_log
from goodput_cli.compat.rules import ReconcileTimeout
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.schema import REFERENCE_LIBRARY, Edge, Kind
from goodput_cli.vocabulary.option import Keywords

if TYPE_CHECKING:
    from goodput_cli.api.keywords import ReconcileOptions

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
