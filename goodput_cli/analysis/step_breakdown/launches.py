"""Ranks of one launch side by side, step by step, with the kept part of each step: the input for sums of phases."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.inside import NOT_LOGGED, PhaseName, RankSteps

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


BLOCK = 24
"""Steps per block, for the habits of a rank."""
_SLOW_FIRST = 1.5
"""A first record of one step that took this multiple of the median includes compilation."""


@dataclass(frozen=True)
class StepTimesOfAttempt:
    """The ranks of one launch of one program side by side: R ranks and S steps. NaN: not logged."""

    pool: str
    attempt: int
    """Attempt number, from 0."""
    ranks: tuple[int, ...]
    """Ranks of "rank" statistics; the rows of the tables."""
    hosts: tuple[str, ...]
    weight: F64
    """[S], how much of each record is kept and in the window."""
    last: I64
    """[S], the last step of each record."""
    count: I64
    """[S], steps a record."""
    first: Mask
    """[S]"""
    took: F64
    """[R, S], ns."""
    phases: dict[PhaseName, F64]
    """[R, S], ns."""
    whole: dict[str, dict[PhaseName, F64]]
    """Values by statistic other than "rank": [S]."""
    whole_took: F64
    """[S], of these."""
    summed: bool

    @property
    def weight_later(self) -> F64:
        """The weight without first steps."""
        return np.where(self.first, 0.0, self.weight)

    @property
    def records_a_block(self) -> int:
        """Number of records that make about `BLOCK` steps."""
        return max(1, math.ceil(BLOCK / float(np.median(self.count)))) if len(self.count) else BLOCK


def launches_in(analysis: AnalysisData) -> Iterator[StepTimesOfAttempt]:
    """The launches of all programs of an analysed job, in its window."""
    parts = [one for one in analysis.table.inside if one.job == analysis.job.name and len(one)]
    return launches_of(analysis.timeline, parts, (analysis.window.start_ns, analysis.window.end_ns))


def launches_of(
    timeline: Timeline, parts: Sequence[RankSteps], within: tuple[int, int]
) -> Iterator[StepTimesOfAttempt]:
    """The launches of all programs. Ranks of one launch meet by the step that they resumed from, or by their times."""
    groups: defaultdict[tuple[str, int, tuple[int, int] | None], list[tuple[RankSteps, F64]]] = defaultdict(list)
    by_process: defaultdict[tuple[str, tuple[int, int]], list[RankSteps]] = defaultdict(list)
    for one in parts:
        if one.process is None:
            attempt = _attempts_at(timeline, one.time)
            kept = _kept_share(timeline, attempt, one) * _seen(one.time, within)
            for each in np.unique(attempt).tolist():
                groups[one.pool, each, None].append((one, np.where(attempt == each, kept, np.nan)))
        else:
            by_process[one.pool, one.process].append(one)
    for (pool, process), ranks in by_process.items():
        leader = min(ranks, key=lambda one: one.rank)
        attempt = np.full(1, int(np.median(_attempts_at(timeline, leader.time))))
        seen = leader.step[_seen(leader.time, within)]
        for one in ranks:
            kept = _kept_share(timeline, np.broadcast_to(attempt, len(one)), one)
            kept = kept * np.isin(one.step, seen)
            groups[pool, int(attempt[0]), process].append((one, kept))
    for (pool, attempt_of_group, _), members in groups.items():
        yield _aligned(pool, attempt_of_group, members)


def _attempts_at(timeline: Timeline, time: I64) -> I64:
    """Return the attempt at each time."""
    found = np.searchsorted(timeline.attempts.begin, time, side="left") - 1
    return np.maximum(found, 0).astype(np.int64)


def _seen(time: I64, within: tuple[int, int]) -> Mask:
    return np.asarray((time >= within[0]) & (time <= within[1]))


def _kept_share(timeline: Timeline, attempt: I64, one: RankSteps) -> F64:
    """The share of the steps of each record that is kept (accounting §4)."""
    if not len(timeline.attempts):
        return np.zeros(len(one))
    limit = np.clip(timeline.lineage.limit[attempt], -1, np.int64(1) << 54)
    if timeline.attempts.step_ends:
        limit = limit + 1  # the limit counts finished steps, and steps count from 0
    first = one.step - one.count + 1
    return np.clip(limit - first, 0, one.count) / np.maximum(one.count, 1)


def _aligned(pool: str, attempt: int, members: Sequence[tuple[RankSteps, F64]]) -> StepTimesOfAttempt:
    """The records of ranks side by side, by step."""
    steps = np.unique(np.concatenate([one.step[~np.isnan(kept)] for one, kept in members]))
    size = len(steps)
    ranks = sorted({(one.rank, one.host) for one, _ in members if one.statistic == "rank"})
    row = {rank: at for at, rank in enumerate(ranks)}
    weight, count, first = np.zeros(size), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    took, whole_took = np.full((len(ranks), size), np.nan), np.full(size, np.nan)
    phases: dict[PhaseName, F64] = {}
    whole: defaultdict[str, dict[PhaseName, F64]] = defaultdict(dict)
    for one, kept in members:
        own = ~np.isnan(kept)
        at = np.searchsorted(steps, one.step[own])
        weight[at] = np.maximum(weight[at], kept[own])
        count[at], first[at] = np.maximum(count[at], one.count[own]), first[at] | one.first[own]
        lengths = _or_nan(one.took[own])
        if one.statistic == "rank":
            took[row[one.rank, one.host], at] = lengths
        else:
            whole_took[at] = np.fmax(whole_took[at], lengths)
        for place, name in enumerate(one.names):
            values = _or_nan(one.ns[own, place])
            if one.statistic == "rank":
                table = phases.setdefault(name, np.full((len(ranks), size), np.nan))
                table[row[one.rank, one.host], at] = values
            else:
                of = whole[one.statistic].setdefault(name, np.full(size, np.nan))
                of[at] = values
    mean_took = mean_of_ranks(took) if len(ranks) else whole_took
    first |= _compiling(first, count, np.where(np.isnan(mean_took), whole_took, mean_took))
    return StepTimesOfAttempt(
        pool, attempt, tuple(rank for rank, _ in ranks), tuple(host for _, host in ranks), weight, steps, count, first,
        took, phases, dict(whole), whole_took, any(one.summed > 1 for one, _ in members),
    )  # fmt: skip


def _or_nan(ns: I64) -> F64:
    return np.where(ns == NOT_LOGGED, np.nan, ns.astype(np.float64))


def with_lengths(launches: Sequence[StepTimesOfAttempt]) -> tuple[Sequence[StepTimesOfAttempt], float]:
    """Return the launches without the steps of unknown length, if others have one, and the number of these steps:
    phases of all steps are not a share of the time of some."""
    known = [_timed(launch) for launch in launches]
    if not any(some.any() for some in known):
        return launches, 0.0
    left = sum(float((one.weight_later * one.count)[~some].sum()) for one, some in zip(launches, known, strict=True))
    return [replace(one, weight=np.where(some, one.weight, 0)) for one, some in zip(launches, known, strict=True)], left


def _timed(launch: StepTimesOfAttempt) -> Mask:
    """Return [S]: the records whose step times are logged."""
    if launch.ranks and not np.isnan(launch.took).all():
        return np.asarray(~np.isnan(launch.took).all(axis=0))
    return np.asarray(~np.isnan(launch.whole_took))


def mean_of_ranks(values: F64) -> F64:
    """[S]: the mean of the ranks that are there in each step; NaN where none is."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _compiling(first: Mask, count: I64, took: F64) -> Mask:
    """The first record of a launch, where it is of one step and took far longer than they mostly do."""
    found = np.zeros(len(first), dtype=np.bool_)
    if first.any() or len(took) < 4 or count[0] != 1 or np.isnan(took[0]):
        return found
    found[0] = took[0] > _SLOW_FIRST * float(np.nanmedian(took[1:] / count[1:]))
    return found


def most_of(values: F64) -> F64:
    """[S]: the most of the ranks that are there; NaN where none is."""
    known = ~np.isnan(values)
    return np.where(known.any(axis=0), np.where(known, values, -1).max(axis=0), np.nan)
