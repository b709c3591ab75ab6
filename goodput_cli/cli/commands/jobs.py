"""`goodput jobs`: what is in these logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from goodput_cli.cli.options import CommandLine, GroupedCommand, option, shared_options
from goodput_cli.cli.session import open_sheet_session

if TYPE_CHECKING:
    from goodput_cli.analysis.jobs import SortKey

_SORT_KEYS = ("start", "name", "goodput", "events", "length")


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput jobs logs/
      goodput jobs logs/ --sort goodput --limit 10
      goodput jobs logs/ --from 2026-01-12 --to 2026-01-13
      goodput jobs logs/ --format json | jq -r '.jobs[].name'

    \b
    --from, --to, --as-of and --run count for each job; a job of which nothing lies in
    the window, or that has no two events at different times, is listed without
    goodput. Sorted by start; --sort goodput puts the worst first.""",
)
@shared_options()
@option(
    "Out",
    "--sort",
    type=click.Choice(_SORT_KEYS),
    default="start",
    show_default=True,
    help="Order of the rows.",
)
@option("Out", "--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N rows.")
def jobs(line: CommandLine, sort: SortKey, limit: int | None) -> int:
    """List every job in the logs, with its goodput.

    SOURCE is as for analyze; a folder may hold thousands of jobs.
    """
    session = open_sheet_session(line)
    from goodput_cli.analysis.jobs import jobs_sheet
    from goodput_cli.fleet.run import jobs as list_jobs

    with session.reading(then="") as options:
        job_list = list_jobs(session.sources, sort=sort, limit=limit, **options)
    return session.finish(jobs_sheet(job_list), job_list.diagnostics)
