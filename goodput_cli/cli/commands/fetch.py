"""`goodput fetch`: logs from anywhere as one local file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from goodput_cli.api.options import Keeping
from goodput_cli.cli.console import print_message, print_messages, print_safely, reading_progress
from goodput_cli.cli.options import CommandLine, GroupedCommand, option, options_of, shared_options
from goodput_cli.cli.session import CLOUD_LOGGING, FilesRead, Verbosity, remarks
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound
from goodput_cli.vocabulary.text import plural, safe

if TYPE_CHECKING:
    from goodput_cli.api.keywords import FetchOptions

_OF_ANSWERS = ("run", "timezone", "mapping", "year", "clock_start", "tensorboard_tag", "exact_run_name", "join")
"""Options that say how lines are understood: a snapshot keeps them as they are."""


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
@shared_options("What", output=False, leave_out=_OF_ANSWERS)
@option("Out", "--output", "-o", metavar="FILE", required=True, help="*.jsonl.gz, *.jsonl or *.parquet.")
@options_of(Keeping, "keeping")
@option("Out", "--quiet", "-q", is_flag=True, help="Nothing on standard error but errors.")
@option("Out", "--no-progress", is_flag=True, help="No progress bar.")
def fetch(line: CommandLine, output: str, keeping: Keeping, quiet: bool, no_progress: bool) -> int:
    """Keep a local snapshot of logs that every command reads.

    SOURCE is anything that analyze reads; with none, the job's log in Cloud Logging. A manifest beside the file says
    what it holds. Analysing it gives the same answer as its sources.
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
        span = f"{_instant(manifest.start)} - {_instant(manifest.end)} UTC" if manifest.start else "no events"
        held = f"{plural(manifest.lines, 'line')}, {span}, from {' '.join(manifest.sources)}"
        print_message(safe(f"{output}: {held}"))
    print_messages(remarks(Verbosity(quiet=quiet, strict=line.strict), manifest.diagnostics))
    return ProblemsFound.exit_code if line.strict and problems(manifest.diagnostics) else 0


def _instant(iso: str | None) -> str:
    """`2026-01-31 10:00:00` of a manifest's instant."""
    return (iso or "")[:19].replace("T", " ")


def _sources(named: list[str], job_name: str | None, *, update: bool) -> list[str]:
    if named or (update and job_name is None):
        return named
    if job_name is None:
        raise click.UsageError(
            "no SOURCE: name one, or a job in Cloud Logging with --job-name", click.get_current_context()
        )
    return [CLOUD_LOGGING]
