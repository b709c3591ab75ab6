"""`goodput fetch`: logs from anywhere as one local file."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.cli.console import say, tell
from goodput_cli.cli.options import TEXT, source_options
from goodput_cli.cli.parameters import GroupedCommand, option
from goodput_cli.cli.progress import reading_progress
from goodput_cli.cli.session import CLOUD_LOGGING, say_diagnostics
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.vocabulary.text import safe


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
@source_options
@option("Out", "--output", "-o", metavar="FILE", type=TEXT, required=True, help="*.jsonl.gz, *.jsonl or *.parquet.")
@option("Out", "--update", is_flag=True, help="Add what is new to a snapshot; SOURCE may be left out.")
@option("Out", "--force", is_flag=True, help="Replace an existing file.")
@option("Out", "--quiet", "-q", is_flag=True, help="Nothing on standard error but errors.")
@option("Out", "--no-progress", is_flag=True, help="No progress bar.")
def fetch(
    source: tuple[str, ...],
    log_file: tuple[str, ...],
    job_name: str | None,
    run: str | None,
    strict: bool,
    quiet: bool,
    no_progress: bool,
    timezone: str,
    **given: Any,
) -> int:
    """Keep a local snapshot of logs that every command reads.

    SOURCE is anything that analyze reads; with none, the job's log in Cloud Logging. A manifest beside the file says
    what it holds. Analysing it gives the same answer as its sources.
    """
    del timezone  # lines are kept as they are
    if run is not None:
        raise UsageError("--run is for analyze: a snapshot holds every run of a job")
    from goodput_cli.api.fetch import fetch as fetch_logs

    sources = _sources([*source, *log_file], job_name, update=given["update"])
    notice = None if quiet else tell
    with reading_progress(wanted=not (quiet or no_progress), then="writing") as progress:
        manifest = fetch_logs(
            sources, given.pop("output"), job_name=job_name, progress=progress, notice=notice, **given
        )
    if not quiet:
        span = f", {manifest.start} to {manifest.end}" if manifest.start else ", no events"
        say(safe(f"{manifest.lines} lines{span}, from {' '.join(manifest.sources)}"))
    say_diagnostics(manifest.diagnostics, quiet=quiet, strict=strict)
    return ProblemsFound.exit_code if strict and problems(manifest.diagnostics) else 0


def _sources(named: list[str], job_name: str | None, *, update: bool) -> list[str]:
    if named or (update and job_name is None):
        return named
    if job_name is None:
        raise click.UsageError(
            "no SOURCE: name one, or a job in Cloud Logging with --job-name", click.get_current_context()
        )
    return [CLOUD_LOGGING]
