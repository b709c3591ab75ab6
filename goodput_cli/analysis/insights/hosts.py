"""Hosts with repeated failures (docs/causes.md): failures are counted and compared with chance by an exact test."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.arrays import F64
from goodput_cli.events.evidence import same_host
from goodput_cli.vocabulary.categories import CONFIRMED, group_of

LEAST = 3
"""Minimum number of runs that failed on a host (of one run: of failures) for a repetition."""
LEVEL = 0.01
"""Significance level: chance alone would report a host in less than this share of all cases, over all hosts."""
_HARDWARE = "hardware"
_GROUPS = frozenset({_HARDWARE, "network"})
_CODES = frozenset({"host_oom", "native_crash", "device_error", "not_finite", "storage_error", "killed"})
AGAIN_NS = 600 * 10**9
"""Failures on one host within this time (ns) of each other are one failure with many starts."""
_RANKS_OF_A_HOST = 16
"""Ranks at a larger distance never had one position among the hosts: no host has more accelerators."""


Host = TypeVar("Host", str, tuple[str, str])
"""Name of a host; over a fleet, after that of its cluster."""


@dataclass(frozen=True)
class HostDraw(Generic[Host]):
    """Hosts of one run and its `deaths` failures, each by chance on a host with its share. Of one run, a single
    failure."""

    deaths: int
    shares: Mapping[Host, float]
    """Share of the hosts' time up, by host: 0 to 1, together 1."""
    died: frozenset[Host]
    """Hosts on which it failed."""
    rank_0: Host | None = None
    """First host by name among these if it is the first of all, where rank 0 usually is; None if hardware failed there.
    Code that fails at rank 0 looks the same."""

    def chance(self, host: Host) -> float:
        """Return the probability of at least one failure on a host: 1 - (1 - share)^deaths."""
        share = self.shares.get(host, 0.0)
        return 1.0 if share >= 1 else -math.expm1(self.deaths * math.log1p(-share))


@dataclass(frozen=True)
class HostRepeat(Generic[Host]):
    """A host, and the failures on it compared with chance: runs that failed, or failures of one run."""

    host: Host
    runs: int
    """Runs that failed on it."""
    of: int
    """Runs that failed on any host."""
    expected: float
    """Expected number by chance."""
    hosts: int
    """Number of hosts with time up."""
    p: float
    """Probability of this number or more by chance, over all hosts (Holm)."""
    named: bool
    """True if neither chance nor code that fails at rank 0 is a likely explanation."""
    as_rank_0: int
    """Number of these runs in which it was the first of all hosts, as rank 0 is."""


def of_a_host(code: str) -> bool:
    """Return True if a host can be the reason for a cause."""
    return group_of(code) in _GROUPS or code in _CODES


def of_hardware(code: str) -> bool:
    """Return True if only a machine can be the reason for a cause, and not code at some rank."""
    return group_of(code) == _HARDWARE


def tails(chances: Sequence[float]) -> F64:
    """Return P(X >= k), float64[n + 1], for the number X of n independent events that occur.

    This is the Poisson-binomial distribution, event by event (Hong 2013, *On computing the distribution function for
    the Poisson binomial distribution*). It uses only sums and products of non-negative numbers, so that the far tail
    loses no digits.
    """
    exactly = np.zeros(len(chances) + 1)
    exactly[0] = 1.0
    for seen, chance in enumerate(chances, 1):
        happened = exactly[:seen] * chance
        exactly[:seen] *= 1 - chance
        exactly[1 : seen + 1] += happened
    return np.minimum(np.cumsum(exactly[::-1])[::-1], 1.0)


def holm(values: Sequence[float], questions: int) -> list[float]:
    """Return the p-values of some of many questions, adjusted for the number of all (Holm 1979), in the order given.
    Those of all others are 1."""
    adjusted, highest = [1.0] * len(values), 0.0
    for rank, at in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (questions - rank) * values[at]))
        adjusted[at] = highest
    return adjusted


def repeats(draws: Iterable[HostDraw[Host]], hosts: int) -> list[HostRepeat[Host]]:
    """Return all hosts on which any run failed, the least likely by chance first. hosts: number of hosts that were up,
    over all runs."""
    runs = [one for one in draws if one.deaths]
    inside = _by_host(runs)
    names = sorted({host for one in runs for host in one.died})
    p = holm([_chance_probability(host, inside[host]) for host in names], hosts)
    not_rank_0 = [[one for one in inside[host] if one.rank_0 != host] for host in names]
    apart = holm([_chance_probability(host, some) for host, some in zip(names, not_rank_0, strict=True)], hosts)
    found = []
    for at, host in enumerate(names):
        died, others = (sum(host in one.died for one in some) for some in (inside[host], not_rank_0[at]))
        expected = math.fsum(one.chance(host) for one in inside[host])
        named = others >= LEAST and p[at] < LEVEL and apart[at] < LEVEL
        found.append(HostRepeat(host, died, len(runs), expected, hosts, p[at], named, died - others))
    return sorted(found, key=lambda one: (not one.named, one.p, one.host))


