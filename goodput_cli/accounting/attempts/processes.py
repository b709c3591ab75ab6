"""Observations around the end of an attempt by process and host, and those among them that cannot be its cause: of
processes that are being killed, that went on, or whose error others only logged.

Lookups stay fast for 16 000 ranks: each class gives the same result as a comparison of all pairs of rows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from goodput_cli.arrays import group_by_key
from goodput_cli.events.evidence import (
    LATEST,
    SIGNALS,
    TOLERANCE_NS,
    FailureEvidence,
    earliest,
    is_request,
    latest,
    may_be_same_host,
    names_it_goes_by,
    names_it_is_asked_by,
    ranks_of,
    same_host,
    same_rank,
)
from goodput_cli.vocabulary.categories import KILLED, PEER_LOST, UNKNOWN_CAUSE
from goodput_cli.vocabulary.when import NS_PER_SECOND

MINUTE_NS = 60 * NS_PER_SECOND
_KILL = 10 * NS_PER_SECOND
_MESSAGE = 6
"""The message of an exception has fewer lines."""
_ABORTED = (-6, 134)
_ABORTING = frozenset(
    {"terminate", "fatal python error", "signal received", "core dumped", "job of a shell", "spawned process",
     "failed check"}
)  # fmt: skip
_OTHER_SIGNAL = re.compile(r"egmentation|[Bb]us error|llegal instruction|loating point|SIG(?:SEGV|BUS|FPE|ILL)")
_SIGKILL = (-9, 137)
_SIGTERM = (-15, 143)
KILLS = (*_SIGKILL, *_SIGTERM)
CANCELS = ("cancelled", "job cancelled")
"""Rows of Slurm's line about a cancelled job."""
_SENT = "closing signal"
_CLOSING = (_SENT, "death signal", "signal to stop", "force terminated", "cancelled")
_EVERYWHERE = ("everywhere", "")
_ENDED_WITH_WORKERS = ("worker", "pinning thread")
"""Rows that a rank logs after its workers were asked to end as well."""
_LED_TO = ("python_error", "data_loader")

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
        kinds = group_by_key(((one.rank is not None, one.pid is not None), one) for one in ends)
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


def has_later_kill(root: FailureEvidence, killed: Sequence[FailureEvidence]) -> bool:
    """Return True if another process was killed more than a minute after a root cause. killed: the latest first."""
    for one in killed:
        if earliest(one) <= latest(root) + MINUTE_NS:
            return False
        if not same_rank(root, one):
            return True
    return False


@dataclass(frozen=True, slots=True)
class AttemptEvidence:
    """Facts of an attempt that decide which observations explain its end. Times are ns UTC."""

    begin: int
    up: int
    progress: int
    """Time of the last progress; `up` without any."""
    progress_source: str
    progress_line: int
    """Line of the last progress, or of the start line without any. 0 if lines are not in order. `BEFORE_ALL_LINES` if
    the first event of the log is the end of this attempt."""
    death: int
    """Latest time at which it died."""
    next_start: int
    """Start of the next attempt; `LATEST` for the last one."""
    stepped: bool
    """True if it recorded a step."""
    grace: int = 0
    """Time for which its processes may go on after a request to stop."""
    job: str = ""


BEFORE_ALL_LINES = -1
"""Line of the last progress if no line shows a start: every line of the file may be evidence."""


def signal_to_stop(seen: Sequence[FailureEvidence]) -> FailureEvidence | None:
    """Return the first signal that asked a process to stop. None if a launcher sent it, as launchers do after a
    failure."""
    signals = [one for one in seen if one.row in SIGNALS or one.exit in _SIGTERM]
    if not signals:
        return None
    first = min(signals, key=lambda one: (earliest(one), one.source, one.line))
    return None if _is_sent_by_launcher(first, seen) else first


def _is_sent_by_launcher(signal: FailureEvidence, seen: Iterable[FailureEvidence]) -> bool:
    """Return True if a process failed before a signal, or a launcher reports before it that it sent signals."""
    failed = (one for one in seen if one.row == _SENT or one.exit not in (None, 0, *KILLS))
    return any(_is_before(one, signal) for one in failed)


def _is_to_the_job(signal: FailureEvidence, seen: Iterable[FailureEvidence]) -> bool:
    """Return True if a signal went to more processes than the one that reports it."""
    return signal.speaker != "process" and not _is_sent_by_launcher(signal, seen)


def _is_before(one: FailureEvidence, other: FailureEvidence) -> bool:
    if one.source == other.source and (earliest(one) == earliest(other) or not (one.stamped and other.stamped)):
        return one.line < other.line
    return earliest(one) < earliest(other)


