"""`goodput analyze`: where every second of a job went."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

import click

from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.thresholds import ThresholdExpression
from goodput_cli.cli.console import say, tell
from goodput_cli.cli.options import (
    GroupedCommand,
    method_options,
    output_options,
    source_options,
    time_options,
)
from goodput_cli.cli.outputs import plan_outputs
from goodput_cli.cli.progress import reading_progress
from goodput_cli.errors import NotEnoughData, ProblemsFound, SourceError, ThresholdNotMet
from goodput_cli.report.messages import diagnostic_lines, reference_caution, threshold_lines
from goodput_cli.report.text import safe

CLOUD_LOGGING = "cloud-logging://"
_PROBLEMS = ("warning", "error")


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput analyze run.jsonl
      goodput analyze logs/ more/*.jsonl.gz -j llm-7b --from -2h
      goodput analyze run.jsonl --reference-step-time 2.5 -o report.json -o report.md
      goodput analyze run.jsonl --fail-under 85 --fail-if 'wasted_progress_from_disruption>5%'

    \b
    TIME is ISO-8601, now, -2h (before the end), +30m (after the start) or attempt:3.
    EXPR is NAME OP VALUE[UNIT]: goodput, a category, custom:LABEL, disruptions or
    steps.p99, compared (< <= > >= == !=) with a value in %, s, m or h.
    Every option can come from the environment: GOODPUT_ANALYZE_JOB_NAME=llm-7b
    (several values of one option with ; between them).""",
)
@source_options
@method_options
@time_options
@output_options
def analyze(
    source: tuple[str, ...],
    log_file: tuple[str, ...],
    format_: str | None,
    output: tuple[str, ...],
    force: bool,
    fail_under: ThresholdExpression | None,
    fail_if: tuple[ThresholdExpression, ...],
    warn_if: tuple[ThresholdExpression, ...],
    quiet: bool,
    verbose: bool,
    no_progress: bool,
    strict: bool,
    **question: Any,
) -> int:
    """Put every second of a training job in exactly one category.

    SOURCE is a file, a glob, a folder, or - for standard input; .gz is read as it is. Several are merged.
    """
    sources = _sources([*source, *log_file], question["job_name"])
    outputs = plan_outputs(format_, output, sources, force=force)
    thresholds = [*([fail_under] if fail_under else []), *fail_if, *warn_if]
    analysis = _analyze(sources, question, thresholds, show_progress=not (no_progress or quiet))
    outputs.write(analysis)
    if not quiet:
        _say_all(diagnostic_lines(analysis.diagnostics, every_place=verbose))
        _say_all(reference_caution(analysis))
    _say_all(threshold_lines(analysis.thresholds, with_passes=not quiet))
    return exit_code(analysis, strict=strict)


def exit_code(analysis: Analysis, *, strict: bool) -> int:
    """What the command exits with once the report is written: not enough data, then thresholds, then problems."""
    binding = [threshold for threshold in analysis.thresholds if threshold.fails]
    if any(threshold.met is None for threshold in binding):
        return NotEnoughData.exit_code
    if any(threshold.met for threshold in binding):
        return ThresholdNotMet.exit_code
    if strict and any(found.severity in _PROBLEMS for found in analysis.diagnostics):
        return ProblemsFound.exit_code
    return 0


def _sources(named: list[str], job_name: str | None) -> list[str]:
    """The sources named; with none, Cloud Logging for a job that is named."""
    if named:
        return named
    if job_name is None:
        raise click.UsageError(
            "no SOURCE: name a log file, a folder, or - for standard input, as in 'goodput analyze run.jsonl'",
            click.get_current_context(),
        )
    say(f"No SOURCE: looking for the job {safe(job_name)} in Cloud Logging.")
    return [CLOUD_LOGGING]


def _analyze(
    sources: Sequence[str], question: dict[str, Any], thresholds: Sequence[ThresholdExpression], *, show_progress: bool
) -> Analysis:
    from goodput_cli.api import analyze as analyze_logs

    stdin = _standard_input() if "-" in sources else None
    with reading_progress(wanted=show_progress) as progress:
        return analyze_logs(sources, thresholds=thresholds, stdin=stdin, progress=progress, notice=tell, **question)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise SourceError("-: standard input is closed; pipe a log into it, or name a file")
    return sys.stdin.buffer


def _say_all(lines: Any) -> None:
    for line in lines:
        say(line)
