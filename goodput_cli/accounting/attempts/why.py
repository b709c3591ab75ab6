"""Why an attempt died, and where (docs/causes.md): from what was observed around its end to one cause.

Pure functions of a few rows: nothing here changes a second, an attempt or how it ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from goodput_cli.events.observations import (
    FACTS,
    LATEST,
    TOLERANCE_NS,
    Observation,
    earliest,
    latest,
    may_be_same_host,
    precedes,
    ranks_of,
    same_host,
    same_process,
    same_rank,
    silent_ranks,
    suspects_of,
)
from goodput_cli.vocabulary.causes import (
    CAUSES,
    GROUPS,
    KILLED,
    PEER_LOST,
    UNKNOWN_CAUSE,
    CauseGroup,
    Certainty,
    group_of,
)
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SHORT = 60 * NS_PER_SECOND
_KILL = 10 * NS_PER_SECOND
_SAME_EXCEPTION = 3
_ABORTED = (-6, 134)
_ABORTING = frozenset(
    {"terminate", "fatal python error", "signal received", "core dumped", "job of a shell", "spawned process",
     "failed check"}
)  # fmt: skip
_OTHER_SIGNAL = re.compile(r"egmentation|[Bb]us error|llegal instruction|loating point|SIG(?:SEGV|BUS|FPE|ILL)")
_SIGKILL = (-9, 137)
_SYMPTOMS = ("stream writer", "oom summary")
"""Rows of what a full disk does as well, and of what the kernel says again in plainer words."""
_INTERRUPTS = ("interrupt", "agent interrupted")
_ENDED_TOO = ("worker", "pinning thread")
"""What a rank says whose workers were told to end as well."""
_LED_TO = ("python_error", "data_loader")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Life:
    """What the accounting knows of an attempt, of which observations say why it died. ns UTC."""

    begin: int
    up: int
    progress: int
    """The last progress; `up` without any."""
    progress_source: str
    progress_line: int
    """Where the last progress stands (without any: the start line); 0 where lines have no order."""
    death: int
    """The latest moment at which it died."""
    next_start: int
    """`LATEST` of the last one."""
    stepped: bool
    """Whether it recorded a step."""
    job: str = ""


@dataclass(frozen=True, slots=True)
class Echo:
    """What the others said of the one that died."""

    code: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Why:
    """Why an attempt died, as far as anybody says. None and "" are "not said"."""

    code: str = UNKNOWN_CAUSE
    certainty: Certainty | None = None
    evidence: Observation | None = None
    rank: int | None = None
    host: str = ""
    device: str = ""
    also: tuple[str, ...] = ()
    """Codes of what else may have been it."""
    echoes: tuple[Echo, ...] = ()
    silent_ranks: tuple[int, ...] = ()
    suspects: tuple[int, ...] = ()
    """Ranks that others waited for."""
    used: tuple[Observation, ...] = ()
    """Everything that was looked at."""
    place: str = ""
    """Of an event of the log that says so, where no observation does."""
    planned: bool = False
    """Whether somebody ordered it: then there is nothing to explain."""
    doubt: str = ""
    """Why it is only likely, in words; "": others that are in `also` may have been it."""
    quotes: bool = True
    """Whether the line that says so may be shown."""

    @property
    def group(self) -> CauseGroup:
        return group_of(self.code)

    @property
    def text(self) -> str | None:
        """The line that says so; None where it may not be shown."""
        return self.evidence.text if self.evidence is not None and self.quotes else None

    @property
    def where(self) -> str | None:
        """Where it stands: `file:line`."""
        return self.evidence.where if self.evidence is not None else self.place or None

    @property
    def known(self) -> bool:
        """Whether somebody says why: that a process was killed says only how."""
        return self.code not in (UNKNOWN_CAUSE, KILLED)


NOBODY_SAYS = Why()


class _Place(NamedTuple):
    """Where a process is, as launchers tell."""

    rank: int | None
    local_rank: int | None
    host: str
    pid: int | None


def why_it_died(life: Life, seen: Sequence[Observation]) -> Why:
    """The cause among the observations of one life (see `lives.causes_of`)."""
    seen = _with_ranks(seen)
    words = [one for one in seen if one.row not in FACTS]
    if not words:
        return NOBODY_SAYS
    named = [one if life.stepped or not one.before_steps else replace(one, code=one.before_steps) for one in words]
    ends = _ends_of_teardown(seen)
    first = _first_seen(seen)
    alive = [one for one in named if not _is_teardown(one, ends, first)]
    alive = [one for one in alive if not one.beside or _led_on(one, alive)]
    roots = _attached([one for one in alive if one.role == "root" and not _went_on(one, life)], seen)
    exits = _attached([one for one in alive if one.role == "exit"], seen)
    echoes = [one for one in named if one.role == "echo"]
    roots, exits = _kills_joined(roots, exits)
    others, exits = roots, _without_aborts(exits, roots, echoes)
    roots, passed = _own_process_only(roots, exits)
    candidates = roots or [one for one in exits if one.code != UNKNOWN_CAUSE]
    why = _judged(candidates, seen, echoes) if candidates else _of_echoes(echoes, exits)
    also = [one.code for one in passed if one.code != why.code] + list(why.also)
    return replace(
        why,
        also=tuple(dict.fromkeys(code for code in also if code in CAUSES)),
        echoes=_echoes(echoes),
        silent_ranks=silent_ranks(named),
        suspects=suspects_of(echoes, ranks_of(named)),
        used=(*words, *others),
    )


def _judged(candidates: list[Observation], seen: Sequence[Observation], echoes: list[Observation]) -> Why:
    folded = _folded(candidates, seen)
    first = [one for one in folded if not any(precedes(other, one) for other in folded if other is not one)]
    named = _first_seen(seen)
    chosen = min(first, key=lambda one: _order(one, named))
    others = [one for one in first if one.code != chosen.code]
    agreed = len({(one.code, one.rank, one.host) for one in first}) == 1  # a log and its scheduler say one thing
    certain = agreed and any(_is_said(one, seen) for one in first)
    rank, host, device = _where(chosen, echoes, seen)
    return Why(
        chosen.code,
        "said" if certain else "likely",
        chosen,
        rank,
        host,
        device,
        tuple(one.code for one in sorted(others, key=lambda one: _order(one, named))),
        doubt="" if certain or others else _doubt(chosen),
    )


def _doubt(one: Observation) -> str:
    """What is missing of an observation that alone explains a death."""
    if one.garbled:
        return "lines of several processes are mixed in it"
    if one.row in _INTERRUPTS:
        return "no line says by whom"
    if one.speaker in ("kernel", "pod"):
        return "no line of the job says so"
    return "no line says that its process ended of it" if _is_short(one) else "no time stands at its line"


def _of_echoes(echoes: list[Observation], exits: Sequence[Observation]) -> Why:
    """Where nobody states a mechanism: a wait that ran out of time, or the word that somebody recorded."""
    waits = [one for one in echoes if one.code == "collective_timeout"]
    if not waits:
        return Why(evidence=next((one for one in exits if one.row == "recorded reason"), None))
    return Why("collective_timeout", "likely", min(waits, key=earliest), doubt="no line says why somebody was missing")


class _End(NamedTuple):
    """From when on processes of a node say only that they are being killed."""

    time: int
    source: str
    line: int
    host: str
    everywhere: bool


def _ends_of_teardown(seen: Iterable[Observation]) -> list[_End]:
    by_signal = [
        one for one in seen
        if (one.role == "teardown" and one.row in ("closing signal", "death signal", "force terminated", "cancelled"))
        or one.row == "cancelled"
    ]  # fmt: skip
    return [_End(earliest(one), one.source, one.line, one.host, one.speaker == "scheduler") for one in by_signal]


def _is_teardown(one: Observation, ends: Sequence[_End], first: Sequence[_Place]) -> bool:
    if one.role not in ("root", "exit") or (one.speaker in ("scheduler", "pod") and one.role == "root"):
        return False
    for end in ends:
        if not (end.everywhere or end.source == one.source or (end.host and same_host(end.host, one.host))):
            continue
        if earliest(one) > end.time + TOLERANCE_NS:
            return True
        behind = end.source == one.source and end.line < one.line
        if one.row == "interrupt" and (behind or earliest(one) >= end.time):
            return True
        if one.row in _ENDED_TOO and behind and not _is_named(replace(one, pid=None), first):  # that of its worker
            return True
    return False


def _led_on(one: Observation, alive: Iterable[Observation]) -> bool:
    """Whether the process of an exception that was raised beside its main thread raised another behind it, as who waits
    for a thread does: alone, such an exception ends nothing, and where another mechanism is stated, that is why."""
    return any(
        other.role == "root" and not other.beside and other.code in _LED_TO and other.line > one.line
        and (same_process(one, other) or bool(one.stream)) and (other.source, other.stream) == (one.source, one.stream)
        for other in alive
    )  # fmt: skip


def _went_on(one: Observation, life: Life) -> bool:
    """Whether the process of a root said something ordinary behind it."""
    if one.speaker != "process":
        return False
    if one.ordinary is not None:
        return True
    hi = one.hi if one.hi is not None else one.lo
    by_prefix = one.rank is not None and bool(one.stream)
    if by_prefix or one.late is None or hi is None:
        return False
    return hi + _SHORT < one.late <= life.next_start


def _with_ranks(seen: Sequence[Observation]) -> Sequence[Observation]:
    """On one node the local rank is the rank: where an agent's processes are about as many as the ranks that speak."""
    launched = [one for one in seen if one.speaker == "launcher"]
    hosts = {one.host for one in launched if one.host}
    ranks, pids = ranks_of(seen), {one.pid for one in launched if one.pid is not None}
    if len(hosts) > 1 or not ranks or max(ranks) > len(pids) or any(one.rank is not None for one in launched):
        return seen
    return [
        replace(one, rank=one.local_rank) if one.row == "agent failed" and one.local_rank in ranks else one
        for one in seen
    ]  # fmt: skip


