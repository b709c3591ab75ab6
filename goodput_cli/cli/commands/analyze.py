"""`goodput analyze`: where every second of a job went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.goodput.phrases import reference_caution, threshold_lines
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, read_threshold
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.options import (
    CommandLine,
    GroupedCommand,
    cost_options,
    option,
    shared_options,
    threshold_options,
    window_options,
)
from goodput_cli.cli.session import is_brief, open_session
from goodput_cli.report.base import Page, load_renderer

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.question import Price
    from goodput_cli.diagnostics.diagnostic import Diagnostic


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput analyze run.jsonl
      goodput analyze logs/ more/*.jsonl.gz -j llm-7b --from -2h
      goodput analyze run.jsonl --reference-step-time 2.5 -o report.json -o out.md
      goodput analyze run.jsonl -o segments.parquet -o run.events.parquet
      goodput analyze run.jsonl --fail-under 85 --fail-if 'step_stall>5%'

    TIME is ISO-8601, now, -2h (before the end), +30m (after the start) or attempt:3.
    EXPR is NAME OP VALUE[UNIT]: goodput, a category, custom:LABEL, disruptions,
    steps.p99 or insight:hang, compared (< <= > >= == !=) with a value in %, s, m or h.
    Every option can come from the environment: GOODPUT_ANALYZE_JOB_NAME=llm-7b
    (several values of one option with ; between them).""",
)
@shared_options()
@window_options
@cost_options
@threshold_options(read_threshold, parse_fail_under)
@option("Out", "--full", is_flag=True, help="On a terminal, the whole report and not the first screen.")
def analyze(
    line: CommandLine,
    window: tuple[int, ...],
    every: int | None,
    price: Price | None,
    thresholds: tuple[Expression, ...],
    full: bool,
) -> int:
    """Put every second of a training job in exactly one category.

    SOURCE is a file, a glob, a folder, or - for standard input; .gz is read as it is. Several are merged.
    """
    brief = is_brief(line, full=full)
    session = open_session(line, load_renderer, charts=True, screen=_first_screen if brief else None)
    analysis = session.analyze(thresholds=thresholds, window=window, every=every, price=price)
    return session.finish(
        analysis,
        _grave(analysis.diagnostics) if brief else analysis.diagnostics,
        thresholds=analysis.thresholds,
        threshold_lines=lambda with_passes: threshold_lines(analysis.thresholds, with_passes=with_passes),
        cautions=reference_caution(analysis),
    )


def _first_screen(analysis: Analysis, page: Page) -> str:
    from goodput_cli.report.first_screen import first_screen

    return first_screen(analysis, page)


def _grave(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors: the first screen only says how many others there are."""
    return [one for one in diagnostics if one.severity == "error"]
