"""Capacity lost while training continued with fewer slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.json_fields import Count, Json, written
from goodput_cli.vocabulary.text import duration

_SLICES = "slices"


@written("capacity", "slices that trained, if the program logs their number with its steps; null otherwise")
@dataclass(frozen=True)
class Capacity:
    """Slices that trained in the window."""

    unit: Literal["slice"]
    """what is counted"""
    most: Count
    """most slices that trained at once"""
    reduced_ns: Annotated[Count, Json("seconds")]
    """time of steps with fewer slices"""
    lost_ns: Annotated[Count, Json("seconds")]
    """that time multiplied by the share of slices that were missing; not part of the ledger"""


def capacity_of(analysis: AnalysisData) -> Capacity | None:
    """Return the capacity of a job; None without numbers of slices. The number at the end of a step is that of the
    step, which began at the end of the one before it in the same attempt."""
    job, window = analysis.job.name, analysis.window
    logged = [one for one in analysis.table.metrics if one.job == job and one.name == _SLICES and len(one.value)]
    if not logged:
        return None
    time, value = (np.concatenate([getattr(one, name) for one in logged]) for name in ("time", "value"))
    order = np.argsort(time, kind="stable")
    time, value = time[order], value[order]
    most = float(value.max())
    attempt = np.searchsorted(analysis.timeline.attempts.begin, time, side="right")
    cut = np.clip(time, window.start_ns, window.end_ns)
    took = np.where(attempt[1:] == attempt[:-1], np.diff(cut), 0)
    if most <= 0 or value.min() < 0:
        return None
    lost = took * (1 - value[1:] / most)
    return Capacity("slice", round(most), int(took[value[1:] < most].sum()), round(float(lost.sum())))


def capacity_text(found: Capacity | None) -> str | None:
    """Return how much capacity was lost; None if nothing was."""
    if found is None or not found.lost_ns:
        return None
    reduced, lost = duration(found.reduced_ns), duration(found.lost_ns)
    return (
        f"steps with fewer than {found.most} slices took {reduced}: {lost} of capacity was lost while training "
        "continued (not in the categories)"
    )
