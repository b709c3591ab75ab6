"""`goodput compare`: two runs or more side by side, and where the difference in goodput comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.compare.thresholds import parse_change
from goodput_cli.analysis.threshold import Expression
from goodput_cli.api.options import Sides
from goodput_cli.cli.options import CommandLine, GroupedCommand, options_of, shared_options, threshold_options
from goodput_cli.cli.session import open_sheet_session

if TYPE_CHECKING:
    from goodput_cli.api.keywords import SharedOptions


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput compare monday.jsonl tuesday.jsonl
      goodput compare baseline.json run.jsonl --fail-if 'goodput:-2pp'
      goodput compare run.jsonl -j llm-7b -j llm-7b-restarted
      goodput compare run.jsonl --run 1 --run 2
      goodput compare a.jsonl b.jsonl c.jsonl --baseline b.jsonl -o compare.md
      goodput compare d.json --baseline a.json --baseline b.json --baseline c.json

    A side is anything that analyze reads, or the JSON that `analyze -o FILE.json`
    saved, told by what is in it. One SOURCE with several --job-name or --run is that
    log on every side. Options of How and When hold for the logs; saved JSON stays as
    it was made. A --baseline that is not named as SOURCE is one more side, the last
    one for --job-name and --run.

    EXPR is NAME:CHANGE[UNIT]: goodput:-2pp (fell by more than 2 points),
    steps.p99:+10% (rose by more than a tenth), mean_downtime:+5m, disruptions:+2;
    each is judged for every side against the baseline. work_time is the window over the
    kept steps; a difference below 2 %, or inside the range that step times vary by within
    the runs, is none and passes work_time:+3%; other gates say so, and fail. What differs
    from night to night is in no range of two runs: name three baselines or more, and a side
    differs where it lies outside of what these differ by. --reference-step-time baseline
    takes the median step of the baseline as the reference of all sides.""",
)
@shared_options(
    several={
        "job_name": "The job: once for all logs, or once a side, in order.",
        "run": "One run of a job name: once, or once a side.",
    }
)
@options_of(Sides, "sides")
@threshold_options(parse_change, holds="Exit with 3 if EXPR holds for a side.")
def compare(
    line: CommandLine,
    job_name: tuple[str, ...],
    run: tuple[str, ...],
    sides: Sides,
    thresholds: tuple[Expression, ...],
) -> int:
    """Show runs side by side, and what made the difference.

    The first SOURCE is the baseline. What the same work took comes first, then goodput's rise or fall, category by
    category, in points that add up.
    """
    named = (*line.sources, *(one for one in dict.fromkeys(sides.baseline) if one not in line.sources))
    session = open_sheet_session(replace(line, sources=named), job_name, offers=("chart", "published"))
    from goodput_cli.analysis.compare.phrases import auto_cautions, threshold_lines
    from goodput_cli.api.compare import compare as compare_sides

    with session.reading() as reading:
        options: SharedOptions = reading
        comparison = compare_sides(
            session.sources, job_name=job_name, run=run, baseline=sides.baseline, changes=thresholds, **options
        )
    return session.finish(
        comparison.sheet(),
        comparison.diagnostics,
        thresholds=comparison.thresholds,
        threshold_lines=lambda with_passes: threshold_lines(comparison, with_passes=with_passes),
        cautions=auto_cautions(comparison),
    )
