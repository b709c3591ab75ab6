"""`goodput disruptions`: what each disruption lost, and how reliable the job was."""

from __future__ import annotations

import math
from typing import Any

import click

from goodput_cli.cli.parameters import Checked, GroupedCommand, option
from goodput_cli.cli.session import open_sheet_session, question_options
from goodput_cli.errors import UsageError


def _amount(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"{text!r}: write a number above 0")
    return value


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
@question_options
@option("Cost", "--accelerators", metavar="N", type=Checked("number", _amount), help="Accelerators the job holds.")
@option(
    "Cost",
    "--price-per-hour",
    metavar="P",
    type=Checked("number", _amount),
    help="Price of one accelerator for an hour; needs --accelerators.",
)
def disruptions(accelerators: float | None, price_per_hour: float | None, **given: Any) -> int:
    """List every disruption: what it lost, and the proof.

    Above the list: MTBF with its 95 % interval, mean downtime, ETTR. SOURCE is as for analyze.
    """
    if price_per_hour is not None and accelerators is None:
        raise UsageError("--price-per-hour needs --accelerators: how many are held")
    session = open_sheet_session(given)
    analysis = session.analyze()
    from goodput_cli.analysis.disruptions.cost import Price
    from goodput_cli.analysis.disruptions.sheet import disruptions_sheet

    price = None if accelerators is None else Price(accelerators, price_per_hour)
    return session.answer(disruptions_sheet(analysis, price), analysis.diagnostics)
