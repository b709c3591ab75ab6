"""What slow regimes cost (accounting §8): by the ledger, in kept steps, against the mean of all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.training.kept import share_outside
from goodput_cli.analysis.steps.timed import TimedSteps
from goodput_cli.vocabulary.categories import Category


def lost_in(timeline: Timeline, steps: TimedSteps, regimes: Sequence[tuple[int, int]], usual: float) -> list[int]:
    """Training (ns) of the kept steps of each regime beyond that of as many steps outside of all of them.

    An eval, a save or a stall inside a step is in another category, and lost steps are lost anyway. Steps that an
    exclusion touches are left out.
    regimes: [begin, stop) positions. usual: seconds of a step, where no step outside was kept.
    """
    kept = np.clip(timeline.lineage.limit[steps.attempt] - steps.number, 0, steps.count)
    whole = share_outside(steps.time, steps.end, timeline.rules.exclusions) == 1
    chosen = np.flatnonzero((kept > 0) & whole)
    if len(chosen) == 0:
        return [0] * len(regimes)
    owner = np.zeros(len(steps), dtype=np.intp)  # 0: outside of all
    for number, (begin, stop) in enumerate(regimes, start=1):
        owner[begin:stop] = number
    owner, begins, ends = owner[chosen], steps.time[chosen], steps.end[chosen]
    first = np.append(True, (owner[1:] != owner[:-1]) | (begins[1:] != ends[:-1]))
    begins, ends = begins[first], ends[np.append(first[1:], True)]
    trained = sum(timeline.ledger.between(begins, ends, (Category.PRODUCTIVE,)).values(), np.zeros_like(begins))
    training, count = np.zeros((2, 1 + len(regimes)), dtype=np.int64)
    np.add.at(training, owner[first], trained)
    np.add.at(count, owner, kept[chosen])
    mean = training[0] / count[0] if count[0] else usual * 1e9
    return [max(0, round(ns - mean * many)) for ns, many in zip(training[1:].tolist(), count[1:].tolist(), strict=True)]
