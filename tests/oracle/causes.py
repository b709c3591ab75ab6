"""Second implementation of docs/causes.md, *How a cause is chosen*, in plain Python, from the text of the page alone.

It judges classified lines and reads no text: the author of a log states the role of each line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

APART = 5
"""Tolerance between two clocks in seconds."""
SHORT = 60
"""The time of a line is known if its bounds are closer than this many seconds."""
AFTER = 120
_SIGTERM = (-15, 143)
GROUPS = {
    "hardware": ("gpu_fault", "gpu_memory", "gpu_link", "node_failure"),
    "scheduler": ("time_limit", "preempted", "maintenance", "evicted"),
    "operator": ("cancelled",),
    "memory": ("device_oom", "host_oom", "shared_memory"),
    "storage": ("disk_full", "storage_error", "checkpoint_unreadable"),
    "network": ("network", "collective_timeout"),
    "data": ("data_loader", "not_finite"),
    "software": ("python_error", "native_crash", "device_error", "environment"),
    "unknown": ("killed", "unknown"),
}
"""Groups in order of precedence."""


@dataclass(frozen=True)
class LoggedLine:
    """One line, or one block, of a log."""

    file: str
    line: int
    role: str
    """root, exit, echo or teardown; `ordinary`: a line of a running process; `quiet`: any other line."""
    code: str = ""
    time: float | None = None
    """Time in the line itself, if any."""
    whole: bool = False
    """True if the time is in whole seconds."""
    rank: int | None = None
    pid: int | None = None
    host: str = ""
    exit: int | None = None
    speaker: str = "process"
    text: str = ""
    """Text of the line without numbers."""
    unhandled: bool = False
    """True if the interpreter logged it during its exit."""
    first: bool = False
    """True if an agent saw this failure first."""
    lo: float = float("-inf")
    hi: float = float("inf")
    exited: bool = False
    ends: bool = False


@dataclass(frozen=True)
class Ending:
    """All lines, and facts of the attempt that ended."""

    said: tuple[LoggedLine, ...]
    progress_file: str
    progress_line: int
    progress: float
    death: float
    """Latest time of death."""
    next_line: int
    """Start line of the next attempt in the file of the progress."""
    next_start: float
    hosts: frozenset[str] = field(default_factory=frozenset)
    own_files: frozenset[str] = field(default_factory=frozenset)
    """Files that one process writes alone."""


@dataclass(frozen=True)
class Verdict:
    """Cause, certainty and rank."""

    code: str
    certainty: str | None
    rank: int | None


def judge(ending: Ending) -> Verdict:
    """Return the cause of an ending."""
    seen = [one for one in _bound_times(ending) if one.role not in ("quiet", "ordinary") and _in_window(one, ending)]
    ordinary = [one for one in _bound_times(ending) if one.role == "ordinary"]
    fell = _first_failed(seen)
    seen = [_mark_teardown(one, fell) for one in seen]
    alive = [one for one in seen if not _is_teardown(one, seen)]
    roots = [one for one in alive if one.role == "root" and not _has_continued(one, ordinary, ending)]
    exits = [one for one in alive if one.role == "exit"]
    echoes = [one for one in seen if one.role == "echo"]
    roots = [_locate(one, seen) for one in roots]
    roots, exits = _join_kills(roots, exits)
    exits = [one for one in exits if not _is_way_out(one, [*roots, *echoes], echoes)]
    killed = [one for one in exits if one.exit == -9]
    explains = [
        one for one in roots
        if one.speaker != "process" or _has_own_exit(one, seen)
        or not any(_of_another(one, kill) and kill.lo > one.hi + SHORT for kill in killed)
    ]  # fmt: skip
    if fell is not None:
        explains = [one for one in explains if not (_is_other(one, fell) and one.lo > fell.lo + APART)]
    candidates = explains or [one for one in exits if one.code != "unknown"]
    if not candidates:
        waits = any(one.code == "collective_timeout" for one in echoes)
        if waits:
            return Verdict("collective_timeout", "likely", None)
        signal = _signal_to_stop(seen)
        if signal is not None:
            return Verdict("killed", "confirmed", _locate(signal, seen).rank)
        return Verdict("unknown", None, None if fell is None else fell.rank)
    return _choose(_merge_equal(candidates, seen), seen, fell)


def _signal_to_stop(seen: list[LoggedLine]) -> LoggedLine | None:
    """Return the first SIGTERM, unless a process failed before it or a launcher sent it (Requests to stop)."""
    signals = [one for one in seen if one.exit in _SIGTERM]
    if not signals:
        return None
    first = min(signals, key=lambda one: (one.lo, one.file, one.line))
    failed = [one for one in seen if one.text == "closing signal" or one.exit not in (None, 0, -9, 137, *_SIGTERM)]
    return None if any(_is_before(one, first) for one in failed) else first


def _is_before(one: LoggedLine, other: LoggedLine) -> bool:
    if one.file == other.file and (one.lo == other.lo or one.time is None or other.time is None):
        return one.line < other.line
    return one.lo < other.lo


def _first_failed(seen: list[LoggedLine]) -> LoggedLine | None:
    """Return the process that an agent saw fail first."""
    first = [one for one in seen if one.first]
    return min(first, key=lambda one: (one.lo, one.line), default=None)


def _mark_teardown(one: LoggedLine, fell: LoggedLine | None) -> LoggedLine:
    """Return an exit as teardown if a launcher saw it after the first failure, because the launcher ended the remaining
    processes."""
    if fell is None or one.role != "exit" or one.speaker not in ("launcher", "scheduler") or not _is_other(one, fell):
        return one
    wait = 0 if one.exit in (-9, -15) and one.file == fell.file else APART
    return replace(one, role="teardown") if one.lo > fell.lo + wait else one


def _is_other(one: LoggedLine, fell: LoggedLine) -> bool:
    """Return True if a line is of another process than the one that failed first."""
    if one.speaker not in ("process", "launcher") or (one.rank is None and one.pid is None):
        return False
    return one.rank != fell.rank if one.rank is not None else one.pid != fell.pid


def _has_own_exit(root: LoggedLine, seen: list[LoggedLine]) -> bool:
    exits = [one for one in seen if one.role == "exit" and one.speaker in ("launcher", "scheduler")]
    return root.rank is not None and any(one.rank == root.rank for one in exits)


def _bound_times(ending: Ending) -> list[LoggedLine]:
    """Return all lines with bounds of their times: their own time, otherwise the timestamps around them in the file."""
    found = []
    for one in ending.said:
        if one.time is not None:
            found.append(replace(one, lo=one.time, hi=one.time + one.whole))
            continue
        before = [other.time for other in ending.said if other.file == one.file and other.line < one.line
                  and other.time is not None and other.text != "block"]  # fmt: skip
        behind = [other.time for other in ending.said if other.file == one.file and other.line > one.line
                  and other.time is not None and other.text != "block"]  # fmt: skip
        found.append(replace(one, lo=before[-1] if before else float("-inf"), hi=behind[0] if behind else float("inf")))
    return found


def _in_window(one: LoggedLine, ending: Ending) -> bool:
    if one.speaker == "kernel":
        known = bool(one.host) and one.host in ending.hosts
        return known and ending.progress - APART < one.lo <= min(ending.death + AFTER, ending.next_start)
    if one.file == ending.progress_file:
        return ending.progress_line < one.line < ending.next_line
    near = one.lo > ending.progress - APART or (one.hi > ending.progress and one.hi - one.lo < SHORT)
    return near and one.lo <= ending.next_start


def _is_teardown(one: LoggedLine, seen: list[LoggedLine]) -> bool:
    """Return True for a line more than 5 s after a closing signal or the scheduler's end, unless the scheduler wrote
    it."""
    if one.role not in ("root", "exit") or (one.speaker == "scheduler" and one.role == "root"):
        return False
    ends = [
        other for other in seen
        if other.text in ("closing signal", "cancelled") and (other.speaker == "scheduler" or other.file == one.file)
    ]  # fmt: skip
    return any(one.lo > end.lo + APART for end in ends)


def _has_continued(one: LoggedLine, ordinary: list[LoggedLine], ending: Ending) -> bool:
    """Return True if the process of a root cause logged ordinary lines after it; without ranks, at least a minute
    later."""
    if one.speaker != "process":
        return False
    behind = [other for other in ordinary if other.file == one.file and one.line < other.line]
    behind = [other for other in behind if one.file != ending.progress_file or other.line < ending.next_line]
    if one.file in ending.own_files:
        return bool(behind) or _is_late(one, behind)
    if one.rank is not None:
        return any(other.rank == one.rank for other in behind)
    return _is_late(one, behind)


def _is_late(one: LoggedLine, behind: list[LoggedLine]) -> bool:
    return any(other.time is not None and one.hi + SHORT < other.time for other in behind)


def _locate(one: LoggedLine, seen: list[LoggedLine]) -> LoggedLine:
    """Return a root cause with the location that launchers report for its process."""
    for other in seen:
        if other.speaker != "launcher" or other.role not in ("exit", "teardown"):
            continue
        same_pid = one.pid is not None and one.pid == other.pid
        if same_pid or (one.rank is not None and one.rank == other.rank):
            one = replace(
                one,
                rank=one.rank if one.rank is not None else other.rank,
                pid=one.pid if one.pid is not None else other.pid,
                host=one.host or other.host,
            )
    return one


def _join_kills(roots: list[LoggedLine], exits: list[LoggedLine]) -> tuple[list[LoggedLine], list[LoggedLine]]:
    """Join kills by the kernel with the exits of the processes with the same pid."""
    left = list(exits)
    found = []
    for root in roots:
        for one in exits:
            if root.code == "host_oom" and one.code == "killed" and root.pid is not None and root.pid == one.pid:
                root = replace(root, rank=root.rank if root.rank is not None else one.rank, exited=True)
                left = [other for other in left if other is not one]
        found.append(root)
    return found, left


def _is_way_out(one: LoggedLine, said: list[LoggedLine], echoes: list[LoggedLine]) -> bool:
    """Return True for SIGABRT after a root or an echo of the same process, or if the others only waited or lost a
    peer."""
    return one.exit == -6 and (bool(echoes) or any(one.rank is not None and one.rank == other.rank for other in said))


def _of_another(root: LoggedLine, kill: LoggedLine) -> bool:
    if root.pid is not None and kill.pid is not None:
        return root.pid != kill.pid
    return root.rank is None or kill.rank is None or root.rank != kill.rank


def _merge_equal(candidates: list[LoggedLine], seen: list[LoggedLine]) -> list[LoggedLine]:
    """Merge equal lines of several processes into the one that an agent saw first, otherwise into the first one."""
    groups: dict[tuple[str, ...], list[LoggedLine]] = {}
    for one in candidates:
        key = (one.code, one.role, one.text, one.host if one.speaker != "process" else "")
        groups.setdefault(key if one.role == "root" else (one.code, one.role), []).append(one)
    ranks = {one.rank for one in seen if one.rank is not None and one.speaker != "kernel"}
    found = []
    for group in groups.values():
        named = [one for one in group if _is_named(one, seen)]
        lead = min(named or group, key=lambda one: (one.lo, one.file, one.line))
        early = min(group, key=lambda one: (one.lo, one.file, one.line))
        said_by = {one.rank for one in group if one.rank is not None}
        if lead.role == "root" and len(said_by) >= 3 and 10 * len(said_by) > len(ranks) and not named:
            lead = replace(lead, rank=None)
        lead = replace(
            lead,
            lo=early.lo,
            hi=min(one.hi for one in group),
            time=early.time,
            unhandled=any(one.unhandled for one in group),
            ends=any(one.ends for one in group),
            exited=any(one.exited or _has_exit(one, seen) for one in group),
        )
        found.append(lead)
    return found


def _is_named(one: LoggedLine, seen: list[LoggedLine]) -> bool:
    """Return True if an agent names the process of a line as the failure that it saw first."""
    first = [other for other in seen if other.first]
    by_rank = any(other.rank is not None and other.rank == one.rank for other in first)
    return by_rank or any(other.pid is not None and other.pid == one.pid for other in first)


def _choose(folded: list[LoggedLine], seen: list[LoggedLine], fell: LoggedLine | None) -> Verdict:
    first = [one for one in folded if not any(_precedes(other, one) for other in folded if other is not one)]
    one = min(first, key=lambda one: _sort_key(one, seen))
    agreed = len({(other.code, other.rank, other.host) for other in first}) == 1
    other_fell = fell is not None and _is_other(one, fell)
    certain = agreed and not other_fell and any(_is_confirmed(other, seen) for other in first)
    nowhere = one.speaker == "scheduler"
    return Verdict(one.code, "confirmed" if certain else "likely", None if nowhere else one.rank)


def _precedes(one: LoggedLine, other: LoggedLine) -> bool:
    if one.file == other.file and one.rank is not None and one.rank == other.rank and one.speaker == other.speaker:
        return one.line < other.line
    return one.hi + APART < other.lo


def _sort_key(one: LoggedLine, seen: list[LoggedLine]) -> tuple[object, ...]:
    group = next(at for at, codes in enumerate(GROUPS.values()) if one.code in codes)
    placed = one.rank is not None or bool(one.host)
    whole = one.speaker != "process" and (group < 3 or one.exited)
    return (
        not (whole and one.speaker in ("kernel", "scheduler")),
        not _is_named(one, seen),
        group,
        not placed,
        one.rank if one.rank is not None else 1 << 30,
        one.file,
        one.line,
    )


def _is_confirmed(one: LoggedLine, seen: list[LoggedLine]) -> bool:
    if one.speaker == "kernel":
        return one.exited
    if not (one.time is not None or one.hi - one.lo < SHORT):
        return False
    if one.role == "root" and one.speaker == "process":
        return one.unhandled or one.exited or _has_exit(one, seen)
    return True


def _has_exit(root: LoggedLine, seen: list[LoggedLine]) -> bool:
    """Return True if a launcher or a scheduler reports the end of the process of a root cause."""
    exits = [one for one in seen if one.role == "exit" and one.speaker in ("launcher", "scheduler")]
    if root.rank is not None:
        return any(
            one.rank == root.rank or (one.rank is None and one.file == root.file and one.line > root.line)
            for one in exits
        )
    return any(one.file == root.file and one.line > root.line for one in exits)
