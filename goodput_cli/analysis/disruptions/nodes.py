"""Nodes of an outage (accounting §10, Links): who left, who came, who stood by, and whose clock is wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.signs import Cycle, Point, Sign
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import NS_PER_SECOND


@dataclass(frozen=True)
class Nodes:
    """The nodes of the cycles before and behind an outage."""

    left: tuple[str, ...]
    """That trained before, and no longer behind."""
    came: tuple[str, ...]
    """The other way round."""
    stood_by: tuple[str, ...]
    """That waited to stand in when it began."""
    standby: tuple[str, ...]
    """That do so behind it."""

    @property
    def used(self) -> tuple[str, ...]:
        """Those that stood by and came."""
        return tuple(one for one in self.came if one in self.stood_by)

    @property
    def words(self) -> str:
        """`node-03 left, node-05 joined, 1 standby node`"""
        parts = [f"{_named(some)} {what}" for some, what in ((self.left, "left"), (self.came, "joined")) if some]
        return ", ".join([*parts, _standby_nodes(len(self.standby))])

    @property
    def standby_text(self) -> str:
        """`2 standby nodes, 1 used`, or `no standby node`"""
        if not self.stood_by:
            return _standby_nodes(0)
        return f"{_standby_nodes(len(self.stood_by))}, {len(self.used) or 'none'} used"


_MOST_NAMED = 3


def _standby_nodes(count: int) -> str:
    return plural(count, "standby node") if count else "no standby node"


def _named(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _MOST_NAMED else f"{len(nodes)} nodes"


def cycles_of_job(timeline: Timeline) -> list[Cycle]:
    """The cycles of the job, in order of time."""
    table = timeline.table
    job = table.jobs[int(table.job[0])]
    return [one for one in table.observed.cycles if one.job in ("", job)]


def nodes_of(cycles: Sequence[Cycle], start: int, end: int) -> Nodes | None:
    """The nodes of an outage from `start` to `end` (ns); None where no cycle before it or none that began in it says
    any."""
    place = bisect_right([one.begin for one in cycles], start)
    behind = [one for one in cycles[place:] if one.begin <= end]
    if place == 0 or not behind:
        return None
    old, new = cycles[place - 1], behind[-1]
    left = tuple(one for one in old.active if one not in new.active)
    came = tuple(one for one in new.active if one not in old.active)
    return Nodes(left, came, old.standby, new.standby)


def standby_ns(timeline: Timeline) -> int | None:
    """Time (ns, of one node each) that nodes stood by in the job; None where no cycle says it."""
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
"""Clocks that differ by less are no news."""


def clocks_apart(signs: Iterable[Sequence[Sign]]) -> dict[str, int]:
    """By host, by how much (ns) its clock is ahead of the others', where it is a second and more at every point, and
    nearly the same at each. signs: of each outage. Who is late by chance is not late at every point."""
    apart: defaultdict[str, list[int]] = defaultdict(list)
    for some in signs:
        points: defaultdict[Point, dict[str, int]] = defaultdict(dict)
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
