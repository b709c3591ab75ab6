"""Cause and location of the end of an attempt (docs/causes.md), from the observations around its end.

Pure functions of a few rows: they never change a time, an attempt or how it ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from goodput_cli.accounting.attempts.processes import (
    CANCELS,
    MINUTE_NS,
    AttemptEvidence,
    Exits,
    FirstFailures,
    ProcessLocations,
    Teardown,
    drop_aborts,
    drop_bystanders,
    fill_in_ranks,
    has_continued,
    join_kills,
    mark_teardown,
    select_first,
    signal_to_stop,
    split_logged,
    split_other_processes,
)
from goodput_cli.events.evidence import (
    FACTS,
    LATEST,
    TOLERANCE_NS,
    FailureEvidence,
    earliest,
    ranks_of,
    silent_ranks,
    suspects_of,
)
from goodput_cli.vocabulary.categories import CAUSES, GROUPS, KILLED, UNKNOWN_CAUSE, CauseGroup, Certainty, group_of

_SAME_EXCEPTION = 3
_SYMPTOMS = ("stream writer", "oom summary")
"""Rows that a full disk causes as well, or that the kernel repeats in plainer words."""
_INTERRUPTS = ("interrupt", "agent interrupted")
_CLASS = re.compile(r"[A-Za-z_][\w.]{0,200}", re.ASCII)
_DIGITS = re.compile(r"\d+")
_FILE_OF_SLURM = re.compile(r"(?:^|/)slurm-(\d{1,12})(?:_\d+)?\.[^/]*$")
_HOST = re.compile(r"\w[\w.-]{0,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Echo:
    """Reports of the other processes about the one that died."""

    code: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Cause of an attempt's end. None and "" mean unknown."""

    code: str = UNKNOWN_CAUSE
    certainty: Certainty | None = None
    evidence: FailureEvidence | None = None
    rank: int | None = None
    host: str = ""
    device: str = ""
    others: tuple[FailureEvidence, ...] = ()
    """Other possible causes: the first observation of each code."""
    echoes: tuple[Echo, ...] = ()
    silent_ranks: tuple[int, ...] = ()
    suspects: tuple[int, ...] = ()
    """Ranks that other ranks waited for."""
    used: tuple[FailureEvidence, ...] = ()
    """All observations that were considered."""
    place: str = ""
    """Location of the event that states the cause, if no observation does."""
    planned: bool = False
    """True if a person or a controller ordered it: no cause is needed."""
    doubt: str = ""
    """Reason why the cause is only likely. "" if one of `others` may be the cause."""
    quotes: bool = True
    """True if the line that states the cause may be shown."""

    @property
    def also(self) -> tuple[str, ...]:
        """Codes of the other possible causes."""
        return tuple(one.code for one in self.others)

    @property
    def also_seen(self) -> tuple[FailureEvidence, ...]:
        """Lines for `also`, with text only if it may be shown."""
        return self.others if self.quotes else tuple(replace(one, text="") for one in self.others)

    @property
    def group(self) -> CauseGroup:
        return group_of(self.code)

    @property
    def text(self) -> str | None:
        """The line that states the cause; None if it may not be shown."""
        return self.evidence.text if self.evidence is not None and self.quotes else None

    @property
    def where(self) -> str | None:
        """Location of that line as `file:line`."""
        return self.evidence.where if self.evidence is not None else self.place or None

    @property
    def advice(self) -> str:
        """Recommended action, in a sentence. For a kill by an unknown process: where to look."""
        return self.advice_for(training_lost=True)

    def advice_for(self, *, training_lost: bool) -> str:
        """Return the recommended action. training_lost: True if training was lost at the end."""
        if self.code != KILLED:
            return CAUSES[self.code].advice_for(training_lost=training_lost)
        if _HOST.fullmatch(self.host):
            return f"check the kernel log: `ssh {self.host} dmesg -T`"
        jobs = [one.identity for one in self.used if one.speaker == "scheduler" and one.identity.isdecimal()]
        files = [found[1] for one in self.used if (found := _FILE_OF_SLURM.search(one.source)) is not None]
        job = next(iter([*jobs, *files]), "")
        if job:
            return f"check the kernel log; find the host with `sacct -j {job} -o NodeList`"
        return "check the kernel log of its host; log `hostname` at start to know it"

    @property
    def is_explained(self) -> bool:
        """True if a log line states the cause. A kill signal alone does not."""
        return self.code not in (UNKNOWN_CAUSE, KILLED)


