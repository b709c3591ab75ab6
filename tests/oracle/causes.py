"""Why an attempt died, a second time: docs/causes.md, *How a cause is chosen*, in plain Python from its words alone.

It judges what was said, line by line, and reads no text: whoever writes a log says here what each line is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

APART = 5
"""Seconds that two clocks may differ by."""
SHORT = 60
"""Bounds of a line below this many seconds say when it was."""
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
"""In the order in which they are believed."""


@dataclass(frozen=True)
class Said:
    """One line, or one block, of a log."""

    file: str
    line: int
    role: str
    """root, exit, echo, teardown; `ordinary`: what a process says that goes on; `quiet`: anything else."""
    code: str = ""
    time: float | None = None
    """When, if the line itself says so."""
    whole: bool = False
    """Whether in whole seconds."""
    rank: int | None = None
    pid: int | None = None
    host: str = ""
    exit: int | None = None
    speaker: str = "process"
    text: str = ""
    """What it says, without numbers."""
    unhandled: bool = False
    """Whether the interpreter said it on its way out."""
    first: bool = False
    """Whether an agent saw this failure first."""
    lo: float = float("-inf")
    hi: float = float("inf")
    exited: bool = False
    ends: bool = False


@dataclass(frozen=True)
class Ending:
    """All that was said, and what is known of the attempt that ended."""

    said: tuple[Said, ...]
    progress_file: str
    progress_line: int
    progress: float
    death: float
    """The latest moment of death."""
    next_line: int
    """The start line of the next attempt in the file of the progress."""
    next_start: float
    hosts: frozenset[str] = field(default_factory=frozenset)
    own_files: frozenset[str] = field(default_factory=frozenset)
    """Files that one process writes alone."""


@dataclass(frozen=True)
class Verdict:
    """The cause, how certain it is, and the rank."""

    code: str
    certainty: str | None
    rank: int | None


def judge(ending: Ending) -> Verdict:
    """Name the cause of an ending."""
    seen = [one for one in _bounded(ending) if one.role not in ("quiet", "ordinary") and _in_window(one, ending)]
    ordinary = [one for one in _bounded(ending) if one.role == "ordinary"]
    fell = _fell_first(seen)
    seen = [_in_order(one, fell) for one in seen]
    alive = [one for one in seen if not _is_teardown(one, seen)]
    roots = [one for one in alive if one.role == "root" and not _went_on(one, ordinary, ending)]
    exits = [one for one in alive if one.role == "exit"]
    echoes = [one for one in seen if one.role == "echo"]
    roots = [_placed(one, seen) for one in roots]
    roots, exits = _joined(roots, exits)
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
            return Verdict("killed", "confirmed", _placed(signal, seen).rank)
        return Verdict("unknown", None, None if fell is None else fell.rank)
    return _chosen(_folded(candidates, seen), seen, fell)


def _signal_to_stop(seen: list[Said]) -> Said | None:
    """Return the first SIGTERM, unless a process failed before it or a launcher sent it (Requests to stop)."""
    signals = [one for one in seen if one.exit in _SIGTERM]
    if not signals:
        return None
    first = min(signals, key=lambda one: (one.lo, one.file, one.line))
    failed = [one for one in seen if one.text == "closing signal" or one.exit not in (None, 0, -9, 137, *_SIGTERM)]
    return None if any(_is_before(one, first) for one in failed) else first


def _is_before(one: Said, other: Said) -> bool:
    if one.file == other.file and (one.lo == other.lo or one.time is None or other.time is None):
        return one.line < other.line
    return one.lo < other.lo


def _fell_first(seen: list[Said]) -> Said | None:
    """The process that an agent saw fail first."""
    first = [one for one in seen if one.first]
    return min(first, key=lambda one: (one.lo, one.line), default=None)


def _in_order(one: Said, fell: Said | None) -> Said:
    """An exit that a launcher saw later than the first one is what it did to those that were left."""
    if fell is None or one.role != "exit" or one.speaker not in ("launcher", "scheduler") or not _is_other(one, fell):
        return one
    wait = 0 if one.exit in (-9, -15) and one.file == fell.file else APART
    return replace(one, role="teardown") if one.lo > fell.lo + wait else one


def _is_other(one: Said, fell: Said) -> bool:
    """Whether it is of a process that is known to be another one."""
    if one.speaker not in ("process", "launcher") or (one.rank is None and one.pid is None):
        return False
    return one.rank != fell.rank if one.rank is not None else one.pid != fell.pid


def _has_own_exit(root: Said, seen: list[Said]) -> bool:
    exits = [one for one in seen if one.role == "exit" and one.speaker in ("launcher", "scheduler")]
    return root.rank is not None and any(one.rank == root.rank for one in exits)


def _bounded(ending: Ending) -> list[Said]:
    """All lines with the times that they lie between: their own, else those of the stamps around them in the file."""
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


def _in_window(one: Said, ending: Ending) -> bool:
    if one.speaker == "kernel":
        known = bool(one.host) and one.host in ending.hosts
        return known and ending.progress - APART < one.lo <= min(ending.death + AFTER, ending.next_start)
    if one.file == ending.progress_file:
        return ending.progress_line < one.line < ending.next_line
    near = one.lo > ending.progress - APART or (one.hi > ending.progress and one.hi - one.lo < SHORT)
    return near and one.lo <= ending.next_start


def _is_teardown(one: Said, seen: list[Said]) -> bool:
    """Said more than 5 s behind a closing signal or the scheduler's end, unless by the scheduler."""
    if one.role not in ("root", "exit") or (one.speaker == "scheduler" and one.role == "root"):
        return False
    ends = [
        other for other in seen
        if other.text in ("closing signal", "cancelled") and (other.speaker == "scheduler" or other.file == one.file)
    ]  # fmt: skip
    return any(one.lo > end.lo + APART for end in ends)


