"""Reliability (accounting §10): how long the job runs between disruptions, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.rows import Disruptions
from goodput_cli.analysis.written import After, Amount, Instant, Seconds, Through, Unknown, written, written_after
from goodput_cli.arrays import I64
from goodput_cli.vocabulary.categories import Category

_CONFIDENCE = 0.95
_BISECTIONS = 200


def _stretch(span: tuple[int, int]) -> UnproductiveStretch:
    return UnproductiveStretch(*span)


@written("unproductive_stretch", "longest stretch of the window without productive time")
@dataclass(frozen=True)
class UnproductiveStretch:
    """A part of the window without productive time or exclusions."""

    start_ns: Instant
    """start"""
    end_ns: Instant
    """end"""

    @property
    @written_after("end_ns")
    def ns(self) -> Annotated[int, Seconds(least=0)]:
        """length"""
        return self.end_ns - self.start_ns


@written(
    "reliability_part",
    "over the disruptions whose last sign of life lies in the window; null where there is nothing to average",
    without=("disruptions",),
    nulls=True,
)
@dataclass(frozen=True)
class Reliability:
    """Reliability over the disruptions of one window; means are None where there is nothing to average."""

    disruptions: int
    """How many."""
    exposure_ns: Annotated[int, Seconds(least=0), After("mean_time_to_regain_seconds")]
    """time of the window in which attempts were up"""  # from the last start line of a burst to the last sign of life
    mtbf_seconds: Amount | None
    """exposure_seconds / disruptions"""
    mtbf_ci95_seconds: Annotated[tuple[float | None, float | None], Unknown((None, None))]
    """95 % Poisson interval (chi-square, time-truncated); without disruptions only the lower bound is known"""
    mean_downtime_seconds: Amount | None
    """mean of downtime_seconds"""
    mean_time_to_regain_seconds: Amount | None
    """mean of regained_after_seconds, over those that were regained"""
    longest_unproductive: Annotated[tuple[int, int] | None, Through(_stretch, UnproductiveStretch), After("ettr")]
    """the longest stretch without kept training"""
    # [start, end) in ns; None where all is productive or excluded
    ettr: Amount
    """effective training time ratio: productive / window, 0..1"""


def reliability(timeline: Timeline, disruptions: Disruptions, start: int, end: int, ettr: float) -> Reliability:
    """Reliability over [start, end) (ns). disruptions: those inside, of which scale-ups do not count; ettr: productive
    / window."""
    disruptions = disruptions.unplanned
    exposure = _exposure(timeline, start, end)
    count = len(disruptions)
    lower, upper = poisson_interval(count)
    down, regained = disruptions.column("downtime_ns").tolist(), disruptions.column("regained_after_ns").tolist()
    return Reliability(
        disruptions=count,
        exposure_ns=exposure,
        mtbf_seconds=exposure / count / 1e9 if count else None,
        mtbf_ci95_seconds=(exposure / upper / 1e9 if exposure else None, exposure / lower / 1e9 if count else None),
        mean_downtime_seconds=fmean(down) / 1e9 if count else None,
        mean_time_to_regain_seconds=fmean(regained) / 1e9 if regained else None,
        longest_unproductive=_longest_unproductive(timeline, start, end),
        ettr=ettr,
    )


def poisson_interval(count: int, confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """The exact (Garwood) interval of a Poisson mean of which `count` events were seen: half the chi-square quantiles
    with 2 x count and 2 x count + 2 degrees of freedom, in the tails outside `confidence`. Its lower end is 0 for 0.

    For even degrees of freedom the chi-square distribution is a Poisson sum (P(chi2(2k) > 2x) = P(Poisson(x) < k)), so
    that no library of distributions is needed.
    """
    tail = (1 - confidence) / 2
    lower = _half_chi_square(tail, count) if count else 0.0
    return lower, _half_chi_square(1 - tail, count + 1)


def _half_chi_square(probability: float, half_freedom: int) -> float:
    """x with P(chi2(2k) <= 2x) = probability, by bisection on a falling Poisson sum.

    x is not more than ten standard deviations from k, and terms twice as far below k are nothing beside the others.
    """
    far = 10 * math.sqrt(half_freedom) + 30
    first = max(half_freedom - round(2 * far), 0)
    index = np.arange(first, half_freedom)
    log_factorial = math.lgamma(first + 1) + np.append(0.0, np.cumsum(np.log(index[1:])))
    low, high = max(half_freedom - far, 0.0), half_freedom + far
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        above = float(np.exp(index * math.log(middle) - middle - log_factorial).sum())
        low, high = (middle, high) if above > 1 - probability else (low, middle)
    return (low + high) / 2


def _exposure(timeline: Timeline, start: int, end: int) -> int:
    """Time (ns) of the window in which attempts were up."""
    up, down = up_times(timeline)
    return int(np.maximum(np.minimum(down, end) - np.maximum(up, start), 0).sum())


def up_times(timeline: Timeline) -> tuple[I64, I64]:
    """When (ns) each attempt was up, and until when: the last one, which is censored, to its logged end or T1."""
    attempts = timeline.attempts
    down = attempts.cut_at_next(timeline.sign_of_life)
    if len(attempts):
        ending = int(attempts.first_ending[-1])
        down[-1] = timeline.table.time[ending] if ending >= 0 else timeline.end
    return attempts.up, down


def _longest_unproductive(timeline: Timeline, start: int, end: int) -> tuple[int, int] | None:
    segments = timeline.segments
    inside = slice(
        int(np.searchsorted(segments.end, start, side="right")), int(np.searchsorted(segments.start, end, side="left"))
    )
    category = segments.category[inside]
    idle = (category != Category.PRODUCTIVE) & (category != Category.EXCLUDED)
    if not idle.any():
        return None
    turns = np.flatnonzero(np.diff(idle, prepend=False, append=False))
    first, last = turns[::2], turns[1::2] - 1
    begins = np.maximum(segments.start[inside][first], start)
    ends = np.minimum(segments.end[inside][last], end)
    longest = int(np.argmax(ends - begins))
    return int(begins[longest]), int(ends[longest])