NO_KNOWN_CAUSE = FailureCause()


def find_cause(attempt: AttemptEvidence, seen: Sequence[FailureEvidence]) -> FailureCause:
    """Return the cause among the observations of one attempt (see `evidence_of_attempts.causes_of`)."""
    seen = fill_in_ranks(seen)
    words = [one for one in seen if one.row not in FACTS]
    if not words:
        return NO_KNOWN_CAUSE
    first = FirstFailures(seen)
    seen = [mark_teardown(one, first) for one in seen]
    words = [one for one in seen if one.row not in FACTS]
    named = [
        one if attempt.stepped or not one.before_steps else replace(one, code=one.before_steps, role="root")
        for one in words
    ]
    ends = Teardown(seen, attempt)
    alive = [one for one in named if not ends.covers(one, first)]
    alive = drop_bystanders(alive)
    places = ProcessLocations(seen)
    roots = [places.complete(one) for one in alive if one.role == "root" and not has_continued(one, attempt)]
    exits = [places.complete(one) for one in alive if one.role == "exit"]
    echoes = [one for one in named if one.role == "echo"]
    killed = [one for one in named if one.code == KILLED and one.role in ("exit", "teardown")]
    roots = _join_exception_classes(roots)
    roots, exits = join_kills(_drop_requeues(roots), exits, killed)
    ends_seen = Exits(seen)
    others, exits = roots, drop_aborts(exits, roots, echoes)
    roots, passed = split_other_processes(roots, exits, ends_seen)
    roots, logged = split_logged(roots, ends_seen)
    candidates = _rank_candidates(roots, [one for one in exits if one.code != UNKNOWN_CAUSE], first)
    why = (
        _judge_candidates(candidates, seen, echoes, ends_seen)
        if candidates
        else _cause_from_echoes(echoes, exits, first)
    )
    if why.code == UNKNOWN_CAUSE and (signal := signal_to_stop(seen)) is not None:
        signal = places.complete(signal)
        why = FailureCause(KILLED, "confirmed", signal, signal.rank, signal.host)
    rest = [one for one in (*passed, *logged) if one.code != why.code] + list(why.others)
    return replace(
        why,
        others=tuple({one.code: one for one in reversed(rest) if one.code in CAUSES}.values())[::-1],
        echoes=_group_echoes(echoes),
        silent_ranks=silent_ranks(named),
        suspects=suspects_of(echoes, ranks_of(named)),
        used=(*words, *others),
    )


def _judge_candidates(
    candidates: list[FailureEvidence], seen: Sequence[FailureEvidence], echoes: list[FailureEvidence], ends_seen: Exits
) -> FailureCause:
    folded = _merge_equal_reports(candidates, seen)
    first = select_first(folded)
    named = FirstFailures(seen)
    chosen = min(first, key=lambda one: _sort_key(one, named))
    others = [one for one in first if one.code != chosen.code]
    agreed = len({(one.code, one.rank, one.host) for one in first}) == 1  # a log and its scheduler agree
    other_failed_first = named.is_other(chosen)
    certain = agreed and not other_failed_first and any(_is_confirmed(one, ends_seen) for one in first)
    rank, host, device = _locate(chosen, echoes, seen)
    return FailureCause(
        chosen.code,
        "confirmed" if certain else "likely",
        chosen,
        rank,
        host,
        device,
        tuple(sorted(others, key=lambda one: _sort_key(one, named))),
        doubt=""
        if certain or others
        else f"{named.words} failed first"
        if other_failed_first
        else _likely_reason(chosen),
    )


