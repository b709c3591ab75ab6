"""The phase that made some steps longer than the others (docs/inside-steps.md)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.analysis.step_breakdown.launches import StepTimesOfAttempt, launches_in, mean_of_ranks, most_of
from goodput_cli.arrays import F64
from goodput_cli.events.inside import PhaseClass, class_of

if TYPE_CHECKING:
    from goodput_cli.analysis.results import AnalysisData


@dataclass(frozen=True)
class Growth:
    """The phase that made steps longer."""

    phase: str
    ns: int
    """Growth in each of these steps."""
    share: float
    """Share of the growth of the steps."""


def growth_between(analysis: AnalysisData, first_step: int, last_step: int) -> Growth | None:
    """Return the phase that grew most in some steps compared with all others, by its slowest rank; None if it is not
    logged, or the steps were not longer."""
    inside: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    counts, whole = [0.0, 0.0], [0.0, 0.0]
    for launch in launches_in(analysis):
        chosen = (launch.last >= first_step) & (launch.last - launch.count + 1 <= last_step)
        weights = [launch.weight_later * ~chosen, launch.weight_later * chosen]
        took, phases = _by_step(launch)
        for at, weight in enumerate(weights):
            weight = np.where(np.isnan(took), 0, weight)
            counts[at] += float((weight * launch.count).sum())
            whole[at] += float((weight * np.nan_to_num(took)).sum())
            for phase, values in phases.items():
                inside[phase][at] += float((weight * values).sum())
    if not all(counts) or not inside:
        return None
    longer = whole[1] / counts[1] - whole[0] / counts[0]
    phase = max(inside, key=lambda name: inside[name][1] / counts[1] - inside[name][0] / counts[0])
    more = inside[phase][1] / counts[1] - inside[phase][0] / counts[0]
    return Growth(phase, round(more), more / longer) if longer > 0 and more > 0 else None


def _by_step(launch: StepTimesOfAttempt) -> tuple[F64, dict[str, F64]]:
    """[S]: the net time of each record, and of each whole phase the time of its slowest rank."""
    tables = {name: most_of(values) for name, values in launch.phases.items()}
    for statistic in ("job", "max"):
        tables |= launch.whole.get(statistic, {})
    took = mean_of_ranks(launch.took) if launch.ranks else launch.whole_took
    took = np.where(np.isnan(took), launch.whole_took, took)
    found: dict[str, F64] = {}
    for name, values in tables.items():
        known = np.nan_to_num(values)
        if class_of(name.phase) is PhaseClass.LEDGER:
            took = took - known
        elif not name.parent:
            found[name.phase] = found.get(name.phase, np.zeros(len(known))) + known
    return took, found
