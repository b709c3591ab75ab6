"""`goodput rolling`: goodput window by window."""

from __future__ import annotations

import click

from goodput_cli.cli.options import CommandLine, shared_options, window_options
from goodput_cli.cli.parameters import GroupedCommand
from goodput_cli.cli.session import open_sheet_session


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput rolling run.jsonl
      goodput rolling run.jsonl --window 1h --window 4h --every 10m
      goodput rolling logs/ -j llm-7b --from -12h --window 30m -o rolling.csv

    \b
    Windows end every E, counted from the start of the job (or --from); the last one
    ends at its end (or --to). A window looks back W from its end, cut only to the
    job. Where E is W, which is the default, they tile the job and add up to it.""",
)
@shared_options()
@window_options
def rolling(line: CommandLine, window: tuple[int, ...], every: int | None) -> int:
    """Show goodput and badput in windows that move through the job.

    One row per window end; JSON and CSV hold every kind of badput. SOURCE is as for analyze. Without --window, windows
    are a round tenth of the job.
    """
    session = open_sheet_session(line)
    analysis = session.analyze(window=window or ("auto",), every=every)
    from goodput_cli.analysis.rolling.sheet import rolling_sheet

    return session.finish(rolling_sheet(analysis), analysis.diagnostics)