def _likely_reason(one: FailureEvidence) -> str:
    """Return the reason why a single observation is not enough to confirm the cause."""
    if one.garbled:
        return "the line mixes output of several processes"
    if one.row in _INTERRUPTS:
        return "the log does not show who sent it"
    if one.by_exit:
        confirm = f"confirm with --hosts-of-job {one.host}" if _HOST.fullmatch(one.host) else "its host is unknown"
        return f"matched by pid {one.pid}, program and time; {confirm}"
    if one.speaker == "kernel" and one.doubted:
        return f"matched by pid {one.pid} only, because the line contains no host"
    if one.of_host:
        return "the job's own log does not confirm it"
    if one.doubted:
        return "this message can have other reasons"
    return (
        "the log does not show that it ended the process"
        if _has_known_minute(one)
        else "the line has no timestamp; log timestamps to confirm it"
    )


def _cause_from_echoes(
    echoes: list[FailureEvidence], exits: Sequence[FailureEvidence], named: FirstFailures
) -> FailureCause:
    """Return the cause if no line states a mechanism: a wait that timed out, the recorded reason, or only the first
    process that failed."""
    waits = [one for one in echoes if one.code == "collective_timeout"]
    if not waits:
        recorded = next((one for one in exits if one.row == "recorded reason"), None)
        failed_first = named.earliest or _first_failed_on_one_host(exits)
        if recorded is not None or failed_first is None:
            return FailureCause(evidence=recorded)
        return FailureCause(evidence=failed_first, rank=failed_first.rank, host=failed_first.host)
    return FailureCause(
        "collective_timeout", "likely", min(waits, key=earliest), doubt="the log does not show why a rank was missing"
    )


def _first_failed_on_one_host(exits: Sequence[FailureEvidence]) -> FailureEvidence | None:
    """Return the first failed process in a scheduler's report, if all of them were on one host."""
    ended = [one for one in exits if one.speaker == "scheduler" and one.exit and one.host]
    if len({one.host for one in ended}) != 1:
        return None
    one = min(ended, key=lambda one: one.line)
    return one if len(one.ranks) < 2 else replace(one, rank=None)


def _drop_requeues(roots: list[FailureEvidence]) -> list[FailureEvidence]:
    """Drop cancellations of a job that its preemption put back into the queue."""
    if not any(one.code == "preempted" and one.speaker == "scheduler" for one in roots):
        return roots
    return [one for one in roots if not (one.code == "cancelled" and one.row in CANCELS)]


def _join_exception_classes(roots: list[FailureEvidence]) -> list[FailureEvidence]:
    """Replace each record of an exception's class by the traceback of that class, which has its message.

    The record states when the process ended, so the traceback is as certain as the record. Tracebacks of one class with
    several causes stay separate.
    """
    recorded = {one.text.rpartition(".")[2]: one for one in roots if one.unhandled and _CLASS.fullmatch(one.text)}
    if not recorded:
        return roots
    stated: defaultdict[str, list[FailureEvidence]] = defaultdict(list)
    for one in roots:
        stated[one.text.partition(":")[0].rpartition(".")[2]] += [one] * (one.raised or one.unhandled)
    joined, gone = list[FailureEvidence](), set[int]()
    for name, record in recorded.items():
        messages = [one for one in stated[name] if one.text != record.text and one.rank in (None, record.rank)]
        if len({one.code for one in messages}) == 1:
            first = min(messages, key=lambda one: (one.source, one.line))
            joined.append(replace(first, lo=record.lo, hi=record.hi, rank=record.rank, unhandled=True))
            gone |= {id(record), id(first)}
    return [one for one in roots if id(one) not in gone] + joined


def _rank_candidates(
    roots: list[FailureEvidence], exits: list[FailureEvidence], named: FirstFailures
) -> list[FailureEvidence]:
    """Order possible causes: root errors before exit codes. Errors of the first failing process come before later
    errors of other processes, and before errors that may not have ended anything."""
    failed_first = named.earliest
    if failed_first is None:
        return roots or exits
    since = earliest(failed_first) + TOLERANCE_NS
    roots = [one for one in roots if not (named.is_other(one) and earliest(one) > since)]
    if exits and all(one.doubted and named.is_other(one) for one in roots):
        return exits
    return roots or exits


