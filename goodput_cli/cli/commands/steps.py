"""`goodput steps`: how long steps take, which were the slowest, and since when they are slow."""

from __future__ import annotations

import click

from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput steps run.jsonl
      goodput steps run.jsonl --from -6h --slowest 25
      goodput steps logs/ -j llm-7b --format json | jq '.slow_regimes'
      goodput steps run.jsonl -o slowest.csv

    \b
    A step time lies between two recorded steps of one attempt. The ideal step time is
    the mean of those up to median + 3 x MAD. A slow regime is a stretch in which the
    level of the step time moved up by more than 5 % and stayed, 24 steps at least;
    single slow steps make none.""",
)
@shared_options()
@option(
    "Which",
    "--slowest",
    metavar="N",
    type=click.IntRange(min=0, max=1_000_000),
    default=10,
    show_default=True,
    help="How many of the slowest steps to list.",
)
def steps(line: CommandLine, slowest: int) -> int:
    """Show step times: statistics, slowest steps, slow regimes.

    SOURCE is as for analyze. Logs that record only checkpoints have no step times: exit code 4.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.steps.sheet import steps_sheet
    from goodput_cli.analysis.steps.statistics import step_report

    report = step_report(analysis, slowest)
    return session.finish(steps_sheet(analysis, report), analysis.diagnostics)
