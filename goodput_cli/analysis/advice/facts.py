"""What advice rests on: the job as it was recorded. Times are seconds. None is *not known*, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goodput_cli.analysis.advice.replay.record import Death


@dataclass(frozen=True)
class Recorded:
    """the job as it was"""

    goodput_percent: float
    """of the window without what is excluded"""
    seconds: float
    """without what is excluded"""
    productive_seconds: float
    """that became progress"""


@dataclass(frozen=True)
class EarlyDeaths:
    """lives shorter than a tenth of the MTBF"""

    count: int
    """how many there are"""
    expected: float
    """where failures come at a constant rate"""
    probability: float
    """of so many or more by chance"""
    unusual: bool
    """whether that is below 1 %"""
    longest_seconds: float | None
    """of these lives"""


@dataclass(frozen=True)
class Fidelity:
    """whether the record replayed as it was gives the record"""

    ok: bool
    """whether it does, to the nanosecond"""
    difference_ns: int | None
    """null: no replay was made, or it never ends"""
    reason: str | None
    """why no replay is shown"""


@dataclass(frozen=True)
class LifeEndings:
    """lives by how they ended, and where the next one began"""

    newest: int
    """at the newest checkpoint"""
    older: int
    """at an older one"""
    beyond: int
    """at a checkpoint that no line shows"""
    stop: int
    """behind a clean end"""


@dataclass(frozen=True)
class RecordFacts:
    """what the advice rests on; a life is the training of one attempt"""

    lives: int
    """how many"""
    failures: int
    """lives that ended unplanned"""
    disruptions: int
    """as `goodput disruptions` counts them"""
    kinds: LifeEndings
    """how lives ended"""
    life_seconds: float
    """of all lives, without start-up and final hangs"""
    mtbf_seconds: float | None
    """life_seconds / failures, or as given"""
    work_seconds: float
    """kept training"""
    gap_seconds: float
    """between lives, because of failures"""
    fixed_seconds: float
    """what no failure brings: lead, stops, tail"""
    extra_seconds: float
    """lost whatever the interval"""
    pace_seconds: float
    """mean time of a step"""
    early: EarlyDeaths | None
    """null: no life failed"""
    replay: Fidelity
    """the test of the replay on the record itself"""
    death: Death | None
    """the moment assumed where none was logged; null: all were"""


@dataclass(frozen=True)
class SaveFacts:
    """what saves cost today"""

    cost_seconds: float | None
    """that a save blocks; null: not recorded"""
    cost_origin: Literal["recorded", "given"] | None
    """where cost_seconds is from; null: not known"""
    count: int
    """completed saves of all lives"""
    every_steps: int | None
    """between two saves today; null: not known"""
    every_seconds: float | None
    """the same as training time"""
    latency_seconds: float
    """until an asynchronous save can be used"""