def _went_on(one: Said, ordinary: list[Said], ending: Ending) -> bool:
    """Whether the process of a root said something ordinary behind it; without ranks, a minute later at least."""
    if one.speaker != "process":
        return False
    behind = [other for other in ordinary if other.file == one.file and one.line < other.line]
    behind = [other for other in behind if one.file != ending.progress_file or other.line < ending.next_line]
    if one.file in ending.own_files:
        return bool(behind) or _late(one, behind)
    if one.rank is not None:
        return any(other.rank == one.rank for other in behind)
    return _late(one, behind)


def _late(one: Said, behind: list[Said]) -> bool:
    return any(other.time is not None and one.hi + SHORT < other.time for other in behind)


def _placed(one: Said, seen: list[Said]) -> Said:
    """A root with what launchers say of the same process."""
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


def _joined(roots: list[Said], exits: list[Said]) -> tuple[list[Said], list[Said]]:
    """A kill by the kernel and the exit of the process with that pid are one."""
    left = list(exits)
    found = []
    for root in roots:
        for one in exits:
            if root.code == "host_oom" and one.code == "killed" and root.pid is not None and root.pid == one.pid:
                root = replace(root, rank=root.rank if root.rank is not None else one.rank, exited=True)
                left = [other for other in left if other is not one]
        found.append(root)
    return found, left


def _is_way_out(one: Said, said: list[Said], echoes: list[Said]) -> bool:
    """SIGABRT behind a root or an echo of the same process, or where the others only waited or lost somebody."""
    return one.exit == -6 and (bool(echoes) or any(one.rank is not None and one.rank == other.rank for other in said))


def _of_another(root: Said, kill: Said) -> bool:
    if root.pid is not None and kill.pid is not None:
        return root.pid != kill.pid
    return root.rank is None or kill.rank is None or root.rank != kill.rank


def _folded(candidates: list[Said], seen: list[Said]) -> list[Said]:
    """What several processes say alike, once: by the one that an agent saw first, else by the first one."""
    groups: dict[tuple[str, ...], list[Said]] = {}
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


def _is_named(one: Said, seen: list[Said]) -> bool:
    """Whether an agent names its process as the failure that it saw first."""
    first = [other for other in seen if other.first]
    by_rank = any(other.rank is not None and other.rank == one.rank for other in first)
    return by_rank or any(other.pid is not None and other.pid == one.pid for other in first)


def _chosen(folded: list[Said], seen: list[Said], fell: Said | None) -> Verdict:
    first = [one for one in folded if not any(_precedes(other, one) for other in folded if other is not one)]
    one = min(first, key=lambda one: _order(one, seen))
    agreed = len({(other.code, other.rank, other.host) for other in first}) == 1
    other_fell = fell is not None and _is_other(one, fell)
    certain = agreed and not other_fell and any(_is_said(other, seen) for other in first)
    nowhere = one.speaker == "scheduler"
    return Verdict(one.code, "confirmed" if certain else "likely", None if nowhere else one.rank)


def _precedes(one: Said, other: Said) -> bool:
    if one.file == other.file and one.rank is not None and one.rank == other.rank and one.speaker == other.speaker:
        return one.line < other.line
    return one.hi + APART < other.lo


def _order(one: Said, seen: list[Said]) -> tuple[object, ...]:
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


def _is_said(one: Said, seen: list[Said]) -> bool:
    if one.speaker == "kernel":
        return one.exited
    if not (one.time is not None or one.hi - one.lo < SHORT):
        return False
    if one.role == "root" and one.speaker == "process":
        return one.unhandled or one.exited or _has_exit(one, seen)
    return True


def _has_exit(root: Said, seen: list[Said]) -> bool:
    """Whether a launcher or a scheduler says that the process of a root ended."""
    exits = [one for one in seen if one.role == "exit" and one.speaker in ("launcher", "scheduler")]
    if root.rank is not None:
        return any(
            one.rank == root.rank or (one.rank is None and one.file == root.file and one.line > root.line)
            for one in exits
        )
    return any(one.file == root.file and one.line > root.line for one in exits)
