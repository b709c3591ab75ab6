"""`goodput check`: what is wrong with these logs."""

from __future__ import annotations

from dataclasses import replace

import click

from goodput_cli.cli.console import put
from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import GroupedCommand, option
from goodput_cli.cli.progress import jobs_progress
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.errors import ProblemsFound, UsageError


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput check run.jsonl
      goodput check logs/ -j llm-7b --reference-step-time 2.5 -v
      goodput check logs/ --strict --format json
      goodput check --suggest train.log > my.toml
      goodput check --mapping my.toml train.log
      goodput check --mapping my.toml --explain train.log:120

    \b
    error lost data, warning may change a number, info changes none. Exits with 5 if
    there is an error or a warning; with --strict also if there is an info; with 4 if
    no event could be read; else with 0. All jobs are checked, whole: --from and --to
    change nothing. Each code is described in docs/diagnostics.md.""",
)
@shared_options()
@option("Which", "--suggest", is_flag=True, help="Print a mapping drafted from a text that no format reads.")
@option("Which", "--explain", metavar="FILE:LINE", help="Say everything about one line of text.")
def check(line: CommandLine, suggest: bool, explain: str | None) -> int:
    """Find what is wrong with event logs, and what to do about it.

    SOURCE is as for analyze. Checks every job in the logs, unless --job-name picks one.
    """
    if suggest or explain is not None:
        put(_help_with_mappings(line, explain))
        return 0
    session = open_sheet_session(line)
    from goodput_cli.analysis.check.sheet import check_sheet
    from goodput_cli.analysis.pick import no_events
    from goodput_cli.api.check import check as check_logs
    from goodput_cli.api.mapping import mapping_sheets

    with session.reading(then="") as options, jobs_progress(wanted=session.shows_progress) as jobs_done:
        report = check_logs(session.sources, jobs_done=jobs_done, **options)
    sheet = check_sheet(report, every_place=line.output.verbose)
    if mapping := line.library.get("mapping"):
        sheet = replace(sheet, sections=(*sheet.sections, *mapping_sheets(mapping, session.sources)))
    session.finish(sheet)
    if report.jobs == 0:
        raise no_events(report.findings)
    failed = bool(report.findings) if line.strict else report.has_problems
    return ProblemsFound.exit_code if failed else 0


def _help_with_mappings(line: CommandLine, place: str | None) -> str:
    """A drafted mapping, or everything about one line."""
    from goodput_cli.api.mapping import explain_line, suggest_mapping
    from goodput_cli.vocabulary.text import safe_lines

    if place is not None:
        return safe_lines(explain_line(place, line.library.get("mapping") or ()))
    if len(line.sources) != 1:
        raise UsageError("--suggest drafts a mapping of one SOURCE; name one text")
    return suggest_mapping(line.sources[0])
