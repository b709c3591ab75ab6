"""`goodput reconcile`: our number beside that of the system the log was written for, and why they differ."""

from __future__ import annotations

import click

from goodput_cli.cli.console import print_safely, waiting
from goodput_cli.cli.options import CommandLine, GroupedCommand, options_of, shared_options
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.compat.rules import Asking


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput reconcile run.jsonl
      goodput reconcile run.jsonl --format json | jq '.why[] | {rule, ns}'
      goodput reconcile logs/ -j llm-7b --as-of now
      goodput reconcile checkpoints.jsonl --reference-step-time 2.5

    Recorder logs are given to ml-goodput-measurement itself, which needs
    pip install '.[reconcile]' in a checkout. It takes some 20 s for 10^6 lines, and much
    longer with custom events or where several hosts report every step. A job without
    an end is measured up to its last event (or --as-of) on both sides. Checkpoint logs
    are set beside the documented formula of the resiliency calculator.""",
)
@shared_options(leave_out=("start", "end"))
@options_of(Asking, "asking")
def reconcile(line: CommandLine, asking: Asking) -> int:
    """Show goodput here and by the reference library, and why.

    Both accounts stand side by side, and every difference is worked out from the same events: which of its
    rules moves how much time. SOURCE is as for analyze; the question is always about the whole job.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.compat.answer import reconcile_sheet
    from goodput_cli.compat.api import SLOW_EVENTS, is_checkpoint_log, reconcile_job
    from goodput_cli.compat.checkpoints import reconcile_checkpoints_sheet
    from goodput_cli.compat.reconcile import Reconciliation

    events = len(analysis.timeline.ordered.original)
    if events >= SLOW_EVENTS and not is_checkpoint_log(analysis) and not session.volume.quiet:
        print_safely(
            f"The reference library goes through {events} events one by one; this may take minutes (see --timeout)."
        )
    with waiting("the reference library computes", wanted=session.shows_progress):
        both = reconcile_job(analysis, asking.timeout)
    if isinstance(both, Reconciliation):
        return session.finish(reconcile_sheet(analysis, both), analysis.diagnostics)
    return session.finish(reconcile_checkpoints_sheet(analysis, both), analysis.diagnostics)