def _attached(rows: list[Observation], seen: Iterable[Observation]) -> list[Observation]:
    """Rows with the rank, the host and the pid of the launcher's lines about the same process."""
    places = [_Place(one.rank, one.local_rank, one.host, one.pid) for one in seen if one.speaker == "launcher"]
    return [_with_place(one, places) for one in rows]


def _with_place(one: Observation, places: Sequence[_Place]) -> Observation:
    for place in places:
        same_pid = one.pid is not None and one.pid == place.pid and may_be_same_host(one.host, place.host)
        same_rank = one.rank is not None and one.rank == place.rank
        same_local = (
            one.rank is None and one.local_rank is not None and one.local_rank == place.local_rank
            and bool(one.host) and same_host(one.host, place.host)
        )  # fmt: skip
        if same_pid or same_rank or same_local:
            one = replace(_completed(one, place), host=one.host or place.host)
    return one


def _completed(one: Observation, other: _Place | Observation) -> Observation:
    """With the process of another where it does not name one itself."""
    return replace(
        one,
        rank=one.rank if one.rank is not None else other.rank,
        local_rank=one.local_rank if one.local_rank is not None else other.local_rank,
        pid=one.pid if one.pid is not None else other.pid,
    )


def _kills_joined(roots: list[Observation], exits: list[Observation]) -> tuple[list[Observation], list[Observation]]:
    """A kill for want of memory and the exit of the killed process are one."""
    joined: list[Observation] = []
    left = list(exits)
    for root in roots:
        if root.code == "host_oom":
            same = [one for one in left if one.code == KILLED and _is_the_killed(root, one)]
            for one in same:
                root = replace(_completed(root, one), host=one.host or root.host, unhandled=True)
            left = [one for one in left if one not in same]
        joined.append(root)
    return joined, left