class Teardown:
    """Time and line after which processes only report that they are being killed, per host. For all hosts if a
    scheduler ends the job."""

    def __init__(self, seen: Sequence[FailureEvidence], attempt: AttemptEvidence) -> None:
        asked = [one for one in seen if one.lo is not None and is_request(one)]
        of_job = [one for one in asked if one.row not in SIGNALS or _is_to_the_job(one, seen)]
        self._request = min(map(earliest, of_job), default=LATEST)
        self._trained_on = self._request <= attempt.progress + attempt.grace
        self._time: dict[Hashable, int] = {}
        self._line: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        for one in seen:
            if is_request(one) and one.speaker != "pod":
                self._asked[one.source] = min(one.line, self._asked.get(one.source, one.line))
            if not (one.row in CANCELS or (one.role == "teardown" and one.row in _CLOSING)):
                continue
            places = [("source", one.source), *names_it_goes_by(one.host)]
            for place in [*places, _EVERYWHERE] if one.speaker == "scheduler" else places:
                self._time[place] = min(earliest(one), self._time.get(place, LATEST))
            self._line[one.source] = min(one.line, self._line.get(one.source, one.line))

    def covers(self, one: FailureEvidence, first: FirstFailures) -> bool:
        """Return True if a row only reports that its process is being killed."""
        if one.role not in ("root", "exit") or (one.speaker in ("scheduler", "pod") and one.role == "root"):
            return False
        if one.code == "python_error" and self._follows_request(one):
            return True  # a program raises exceptions during its exit
        places = (_EVERYWHERE, ("source", one.source), *names_it_is_asked_by(one.host))
        time = min((self._time[place] for place in places if place in self._time), default=None)
        if time is None:
            return False
        behind = one.source in self._line and self._line[one.source] < one.line
        if earliest(one) > time + TOLERANCE_NS or (one.row == "interrupt" and (behind or earliest(one) >= time)):
            return True
        return one.row in _ENDED_WITH_WORKERS and behind and not first.has_process(one, None)  # about its worker

    def _follows_request(self, one: FailureEvidence) -> bool:
        """Return True if a process logged a line after a request to stop: by line order, by time, or, for a line
        without a time, because it had trained until the request."""
        if one.source in self._asked:
            return self._asked[one.source] < one.line
        if one.stamped:
            return earliest(one) >= self._request
        return self._trained_on and earliest(one) <= self._request <= latest(one)


def drop_bystanders(alive: list[FailureEvidence]) -> list[FailureEvidence]:
    """Drop exceptions that were raised outside of the main thread, unless their process raised another one later, such
    as the one of a waiting main thread. Alone, such an exception ends nothing. If another mechanism is stated, that is
    the cause."""
    led: defaultdict[tuple[str, str], list[FailureEvidence]] = defaultdict(list)
    for other in alive:
        if other.role == "root" and not other.beside and other.code in _LED_TO:
            led[other.source, other.stream].append(other)
    processes = {place: Processes(rows) for place, rows in led.items()}
    last = {place: max(other.line for other in rows) for place, rows in led.items()}

    def has_later_exception(one: FailureEvidence) -> bool:
        place = one.source, one.stream
        if last.get(place, one.line) <= one.line:
            return False
        return bool(one.stream) or (processes[place].last_line(one) or one.line) > one.line

    return [one for one in alive if not one.beside or has_later_exception(one)]


def has_continued(one: FailureEvidence, attempt: AttemptEvidence) -> bool:
    """Return True if the process of a root cause logged ordinary lines after it."""
    if one.speaker != "process":
        return False
    if one.ordinary is not None:
        return True
    hi = one.hi if one.hi is not None else one.lo
    by_prefix = one.rank is not None and bool(one.stream)
    if by_prefix or one.late is None or hi is None:
        return False
    return hi + MINUTE_NS < one.late <= attempt.next_start


def fill_in_ranks(seen: Sequence[FailureEvidence]) -> Sequence[FailureEvidence]:
    """Set the rank to the local rank on a single node, if an agent's processes are about as many as the ranks in the
    log."""
    launched = [one for one in seen if one.speaker == "launcher"]
    hosts = {one.host for one in launched if one.host}
    ranks, pids = ranks_of(seen), {one.pid for one in launched if one.pid is not None}
    if len(hosts) > 1 or not ranks or max(ranks) > len(pids) or any(one.rank is not None for one in launched):
        return seen
    return [
        replace(one, rank=one.local_rank) if one.row == "agent failed" and one.local_rank in ranks else one
        for one in seen
    ]  # fmt: skip


