"""Hosts on which runs die again and again (docs/causes.md): counted, and held against chance with an exact test."""

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
from goodput_cli.vocabulary.causes import CONFIRMED, group_of

LEAST = 3
"""Fewer runs that died on a host (of one run: fewer deaths) are no repetition."""
LEVEL = 0.01
"""A host repeats where chance would make it so in less than this share of all cases, over all hosts."""
_HARDWARE = "hardware"
_GROUPS = frozenset({_HARDWARE, "network"})
_CODES = frozenset({"host_oom", "native_crash", "device_error", "not_finite", "storage_error", "killed"})
AGAIN_NS = 600 * 10**9
"""Deaths on one host so shortly after one another are one failure and many starts."""
_RANKS_OF_A_HOST = 16
"""Ranks so far apart were never of one place among the hosts: no host has more accelerators."""


Host = TypeVar("Host", str, tuple[str, str])
"""The name of a host; over a fleet, behind that of its cluster."""


@dataclass(frozen=True)
class HostDraw(Generic[Host]):
    """Where one run died: `deaths` times on one of its hosts, by chance on each with its share. Of one run, a death."""

    deaths: int
    shares: Mapping[Host, float]
    """Of each of its hosts, the share of their time up: 0 to 1, together 1."""
    died: frozenset[Host]
    """The hosts on which it died."""
    rank_0: Host | None = None
    """The host of these that is the first of all by name, where rank 0 usually is, unless hardware failed there: code
    that dies at rank 0 looks the same."""

    def chance(self, host: Host) -> float:
        """How likely it died on a host at least once: 1 - (1 - share)^deaths."""
        share = self.shares.get(host, 0.0)
        return 1.0 if share >= 1 else -math.expm1(self.deaths * math.log1p(-share))


@dataclass(frozen=True)
class HostRepeat(Generic[Host]):
    """A host, and how the runs that died on it compare with chance. Of one run: its deaths."""

    host: Host
    runs: int
    """Runs that died on it."""
    of: int
    """Runs that died on any host."""
    expected: float
    """How many would have died on it by chance."""
    hosts: int
    """All hosts with time up."""
    p: float
    """How likely chance makes it so many or more, over all hosts (Holm)."""
    named: bool
    """Whether that is so unlikely that chance is not it, and code that dies at rank 0 is not it either."""
    as_rank_0: int
    """In how many of these runs it was the first of all hosts, as rank 0 is."""


def of_a_host(code: str) -> bool:
    """Whether a cause is one that a host can have."""
    return group_of(code) in _GROUPS or code in _CODES


def of_hardware(code: str) -> bool:
    """Whether a cause is one that only a machine can have, whatever the code does at some rank."""
    return group_of(code) == _HARDWARE


def tails(chances: Sequence[float]) -> F64:
    """P(X >= k), float64[n + 1], of how many of n independent events happen: the Poisson-binomial distribution, event
    by event (Hong 2013, *On computing the distribution function for the Poisson binomial distribution*). Only sums and
    products of what is not negative: no digit is lost far out."""
    exactly = np.zeros(len(chances) + 1)
    exactly[0] = 1.0
    for seen, chance in enumerate(chances, 1):
        happened = exactly[:seen] * chance
        exactly[:seen] *= 1 - chance
        exactly[1 : seen + 1] += happened
    return np.minimum(np.cumsum(exactly[::-1])[::-1], 1.0)


def holm(values: Sequence[float], questions: int) -> list[float]:
    """Probabilities of some of many questions, adjusted for the number of all (Holm 1979), in the order given; those
    of all others are 1."""
    adjusted, highest = [1.0] * len(values), 0.0
    for rank, at in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (questions - rank) * values[at]))
        adjusted[at] = highest
    return adjusted


def repeats(draws: Iterable[HostDraw[Host]], hosts: int) -> list[HostRepeat[Host]]:
    """All hosts on which any run died, the least likely by chance first. hosts: how many were up, over all runs."""
    runs = [one for one in draws if one.deaths]
    inside = _by_host(runs)
    names = sorted({host for one in runs for host in one.died})
    p = holm([_alone(host, inside[host]) for host in names], hosts)
    not_rank_0 = [[one for one in inside[host] if one.rank_0 != host] for host in names]
    apart = holm([_alone(host, some) for host, some in zip(names, not_rank_0, strict=True)], hosts)
    found = []
    for at, host in enumerate(names):
        died, others = (sum(host in one.died for one in some) for some in (inside[host], not_rank_0[at]))
        expected = math.fsum(one.chance(host) for one in inside[host])
        named = others >= LEAST and p[at] < LEVEL and apart[at] < LEVEL
        found.append(HostRepeat(host, died, len(runs), expected, hosts, p[at], named, died - others))
    return sorted(found, key=lambda one: (not one.named, one.p, one.host))


