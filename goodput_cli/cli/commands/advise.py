"""`goodput advise`: how often to save, what would have bought most, and what if."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.advice.thresholds import parse_advice
from goodput_cli.analysis.goodput.phrases import threshold_lines
from goodput_cli.analysis.question import AdviceQuestion
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.options import (
    CommandLine,
    GroupedCommand,
    cost_options,
    options_of,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import open_sheet_session

if TYPE_CHECKING:
    from goodput_cli.analysis.question import Price


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput advise run.jsonl
      goodput advise run.jsonl --accelerators 256 --price-per-hour 4.20
      goodput advise run.jsonl --what-if save-every=100 --what-if restart=/2
      goodput advise run.jsonl --save-seconds 5s --mtbf 6h
      goodput advise run.jsonl --fail-if 'advice.gain_low>1pp' -o advice.md

    Changes of --what-if: save-every=100 (steps) or =10m, save-cost=/2 or =5s,
    async=BLOCKING[,LATENCY], restore, restart, down, queue, startup, data, stalls and
    evals =/2, =0 or a length, spares=60s, failures=/2, restart-from=newest. All of
    them make one scenario. EXPR is advice.gain, advice.gain_low or advice.LEVER,
    compared with points of goodput (pp) or s, m, h, d; or advice.interval_ratio.
    Advice is about a whole job: docs/advice.md says how to read it.""",
)
@shared_options(leave_out=("start", "end"))
@options_of(AdviceQuestion, "question")
@cost_options
@threshold_options(parse_advice, holds="Exit with 3 if EXPR holds, with 4 if it cannot be judged.")
def advise(
    line: CommandLine,
    question: AdviceQuestion,
    price: Price | None,
    thresholds: tuple[Expression, ...],
) -> int:
    """Say how often to save, and what would buy most goodput.

    The job's own log is replayed under other policies, and the answer says how sure it is. SOURCE is as for analyze.
    """
    session = open_sheet_session(line, offers=("chart", "published"))
    from goodput_cli.analysis.advice.advise import advise_analysis, told
    from goodput_cli.analysis.advice.sheet import advice_sheet

    said = told(question, price)
    analysis = session.analyze()
    advice = advise_analysis(analysis, said, question.death, question.save_ns, question.interval_now, thresholds)
    return session.finish(
        advice_sheet(analysis, advice),
        (*analysis.diagnostics, *advice.diagnostics),
        thresholds=advice.thresholds,
        threshold_lines=lambda with_passes: threshold_lines(advice.thresholds, with_passes=with_passes),
    )
