"""`goodput jobs`: what is in these logs."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.cli.all_jobs import counting_progress, question_for_each
from goodput_cli.cli.parameters import GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session, question_options

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
@question_options
@option(
    "Out",
    "--sort",
    type=click.Choice(_SORT_KEYS),
    default="start",
    show_default=True,
    help="Order of the rows.",
)
@option("Out", "--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N rows.")
def jobs(sort: Any, limit: int | None, **given: Any) -> int:
    """List every job in the logs, with its goodput.

    SOURCE is as for analyze; a folder may hold thousands of jobs.
    """
    session = open_sheet_session(given)
    log = session.read()
    from goodput_cli.analysis.jobs.sheet import jobs_sheet
    from goodput_cli.api.jobs import list_jobs

    question, name = question_for_each(session.question), session.question["job_name"]
    with counting_progress(wanted=not (session.no_progress or session.quiet)) as told:
        found = list_jobs(log, question, job_name=name, sort=sort, limit=limit, told=told)
    return session.answer(jobs_sheet(found), found.diagnostics)
