"""The commands that compare jobs, runs and results: compare, jobs and reconcile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.compare.results import parse_change
from goodput_cli.analysis.threshold import Expression
from goodput_cli.api.options import Sides
from goodput_cli.cli.console import print_safely, waiting
from goodput_cli.cli.options import (
    OUTPUT,
    CommandLine,
    GroupedCommand,
    option,
    options_of,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.compat.rules import ReconcileTimeout
from goodput_cli.diagnostics.diagnostic import folded

if TYPE_CHECKING:
    from goodput_cli.analysis.jobs import SortKey
    from goodput_cli.api.keywords import SharedOptions

_SORT_KEYS = ("start", "name", "goodput", "events", "length")


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput compare monday.jsonl tuesday.jsonl
      goodput compare baseline.json run.jsonl --fail-if 'goodput:-2pp'
      goodput compare run.jsonl -j llm-7b -j llm-7b-restarted
      goodput compare run.jsonl --run 1 --run 2
      goodput compare a.jsonl b.jsonl c.jsonl --baseline b.jsonl -o compare.md
      goodput compare d.json --baseline a.json --baseline b.json --baseline c.json

    A run is a log, or the JSON of `analyze -o FILE.json`. One SOURCE with several
    --job-name or --run compares parts of that log. Options of the groups Accounting
    and Time apply to logs only. A --baseline that is not a SOURCE is one more run, the
    last one for --job-name and --run.

    EXPR is NAME:CHANGE[UNIT]: goodput:-2pp (fell by more than 2 points),
    steps.p99:+10% (rose by more than 10 %), mean_downtime:+5m, disruptions:+2. Each
    run is judged against the baseline. work_time is the window per kept step; it passes
    if the difference is below 2 % or within the normal variation of step times. Other
    gates fail in this case, and the report shows it.
    Two runs do not show how much runs differ from day to day. With three or more
    baselines, a run differs if it is outside the range of the baselines.
    --reference-step-time baseline uses the median step of the baseline for all runs.""",
)
@shared_options(
    several={
        "job_name": "Job: once for all runs, or once per run, in order.",
        "run": "Run of a job name: once for all runs, or once per run.",
    },
    drafts=True,
    work=True,
)
@options_of(Sides, "sides")
@threshold_options(parse_change, holds="Exit with 3 if EXPR is true for a run. Repeatable.")
@option(OUTPUT, "--full", is_flag=True, help="Show rows without a verdict, and goodput by category.")
def compare(
    line: CommandLine,
    *,
    full: bool,
    job_name: tuple[str, ...],
    run: tuple[str, ...],
    sides: Sides,
    thresholds: tuple[Expression, ...],
) -> int:
    """Compare runs, and explain the difference.

    The first SOURCE is the baseline. Shows the time for the same work, and the categories that explain the change.
    """
    named = (*line.sources, *(one for one in dict.fromkeys(sides.baseline) if one not in line.sources))
    session = open_sheet_session(replace(line, sources=named), job_name, offers=("chart", "published"))
    from goodput_cli.analysis.compare.phrases import auto_cautions, threshold_lines
    from goodput_cli.api.compare import compare as compare_sides

    with session.reading() as reading:
        options: SharedOptions = reading
        comparison = compare_sides(
            session.sources,
            job_name=job_name,
            run=run,
            baseline=sides.baseline,
            changes=thresholds,
            draft=line.draft,
            **options,
        )
    return session.finish(
        comparison.sheet(full=full),
        comparison.diagnostics,
        thresholds=comparison.thresholds,
        lines_of_thresholds=lambda with_passes: threshold_lines(comparison, with_passes=with_passes),
        cautions=auto_cautions(comparison),
    )


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput jobs logs/
      goodput jobs logs/ --sort goodput --limit 10
      goodput jobs logs/ --from 2026-01-12 --to 2026-01-13
      goodput jobs logs/ --format json | jq -r '.jobs[].name'

    --from, --to, --as-of and --run apply to each job. A job without two events at
    different times in the window is listed without goodput. Sorted by start time;
    --sort goodput lists the worst first.""",
)
@shared_options()
@option(
    OUTPUT,
    "--sort",
    type=click.Choice(_SORT_KEYS),
    default="start",
    show_default=True,
    help="Sort the rows by this column.",
)
@option(OUTPUT, "--limit", metavar="N", type=click.IntRange(min=1), help="Show only the first N rows.")
def jobs(line: CommandLine, sort: SortKey, limit: int | None) -> int:
    """List the jobs in the logs, with their goodput.

    SOURCE is as for analyze. A folder can contain thousands of jobs.
    """
    session = open_sheet_session(line)
    from goodput_cli.analysis.jobs import jobs_sheet
    from goodput_cli.fleet.run import jobs as list_jobs

    with session.reading(then="") as options:
        job_list = list_jobs(session.sources, sort=sort, limit=limit, **options)
    said = job_list.diagnostics if line.output.verbose else folded(job_list.diagnostics)
    return session.finish(jobs_sheet(job_list), said)


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput reconcile run.jsonl
      goodput reconcile run.jsonl --format json | jq '.why[] | {rule, ns}'
      goodput reconcile logs/ -j llm-7b --as-of now
      goodput reconcile checkpoints.jsonl --reference-step-time 2.5

    Recorder logs are passed to ml-goodput-measurement; install it with
    pip install '.[reconcile]' in a checkout. It needs about 20 s for 10^6 lines, and
    much longer with custom events or if several hosts report every step. A job without
    an end is measured up to its last event (or --as-of) on both sides. Checkpoint logs
    are compared with the documented formula of the resiliency calculator.""",
)
@shared_options(leave_out=("start", "end"))
@options_of(ReconcileTimeout, "asking")
def reconcile(line: CommandLine, asking: ReconcileTimeout) -> int:
    """Compare results with ml-goodput-measurement.

    Shows both results, and explains every difference by the rules of the reference library. SOURCE is as for analyze.
    Always covers the whole job.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.compat.answer import reconcile_sheet
    from goodput_cli.compat.api import SLOW_EVENTS, is_checkpoint_log, reconcile_checkpoints_sheet, reconcile_job
    from goodput_cli.compat.reconcile import Reconciliation

    events = len(analysis.timeline.ordered.original)
    if events >= SLOW_EVENTS and not is_checkpoint_log(analysis) and not line.output.quiet:
        print_safely(
            f"The reference library processes {events} events one by one; this can take minutes (see --timeout)."
        )
    with waiting("running the reference library", wanted=session.shows_progress):
        both = reconcile_job(analysis, asking.timeout)
    if isinstance(both, Reconciliation):
        sheet = reconcile_sheet(analysis, both)
    else:
        sheet = reconcile_checkpoints_sheet(analysis, both)
    return session.finish(sheet, analysis.diagnostics)
