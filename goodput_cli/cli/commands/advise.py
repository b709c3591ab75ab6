"""`goodput advise`: how often to save, what would have bought most, and what if."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from goodput_cli.analysis.advice.thresholds import parse_advice
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.options import (
    LENGTH,
    Checked,
    CommandLine,
    GroupedCommand,
    cost_options,
    option,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import open_sheet_session
from goodput_cli.report.messages import threshold_lines
from goodput_cli.vocabulary.option import bounded
from goodput_cli.vocabulary.units import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.record import Death
    from goodput_cli.analysis.question import Price

_STEPS = Checked("steps", bounded(int, "is not a number of steps; write one from 1", least=1))


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput advise run.jsonl
      goodput advise run.jsonl --accelerators 256 --price-per-hour 4.20
      goodput advise run.jsonl --what-if save-every=100 --what-if restart=/2
      goodput advise run.jsonl --save-seconds 5s --mtbf 6h
      goodput advise run.jsonl --fail-if 'advice.gain_low>1pp' -o advice.md

    \b
    Changes of --what-if: save-every=100 (steps) or =10m, save-cost=/2 or =5s,
    async=BLOCKING[,LATENCY], restore, restart, down, queue, startup, data, stalls and
    evals =/2, =0 or a length, spares=60s, failures=/2, restart-from=newest. All of
    them make one scenario. EXPR is advice.gain, advice.gain_low or advice.LEVER,
    compared with points of goodput (pp) or s, m, h, d; or advice.interval_ratio.
    Advice is about a whole job: docs/advice.md says how to read it.""",
)
@shared_options(leave_out=("start", "end"))
@option("Advice", "--what-if", metavar="NAME=VALUE", multiple=True, help="The same job with a change, replayed.")
@option("Advice", "--save-seconds", metavar="LENGTH", type=LENGTH, help="What a save blocks, where no line says it.")
@option("Advice", "--interval-now", metavar="STEPS", type=_STEPS, help="Steps between two saves.  [default: the log's]")
@option("Advice", "--mtbf", metavar="LENGTH", type=LENGTH, help="Training between two failures, as known elsewhere.")
@option(
    "Advice",
    "--death",
    type=click.Choice(("earliest", "middle", "latest")),
    default="middle",
    show_default=True,
    help="The moment of a death that no line shows.",
)
@option(
    "Advice",
    "--spare-seconds",
    metavar="LENGTH",
    type=LENGTH,
    default="60s",
    show_default=True,
    help="How soon a spare takes over.",
)
@cost_options
@threshold_options(parse_advice, holds="Exit with 3 if EXPR holds, with 4 if it cannot be judged.")
def advise(
    line: CommandLine,
    what_if: tuple[str, ...],
    save_seconds: int | None,
    interval_now: int | None,
    mtbf: int | None,
    death: str,
    spare_seconds: int,
    price: Price | None,
    thresholds: tuple[Expression, ...],
) -> int:
    """Say how often to save, and what would buy most goodput.

    The job's own log is replayed under other policies, and the answer says how sure it is. SOURCE is as for analyze.
    """
    session = open_sheet_session(line, offers=("chart", "published"))
    from goodput_cli.analysis.advice.advise import Options, advise_analysis
    from goodput_cli.analysis.advice.sheet import advice_sheet
    from goodput_cli.analysis.advice.what_if import parse_plan

    options = Options(
        mtbf=None if mtbf is None else mtbf / NS_PER_SECOND,
        spare_ns=spare_seconds,
        price=price,
        plan=parse_plan(what_if) if what_if else None,
    )
    analysis = session.analyze()
    advised = advise_analysis(analysis, options, cast("Death", death), save_seconds, interval_now, thresholds)
    return session.finish(
        advice_sheet(advised),
        (*analysis.diagnostics, *advised.advice.diagnostics),
        thresholds=advised.advice.thresholds,
        threshold_lines=lambda with_passes: threshold_lines(advised.advice.thresholds, with_passes=with_passes),
    )
