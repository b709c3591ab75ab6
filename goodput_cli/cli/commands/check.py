"""`goodput check`: what is wrong with these logs."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.cli.all_jobs import counting_progress, question_for_each
from goodput_cli.cli.parameters import GroupedCommand
from goodput_cli.cli.session import open_sheet_session, question_options
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
@question_options
def check(**given: Any) -> int:
    """Find what is wrong with event logs, and what to do about it.

    SOURCE is as for analyze. Checks every job in the logs, unless --job-name picks one.
    """
    session = open_sheet_session(given)
    log = session.read()
    from goodput_cli.analysis.check.sheet import check_sheet
    from goodput_cli.analysis.pick import no_events
    from goodput_cli.api.jobs import check_log

    question, name = question_for_each(session.question), session.question["job_name"]
    with counting_progress(wanted=not (session.no_progress or session.quiet)) as told:
        report = check_log(log, question, job_name=name, told=told)
    session.outputs.write(check_sheet(report, every_place=session.verbose))
    if report.jobs == 0:
        raise no_events(log)
    failed = bool(report.findings) if session.strict else report.has_problems
    return ProblemsFound.exit_code if failed else 0
