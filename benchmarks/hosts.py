"""`python -m benchmarks.hosts`: hosts that fleets name. Fleets whose hosts are all alike, and fleets with a bad one.

Prints the percentage of fleets of each kind that name a host: a healthy one must be named in at most one percent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from goodput_cli.analysis.insights.hosts import HostDraw, first_by_name, repeats
from goodput_cli.arrays import F64

FLEETS = 100
Place = Callable[[np.random.Generator, list[str], F64], str]
"""Host on which a run dies. Arguments: its hosts, by name, and how often each breaks."""


@dataclass(frozen=True)
class FleetOfRuns:
    """A fleet: `runs` of `size` hosts each, of a cluster of `hosts`."""

    runs: int = 9
    hosts: int = 200
    size: int = 16
    deaths: float = 1.5
    """Mean number of deaths per run."""
    bad: float = 1.0
    """Failure rate of one host as a multiple of that of the others."""


def anywhere(random: np.random.Generator, hosts: list[str], often: F64) -> str:
    """Return any host, each in proportion to its failure rate."""
    return hosts[random.choice(len(hosts), p=often / often.sum())]


def first(random: np.random.Generator, hosts: list[str], often: F64) -> str:  # noqa: ARG001 - see `Place`
    """Return rank 0's host, which is the first one by name for launchers."""
    return first_by_name(hosts, str)


def draws_of(fleet: FleetOfRuns, place: Place, random: np.random.Generator, shuffled: bool) -> list[HostDraw[str]]:
    """Return the host of each death in the runs of a fleet. shuffled: True if rank 0 is on any of a run's hosts, the
    same in all its attempts; then `place` is called once per run."""
    names, found = [f"node-{number}" for number in range(fleet.hosts)], []
    bad = int(random.integers(fleet.hosts))
    for _ in range(fleet.runs):
        chosen = np.sort(random.choice(fleet.hosts, fleet.size, replace=False))
        hosts, often = [names[at] for at in chosen], np.where(chosen == bad, fleet.bad, 1.0)
        deaths = int(random.poisson(fleet.deaths * often.mean()))
        once = place(random, hosts, often)
        died = [once if shuffled else place(random, hosts, often) for _ in range(deaths)]
        rank_0 = first_by_name(hosts, str)
        found.append(HostDraw(deaths, dict.fromkeys(hosts, 1 / fleet.size), frozenset(died), rank_0))
    return found


def naming(fleet: FleetOfRuns, place: Place, shuffled: bool = False, fleets: int = FLEETS, seed: int = 1) -> int:
    """Return how many of some fleets name a host."""
    random = np.random.default_rng(seed)
    return sum(
        any(one.named for one in repeats(draws_of(fleet, place, random, shuffled), fleet.hosts)) for _ in range(fleets)
    )


def main() -> None:
    """Print both tables."""
    kinds: tuple[tuple[str, Place, bool], ...] = (
        ("any host", anywhere, False),
        ("rank 0, on any host", anywhere, True),
        ("rank 0, first", first, False),
    )
    print("healthy: fleets in 100 that name a host")
    print(f"{'runs':>6}{'hosts':>7}{'of 1 run':>10}", *(f"{name:>22}" for name, _, _ in kinds))
    for runs, hosts, size in ((9, 200, 16), (9, 32, 16), (30, 64, 8), (100, 64, 8), (100, 1000, 64)):
        fleet = FleetOfRuns(runs, hosts, size)
        print(
            f"{runs:>6}{hosts:>7}{size:>10}", *(f"{naming(fleet, place, shuffled):>22}" for _, place, shuffled in kinds)
        )
    print("one bad host: fleets in 100 that name a host, by how much more often it breaks")
    print(f"{'runs':>6}{'hosts':>7}{'of 1 run':>10}", *(f"{factor:>6} x" for factor in (10, 20, 50)))
    for runs, hosts, size in ((25, 200, 16), (50, 200, 16), (100, 200, 16), (200, 200, 16)):
        fleet = FleetOfRuns(runs, hosts, size, deaths=1.0)
        named = [naming(replace(fleet, bad=factor), anywhere) for factor in (10.0, 20.0, 50.0)]
        print(f"{runs:>6}{hosts:>7}{size:>10}", *(f"{one:>8}" for one in named))


if __name__ == "__main__":
    main()
