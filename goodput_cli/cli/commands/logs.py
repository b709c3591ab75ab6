"""The commands about logs: check finds problems, fetch downloads them into one local file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from goodput_cli.api.options import CLOUD_LOGGING, SnapshotMode
from goodput_cli.cli.console import (
    jobs_progress,
    print_error,
    print_message,
    print_messages,
    print_safely,
    reading_progress,
    write_output,
)
from goodput_cli.cli.group import LINE, WRITTEN, UsageErrorWithTip
from goodput_cli.cli.options import OUTPUT, SELECTION, CommandLine, GroupedCommand, option, options_of, shared_options
from goodput_cli.cli.session import FilesRead, open_sheet_session, remarks, writable
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.events.reading_options import WHAT
from goodput_cli.vocabulary.text import plural, safe
from goodput_cli.whole_file import write_whole

if TYPE_CHECKING:
    from goodput_cli.analysis.sheet import Sheet
    from goodput_cli.api.check import MappingReport
    from goodput_cli.api.keywords import FetchOptions
    from goodput_cli.cli.session import Session

_IN_MEMORY = 1 << 26
"""Bytes of standard input that are kept in memory."""
_OF_ANSWERS = ("run", "timezone", "mapping", "year", "clock_start", "tensorboard_tag", "exact_run_name", "join")
"""Options about the meaning of lines, which a snapshot does not need."""


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

    An error lost data, a warning can change a number, an info changes none. Exit code 5:
    an error or a warning (with --strict also an info), or a mapping with a failing
    sample or without any step. Exit code 4: no event could be read. Otherwise 0. All
    jobs are checked as a whole: --from and --to have no effect. docs/diagnostics.md
    describes each code.""",
)
@shared_options()
@option(SELECTION, "--suggest", is_flag=True, help="Print a mapping inferred from a log of an unknown format.")
@option(SELECTION, "--explain", metavar="FILE:LINE", type=LINE, help="Explain how one line is read.")
@option(SELECTION, "--rejects", metavar="FILE", type=WRITTEN, help="Write the lines that a mapping rejects, as CSV.")
def check(line: CommandLine, suggest: bool, explain: str | None, rejects: str | None) -> int:
    """Find problems in logs, and how to fix them.

    SOURCE is as for analyze. Checks every job in the logs, or the one of --job-name.
    """
    if suggest or explain is not None:
        return _help_with_mappings(line, explain)
    session, mapping = open_sheet_session(line), line.library.get("mapping") or ()
    if rejects is not None and not mapping:
        raise UsageError("--rejects needs --mapping: it writes the lines that the mapping rejects")
    rejects_file = None if rejects is None else writable(Path(rejects), force=line.output.replaces)
    from goodput_cli.analysis.account import no_events
    from goodput_cli.analysis.check import check_sheet
    from goodput_cli.api.check import REJECTS, mapping_report
    from goodput_cli.api.check import check as check_logs
    from goodput_cli.events.evidence import EvidenceOfLog
    from goodput_cli.report.csv import csv_text

    with ExitStack() as stack:
        stdin = stack.enter_context(_replayable(session.stdin)) if session.stdin and mapping else None
        mapped = mapping_report(line.mappings, mapping, session.sources, stdin) if mapping else None
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
            write_whole(rejects_file, csv_text(REJECTS, mapped.rejects), force=line.output.replaces)
    session.finish(sheet)
    if mapped is not None and not mapped.finds_steps:
        raise ProblemsFound(f"{' and '.join(map(safe, line.mappings))}: no rule matches a step in these logs")
    if report.jobs == 0:
        raise no_events(report.findings, EvidenceOfLog(tuple(report.observations)))
    failed = bool(report.findings) if line.strict else report.has_problems
    return ProblemsFound.exit_code if failed else 0


@contextmanager
def _replayable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a copy of a stream that can be read twice: by the mapping report and by the check."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
        copyfileobj(stream, kept)
        kept.seek(0)
        yield cast(BinaryIO, kept)


