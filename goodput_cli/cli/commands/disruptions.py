"""`goodput disruptions`: what each disruption lost, and how reliable the job was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from goodput_cli.cli.cost_options import cost_options
from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import GroupedCommand
from goodput_cli.cli.session import open_sheet_session

if TYPE_CHECKING:
    from goodput_cli.analysis.price import Price


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput disruptions run.jsonl
      goodput disruptions run.jsonl --from -1d --accelerators 256 --price-per-hour 2.50
      goodput disruptions logs/ -j llm-7b --format json | jq '.reliability.mtbf_seconds'
      goodput disruptions run.jsonl -o disruptions.csv

    \b
    A disruption belongs to the window in which the attempt's last sign of life lies;
    its amounts are always whole. Its cost is lost training, downtime and starting
    again, without the time in the queue. Every row cites the log lines that show it.""",
)
@shared_options()
@cost_options
def disruptions(line: CommandLine, price: Price | None) -> int:
    """List every disruption: what it lost, and the proof.

    Above the list: MTBF with its 95 % interval, mean downtime, ETTR. SOURCE is as for analyze.
    """
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.disruptions.sheet import disruptions_sheet

    return session.finish(disruptions_sheet(analysis, price), analysis.diagnostics)
