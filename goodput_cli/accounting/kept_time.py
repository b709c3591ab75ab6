"""Kept time and dead time (accounting §5): what has the time that nothing claims."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import clipped, is_sorted
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.kept import KeptTraining
from goodput_cli.arrays import I64
from goodput_cli.vocabulary.categories import Category


@dataclass(frozen=True)
class KeptAndDeadTime:
    """Intervals in time order that do not overlap, each of one category; claims take precedence over them."""

    start: I64
    end: I64
    """ns."""
    category: NDArray[np.int8]
    """`Category`: recovery for dead time; training, start-up or stall for kept time."""
    span: NDArray[np.intp]
    """Row of the kept training that it is of, -1 for dead time."""


def kept_and_dead_time(
    kept_training: KeptTraining, first: int, stop: int, claimed_time: ClaimedTime, dead_time: tuple[I64, I64]
) -> KeptAndDeadTime:
    """Kept training of the rows first .. stop - 1, each cut into start-up, training and stall by its net time.

    dead_time: start and end (ns) of unclaimed time of dead attempts, which is recovery.
    """
    start, end = kept_training.start[first:stop], kept_training.end[first:stop]
    late, startup = kept_training.startup.part(first, stop)
    stalled, stall = kept_training.stall.part(first, stop)
    trained, stalls = start.copy(), end.copy()
    after_startup = claimed_time.net_clock(start[late]) + startup
    trained[late] = clipped(claimed_time.when(after_startup), start[late], end[late])
    before_stall = claimed_time.net_clock(end[stalled]) - stall
    stalls[stalled] = clipped(claimed_time.when(before_stall), trained[stalled], end[stalled])
    number = np.arange(first, stop)
    parts = (
        (trained, stalls, Category.PRODUCTIVE, np.where(kept_training.kept_steps[first:stop] > 0, number, -1)),
        (start[late], trained[late], Category.PROGRAM_STARTUP, number[late]),
        (stalls[stalled], end[stalled], Category.STALL, number[stalled]),
        (*dead_time, Category.RECOVERY, np.full(len(dead_time[0]), -1)),
    )
    begins, ends = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    category = np.concatenate([np.full(len(part[0]), part[2], dtype=np.int8) for part in parts])
    span = np.concatenate([part[3] for part in parts])
    some = (begins < ends) & ((span >= 0) | (category == Category.RECOVERY))
    if not some.all():
        begins, ends, category, span = begins[some], ends[some], category[some], span[some]
    if is_sorted(begins):
        return KeptAndDeadTime(begins, ends, category, span)
    order = np.argsort(begins, kind="stable")
    return KeptAndDeadTime(begins[order], ends[order], category[order], span[order])
