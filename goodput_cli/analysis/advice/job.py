"""`goodput advise` for one job, from its accounting."""

from __future__ import annotations

from typing import get_args

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.advice.advise import Options, advise
from goodput_cli.analysis.advice.record import Death
from goodput_cli.analysis.advice.results import Advice
from goodput_cli.analysis.advice.timeline_record import record_of


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
