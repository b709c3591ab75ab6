"""Hosts that repeat over a fleet (docs/causes.md): in how many runs, by what chance, and the sentences about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from goodput_cli.analysis.insights.hosts import (
    AGAIN_NS,
    LEVEL,
    HostDraw,
    first_by_name,
    least_seen,
    of_a_host,
    of_hardware,
    repeats,
)
from goodput_cli.analysis.json_fields import Count, Json, written
from goodput_cli.analysis.table import filled
from goodput_cli.arrays import group_by_key
from goodput_cli.fleet.rows import FleetHostRow, run_name
from goodput_cli.vocabulary.text import plural

if TYPE_CHECKING:
    from goodput_cli.fleet.aggregate import Failure, Fleet, HostKey

_FEW, _MOST_LISTED = 3, 10
"""Number of hosts named in sentences, and listed if chance may explain them."""


@written(
    "fleet_host_test",
    "the data in which repeat hosts were searched",
    keys="runs other_runs hosts deaths elsewhere judged runs_died least_seen",
)
@dataclass(frozen=True)
class HostTest:
    """Data of the search for hosts that repeat."""

    runs: Count
    """runs whose hosts are all listed: only they count"""
    other_runs: Count
    """all others"""
    hosts: Count
    """hosts with time up"""
    deaths: Count
    """failures that may be of their host, on hosts that lines name; within 10 minutes on one host they are one"""
    elsewhere: Annotated[Count, Json(key="deaths_elsewhere")]
    """such failures of other runs, or on no host that a line names"""
    runs_died: Annotated[Count, Json(optional=True)]
    """runs that died on hosts that lines name: what is counted"""
    least_seen: Annotated[Count | None, Json(optional=True)]
    """of how many of these, at least, one host would be named; null where no host was in enough of them"""

    @property
    def judged(self) -> bool:
        """whether anything could be judged: false where no run lists its hosts"""
        return self.runs > 0


def host_rows(fleet: Fleet) -> tuple[tuple[FleetHostRow, ...], tuple[FleetHostRow, ...], HostTest]:
    """Return the hosts that repeat over all runs, the least likely by chance first; the first of those with failures of
    two runs or more that chance may explain; and the data of the search. Failures within 10 minutes on one host are
    one, of whichever jobs, and the first stands for it."""
    deaths, up = [one for one in fleet.failures if of_a_host(one.cause)], fleet.hosts_up
    found: dict[HostKey, list[Failure]] = {}
    last: dict[HostKey, int] = {}
    for one in sorted(deaths, key=lambda death: (death.at_ns, death.host or ("", ""), run_name(death.run))):
        if one.host is not None:
            if one.host not in last or one.at_ns - last[one.host] > AGAIN_NS:
                found.setdefault(one.host, []).append(one)
            last[one.host] = one.at_ns
    draws, hosts = _host_draws(chain.from_iterable(found.values())), sum(ns > 0 for ns in up.values())
    tested = repeats(draws, hosts)
    rows = [
        filled(
            FleetHostRow, one, host=one.host[1], cluster=one.host[0] or None, up_ns=up[one.host],
            share_percent=100 * up[one.host] / up.total(), deaths=len(found[one.host]), runs_died=one.runs,
            of=sum(map(len, found.values())),
            causes=", ".join(sorted({death.cause for death in found[one.host]})),
            runs=", ".join(sorted({run_name(death.run) for death in found[one.host]})),
        )
        for one in tested if one.named or one.runs > 1
    ]  # fmt: skip
    named = sum(one.named for one in tested)
    return tuple(rows[:named]), tuple(rows[named : named + _MOST_LISTED]), HostTest(
        runs=fleet.runs_with_hosts,
        other_runs=fleet.total.runs - fleet.runs_with_hosts,
        hosts=hosts,
        deaths=sum(map(len, found.values())),
        elsewhere=sum(one.host is None for one in deaths),
        runs_died=len(draws),
        least_seen=least_seen(draws, hosts),
    )  # fmt: skip


def _host_draws(deaths: Iterable[Failure]) -> list[HostDraw[HostKey]]:
    """Return where each run failed. deaths: those that count, each on a listed host."""
    of_run = group_by_key((run_name(one.run), one) for one in deaths)
    return [_host_draw(some) for some in of_run.values()]


def _host_draw(deaths: Sequence[Failure]) -> HostDraw[HostKey]:
    """Return where one run failed."""
    up = deaths[0].hosts_up
    total, died = sum(up.values()), frozenset(one.host for one in deaths if one.host is not None)
    first = first_by_name(up, lambda key: key[1])
    broken = any(one.host == first and of_hardware(one.cause) for one in deaths)
    return HostDraw(len(deaths), {host: ns / total for host, ns in up.items()}, died, None if broken else first)


def hosts_that_repeat(hosts: Sequence[FleetHostRow], test: HostTest) -> Iterator[str]:
    """A sentence for each of the first hosts on which more runs died than chance explains."""
    for one in hosts[:_FEW]:
        yield f"{_of_runs(one, test)} failed on {_host_text(one)} (p = {one.p:.2g}): drain and test this host"


def hosts_judged(hosts: Sequence[FleetHostRow], not_named: Sequence[FleetHostRow], test: HostTest) -> Iterator[str]:
    """Yield the sentences about hosts that repeat: which ones, or that there are none, or that it is unknown."""
    if not test.judged:
        yield "hosts with repeated failures: inconclusive, no run lists all of its hosts (sacct's NodeList does)"
        return
    deaths = f"{plural(test.deaths, 'failure')} of {plural(test.runs_died, 'run')}"
    of = f"{deaths} that a host can cause, on {plural(test.hosts, 'host')}"
    left_out = f"; {plural(test.other_runs, 'run')} not included (hosts not listed)" if test.other_runs else ""
    if hosts:
        yield f"{of}{left_out}; p: probability by chance, over all hosts"
    else:
        yield f"no host has more failures than chance or rank 0 explains: {of}{left_out}"
    if test.least_seen is not None:
        yield f"smallest detectable number: {test.least_seen} of {plural(test.runs_died, 'run')} on one host"
    elif test.deaths:
        yield "too few runs failed to distinguish a bad host from chance"
    yield from _not_named(not_named, test)


def _not_named(hosts: Sequence[FleetHostRow], test: HostTest) -> Iterator[str]:
    """Hosts that are listed, not accused."""
    for one in hosts[:_FEW]:
        why = f"within chance (p = {one.p:.2g})"
        if one.as_rank_0 and one.p < LEVEL:
            why = f"in {one.as_rank_0} of them it was the first host, like that of rank 0: the cause may be the rank"
        yield f"not conclusive: {_of_runs(one, test)} failed on {_host_text(one)}; {why}"


def _of_runs(row: FleetHostRow, test: HostTest) -> str:
    return f"{row.runs_died} of {plural(test.runs_died, 'run')}"


def _host_text(row: FleetHostRow) -> str:
    return row.host + (f" of {row.cluster}" if row.cluster else "")
