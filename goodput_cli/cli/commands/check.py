"""`goodput check`: what is wrong with these logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from goodput_cli.cli.console import jobs_progress, write_output
from goodput_cli.cli.group import LINE, WRITTEN
from goodput_cli.cli.options import CommandLine, GroupedCommand, option, shared_options
from goodput_cli.cli.session import open_sheet_session, replaces, writable
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.vocabulary.text import safe
from goodput_cli.whole_file import write_whole

_IN_MEMORY = 1 << 26
"""Bytes of standard input that are kept without a file."""

if TYPE_CHECKING:
    from goodput_cli.analysis.sheet import Sheet
    from goodput_cli.api.check import MappingReport
    from goodput_cli.cli.session import Session


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput check run.jsonl
      goodput check logs/ -j llm-7b --reference-step-time 2.5 -v
      goodput check logs/ --strict --format json
      goodput check --suggest train.log > my.toml
      goodput check --mapping my.toml train.log --rejects refused.csv
      goodput check --mapping my.toml --explain train.log:120

    error lost data, warning may change a number, info changes none. Exits with 5 if
    there is an error or a warning; with --strict also if there is an info; with 4 if
    no event could be read; else with 0. With --mapping also with 5 if a sample of it
    fails or none of its rules finds a step. All jobs are checked, whole: --from and --to
    change nothing. Each code is described in docs/diagnostics.md.""",
)
@shared_options()
@option("Which", "--suggest", is_flag=True, help="Print a mapping drafted from a text that no format reads.")
@option("Which", "--explain", metavar="FILE:LINE", type=LINE, help="Say everything about one line of text.")
@option(
    "Which", "--rejects", metavar="FILE", type=WRITTEN, help="Write the lines that rules of a mapping refuse, as CSV."
)
def check(line: CommandLine, suggest: bool, explain: str | None, rejects: str | None) -> int:
    """Find what is wrong with event logs, and what to do about it.

    SOURCE is as for analyze. Checks every job in the logs, unless --job-name picks one.
    """
    if suggest or explain is not None:
        return _help_with_mappings(line, explain)
    session = open_sheet_session(line)
    rejects_file = None if rejects is None else _rejects_file(line, rejects)
    from goodput_cli.analysis.account import no_events
    from goodput_cli.analysis.check import check_sheet
    from goodput_cli.api.check import REJECTS
    from goodput_cli.api.check import check as check_logs
    from goodput_cli.report.csv import csv_text

    with ExitStack() as stack:
        stdin = stack.enter_context(_kept(session.stdin)) if session.stdin and line.library.get("mapping") else None
        mapped = _mapped(line, session.sources, stdin)
        if mapped is not None and mapped.failed:
            return _failed(mapped, session)
        options = stack.enter_context(session.reading(then=""))
        if stdin is not None:
            stdin.seek(0)
            options["stdin"] = stdin
        jobs_done = stack.enter_context(jobs_progress(wanted=session.shows_progress))
        report = check_logs(session.sources, jobs_done=jobs_done, **options)
    sheet = check_sheet(report, every_place=line.output.verbose)
    if mapped is not None:
        sheet = replace(sheet, sections=(*sheet.sections, *mapped.sheets))
        if rejects_file is not None:
            write_whole(rejects_file, csv_text(REJECTS, mapped.rejects), force=replaces(line.output.force))
    session.finish(sheet)
    if mapped is not None and not mapped.finds_steps:
        raise ProblemsFound(f"{' and '.join(map(safe, line.mappings))}: no rule found a step in these logs")
    if report.jobs == 0:
        raise no_events(report.findings, report.observations)
    failed = bool(report.findings) if line.strict else report.has_problems
    return ProblemsFound.exit_code if failed else 0


@contextmanager
def _kept(stream: BinaryIO) -> Iterator[BinaryIO]:
    """A stream that can be read twice: for what rules read, and for the check."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
        copyfileobj(stream, kept)
        kept.seek(0)
        yield cast(BinaryIO, kept)


def _mapped(line: CommandLine, sources: list[str], stdin: BinaryIO | None) -> MappingReport | None:
    """What mappings read; None where there are none."""
    from goodput_cli.api.check import mapping_report

    mapping = line.library.get("mapping") or ()
    return mapping_report(line.mappings, mapping, sources, stdin) if mapping else None


def _failed(mapped: MappingReport, session: Session[Sheet]) -> int:
    """Samples that are not read as they say: what the rules read is shown, and no answer is made of it."""
    from goodput_cli.analysis.sheet import Sheet

    first, *others = mapped.sheets or (Sheet(title="Mapping", columns=(), rows=()),)
    session.finish(replace(first, sections=tuple(others)))
    raise ProblemsFound("\n".join(mapped.failed))


def _rejects_file(line: CommandLine, name: str) -> Path:
    """Where refused lines are written, checked before anything is read."""
    if not line.library.get("mapping"):
        raise UsageError("--rejects writes what the rules of a mapping refuse; name one with --mapping")
    return writable(Path(name), replaces(line.output.force))


def _help_with_mappings(line: CommandLine, explain: str | None) -> int:
    """Write a drafted mapping, or everything about one line; 5 if the draft cannot be used."""
    files = [writable(Path(name), replaces(line.output.force)) for name in line.output.output]
    text, refused = _text_about_mappings(line, explain)
    for file in files:
        write_whole(file, text, force=replaces(line.output.force))
    if not files:
        write_output(text)
    for reason in refused:
        click.echo(f"Error: no draft that can be used: {safe(reason)}", err=True)
    return 5 if refused else 0


def _text_about_mappings(line: CommandLine, place: str | None) -> tuple[str, tuple[str, ...]]:
    """A drafted mapping and why it cannot be used, or everything about one line."""
    from goodput_cli.api.check import draft_mapping, explain_line
    from goodput_cli.vocabulary.text import safe_lines

    if place is not None:
        return safe_lines(explain_line(place, line.library.get("mapping") or ())), ()
    if len(line.sources) != 1:
        raise UsageError("--suggest drafts a mapping of one SOURCE; name one text")
    draft = draft_mapping(line.sources[0])
    return draft.text, draft.refused