def _failed(mapped: MappingReport, session: Session[Sheet]) -> int:
    """Show how the samples of a mapping are read, and raise ProblemsFound."""
    from goodput_cli.analysis.sheet import Sheet

    first, *others = mapped.sheets or (Sheet(title="Mapping", columns=(), rows=()),)
    session.finish(replace(first, sections=tuple(others)))
    raise ProblemsFound("\n".join(mapped.failed))


def _help_with_mappings(line: CommandLine, place: str | None) -> int:
    """Explain one line, or write an inferred mapping. Return 5 if the mapping cannot be used."""
    from goodput_cli.api.check import draft_mapping, explain_line
    from goodput_cli.vocabulary.text import safe_lines

    force = line.output.replaces
    files = [writable(Path(name), force=force) for name in line.output.output]
    refused: tuple[str, ...] = ()
    if place is not None:
        text = safe_lines(explain_line(place, line.library.get("mapping") or ()))
    elif len(line.sources) != 1:
        raise UsageError("--suggest needs exactly one SOURCE")
    else:
        draft = draft_mapping(line.sources[0])
        text, refused = draft.text, draft.refused
    for file in files:
        write_whole(file, text, force=force)
    if not files:
        write_output(text)
    for reason in refused:
        print_error(f"no usable mapping could be inferred: {reason}")
    return 5 if refused else 0


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput fetch -j llm-7b -o llm.jsonl.gz
      goodput fetch cloud-logging://my-project/goodput_llm -o llm.parquet
      goodput fetch 'gs://my-logs/goodput_llm/2026/**' -o llm.jsonl.gz
      goodput fetch --update -o llm.jsonl.gz
      goodput analyze llm.jsonl.gz""",
)
@shared_options(WHAT, output=False, leave_out=_OF_ANSWERS)
@option(
    OUTPUT, "--output", "-o", metavar="FILE", required=True, help="Write to FILE: *.jsonl.gz, *.jsonl or *.parquet."
)
@options_of(SnapshotMode, "keeping")
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Suppress progress and diagnostics.")
@option(OUTPUT, "--no-progress", is_flag=True, help="Show no progress bar.")
def fetch(line: CommandLine, output: str, keeping: SnapshotMode, quiet: bool, no_progress: bool) -> int:
    """Download logs into a local snapshot.

    SOURCE is as for analyze; without one, the job's log in Cloud Logging is read. A manifest next to FILE describes its
    contents. Every command reads the snapshot, with the same results as for the sources.
    """
    from goodput_cli.api.fetch import fetch as fetch_logs
    from goodput_cli.sources.snapshot import manifest_path

    options = cast("FetchOptions", dict(line.library))
    sources = _sources(list(line.sources), options.get("job_name"), update=keeping.update)
    read = FilesRead.of_command()
    for written in (Path(output), manifest_path(Path(output))):
        read.check_others(written)
    with reading_progress(wanted=not (quiet or no_progress), then="writing") as progress:
        options |= {"progress": progress, "notice": None if quiet else print_safely}
        options |= {"update": keeping.update, "force": keeping.force}
        manifest = fetch_logs(sources, output, **options)
    if not quiet:
        span = f"{_time_text(manifest.start)} - {_time_text(manifest.end)} UTC" if manifest.start else "no events"
        held = f"{plural(manifest.lines, 'line')}, {span}, from {' '.join(manifest.sources)}"
        print_message(safe(f"{output}: {held}"))
    print_messages(remarks(manifest.diagnostics, quiet=quiet, strict=line.strict))
    return ProblemsFound.exit_code if line.strict and problems(manifest.diagnostics) else 0


def _time_text(iso: str | None) -> str:
    """Return a time of a manifest as `2026-01-31 10:00:00`."""
    return (iso or "")[:19].replace("T", " ")


def _sources(named: list[str], job_name: str | None, *, update: bool) -> list[str]:
    if named or (update and job_name is None):
        return named
    if job_name is None:
        tip = "pass a SOURCE, or use --job-name for a job in Cloud Logging"
        raise UsageErrorWithTip("no SOURCE", tip, click.get_current_context())
    return [CLOUD_LOGGING]