def _merge_equal_reports(
    candidates: Iterable[FailureEvidence], seen: Sequence[FailureEvidence]
) -> list[FailureEvidence]:
    """Merge equal reports of several processes into the first one, or into the one that an agent saw first."""
    groups: dict[tuple[str, ...], list[FailureEvidence]] = {}
    for one in candidates:
        place = "" if one.speaker == "process" else one.host
        key = (one.code, one.role, place, _merge_key(one)) if one.role == "root" else (one.code, one.role)
        groups.setdefault(key, []).append(one)
    named, ranks = FirstFailures(seen), len(ranks_of(seen))
    return [_merge_group(group, named, ranks) for group in groups.values()]


def _merge_key(one: FailureEvidence) -> str:
    """Return the key under which reports of several processes are equal: the row, or an exception's type and message
    without numbers."""
    return one.row if one.row not in ("exception",) else _DIGITS.sub("0", one.text)


def _merge_group(group: list[FailureEvidence], named: FirstFailures, ranks: int) -> FailureEvidence:
    lead = min(
        group,
        key=lambda one: (
            not named.has_process(one, one.pid), one.role == "exit" and one.rank is None, earliest(one), one.source,
            one.line,
        ),
    )  # fmt: skip
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
    if alike and lead.role == "root" and lead.speaker == "process" and not named.has_process(lead, lead.pid):
        return replace(lead, rank=None, host="", device="")
    return lead


def _sort_key(one: FailureEvidence, first: FirstFailures) -> tuple[object, ...]:
    """Return the sort key of candidates: reports of a kernel or a scheduler about the process or the whole job, then
    the process that was seen to fail first, the group, symptoms after causes, reports with a location, the lowest rank,
    the file and the line."""
    group = group_of(one.code)
    whole = one.speaker in ("kernel", "scheduler", "pod") and (group in _WHOLE_JOB_GROUPS or one.unhandled)
    placed = one.rank is not None or bool(one.host) or bool(one.device)
    rank = one.rank if one.rank is not None else LATEST
    symptom = one.row in _SYMPTOMS or one.doubted
    return (
        not whole,
        not first.has_process(one, one.pid),
        GROUPS.index(group),
        symptom,
        not placed,
        rank,
        one.source,
        one.line,
    )


_WHOLE_JOB_GROUPS = ("hardware", "scheduler", "operator")
"""Groups of causes that end a job as a whole, whichever process is seen to fail first."""


def _is_confirmed(one: FailureEvidence, ends_seen: Exits) -> bool:
    if one.garbled or one.doubted or one.row in _INTERRUPTS:
        return False
    if one.speaker == "kernel":
        return one.unhandled  # joined by its pid in `join_kills`
    if one.speaker == "pod":
        return bool(one.identity) and one.unhandled
    if not _has_known_minute(one):
        return False
    if one.role == "root" and one.speaker == "process":
        return one.unhandled or (one.ends and one.raised) or ends_seen.has_exit_for(one)
    return True


def _has_known_minute(one: FailureEvidence) -> bool:
    """Return True if the time of a report is known to the minute."""
    return one.stamped or (one.lo is not None and one.hi is not None and one.hi - one.lo < MINUTE_NS)


def _locate(
    one: FailureEvidence, echoes: list[FailureEvidence], seen: Sequence[FailureEvidence]
) -> tuple[int | None, str, str]:
    if one.speaker == "scheduler" and group_of(one.code) in ("scheduler", "operator"):
        return None, "", ""
    rank, host = one.rank, one.host
    if rank is None and one.of_host:
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
    if one.role == "root" and (rank is None) == bool(host):
        rank, host = _join_locations(one, rank, host, seen)
    return rank, host, one.device


def _join_locations(
    one: FailureEvidence, rank: int | None, host: str, seen: Sequence[FailureEvidence]
) -> tuple[int | None, str]:
    """Return the rank and host of two reports if one names the rank, the other the host, and no report names another
    one."""
    same = [other for other in seen if (other.code, other.role, other.speaker) == (one.code, "root", one.speaker)]
    ranks = {rank, *(other.rank for other in same)} - {None}
    hosts = {host, *(other.host for other in same)} - {""}
    return (ranks.pop(), hosts.pop()) if len(ranks) == len(hosts) == 1 else (rank, host)


def _group_echoes(echoes: Iterable[FailureEvidence]) -> tuple[Echo, ...]:
    by_code: dict[str, list[FailureEvidence]] = {}
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
