"""Nodes of an outage (accounting §10, Links): nodes that left, joined or were on standby, and clocks that are wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.signs import Cycle, RecoveryEvent, RecoveryPhase
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import NS_PER_SECOND


@dataclass(frozen=True)
class Nodes:
    """Nodes of the cycles before and after an outage."""

    left: tuple[str, ...]
    """Nodes that trained before, but not after."""
    came: tuple[str, ...]
    """Nodes that trained after, but not before."""
    stood_by: tuple[str, ...]
    """Standby nodes at the begin of the outage."""
    standby: tuple[str, ...]
    """Standby nodes after the outage."""

    @property
    def used(self) -> tuple[str, ...]:
        """Return the standby nodes that joined."""
        return tuple(one for one in self.came if one in self.stood_by)

    @property
    def words(self) -> str:
        """Return `node-03 left, node-05 joined, 1 standby node`."""
        parts = [f"{_nodes_text(some)} {what}" for some, what in ((self.left, "left"), (self.came, "joined")) if some]
        return ", ".join([*parts, _standby_nodes(len(self.standby))])

    @property
    def standby_text(self) -> str:
        """Return `2 standby nodes, 1 used`, or `no standby node`."""
        if not self.stood_by:
            return _standby_nodes(0)
        return f"{_standby_nodes(len(self.stood_by))}, {len(self.used) or 'none'} used"


_MOST_NAMED = 3


def _standby_nodes(count: int) -> str:
    return plural(count, "standby node") if count else "no standby node"


def _nodes_text(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _MOST_NAMED else f"{len(nodes)} nodes"


def cycles_of_job(timeline: Timeline) -> list[Cycle]:
    """Return the cycles of the job, in order of time."""
    table = timeline.table
    job = table.jobs[int(table.job[0])]
    return [one for one in table.observed.cycles if one.job in ("", job)]


def nodes_of(cycles: Sequence[Cycle], start: int, end: int) -> Nodes | None:
    """Return the nodes of an outage from `start` to `end` (ns). None if neither a cycle before it nor one that began in
    it lists any."""
    place = bisect_right([one.begin for one in cycles], start)
    behind = [one for one in cycles[place:] if one.begin <= end]
    if place == 0 or not behind:
        return None
    old, new = cycles[place - 1], behind[-1]
    left = tuple(one for one in old.active if one not in new.active)
    came = tuple(one for one in new.active if one not in old.active)
    return Nodes(left, came, old.standby, new.standby)


def standby_ns(timeline: Timeline) -> int | None:
    """Return the time (ns, summed over nodes) on standby in the job; None if no cycle lists it."""
    cycles = cycles_of_job(timeline)
    if not cycles:
        return None
    ends = [*(one.begin for one in cycles[1:]), timeline.end]
    total = 0
    for one, following in zip(cycles, ends, strict=True):
        end = min(following if one.end is None else min(one.end, following), timeline.end)
        total += len(one.standby) * max(end - max(one.begin, timeline.start), 0)
    return total


_LEAST_HOSTS, _LEAST_POINTS = 3, 3
_APART_NS = NS_PER_SECOND
"""Smaller differences of clocks are not reported."""


def clocks_apart(signs: Iterable[Sequence[RecoveryEvent]]) -> dict[str, int]:
    """Return, by host, how much (ns) its clock is ahead of the others', if it is a second or more at every point and
    nearly constant. signs: of each outage. A host that is late by chance is not late at every point."""
    apart: defaultdict[str, list[int]] = defaultdict(list)
    for some in signs:
        points: defaultdict[RecoveryPhase, dict[str, int]] = defaultdict(dict)
        for one in some:
            if one.host:
                points[one.point].setdefault(one.host, one.time)
        for times in points.values():
            if len(times) >= _LEAST_HOSTS:
                usual = int(median_low(times.values()))
                for host, time in times.items():
                    apart[host].append(time - usual)
    found = {}
    for host, by in apart.items():
        low, high = min(by), max(by)
        if len(by) >= _LEAST_POINTS and high - low <= _APART_NS and (low >= _APART_NS or high <= -_APART_NS):
            found[host] = int(median_low(by))
    return found