def _is_the_killed(root: Observation, one: Observation) -> bool:
    if root.pid is not None and one.pid is not None:
        return root.pid == one.pid and may_be_same_host(root.host, one.host)
    near = abs(earliest(root) - earliest(one)) <= TOLERANCE_NS + _KILL
    return bool(root.host and same_host(root.host, one.host) and near) or (root.speaker == "scheduler" and near)


def _without_aborts(exits: list[Observation], roots: list[Observation], echoes: list[Observation]) -> list[Observation]:
    """SIGABRT is a way out: of a process behind a root or an echo of its own, or where all others only waited."""
    waits = [one for one in echoes if one.code in ("collective_timeout", PEER_LOST)]
    said = [*roots, *echoes]
    return [
        one for one in exits
        if not (_is_abort(one) and (waits or any(same_process(one, other) for other in said)))
    ]  # fmt: skip


def _is_abort(one: Observation) -> bool:
    if one.exit is not None:
        return one.exit in _ABORTED
    return one.code == "native_crash" and one.row in _ABORTING and not _OTHER_SIGNAL.search(one.text)


def _own_process_only(
    roots: list[Observation], exits: list[Observation]
) -> tuple[list[Observation], list[Observation]]:
    """Roots that explain a death, and those long before the SIGKILL of another process, which is the cause then."""
    killed = [one for one in exits if one.code == KILLED and one.exit in _SIGKILL]
    kept: list[Observation] = []
    passed: list[Observation] = []
    for root in roots:
        far = [one for one in killed if earliest(one) > latest(root) + _SHORT and not same_rank(root, one)]
        (passed if far and root.speaker == "process" else kept).append(root)
    return kept, passed


def _folded(candidates: Iterable[Observation], seen: Sequence[Observation]) -> list[Observation]:
    """The same said by several processes, once: the first of it, or the one that an agent saw first."""
    groups: dict[tuple[str, ...], list[Observation]] = {}
    for one in candidates:
        place = "" if one.speaker == "process" else one.host
        key = (one.code, one.role, place, _kind(one)) if one.role == "root" else (one.code, one.role)
        groups.setdefault(key, []).append(one)
    named = _first_seen(seen)
    return [_one_of(group, named, len(ranks_of(seen))) for group in groups.values()]


def _kind(one: Observation) -> str:
    """What several processes say alike: the text but for numbers; of an exception, its type and message."""
    return one.row if one.row not in ("exception",) else _DIGITS.sub("0", one.text)


