"""`goodput_cli.reconcile(...)`: our account of a job beside that of the system its log was written for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.analyze import analyze
from goodput_cli.api.options import JobOptions, Source, spelled_out

if TYPE_CHECKING:
    from goodput_cli.analysis.reconcile.checkpoints import CheckpointReconciliation
    from goodput_cli.analysis.reconcile.reconcile import Reconciliation


@spelled_out(JobOptions)
def reconcile(
    sources: Source | Sequence[Source], *, timeout: float = 600.0, **options: Unpack[JobOptions]
) -> Reconciliation | CheckpointReconciliation:
    """Analyse a job, and set both accounts of it side by side with the rules that explain each difference.

    timeout: seconds that the reference library may take. The others are those of `goodput_cli.analyze`, and so are the
    errors. UsageError also where the reference library is needed and not installed, GoodputError when the time is
    over. What the library itself refuses is part of the answer.
    """
    analysis = analyze(sources, **options)
    from goodput_cli.analysis.reconcile.run import reconcile_job

    return reconcile_job(analysis, timeout)
