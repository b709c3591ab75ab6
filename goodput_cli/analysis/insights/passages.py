"""What disruptions took from a window, each second once: older checkpoints, other lost training, downtime.

Hosts on which a job dies again and again (docs/causes.md): counted, and held against chance with an exact test.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import among
from goodput_cli.analysis.disruptions.find import downtimes
from goodput_cli.analysis.disruptions.losses import first_and_last_steps, lost_time
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.observations import same_host
from goodput_cli.events.schema import NO_STEP, Edge, Kind
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.causes import group_of

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis


_DOWN = (Category.RECOVERY, Category.UNDETERMINED)
_TOP = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Older:
    """A restore that left a newer checkpoint aside."""

    ended: int
    """The attempt whose training it took back, from 0."""
    resumed: int
    """The attempt that restored, from 0."""
    began: int
    """The step from which that trained."""
    restored: int | None
    """The newest checkpoint that is not above it; None where no line shows one."""
    newer: tuple[int, ...]
    """Steps of the complete ones above it, rising."""

    @property
    def below(self) -> int:
        """The step from which training would have gone on with the newest of them: as far behind it as here."""
        behind = 0 if self.restored is None else min(self.began - self.restored, 1)
        return self.newer[-1] + behind


@dataclass(frozen=True)
class DisruptionCosts:
    """Time (ns) inside the window that the end of each attempt cost: columns of one value an attempt that another one
    follows."""

    wasted: I64
    """Training that was taken back."""
    older: I64
    """The part of it that a newer checkpoint would have kept."""
    down: I64
    """Recovery."""
    undetermined: I64
    """Lost training or downtime, nobody can tell."""
    unplanned: Mask
    """Whether it was a disruption that counts."""
    olders: tuple[Older, ...]
    unfinished: I64
    """The part of `wasted`, beyond `older`, that saves which never completed would have kept."""
    failed: tuple[Older, ...]
    """Restores that had to leave such saves aside; `newer` are these."""


def find_passages(analysis: Analysis) -> DisruptionCosts:
    """What disruptions took from the window of an analysis."""
    timeline, within = analysis.timeline, (analysis.window.start_ns, analysis.window.end_ns)
    saves = find_saves(timeline)
    olders, failed = tuple(older_restores(timeline, saves)), tuple(unfinished_saves(timeline, saves))
    wasted, down, undetermined = _amounts(analysis, within)
    older = _kept_by(timeline, within, olders)
    unfinished = np.maximum(_kept_by(timeline, within, failed) - older, 0)
    unplanned = np.zeros(len(wasted), dtype=bool)
    unplanned[timeline.disruptions] = True
    unplanned &= ~timeline.planned[:-1]
    return DisruptionCosts(wasted, older, down, undetermined, unplanned, olders, unfinished, failed)


def _kept_by(timeline: Timeline, within: tuple[int, int], passed_over: Sequence[Older]) -> I64:
    """Lost training (ns) that the newest of the saves which each restore left aside would have kept."""
    count = max(len(timeline.attempts) - 1, 0)
    if not passed_over:
        return np.zeros(count, dtype=np.int64)
    below = np.full(count + 1, -_TOP)
    below[[one.ended for one in passed_over]] = [one.below for one in passed_over]
    return lost_time(timeline, within, below)[:-1]


def _amounts(analysis: Analysis, within: tuple[int, int]) -> tuple[I64, I64, I64]:
    """Wasted, recovery and undetermined time (ns) of each passage inside the window. Of a whole job the disruptions
    have them already."""
    timeline, disruptions = analysis.timeline, analysis.disruptions
    count = max(len(timeline.attempts) - 1, 0)
    if within == (timeline.start, timeline.end) and len(disruptions) == len(timeline.disruptions):
        amounts = np.zeros((3, count), dtype=np.int64)
        undetermined = disruptions.column("undetermined_ns")
        down = disruptions.column("downtime_ns") - undetermined
        amounts[:, timeline.disruptions] = disruptions.column("wasted_ns"), down, undetermined
        return amounts[0], amounts[1], amounts[2]
    left, up = (np.clip(bound, *within) for bound in downtimes(timeline))
    between = timeline.ledger.between(left, up, _DOWN)
    nothing = np.zeros(count, dtype=np.int64)
    down, undetermined = (between.get((category, -1), nothing) for category in _DOWN)
    return lost_time(timeline, within)[:-1], down, undetermined


@dataclass(frozen=True)
class SavesOfAttempts:
    """Saves by attempt and then by step."""

    owner: Rows
    step: I64
    begun_owner: Rows
    """Saves that began and were never complete; of logs that do not say when saves are complete, none."""
    begun: I64


def older_restores(timeline: Timeline, saves: SavesOfAttempts | None = None) -> list[Older]:
    """Attempts that began below the newest checkpoint that was complete when they started, and was not given up before.
    A log that shows no saves has none."""
    began, _ = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    saves = saves or find_saves(timeline)
    owner, step = saves.owner, saves.step
    if not _may_be_older(began[stepping], stepping, owner, step):
        return []
    bounds, steps = np.searchsorted(owner, stepping).tolist(), step.tolist()
    usable: list[int] = []
    older: list[Older] = []
    for place, attempt in enumerate(stepping.tolist()):
        first = int(began[attempt])
        newer = tuple(saved for saved in usable if saved > first) if usable and usable[-1] > first else ()
        del usable[len(usable) - len(newer) :]
        if newer:
            older.append(Older(int(stepping[place - 1]), attempt, first, usable[-1] if usable else None, newer))
        stop = bounds[place + 1] if place + 1 < len(stepping) else len(steps)
        for saved in steps[bounds[place] : stop]:
            if not usable or saved > usable[-1]:
                usable.append(saved)
    return older


def unfinished_saves(timeline: Timeline, saves: SavesOfAttempts) -> Iterator[Older]:
    """Attempts that began below saves of the attempt before them which were never complete."""
    if len(saves.begun) == 0:
        return
    began, _ = first_and_last_steps(timeline)
    stepping = np.flatnonzero(began != NO_STEP)
    for before, attempt in pairwise(stepping.tolist()):
        first = int(began[attempt])
        newer = np.unique(saves.begun[(saves.begun_owner == before) & (saves.begun > first)])
        if len(newer):
            complete = saves.step[(saves.owner <= before) & (saves.step <= first)]
            restored = int(complete.max()) if len(complete) else None
            yield Older(before, attempt, first, restored, tuple(newer.tolist()))


def _may_be_older(began: I64, stepping: Rows, owner: Rows, step: I64) -> bool:
    """Whether any attempt began below a save of an earlier one, given up or not: nearly always none did."""
    newest = np.maximum.accumulate(np.append(NO_STEP, step))
    return bool(np.any(newest[np.searchsorted(owner, stepping)] > began))


def find_saves(timeline: Timeline) -> SavesOfAttempts:
    """The complete saves, and those that never were. One that the end of the window cuts is not complete; one that
    ended behind the next attempt's start was not there for it. Where a line says when the save of a step is complete
    (`checkpoint_saved` beside Orbax lines), the line of its blocking part only says that it began."""
    table, attempts = timeline.table, timeline.attempts
    rows = np.flatnonzero((table.kind == Kind.SAVE) | (table.kind == Kind.SAVED))
    owner = attempts.of_row[rows]
    rows = rows[(owner >= 0) & (table.step[rows] != NO_STEP)]
    said = rows[table.kind[rows] == Kind.SAVED]
    begun = rows[(table.kind[rows] == Kind.SAVE) & (table.edge[rows] == Edge.INTERVAL)]
    unfinished = np.zeros(0, dtype=np.intp)
    complete = among(table.step[begun], np.sort(table.step[said]))
    if complete.any():
        unfinished = begun[~complete]
        rows = said
    until = np.append(attempts.begin[1:], _TOP)[attempts.of_row[rows]]
    cut = (table.edge[rows] == Edge.INTERVAL) & (table.end[rows] >= timeline.end) & (not timeline.ended)
    rows = rows[~cut & (table.end[rows] <= until)]
    owner = attempts.of_row[rows]
    order = np.lexsort((table.step[rows], owner))
    return SavesOfAttempts(
        owner[order], table.step[rows][order], attempts.of_row[unfinished], table.step[unfinished].astype(np.int64)
    )


LEAST = 3
"""Fewer deaths on a host are no repetition."""
LEVEL = 0.01
"""A host repeats where chance would make it so in less than this share of all cases, over all hosts."""
_GROUPS = frozenset({"hardware", "network"})
_CODES = frozenset({"host_oom", "native_crash", "device_error", "not_finite", "storage_error", "killed"})
AGAIN_NS = 600 * 10**9
"""Deaths on one host so shortly after one another are one failure and many starts."""


Host = TypeVar("Host", str, tuple[str, str])
"""The name of a host; over a fleet, behind that of its cluster."""


@dataclass(frozen=True)
class HostRepeat(Generic[Host]):
    """A host, and how its deaths compare with chance."""

    host: Host
    deaths: int
    of: int
    """All deaths that count."""
    hosts: int
    """All hosts with time up."""
    p: float
    """How likely chance makes it so, over all hosts (Holm)."""


def of_a_host(code: str) -> bool:
    """Whether a cause is one that a host can have."""
    return group_of(code) in _GROUPS or code in _CODES


def tail(least: int, trials: int, share: float) -> float:
    """P(X >= least) of a binomial distribution: the sum of its terms, from the largest of them outwards, so that a term
    too small for a float ends a sum that it could not change."""
    if least <= 0 or share >= 1:
        return 1.0 if least <= trials else 0.0
    if least > trials or share <= 0:
        return 0.0
    if least <= trials * share:  # the largest term is above: the sum of those below it is the exact part
        below = _terms(range(least - 1, -1, -1), trials, share)
        return max(0.0, 1.0 - math.fsum(below))
    return min(1.0, math.fsum(_terms(range(least, trials + 1), trials, share)))


def _terms(counts: range, trials: int, share: float) -> Iterator[float]:
    """P(X = k) of neighbouring counts, up to the first that is 0 as a float: the first by its binomial coefficient, a
    whole number of any length, each other one by its ratio to that before."""
    k, odds = counts[0], share / (1 - share)
    term = math.exp(math.log(math.comb(trials, k)) + k * math.log(share) + (trials - k) * math.log1p(-share))
    for k in counts:
        if term == 0.0:
            return
        yield term
        term *= (trials - k) / (k + 1) * odds if counts.step > 0 else k / (trials - k + 1) / odds


def holm(values: Sequence[float]) -> list[float]:
    """Probabilities of many questions, adjusted for their number (Holm 1979), in the order given."""
    adjusted, highest = [1.0] * len(values), 0.0
    for rank, at in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[at]))
        adjusted[at] = highest
    return adjusted


def repeating(deaths: Mapping[Host, int], time_up: Mapping[Host, int]) -> list[HostRepeat[Host]]:
    """The hosts that deaths repeat on more than chance explains. deaths: by host. time_up: of all hosts (ns or any
    other unit), also of those without a death."""
    total, count = sum(time_up.values()), sum(deaths.values())
    if total <= 0 or count < LEAST or any(host not in time_up for host in deaths):
        return []
    names = [host for host, time in time_up.items() if time > 0]
    alone = [tail(deaths.get(host, 0), count, time_up[host] / total) for host in names]  # of none: 1
    found = [
        HostRepeat(host, deaths.get(host, 0), count, len(names), p)
        for host, p in zip(names, holm(alone), strict=True)
        if p < LEVEL and deaths.get(host, 0) >= LEAST
    ]
    return sorted(found, key=lambda one: (one.p, one.host))


def deaths_by_host(when: Iterable[tuple[int, str]]) -> Counter[str]:
    """How often each host was it. when: each death (ns) with its host; several within 10 minutes on one host are one
    failure and many starts."""
    last: dict[str, int] = {}
    found: Counter[str] = Counter()
    for at, host in sorted(when):
        if host not in last or at - last[host] > AGAIN_NS:
            found[host] += 1
        last[host] = at
    return found


def time_up_by_host(timeline: Timeline) -> Mapping[str, int] | None:
    """Time up (ns) of each host; None where not all hosts of every attempt are listed."""
    listed = timeline.causes.hosts
    up = np.maximum(timeline.sign_of_life - timeline.attempts.up, 0).tolist()
    if not listed or any(time and not hosts for time, hosts in zip(up, listed, strict=True)):
        return None
    found: Counter[str] = Counter()
    for time, hosts in zip(up, listed, strict=True):
        for host in hosts:
            found[host] += time
    return found


def listed_name(host: str, listed: Iterable[str]) -> str | None:
    """The name under which a host is listed: lines write it in full or in short."""
    return next((name for name in listed if same_host(name, host)), None)
