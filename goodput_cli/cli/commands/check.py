"""`goodput check`: what is wrong with these logs."""

from __future__ import annotations

import click

from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import GroupedCommand
from goodput_cli.cli.progress import jobs_progress
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.errors import ProblemsFound


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput check run.jsonl
      goodput check logs/ -j llm-7b --reference-step-time 2.5 -v
      goodput check logs/ --strict --format json

    \b
    error lost data, warning may change a number, info changes none. Exits with 5 if
    there is an error or a warning; with --strict also if there is an info; with 4 if
    no event could be read; else with 0. All jobs are checked, whole: --from and --to
    change nothing. Each code is described in docs/diagnostics.md.""",
)
@shared_options()
def check(line: CommandLine) -> int:
    """Find what is wrong with event logs, and what to do about it.

    SOURCE is as for analyze. Checks every job in the logs, unless --job-name picks one.
    """
    session = open_sheet_session(line)
    from goodput_cli.analysis.check.sheet import check_sheet
    from goodput_cli.analysis.pick import no_events
    from goodput_cli.api.check import check as check_logs

    with session.reading(then="") as options, jobs_progress(wanted=session.shows_progress) as jobs_done:
        report = check_logs(session.sources, jobs_done=jobs_done, **options)
    session.finish(check_sheet(report, every_place=line.output.verbose))
    if report.jobs == 0:
        raise no_events(report.findings)
    failed = bool(report.findings) if line.strict else report.has_problems
    return ProblemsFound.exit_code if failed else 0