def least_seen(draws: Iterable[HostDraw[Host]], hosts: int) -> int | None:
    """Return the minimum number of failed runs for which a host would be named: that of the host that needs fewest.
    None if no host was in enough runs."""
    inside = _by_host([one for one in draws if one.deaths])
    unlike = {tuple(sorted(one.chance(host) for one in some)) for host, some in inside.items() if len(some) >= LEAST}
    enough = (np.flatnonzero(hosts * tails(chances)[LEAST:] < LEVEL) for chances in unlike)
    return min((LEAST + int(counts[0]) for counts in enough if len(counts)), default=None)


def _by_host(draws: Sequence[HostDraw[Host]]) -> Mapping[Host, list[HostDraw[Host]]]:
    """Return the runs of each host."""
    inside: defaultdict[Host, list[HostDraw[Host]]] = defaultdict(list)
    for one in draws:
        for host in one.shares:
            inside[host].append(one)
    return inside


def _chance_probability(host: Host, inside: Sequence[HostDraw[Host]]) -> float:
    """Return the probability by chance of this number of failures or more in the runs of a host."""
    return float(tails([one.chance(host) for one in inside])[sum(host in one.died for one in inside)])


def first_by_name(hosts: Iterable[Host], name: Callable[[Host], str]) -> Host:
    """Return the first host by name, with numbers by value: launchers put rank 0 there."""
    return min(hosts, key=lambda host: _by_number(name(host)))


def _by_number(host: str) -> list[tuple[int, str]]:
    """Return a sort key that puts `node-9` before `node-10`."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", host)]


@dataclass(frozen=True)
class HostDeath:
    """A failure of a job on one of its hosts."""

    attempt: int
    """Index of the failed attempt."""
    at_ns: int
    host: str
    """Name of the host as listed."""


class HostsOfJob:
    """Hosts of one job, and its failures on them for causes that a host can have."""

    def __init__(self, timeline: Timeline, attempts: Iterable[int]) -> None:
        """Collect the failures. attempts: those whose failures count."""
        self._why = timeline.causes.why
        self._listed = timeline.causes.hosts
        self._up = np.maximum(timeline.sign_of_life - timeline.attempts.up, 0).tolist()
        self.deaths = [
            HostDeath(at, int(timeline.sign_of_life[at]), name)
            for at in (attempts if self.all_listed else ())
            if of_a_host(self._why[at].code)
            and (name := listed_name(self._why[at].host, sorted(self._listed[at]))) is not None
        ]

    @property
    def all_listed(self) -> bool:
        """Return True if all hosts of every attempt are listed."""
        return bool(self._listed) and all(
            bool(hosts) or not up for up, hosts in zip(self._up, self._listed, strict=True)
        )

    def repeating(self) -> list[HostRepeat[str]]:
        """Return the hosts with more failures than chance explains.

        Each failure is equally likely on any host of its attempt. Several within 10 minutes on one host are one failure
        and many starts.
        """
        draws, last = [], dict[str, int]()
        for one in sorted(self.deaths, key=lambda death: death.at_ns):
            if one.host not in last or one.at_ns - last[one.host] > AGAIN_NS:
                hosts = self._listed[one.attempt]
                draws.append(HostDraw(1, dict.fromkeys(hosts, 1 / len(hosts)), frozenset({one.host})))
            last[one.host] = one.at_ns
        return [one for one in repeats(draws, len(set(chain(*self._listed)))) if one.named]

    def is_separable(self, host: str) -> bool:
        """Return True if the log separates the host from the ranks that ran on it.

        One of these is enough: two failures with a logged hardware cause, failures only with the host and not without
        it, or ranks that moved.
        """
        own = self.attempts_on(host)
        confirmed = sum(self._why[at].certainty == CONFIRMED and of_hardware(self._why[at].code) for at in own)
        return confirmed > 1 or self._followed(host, own) or self._moved(host, own)

    def _followed(self, host: str, own: Sequence[int]) -> bool:
        """Return True if the job ran without the host for as long as usually with it, without a failure that a host can
        cause."""
        without = [at for at, hosts in enumerate(self._listed) if hosts and host not in hosts]
        died = {one.attempt for one in self.deaths}
        usual = float(np.median([self._up[at] for at in own]))
        return not died.intersection(without) and sum(self._up[at] for at in without) >= max(usual, 1)

    def _moved(self, host: str, own: Sequence[int]) -> bool:
        """Return True if the failures were at several positions among the hosts; by rank, if ranks are logged."""
        ranks = {self._why[at].rank for at in own}
        said = [rank for rank in ranks if rank is not None]
        if said and max(said) - min(said) >= _RANKS_OF_A_HOST:
            return True
        places = {sorted(self._listed[at], key=_by_number).index(host) for at in own}
        return len(places) > 1 and not (None not in ranks and len(ranks) == 1)

    def rank_on(self, host: str) -> int | None:
        """Return the rank of all failures on a host; None if several or none are logged."""
        ranks = {self._why[at].rank for at in self.attempts_on(host)}
        return ranks.pop() if len(ranks) == 1 else None

    def attempts_on(self, host: str) -> list[int]:
        """Return the attempts that failed on a host, in their order."""
        return [one.attempt for one in self.deaths if one.host == host]


def listed_name(host: str, listed: Iterable[str]) -> str | None:
    """Return the listed name of a host: lines contain its full or its short name."""
    return next((name for name in listed if same_host(name, host)), None)