def _one_of(group: list[Observation], named: Sequence[_Place], ranks: int) -> Observation:
    lead = min(group, key=lambda one: (not _is_named(one, named), earliest(one), one.source, one.line))
    every = tuple(sorted(ranks_of(group)))
    if len(group) > 1:
        bound = min(group, key=lambda one: (earliest(one), one.source, one.line))
        lead = replace(
            lead,
            lo=bound.lo,
            hi=min((one.hi for one in group if one.hi is not None), default=lead.hi),
            stamped=bound.stamped,
            unhandled=any(one.unhandled for one in group),
            ends=any(one.ends for one in group),
            count=sum(one.count for one in group),
            garbled=all(one.garbled for one in group),
            ranks=tuple((rank, 0) for rank in every),
        )
    alike = len(every) >= _SAME_EXCEPTION and 10 * len(every) > ranks
    if alike and lead.role == "root" and lead.speaker == "process" and not _is_named(lead, named):
        return replace(lead, rank=None, host="", device="")
    return lead


def _first_seen(seen: Iterable[Observation]) -> list[_Place]:
    """The processes that agents name as the first failure that they saw."""
    launched = [one for one in seen if one.speaker == "launcher" and one.role == "exit"]
    named = [one for one in launched if one.first]
    if not named:
        plain = sorted(
            (one for one in launched if one.row == "agent failed"), key=lambda one: (earliest(one), one.line)
        )
        named = plain[:1]
    return [_Place(one.rank, one.local_rank, one.host, one.pid) for one in named]


def _is_named(one: Observation, named: Sequence[_Place]) -> bool:
    for place in named:
        if place.rank is not None and one.rank is not None:
            if place.rank == one.rank:
                return True
        elif place.pid is not None and one.pid is not None:
            if place.pid == one.pid:
                return True
        elif place.rank is None and place.local_rank is not None and one.rank == place.local_rank and len(named) == 1:
            return True
    return False


def _order(one: Observation, named: Sequence[_Place]) -> tuple[object, ...]:
    """By group, a symptom behind the others of it, then the one that an agent saw first, then one with a place, the
    lowest rank, the file and the line."""
    placed = one.rank is not None or bool(one.host) or bool(one.device)
    rank = one.rank if one.rank is not None else LATEST
    symptom = one.row in _SYMPTOMS
    return GROUPS.index(group_of(one.code)), symptom, not _is_named(one, named), not placed, rank, one.source, one.line


def _is_said(one: Observation, seen: Sequence[Observation]) -> bool:
    if one.garbled or one.row in _INTERRUPTS:
        return False
    if one.speaker == "kernel":
        return one.unhandled  # joined by its pid: see `_kills_joined`
    if one.speaker == "pod":
        return bool(one.identity) and one.unhandled
    if not _is_short(one):
        return False
    if one.role == "root" and one.speaker == "process":
        return one.unhandled or one.ends or any(_is_exit_of(one, other) for other in seen)
    return True


def _is_short(one: Observation) -> bool:
    """Whether it is known to the minute when it was said."""
    return one.stamped or (one.lo is not None and one.hi is not None and one.hi - one.lo < _SHORT)


def _is_exit_of(root: Observation, one: Observation) -> bool:
    if one.role != "exit" or one.speaker not in ("launcher", "scheduler"):
        return False
    if root.rank is not None and one.rank is not None:
        return root.rank == one.rank
    if root.pid is not None and one.pid is not None:
        return root.pid == one.pid
    return root.source == one.source and one.line > root.line


def _where(one: Observation, echoes: list[Observation], seen: Sequence[Observation]) -> tuple[int | None, str, str]:
    if one.speaker == "scheduler" and group_of(one.code) in ("scheduler", "operator"):
        return None, "", ""
    rank, host = one.rank, one.host
    if rank is None and one.speaker in ("kernel", "pod"):
        shared = suspects_of(echoes, ranks_of(seen))
        rank = shared[0] if len(shared) == 1 else None
    if rank is None and one.local_rank is not None:
        ranks = {
            r for other in seen for r, _ in other.ranks if other.host == host and other.local_rank == one.local_rank
        }
        rank = ranks.pop() if len(ranks) == 1 else None
    if rank is not None and not host:
        hosts = {other.host for other in seen if other.rank == rank and other.host}
        host = hosts.pop() if len(hosts) == 1 else ""
    return rank, host, one.device


def _echoes(echoes: Iterable[Observation]) -> tuple[Echo, ...]:
    by_code: dict[str, list[Observation]] = {}
    for one in echoes:
        by_code.setdefault(one.code, []).append(one)
    return tuple(
        Echo(
            code,
            tuple(sorted({rank for one in rows for rank, _ in one.ranks})),
            tuple(sorted({host for one in rows for host in one.hosts})),
            sum(one.count for one in rows),
        )
        for code, rows in sorted(by_code.items())
    )
