"""`goodput analyze`: where every second of a job went."""

from __future__ import annotations

from typing import Any

import click

from goodput_cli.analysis.goodput.thresholds import ThresholdExpression
from goodput_cli.cli.options import threshold_options, window_options
from goodput_cli.cli.parameters import GroupedCommand
from goodput_cli.cli.session import open_session, question_options, say_all
from goodput_cli.report.base import load_renderer
from goodput_cli.report.messages import reference_caution, threshold_lines


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput analyze run.jsonl
      goodput analyze logs/ more/*.jsonl.gz -j llm-7b --from -2h
      goodput analyze run.jsonl --reference-step-time 2.5 -o report.json -o report.md
      goodput analyze run.jsonl -o segments.parquet -o run.events.parquet
      goodput analyze run.jsonl --fail-under 85 --fail-if 'wasted_progress_from_disruption>5%'

    \b
    TIME is ISO-8601, now, -2h (before the end), +30m (after the start) or attempt:3.
    EXPR is NAME OP VALUE[UNIT]: goodput, a category, custom:LABEL, disruptions or
    steps.p99, compared (< <= > >= == !=) with a value in %, s, m or h.
    Every option can come from the environment: GOODPUT_ANALYZE_JOB_NAME=llm-7b
    (several values of one option with ; between them).""",
)
@question_options
@window_options
@threshold_options
def analyze(
    fail_under: ThresholdExpression | None,
    fail_if: tuple[ThresholdExpression, ...],
    warn_if: tuple[ThresholdExpression, ...],
    **given: Any,
) -> int:
    """Put every second of a training job in exactly one category.

    SOURCE is a file, a glob, a folder, or - for standard input; .gz is read as it is. Several are merged.
    """
    session = open_session(given, load_renderer)
    thresholds = [*([fail_under] if fail_under else []), *fail_if, *warn_if]
    analysis = session.analyze(thresholds=thresholds)
    session.outputs.write(analysis)
    session.say_diagnostics(analysis.diagnostics)
    if not session.quiet:
        say_all(reference_caution(analysis))
    say_all(threshold_lines(analysis.thresholds, with_passes=not session.quiet))
    return session.exit_code(analysis.diagnostics, analysis.thresholds)
