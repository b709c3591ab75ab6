"""Hosts that repeat: each host's time up over all runs, and what died on it (docs/causes.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from goodput_cli.analysis.insights.hosts import AGAIN_NS, listed_name, of_a_host, repeating
from goodput_cli.analysis.written import Count, Json, written
from goodput_cli.events.observations import TOLERANCE_NS
from goodput_cli.fleet.allocations import Allocation
from goodput_cli.fleet.results import RunDisruption, RunResult
from goodput_cli.fleet.rows import HostRow, run_name

HostKey = tuple[str, str]
"""Cluster, empty where nobody says it, and host: clusters may name their hosts alike."""


@dataclass(frozen=True)
class HostDeath:
    """A death that may be of its host."""

    at_ns: int
    host: HostKey
    cause: str
    run: str


@written(
    "fleet_host_test",
    "what hosts that repeat were looked for in",
    keys="runs other_runs hosts deaths elsewhere judged",
)
@dataclass(frozen=True)
class HostTest:
    """What hosts that repeat were looked for in."""

    runs: Count
    """runs of which all hosts are listed: only they count"""
    other_runs: Count
    """all others"""
    hosts: Count
    """hosts with time up"""
    deaths: Count
    """failures that may be of their host, on hosts that lines name; within 10 minutes on one host they are one"""
    elsewhere: Annotated[Count, Json(key="deaths_elsewhere")]
    """such failures of other runs, or on no host that a line names"""

    @property
    def judged(self) -> bool:
        """whether anything could be judged: false where no run lists its hosts"""
        return self.runs > 0


@dataclass
class HostSums:
    """Hosts' time up over all runs, and what died on them: of runs of which all hosts are listed, and of no other."""

    up: Counter[HostKey] = field(default_factory=Counter)
    """ns."""
    deaths: list[HostDeath] = field(default_factory=list)
    runs: int = 0
    """Those of which all hosts are listed."""
    elsewhere: int = 0
    """Deaths that may be of their host in other runs, or on no host that a line names."""

    def add(
        self, result: RunResult, failed: Sequence[RunDisruption], allocations: Sequence[Allocation], cluster: str,
        window: tuple[int, int],
    ) -> None:  # fmt: skip
        """Add a run. failed: its failures in the window (ns). allocations: what was held for it, of which cluster."""
        by_host = _time_up(result, allocations, *window)
        up = {(cluster, host): ns for host, ns in by_host.items()}
        self.up.update(up)
        self.runs += bool(up)
        for one in failed:
            if of_a_host(one.cause):
                host = cluster, listed_name(one.host, list(by_host)) or one.host
                if host in up:
                    self.deaths.append(HostDeath(one.at_ns, host, one.cause, run_name(result)))
                else:
                    self.elsewhere += 1

    def answer(self, runs: int) -> tuple[tuple[HostRow, ...], HostTest]:
        """The hosts that repeat over so many runs, the least likely by chance first, and what they were looked for
        in. Deaths within 10 minutes on one host are one, of whichever jobs, and the first of them stands for it."""
        found: dict[HostKey, list[HostDeath]] = {}
        last: dict[HostKey, int] = {}
        for one in sorted(self.deaths, key=lambda death: (death.at_ns, death.host, death.run)):
            if one.host not in last or one.at_ns - last[one.host] > AGAIN_NS:
                found.setdefault(one.host, []).append(one)
            last[one.host] = one.at_ns
        rows = tuple(
            HostRow(
                one.host[1], one.host[0] or None, one.deaths, one.of, self.up[one.host],
                100 * self.up[one.host] / self.up.total(), one.p,
                ", ".join(sorted({death.cause for death in found[one.host]})),
                ", ".join(sorted({death.run for death in found[one.host]})),
            )
            for one in repeating({host: len(deaths) for host, deaths in found.items()}, self.up)
        )  # fmt: skip
        deaths = sum(map(len, found.values()))
        hosts = sum(ns > 0 for ns in self.up.values())
        return rows, HostTest(self.runs, runs - self.runs, hosts, deaths, self.elsewhere)


def _time_up(result: RunResult, allocations: Sequence[Allocation], start: int, end: int) -> Counter[str]:
    """Time up (ns) of each host of a run in [start, end): by what its log says of each attempt, else by the allocations
    that the attempt began in. Nothing where not all of its hosts are listed."""
    found: Counter[str] = Counter()
    places = result.listed.tolist() or [-1] * len(result.up[0])
    for began, ended, place in zip(*(one.tolist() for one in result.up), places, strict=True):
        ns = min(ended, end) - max(began, start)
        if ns <= 0:
            continue
        held = [one.hosts for one in allocations if one.start - TOLERANCE_NS <= began < one.end]
        of_allocations = {host for one in held for host in one} if all(held) else set()
        hosts = result.hosts[place].split(",") if place >= 0 else sorted(of_allocations)
        if not hosts:
            return Counter()
        for host in hosts:
            found[host] += ns
    return found
