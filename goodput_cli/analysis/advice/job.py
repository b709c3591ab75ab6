"""`goodput advise` for one job, from its accounting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.advice.advise import Options, advise
from goodput_cli.analysis.advice.from_timeline.record import record_of
from goodput_cli.analysis.advice.replay.record import Death
from goodput_cli.analysis.advice.results import Advice
from goodput_cli.analysis.advice.thresholds import AdviceExpression, judge
from goodput_cli.analysis.results import Analysis


@dataclass(frozen=True)
class JobAdvice:
    """The advice on a job, and the analysis that it was taken from."""

    analysis: Analysis
    advice: Advice


def advise_analysis(
    analysis: Analysis, options: Options, death: Death = "middle", save_ns: int | None = None,
    every: int | None = None, thresholds: Sequence[AdviceExpression] = (),
) -> JobAdvice:  # fmt: skip
    """Advice on the job that was analysed, with the thresholds judged. The rest as `advise_job`."""
    advice = advise_job(analysis.timeline, analysis.job.name, options, death, save_ns, every)
    return JobAdvice(analysis, replace(advice, thresholds=tuple(judge(one, advice) for one in thresholds)))


def advise_job(
    timeline: Timeline, name: str, options: Options, death: Death = "middle", save_ns: int | None = None,
    every: int | None = None,
) -> Advice:  # fmt: skip
    """death: where a life is taken to have ended whose end nothing logged. save_ns: what a save blocks; every: today's
    interval in steps, both only where the log does not say. `NotEnoughData` where nothing was trained."""
    record = record_of(timeline, name, death, save_ns, every)
    if not any(life.unseen_death for life in record.lives):
        return advise(record, options)
    others = {one: record_of(timeline, name, one, save_ns, every) for one in get_args(Death)}
    return advise(record, options, others)