def least_seen(draws: Iterable[HostDraw[Host]], hosts: int) -> int | None:
    """Of how many runs that died on it, at least, a host would be named: that of the host of which it takes fewest.
    None where no host was in enough of them."""
    inside = _by_host([one for one in draws if one.deaths])
    unlike = {tuple(sorted(one.chance(host) for one in some)) for host, some in inside.items() if len(some) >= LEAST}
    enough = (np.flatnonzero(hosts * tails(chances)[LEAST:] < LEVEL) for chances in unlike)
    return min((LEAST + int(counts[0]) for counts in enough if len(counts)), default=None)


def _by_host(draws: Sequence[HostDraw[Host]]) -> Mapping[Host, list[HostDraw[Host]]]:
    """The runs that each host was in."""
    inside: defaultdict[Host, list[HostDraw[Host]]] = defaultdict(list)
    for one in draws:
        for host in one.shares:
            inside[host].append(one)
    return inside


def _alone(host: Host, inside: Sequence[HostDraw[Host]]) -> float:
    """How likely by chance so many or more of the runs that a host was in died on it."""
    return float(tails([one.chance(host) for one in inside])[sum(host in one.died for one in inside)])


def first_by_name(hosts: Iterable[Host], name: Callable[[Host], str]) -> Host:
    """The first of some hosts by their names, numbers by their value: where launchers put rank 0."""
    return min(hosts, key=lambda host: _by_number(name(host)))


def _by_number(host: str) -> list[tuple[int, str]]:
    """`node-9` before `node-10`."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", host)]


@dataclass(frozen=True)
class HostDeath:
    """A death of a job on one of its hosts."""

    attempt: int
    """Which attempt died."""
    at_ns: int
    host: str
    """As it is listed."""


class HostsOfJob:
    """The hosts of one job, and its deaths on them for causes that a host can have."""

    def __init__(self, timeline: Timeline, attempts: Iterable[int]) -> None:
        """attempts: those whose deaths count."""
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
        """Whether all hosts of every attempt are listed."""
        return bool(self._listed) and all(
            bool(hosts) or not up for up, hosts in zip(self._up, self._listed, strict=True)
        )

    def repeating(self) -> list[HostRepeat[str]]:
        """Hosts on which more deaths are than chance explains: each death was on any host of its attempt alike. Several
        within 10 minutes on one host are one failure and many starts."""
        draws, last = [], dict[str, int]()
        for one in sorted(self.deaths, key=lambda death: death.at_ns):
            if one.host not in last or one.at_ns - last[one.host] > AGAIN_NS:
                hosts = self._listed[one.attempt]
                draws.append(HostDraw(1, dict.fromkeys(hosts, 1 / len(hosts)), frozenset({one.host})))
            last[one.host] = one.at_ns
        return [one for one in repeats(draws, len(set(chain(*self._listed)))) if one.named]

    def told_apart(self, host: str) -> bool:
        """Whether anything tells the host apart from the ranks that ran on it: two deaths of a cause in hardware that a
        line says, deaths that came with the host and not without it, or ranks that moved."""
        own = self.attempts_on(host)
        confirmed = sum(self._why[at].certainty == CONFIRMED and of_hardware(self._why[at].code) for at in own)
        return confirmed > 1 or self._followed(host, own) or self._moved(host, own)

    def _followed(self, host: str, own: Sequence[int]) -> bool:
        """Whether the job ran without the host as long as its usual life with it, and died of nothing a host can
        have."""
        without = [at for at, hosts in enumerate(self._listed) if hosts and host not in hosts]
        died = {one.attempt for one in self.deaths}
        usual = float(np.median([self._up[at] for at in own]))
        return not died.intersection(without) and sum(self._up[at] for at in without) >= max(usual, 1)

    def _moved(self, host: str, own: Sequence[int]) -> bool:
        """Whether the deaths were at several places among the hosts; by the ranks where lines say them."""
        ranks = {self._why[at].rank for at in own}
        said = [rank for rank in ranks if rank is not None]
        if said and max(said) - min(said) >= _RANKS_OF_A_HOST:
            return True
        places = {sorted(self._listed[at], key=_by_number).index(host) for at in own}
        return len(places) > 1 and not (None not in ranks and len(ranks) == 1)

    def rank_on(self, host: str) -> int | None:
        """The rank at which all deaths on a host were; None where lines say several or none."""
        ranks = {self._why[at].rank for at in self.attempts_on(host)}
        return ranks.pop() if len(ranks) == 1 else None

    def attempts_on(self, host: str) -> list[int]:
        """The attempts that died on a host, in their order."""
        return [one.attempt for one in self.deaths if one.host == host]


def listed_name(host: str, listed: Iterable[str]) -> str | None:
    """The name under which a host is listed: lines write it in full or in short."""
    return next((name for name in listed if same_host(name, host)), None)
