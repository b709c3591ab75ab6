"""Overlaps (accounting §5): one sweep over all claims, and the cut of training that is kept in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.claims.claims import wasted
from goodput_cli.accounting.columns import Sparse
from goodput_cli.accounting.sweep import ClaimedTime, Claims, join, sweep
from goodput_cli.accounting.training.kept import TrainingOutcome, split_points, startup_of
from goodput_cli.accounting.training.usual_step import UsualStepTimes, usual_step_times_of
from goodput_cli.arrays import I64, Mask


@dataclass(frozen=True)
class Overlaps:
    """All claims resolved, and what that says of training."""

    claims: Claims
    """Wasted training included."""
    claimed_time: ClaimedTime
    """Which claim holds which time."""
    usual_step: UsualStepTimes
    """From net time."""
    startup: Sparse
    """Program start-up (ns) at the beginning of each training span."""
    partial: NDArray[np.intp]
    """Training spans that are kept in part."""
    splits: I64
    """The instants (ns) at which their kept parts end."""


def resolve_overlaps(
    others: Sequence[Claims], training: TrainingOutcome, may_start: Mask, window: tuple[int, int]
) -> Overlaps:
    """Give each instant of [start, end) (ns) to one claim.

    others: claims of anything but wasted training. may_start: per attempt, whether its start-up may be inferred.
    Where a span is kept in part is known only from its net time: its wasted rest is one more claim, and a second sweep.
    """
    none = np.zeros(0, dtype=np.intp)
    claims = join((*others, wasted(training, none, none.astype(np.int64))))
    claimed_time = sweep(claims, *window)
    usual_step = usual_step_times_of(training.spans, claimed_time, training.sample, len(may_start))
    startup = startup_of(training, claimed_time, usual_step, may_start)
    partial, splits = split_points(training, startup, claimed_time)
    if len(partial):
        claims = join((*others, wasted(training, partial, splits)))
        claimed_time = sweep(claims, *window)
    return Overlaps(claims, claimed_time, usual_step, startup, partial, splits)
