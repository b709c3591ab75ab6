"""What slow regimes cost the job (accounting §8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.steps.slow_regimes import Regime
from goodput_cli.analysis.steps.timed import TimedSteps


def lost_in_regimes(timeline: Timeline, steps: TimedSteps, regimes: Sequence[Regime]) -> int:
    """Time (ns) that slow regimes took beyond the usual step, in kept steps: what was lost is lost anyway."""
    kept = np.clip(timeline.lineage.limit[steps.attempt] - steps.number, 0, steps.count)
    lost = 0.0
    for regime in regimes:
        inside = (steps.time >= regime.start_ns) & (steps.end <= regime.end_ns)
        lost += (regime.seconds - regime.usual_seconds) * float(kept[inside].sum())
    return round(lost * 1e9)
