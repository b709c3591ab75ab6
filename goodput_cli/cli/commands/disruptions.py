"""`goodput disruptions`: what each disruption lost, and how reliable the job was."""

from __future__ import annotations

import click

from goodput_cli.cli.options import CommandLine, shared_options
from goodput_cli.cli.parameters import Checked, GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.amounts import bounded

_AMOUNT = Checked("number", bounded(float, "is not an amount; write a number above 0", above=0))


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
@option("Cost", "--accelerators", metavar="N", type=_AMOUNT, help="Accelerators the job holds.")
@option(
    "Cost",
    "--price-per-hour",
    metavar="P",
    type=_AMOUNT,
    help="Price of one accelerator for an hour; needs --accelerators.",
)
def disruptions(line: CommandLine, accelerators: float | None, price_per_hour: float | None) -> int:
    """List every disruption: what it lost, and the proof.

    Above the list: MTBF with its 95 % interval, mean downtime, ETTR. SOURCE is as for analyze.
    """
    if price_per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators: how many are held")
    session = open_sheet_session(line)
    analysis = session.analyze()
    from goodput_cli.analysis.disruptions.cost import Price
    from goodput_cli.analysis.disruptions.sheet import disruptions_sheet

    price = None if accelerators is None else Price(accelerators, price_per_hour)
    return session.finish(disruptions_sheet(analysis, price), analysis.diagnostics)
