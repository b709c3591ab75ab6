"""Join the positions of ranks at the end of an attempt by process group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.arrays import I64
from goodput_cli.events.hangs.flight_recorder import Disagreement, Membership, RankFunction
from goodput_cli.events.hangs.hooks import HANG_RECORDS
from goodput_cli.events.hangs.positions import (
    DEFAULT_GROUP,
    LOCAL_GROUP,
    MOST_RANKS,
    GroupSize,
    Position,
    is_far,
    kind_of_group,
    may_be_of_pairs,
)
from goodput_cli.events.hangs.reports import RankReport, StragglerReport
from goodput_cli.events.schema import WORLD_SIZE, Kind
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE
from goodput_cli.vocabulary.when import NS_PER_MINUTE

WAITED = "collective_timeout"
"""Cause of attempts that ended in a wait."""
_Evidence = Position | RankReport | Membership | Disagreement
Member = int | str
"""A rank of the job, or a process whose rank is unknown."""
_LEAST_PAIRS = 2
"""Number of pairs of ranks that show how the ranks of a group are numbered."""
_NO_KIND = ("", "undefined")
"""Descriptions of groups that the program does not describe: they may differ in everything."""
_MOST_GROUPS, _MOST_MEMBERS = 4096, 8192
"""Maximum number of groups, and of members of a group whose ranks are worked out."""


@dataclass
class WaitGroup:
    """Positions of the members of a process group."""

    name: str
    about: str = ""
    positions: dict[Member, Position] = field(default_factory=dict)
    """The furthest wait of each member, otherwise its numbers."""
    pairs: dict[int, int] = field(default_factory=dict)
    """Global rank by rank in the group, as far as lines show both."""
    members: tuple[int, ...] = ()
    """All global ranks in the order of ranks in the group; empty if unknown."""
    step: int | None = None
    """Distance of neighbors in all other groups of its description; None if unknown."""
    size: int | None = None
    """Number of members, or the least that it can have."""
    size_is_known: bool = False
    is_mixed: bool = False
    """True if several groups have this name, or if its numbers contradict each other: positions are not compared."""
    is_queued: bool = False
    """True if members wait in several groups: their lines do not show in which of them they are, and what is queued
    behind it."""
    disagreement: tuple[int, dict[Member, object]] | None = None
    """The first number at which dumps have different operations or sizes, and those of each member."""
    usual: object = None
    """What all other groups of its description run at that number; None if unknown."""

    @property
    def label(self) -> str:
        """Return its description and name."""
        return self.about if self.about == DEFAULT_GROUP else f"{self.about} {self.name}".strip()

    @cached_property
    def waits(self) -> dict[Member, Position]:
        """Return the members that wait in it."""
        return {member: one for member, one in self.positions.items() if one.sequence is not None}

    def global_of(self, inside: int) -> int | None:
        """Return the global rank of a rank in the group; None if unknown. It is known, or a line through all known
        pairs gives it."""
        if self.members:
            return self.members[inside] if inside < len(self.members) else None
        if self.about == DEFAULT_GROUP:
            return inside
        if inside in self.pairs:
            return self.pairs[inside]
        if self.line is None:
            return None
        found = self.line[0] + self.line[1] * inside
        return found if found >= 0 else None

    @cached_property
    def line(self) -> tuple[int, int] | None:
        """Return a and b of `global = a + b * rank`, if that fits all known pairs; None otherwise."""
        if self.is_mixed or len(self.pairs) < _LEAST_PAIRS:
            pair = next(iter(self.pairs.items()), None)
            return None if self.is_mixed or self.step is None or pair is None else (
                pair[1] - self.step * pair[0], self.step,
            )  # fmt: skip
        (x0, y0), (x1, y1) = min(self.pairs.items()), max(self.pairs.items())
        slope, rest = divmod(y1 - y0, x1 - x0)
        fits = rest == 0 and slope > 0 and all(y == y0 + slope * (x - x0) for x, y in self.pairs.items())
        return (y0 - slope * x0, slope) if fits else None

    @cached_property
    def known_members(self) -> frozenset[int]:
        """Return the known global ranks of all members; of a large group, those with a position."""
        if (self.size or 0) > _MOST_MEMBERS:
            return frozenset(self.members or self.pairs.values())
        mapped = (self.global_of(inside) for inside in range(self.size or 0))
        return frozenset(rank for rank in mapped if rank is not None)


@dataclass
class Waiting:
    """What is known of the waits at the end of an attempt."""

    groups: dict[str, WaitGroup]
    reports: list[RankReport]
    waits_in: dict[Member, str]
    """Group in which each member waits; "" if its lines name none."""
    alive: set[Member]
    """Members with any position."""
    size: int | None
    """Number of ranks of the job."""
    has_dumps: bool
    functions: Mapping[int, str] = field(default_factory=dict)
    """Function in which each rank is; untrusted."""

    @property
    def has_unknown(self) -> bool:
        """Return True if the rank of a process is unknown."""
        return any(isinstance(member, str) for member in self.alive)

    @property
    def missing(self) -> list[int]:
        """Return the ranks of the job without any position; empty if that of a process is unknown, or if only reports
        show the wait."""
        if self.has_unknown or not self.alive:
            return []
        return [rank for rank in range(self.size or 0) if rank not in self.alive]

    @property
    def has_subgroups(self) -> bool:
        """Return True if ranks wait in groups of some ranks."""
        return any(one.about != DEFAULT_GROUP for one in self.groups.values())


def waits_of_attempts(timeline: Timeline) -> dict[int, Waiting]:
    """Return the waits of each attempt with any, by its index."""
    job = timeline.table.jobs[int(timeline.table.job[0])] if len(timeline.table) else ""
    rows = [one for one in HANG_RECORDS.of(timeline.table) if one.job == job]
    if not any(isinstance(one, Position | RankReport) for one in rows) or not len(timeline.attempts):
        return {}
    begins = timeline.attempts.begin
    by_attempt: defaultdict[int, list[_Evidence]] = defaultdict(list)
    last_step, may_hang, shortest = _last_steps(timeline), _may_hang(timeline), _shortest_waits(timeline)
    for one in rows:
        if isinstance(one, GroupSize | RankFunction | StragglerReport):
            continue
        is_dump = isinstance(one, Membership | Disagreement) or (isinstance(one, Position) and one.from_dump)
        if one.time is None and len(begins) > 1 and not (is_dump and may_hang):
            continue  # It may belong to any attempt. A dump is written over by the next one.
        at = len(begins) - 1 if one.time is None else int(np.searchsorted(begins, one.time, side="right")) - 1
        is_snapshot = is_dump or (isinstance(one, RankReport) and one.kind == "ras")
        if is_snapshot and one.time is not None and (at < 0 or last_step[at] > one.time):
            continue  # Some ranks are always behind.
        if isinstance(one, Position) and one.still_ns is not None and one.still_ns < shortest[max(at, 0)]:
            continue  # The job ran when it was dumped.
        by_attempt[max(at, 0)].append(one)
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for printed in rows:
        if isinstance(printed, GroupSize):
            sizes[printed.kind].add(printed.size)
    size = _world_size(timeline, job)
    found = {at: _waiting(some, size, sizes) for at, some in by_attempt.items()}
    if (last := found.get(len(begins) - 1)) is not None:
        last.functions = {one.rank: one.function for one in rows if isinstance(one, RankFunction)}
    return {at: one for at, one in found.items() if one.waits_in or one.reports}


def _may_hang(timeline: Timeline) -> bool:
    """Return True if the last attempt may have ended in a wait, by its end and its cause."""
    why, how = timeline.causes.why[-1], timeline.endings.how[-1]
    return how != End.CLEAN and why.code in (WAITED, UNKNOWN_CAUSE)


def _shortest_waits(timeline: Timeline) -> list[float]:
    """Return from which time (ns) without an operation ranks wait in each attempt, as for a step that hangs."""
    usual = np.nan_to_num(timeline.usual_step.median)
    return [max(one * timeline.rules.method.stall_factor, NS_PER_MINUTE) for one in usual.tolist()]


def _last_steps(timeline: Timeline) -> I64:
    """Return the time (ns) of the last step line of each attempt; 0 without any."""
    table, of_row = timeline.table, np.asarray(timeline.attempts.of_row)
    steps = (of_row >= 0) & (table.kind == Kind.STEP)
    found = np.zeros(len(timeline.attempts), dtype=np.int64)
    np.maximum.at(found, of_row[steps], table.time[steps])
    return found


def _world_size(timeline: Timeline, job: str) -> int | None:
    values = [
        one.value for one in timeline.table.metrics if one.job == job and one.name == WORLD_SIZE and len(one.value)
    ]
    return int(values[-1][-1]) if values and 0 < values[-1][-1] <= MOST_RANKS else None


def _waiting(rows: Sequence[_Evidence], size: int | None, sizes: Mapping[str, set[int]]) -> Waiting:
    positions = [one for one in rows if isinstance(one, Position)]
    reports = [one for one in rows if isinstance(one, RankReport)]
    dumps = [one for one in positions if one.from_dump]
    if dumps:  # They contain the same numbers, and the order of all operations.
        seen = {one.rank for one in dumps}
        positions = [*dumps, *(one for one in positions if not one.from_dump and one.rank not in seen)]
    groups: dict[str, WaitGroup] = {}
    waits_in: dict[Member, str] = {}
    every = list(_completed(positions, size))
    waits_of: defaultdict[Member, set[str | None]] = defaultdict(set)
    of_pairs = {one.group for one in every if may_be_of_pairs(one.operation)}
    for one in every:
        if one.sequence is not None and not one.from_dump:
            waits_of[_member(one)].add(one.group)
    for one in every:
        member = _member(one)
        is_left_out = one.group not in groups and len(groups) >= _MOST_GROUPS
        if one.group is None or one.group in of_pairs or is_left_out:
            if one.sequence is not None:
                waits_in.setdefault(member, "")
            continue
        group = groups.setdefault(one.group, WaitGroup(one.group))
        group.about = group.about or one.about
        _add(group, member, one)
        if one.sequence is not None:
            waits_in[member] = one.group
            group.is_queued |= len(waits_of[member]) > 1
    _add_dumped(groups, rows)
    _set_sizes(groups.values(), size, sizes)
    _set_steps(groups.values())
    return Waiting(groups, reports, waits_in, {*map(_member, every)}, size, bool(dumps))


def _member(one: Position) -> Member:
    return one.process if one.rank is None else one.rank


def _add_dumped(groups: Mapping[str, WaitGroup], rows: Iterable[_Evidence]) -> None:
    """Add the members of groups, and the operations at which they differ, from dumps."""
    for row in rows:
        known = groups.get(row.group) if isinstance(row, Membership | Disagreement) else None
        if isinstance(row, Membership) and known is not None:
            known.members, known.size, known.size_is_known = row.ranks, len(row.ranks), True
            known.about = known.about or row.about
        elif isinstance(row, Disagreement) and known is not None:
            known.disagreement, known.usual = (row.sequence, dict(row.kinds)), row.usual or None


def _completed(positions: Sequence[Position], size: int | None) -> Iterator[Position]:
    """Yield the positions, with what others show about them. If no line names a group, and each rank of the job waits
    once, they are of one group."""
    ranks = [one.group_rank for one in positions if one.sequence is not None]
    alone = bool(ranks) and len({*ranks}) == len(ranks) and all(
        one.group is None and not may_be_of_pairs(one.operation) for one in positions
    )  # fmt: skip
    whole = alone and (size or 0) > 1 and {*ranks} == {*range(size or 0)}
    known = {_place(one) for one in positions if one.rank is not None and one.group is not None}
    for one in positions:
        if whole:
            yield replace(one, group="0", about=DEFAULT_GROUP, rank=one.group_rank, process="")
        elif one.is_signal and one.enqueued is not None and one.completed is not None and one.enqueued > one.completed:
            yield replace(one, sequence=one.completed + 1)  # Its watchdog had not printed it yet.
        elif one.rank is not None or _place(one) not in known:  # The error of a process repeats its line.
            yield one


def _place(one: Position) -> tuple[object, ...]:
    return one.group, one.group_rank, one.sequence


def _add(group: WaitGroup, member: Member, one: Position) -> None:
    if one.enqueued is not None and one.enqueued < max(one.completed or 0, one.sequence or 0):
        group.is_mixed = True  # Coalesced or P2P operations count differently.
    if one.group_rank is not None and one.rank is not None:
        group.is_mixed |= group.pairs.setdefault(one.group_rank, one.rank) != one.rank
    if group.name.startswith(LOCAL_GROUP) and one.rank != one.group_rank:
        group.is_mixed = True  # Groups of some ranks have one number.
    before = group.positions.get(member)
    if before is None or (before.sequence is None and one.sequence is not None):
        group.positions[member] = one
    elif one.sequence is not None and before.sequence is not None and one.sequence != before.sequence:
        if is_far(before, one):
            group.positions[member] = max(before, one, key=lambda each: each.time or 0)
        else:  # The other one is queued behind it.
            group.positions[member] = min(before, one, key=lambda each: each.sequence or 0)


def _set_sizes(groups: Iterable[WaitGroup], size: int | None, printed: Mapping[str, set[int]]) -> None:
    """Set the sizes of groups: groups of one description have one size. The program prints it, or the sizes of inputs
    and outputs of its operations show it; otherwise it is at least the highest rank in any of them."""
    highest: Counter[str] = Counter()
    shown: defaultdict[str, set[int]] = defaultdict(set)
    groups = list(groups)
    for one in groups:
        kind = one.about if one.about not in _NO_KIND else one.name
        inside = [each.group_rank for each in one.positions.values() if each.group_rank is not None]
        highest[kind] = max(highest[kind], max(inside, default=-1) + 1, len(one.positions))
        shown[kind] |= {each.members for each in one.positions.values() if each.members is not None}
    for one in groups:
        if one.size is not None:
            continue
        kind = one.about if one.about not in _NO_KIND else one.name
        whole = {size} if one.about == DEFAULT_GROUP and size is not None else shown[kind]
        whole = whole or printed.get(kind_of_group(one.about), set())
        one.size_is_known = len(whole) == 1 and max(whole) >= highest[kind]
        one.size = max(whole) if one.size_is_known else highest[kind] or None


def _set_steps(groups: Collection[WaitGroup]) -> None:
    """Set the distance of neighbors in groups with one known pair: groups of one description are numbered alike."""
    steps: defaultdict[str, set[int]] = defaultdict(set)
    for one in groups:
        if len(one.pairs) >= _LEAST_PAIRS and one.about not in _NO_KIND:
            steps[one.about].add(0 if one.line is None else one.line[1])
    for one in groups:
        if len(one.pairs) < _LEAST_PAIRS and len(steps[one.about]) == 1:
            one.step = max(steps[one.about]) or None
