"""Hosts on which a job dies again and again (docs/causes.md): counted, and held against chance with an exact test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.evidence import same_host
from goodput_cli.vocabulary.causes import group_of

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