def join_kills(
    roots: list[FailureEvidence], exits: list[FailureEvidence], killed: Sequence[FailureEvidence]
) -> tuple[list[FailureEvidence], list[FailureEvidence]]:
    """Join an OOM kill with the exit of the killed process. killed: all exits by a kill that were seen."""
    joined: list[FailureEvidence] = []
    killed = killed if any(one.code == "host_oom" for one in roots) else []
    left, explained = KillExits(killed), set[FailureEvidence]()
    for root in roots:
        if root.code == "host_oom":
            same = [(at, one) for at, one in left.exits_near(root) if _is_exit_of_kill(root, one)]
            for at, one in same:
                root = replace(complete_from(root, one), host=one.host or root.host, unhandled=True)
                left.mark_explained(at)
            explained.update(one for _, one in same)
        joined.append(root)
    return joined, [one for one in exits if one not in explained]


def _is_exit_of_kill(root: FailureEvidence, one: FailureEvidence) -> bool:
    if root.pid is not None and one.pid is not None:
        return root.pid == one.pid and may_be_same_host(root.host, one.host)
    near = abs(earliest(root) - earliest(one)) <= TOLERANCE_NS + _KILL
    return bool(root.host and same_host(root.host, one.host) and near) or (root.speaker == "scheduler" and near)


def drop_aborts(
    exits: list[FailureEvidence], roots: list[FailureEvidence], echoes: list[FailureEvidence]
) -> list[FailureEvidence]:
    """Drop exits by SIGABRT of processes that logged a root cause or an echo before, or all of them if the others only
    waited."""
    echoes = [one for one in echoes if one.row != "spawned worker"]
    waits = [one for one in echoes if one.code in ("collective_timeout", PEER_LOST)]
    said = Processes([*roots, *echoes])
    return [one for one in exits if not (_is_abort(one) and (waits or said.has_process(one)))]


def _is_abort(one: FailureEvidence) -> bool:
    if one.exit is not None:
        return one.exit in _ABORTED
    return one.code == "native_crash" and one.row in _ABORTING and not _OTHER_SIGNAL.search(one.text)


def mark_teardown(one: FailureEvidence, first: FirstFailures) -> FailureEvidence:
    """Mark an exit as teardown if a launcher saw it after the first failure: the launcher ended the remaining
    processes, or they failed because the first one was gone."""
    failed_first = first.earliest
    if (
        failed_first is None
        or one.role != "exit"
        or one.speaker not in ("launcher", "scheduler")
        or first.has_process(one, one.pid)
    ):
        return one
    if one.code == UNKNOWN_CAUSE and one.exit is None:
        return one
    wait = 0 if one.exit in KILLS and one.source == failed_first.source else TOLERANCE_NS
    return replace(one, role="teardown") if earliest(one) > earliest(failed_first) + wait else one


def split_logged(roots: list[FailureEvidence], ends_seen: Exits) -> tuple[list[FailureEvidence], list[FailureEvidence]]:
    """Separate errors that other processes only logged, if an uncaught exception ended a process. Errors that the
    process logged before it raised remain, because they explain the exception. So do errors of unknown ranks if the
    exception is general."""
    ended = [one for one in roots if one.speaker == "process" and _is_uncaught(one, ends_seen)]
    if not ended:
        return roots, []
    general = all(one.code == "python_error" for one in ended)
    processes = Processes(ended)
    kept: list[FailureEvidence] = []
    logged: list[FailureEvidence] = []
    for one in roots:
        only_logged = one.speaker == "process" and not _is_uncaught(one, ends_seen)
        last = processes.last_line(one)
        led = last is not None and one.line < last + _MESSAGE
        led = led or not only_logged or (general and one.rank is None)
        (kept if led else logged).append(one)
    return kept, logged


def _is_uncaught(one: FailureEvidence, ends_seen: Exits) -> bool:
    return one.unhandled or one.raised or ends_seen.has_rank_or_pid(one)


def split_other_processes(
    roots: list[FailureEvidence], exits: list[FailureEvidence], ends_seen: Exits
) -> tuple[list[FailureEvidence], list[FailureEvidence]]:
    """Separate roots that explain an end from those long before the SIGKILL of another process, which is then the
    cause."""
    killed = [one for one in exits if one.code == KILLED and one.exit in _SIGKILL]
    killed.sort(key=earliest, reverse=True)
    kept: list[FailureEvidence] = []
    passed: list[FailureEvidence] = []
    for root in roots:
        far = root.speaker == "process" and not ends_seen.has_rank_or_pid(root) and has_later_kill(root, killed)
        (passed if far else kept).append(root)
    return kept, passed
