"""`goodput reconcile`: our number beside that of the system the log was written for, and why they differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from goodput_cli.cli.console import tell
from goodput_cli.cli.options import LENGTH, method_options, output_options, source_options
from goodput_cli.cli.parameters import Checked, GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.vocabulary.when import parse_duration, parse_when

_NS = 10**9


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput reconcile run.jsonl
      goodput reconcile run.jsonl --format json | jq '.why[] | {rule, ns}'
      goodput reconcile logs/ -j llm-7b --as-of now
      goodput reconcile checkpoints.jsonl --reference-step-time 2.5

    \b
    Recorder logs are given to ml-goodput-measurement itself, which needs
    pip install 'goodput-cli[reconcile]'. It takes some 20 s for 10^6 lines, and much
    longer with custom events or where several hosts report every step. A job without
    an end is measured up to its last event (or --as-of) on both sides. Checkpoint logs
    are set beside the documented formula of the resiliency calculator.""",
)
@source_options
@method_options
@option("When", "--as-of", metavar="TIME|now", type=Checked("time", parse_when, keep_text=True), help="As known then.")
@option(
    "How",
    "--timeout",
    metavar="DURATION",
    type=LENGTH,
    default="10m",
    show_default=True,
    help="How long the reference library may take.",
)
@output_options
def reconcile(timeout: str, **given: Any) -> int:
    """Show goodput here and by the reference library, and why.

    Both accounts stand side by side, and every difference is worked out from the same events: which of its
    rules moves how much time. SOURCE is as for analyze; the question is always about the whole job.
    """
    session = open_sheet_session(given)
    analysis = session.analyze()
    from goodput_cli.analysis.reconcile.checkpoints_sheet import reconcile_checkpoints_sheet
    from goodput_cli.analysis.reconcile.reconcile import Reconciliation
    from goodput_cli.analysis.reconcile.sheet import reconcile_sheet
    from goodput_cli.api.reconcile import SLOW_EVENTS, is_checkpoint_log, reconcile_job

    events = len(analysis.timeline.ordered.original)
    if events >= SLOW_EVENTS and not is_checkpoint_log(analysis) and not session.quiet:
        tell(f"The reference library goes through {events} events one by one; this may take minutes (see --timeout).")
    with _waiting(wanted=not (session.quiet or session.no_progress)):
        found = reconcile_job(analysis, parse_duration(timeout) / _NS)
    if isinstance(found, Reconciliation):
        return session.answer(reconcile_sheet(analysis, found), analysis.diagnostics)
    return session.answer(reconcile_checkpoints_sheet(analysis, found), analysis.diagnostics)


@contextmanager
def _waiting(*, wanted: bool) -> Iterator[None]:
    """A line with the time that passes, for people at a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("the reference library computes"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task("", total=None)
        yield
