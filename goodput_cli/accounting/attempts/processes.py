"""Lookups of rows by process or host that stay fast for 16 000 ranks. Each class gives the same result as a comparison
of all pairs of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from goodput_cli.events.evidence import (
    LATEST,
    TOLERANCE_NS,
    FailureEvidence,
    earliest,
    latest,
    names_it_goes_by,
    names_it_is_asked_by,
    same_rank,
)

Key = TypeVar("Key", bound=Hashable)


class ProcessLocation(NamedTuple):
    """Location of a process as reported by launchers."""

    rank: int | None
    local_rank: int | None
    host: str
    pid: int | None


class ProcessLocations:
    """Locations of processes that launchers name, in order."""

    def __init__(self, seen: Iterable[FailureEvidence]) -> None:
        self._every = [
            ProcessLocation(one.rank, one.local_rank, one.host, one.pid) for one in seen if one.speaker == "launcher"
        ]
        self._at: defaultdict[tuple[Hashable, str], list[int]] = defaultdict(list)
        """Positions of the locations with a key that have a fact, in order."""
        for at, place in enumerate(self._every):
            facts = [fact for fact, value in zip(place._fields, place, strict=True) if value not in (None, "")]
            for key in _keys_of_location(place):
                for fact in facts:
                    self._at[key, fact].append(at)

    def complete(self, one: FailureEvidence) -> FailureEvidence:
        """Return a row with the rank, host and pid from the launcher's lines about the same process. Lines are applied
        in order, so each one can use the facts that earlier ones added."""
        at = self._next_position(one, -1)
        while at is not None:
            place = self._every[at]
            one = replace(complete_from(one, place), host=one.host or place.host)
            at = self._next_position(one, at)
        return one

    def _next_position(self, one: FailureEvidence, last: int) -> int | None:
        """Return the first position after another one of the same process with a fact that a row lacks."""
        lacks = [fact for fact in ProcessLocation._fields if getattr(one, fact) in (None, "")]
        found = (self._at[key, fact] for key in _lookup_keys(one) for fact in lacks if (key, fact) in self._at)
        return min((rows[at] for rows in found if (at := bisect_right(rows, last)) < len(rows)), default=None)


def _keys_of_location(place: ProcessLocation) -> Iterator[Hashable]:
    names = names_it_goes_by(place.host)
    if place.pid is not None:
        yield "pid", place.pid
        yield from (("pid", place.pid, name) for name in names or ("",))
    if place.rank is not None:
        yield "rank", place.rank
    if place.local_rank is not None:
        yield from (("local", place.local_rank, name) for name in names)


def _lookup_keys(one: FailureEvidence) -> Iterator[Hashable]:
    names = names_it_is_asked_by(one.host)
    if one.pid is not None and one.host:
        yield from (("pid", one.pid, name) for name in (*names, ""))
    elif one.pid is not None:
        yield "pid", one.pid
    if one.rank is not None:
        yield "rank", one.rank
    elif one.local_rank is not None:
        yield from (("local", one.local_rank, name) for name in names)


def complete_from(one: FailureEvidence, other: ProcessLocation | FailureEvidence) -> FailureEvidence:
    """Return a row with the rank, host and pid of another one, if it has none itself."""
    return replace(
        one,
        rank=one.rank if one.rank is not None else other.rank,
        local_rank=one.local_rank if one.local_rank is not None else other.local_rank,
        pid=one.pid if one.pid is not None else other.pid,
    )


_SEES_FAIL = ("agent failed", "agent block", "mpirun", "mpi process", "child of lightning", "rank of composer")
"""Rows of launchers that name the process that failed first."""


class FirstFailures:
    """Processes that agents report as the first failure they saw."""

    def __init__(self, seen: Iterable[FailureEvidence]) -> None:
        launched = [one for one in seen if one.speaker == "launcher"]
        named = [one for one in launched if one.first and one.role in ("exit", "teardown")]
        if not named:
            plain = [one for one in launched if one.row in _SEES_FAIL and one.role == "exit"]
            named = sorted(plain, key=lambda one: (earliest(one), one.line))[:1]
        self.earliest = min(named, key=lambda one: (earliest(one), one.line), default=None)
        """The earliest of them as reported by launchers; None if there are none."""
        self._ranks = {one.rank for one in named if one.rank is not None}
        self._pids = {one.pid for one in named if one.pid is not None}
        self._without_rank = {one.pid for one in named if one.pid is not None and one.rank is None}
        self._only = named[0] if len(named) == 1 else None

    @property
    def words(self) -> str:
        """Its process as text for users."""
        failed_first = self.earliest
        if failed_first is None or failed_first.rank is None:
            return "another process"
        return f"rank {failed_first.rank}"

    def is_other(self, one: FailureEvidence) -> bool:
        """Return True if a row names another process, and the first failure is known."""
        placed = one.rank is not None or one.pid is not None
        if self.earliest is None or not placed or one.speaker not in ("process", "launcher"):
            return False
        return bool(self._ranks if one.rank is not None else self._pids) and not self.has_process(one, one.pid)

    def has_process(self, one: FailureEvidence, pid: int | None) -> bool:
        """Return True if a row is of one of them. pid: that of its process, if it counts."""
        if one.rank in self._ranks:
            return True
        if pid is not None and pid in (self._pids if one.rank is None else self._without_rank):
            return True
        only = self._only
        if only is None or only.rank is not None or (only.pid is not None and pid is not None):
            return False
        return only.local_rank is not None and one.rank == only.local_rank


class Processes:
    """Processes of rows, with the last line of each.

    Rows are of one process if their pids are equal. If one has no pid, the ranks must be equal. If the looked-up row
    has no rank, both must be in one stream of one source.
    """

    def __init__(self, rows: Sequence[FailureEvidence]) -> None:
        self._pids = _last_lines((one.pid, one.line) for one in rows if one.pid is not None)
        self._of_all = _ranks_and_streams(rows)
        self._without_pid = _ranks_and_streams([one for one in rows if one.pid is None])

    def has_process(self, one: FailureEvidence) -> bool:
        """Return True if a row is of one of them."""
        return self.last_line(one) is not None

    def last_line(self, one: FailureEvidence) -> int | None:
        """Return the last line of the rows of the same process; None if there are none."""
        ranks, streams = self._of_all if one.pid is None else self._without_pid
        found = ranks.get(one.rank) if one.rank is not None else streams.get((one.source, one.stream))
        of_pid = None if one.pid is None else self._pids.get(one.pid)
        return max((line for line in (found, of_pid) if line is not None), default=None)


def _ranks_and_streams(rows: Sequence[FailureEvidence]) -> tuple[dict[int, int], dict[tuple[str, str], int]]:
    ranks = (
        (rank, one.line) for one in rows for rank in (one.rank, *(rank for rank, _ in one.ranks)) if rank is not None
    )
    return _last_lines(ranks), _last_lines(((one.source, one.stream), one.line) for one in rows)


def _last_lines(lines: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    last: dict[Key, int] = {}
    for key, line in lines:
        last[key] = max(line, last.get(key, line))
    return last


class Exits:
    """Ends of processes as reported by launchers and schedulers."""

    def __init__(self, seen: Iterable[FailureEvidence]) -> None:
        ends = [one for one in seen if one.role == "exit" and one.speaker in ("launcher", "scheduler")]
        kinds: defaultdict[tuple[bool, bool], list[FailureEvidence]] = defaultdict(list)
        for one in ends:
            kinds[one.rank is not None, one.pid is not None].append(one)
        self._kinds = {kind: _ExitsOfKind.of(rows) for kind, rows in kinds.items()}

    def has_rank_or_pid(self, root: FailureEvidence) -> bool:
        """Return True if one of them names the rank or the pid of a root cause."""
        return any(
            (root.rank is not None and root.rank in exits.ranks) or (root.pid is not None and root.pid in exits.pids)
            for exits in self._kinds.values()
        )

    def has_exit_for(self, root: FailureEvidence) -> bool:
        """Return True if one belongs to the process of a root cause: by its rank, otherwise by its pid, otherwise by
        its position."""
        for (ranked, numbered), exits in self._kinds.items():
            if root.rank is not None and ranked:
                matches = root.rank in exits.ranks
            elif root.pid is not None and numbered:
                matches = root.pid in exits.pids
            else:
                matches = exits.last_line.get(root.source, -1) > root.line
            if matches:
                return True
        return False


class _ExitsOfKind(NamedTuple):
    ranks: set[int | None]
    pids: set[int | None]
    last_line: dict[str, int]

    @classmethod
    def of(cls, rows: Sequence[FailureEvidence]) -> _ExitsOfKind:
        last = _last_lines((one.source, one.line) for one in rows)
        return cls({one.rank for one in rows}, {one.pid for one in rows}, last)


class KillExits:
    """Exits by SIGKILL without an explanation so far."""

    def __init__(self, exits: Sequence[FailureEvidence]) -> None:
        self._left = dict(enumerate(exits))
        self._at: defaultdict[Hashable, dict[int, None]] = defaultdict(dict)
        for at, one in self._left.items():
            for key in _keys_of_killed(one):
                self._at[key][at] = None

    def exits_near(self, root: FailureEvidence) -> list[tuple[int, FailureEvidence]]:
        """Return the exits that may belong to the kill of a root cause, in order: by pid, or by host without one."""
        if root.speaker == "scheduler":
            return list(self._left.items())
        keys: list[Hashable] = [("pid", root.pid)] if root.pid is not None else []
        kind = "no pid" if root.pid is not None else "any"
        keys += [(kind, name) for name in names_it_is_asked_by(root.host)]
        places = {at for key in keys for at in self._at.get(key, ())}
        return [(at, self._left[at]) for at in sorted(places)]

    def mark_explained(self, at: int) -> None:
        """Mark an exit as explained."""
        for key in _keys_of_killed(self._left.pop(at)):
            self._at[key].pop(at, None)


def _keys_of_killed(one: FailureEvidence) -> Iterator[Hashable]:
    if one.pid is not None:
        yield "pid", one.pid
    for name in names_it_goes_by(one.host):
        yield "any", name
        if one.pid is None:
            yield "no pid", name


def select_first(rows: Sequence[FailureEvidence]) -> list[FailureEvidence]:
    """Return the rows that no other row precedes (see `precedes`): by line within the output of one rank, otherwise by
    time. Return all if a clock went back and each row is after another one."""
    processes = [_process_key(at, one) for at, one in enumerate(rows)]
    lines: dict[Hashable, int] = {}
    ends: dict[Hashable, int] = {}
    for process, one in zip(processes, rows, strict=True):
        lines[process] = min(one.line, lines.get(process, one.line))
        ends[process] = min(latest(one), ends.get(process, LATEST))
    soonest = sorted(ends, key=ends.__getitem__)[:2]
    found: list[FailureEvidence] = []
    for process, one in zip(processes, rows, strict=True):
        is_after = any(ends[other] + TOLERANCE_NS < earliest(one) for other in soonest if other != process)
        if not is_after and one.line <= lines[process]:
            found.append(one)
    return found or list(rows)


def _process_key(at: int, one: FailureEvidence) -> Hashable:
    """Return the key of lines of one process in one file. Lines without a rank are each separate."""
    return at if one.rank is None else (one.source, one.stream, one.rank)


def has_later_kill(root: FailureEvidence, killed: Sequence[FailureEvidence], wait: int) -> bool:
    """Return True if another process was killed more than `wait` (ns) after a root cause. killed: the latest first."""
    for one in killed:
        if earliest(one) <= latest(root) + wait:
            return False
        if not same_rank(root, one):
            return True
    return False
