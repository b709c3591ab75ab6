"""Signs of a recovery (`events/signs.py`) in lines of text: taken out of what lines say before it becomes events, and
given a time and a job once both are known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.envelope import Identity
from goodput_cli.events.evidence import FailureEvidence
from goodput_cli.events.signs import (
    MOST_SIGNS,
    RecoveryEvent,
    RecoveryEventText,
    RecoveryPhase,
    UntimedRecoveryEvent,
    in_order,
    plain,
    thin_out,
)
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.log_lines import LogLine, ParsedEvent
from goodput_cli.events.text.stamps import Stamp
from goodput_cli.events.values import MAX_SECONDS
from goodput_cli.vocabulary.when import NS_PER_SECOND

_LATEST_NS = MAX_SECONDS * NS_PER_SECOND
_WATCHDOG = "watchdog"
_DETECTORS = frozenset({_WATCHDOG, "watchdog exception", "heartbeat monitor", "no heartbeat of a rank"})
"""Rows of what waited for others, and says that it waited too long."""


def signs_in(log_lines: Iterable[LogLine]) -> list[UntimedRecoveryEvent]:
    """The signs that log lines hold. A line without a time names no moment."""
    return [
        sign
        for log_line in log_lines
        if log_line.event is not None and log_line.event.signs
        for sign in _signs_of(log_line, log_line.event, log_line.event.at or log_line.stamp)
    ]


def _signs_of(log_line: LogLine, event: ParsedEvent, stamp: Stamp | None) -> Iterable[UntimedRecoveryEvent]:
    if stamp is not None:
        for said in event.signs:
            yield UntimedRecoveryEvent(said, log_line.line, stamp, log_line.entry)


def timed_signs(
    source: CollectedSource, job: str, ns: Callable[[Stamp, int], int], name: str, entries: Sequence[Identity]
) -> list[RecoveryEvent]:
    """The signs of one source. job: whose it is. ns: the instant of a stamp of a line. name: of the source. entries:
    identities of entries of Cloud Logging, by their codes."""
    return [
        RecoveryEvent(job, one.said.point, at, _where(one, name, entries), one.said.host, one.said.rank, one.said.facts)
        for one in source.signs
        if is_possible(at := ns(one.stamp, one.line))
    ]


def _where(one: UntimedRecoveryEvent, name: str, entries: Sequence[Identity]) -> str:
    if one.line <= 0 and 0 <= one.entry < len(entries):
        return str(entries[one.entry][2])
    return f"{name}:{one.line}"


def is_possible(ns: int) -> bool:
    """Whether an instant is one that a log may have."""
    return 0 < ns < _LATEST_NS


def signs_of_evidence(rows: Iterable[FailureEvidence], job_of: Callable[[FailureEvidence], str]) -> list[RecoveryEvent]:
    """What observations with a time of their own say of when a process failed, and when somebody saw it."""
    found: list[RecoveryEvent] = []
    for one in rows:
        job = job_of(one) if one.stamped and one.lo is not None else ""
        for point, ns, facts in _points_of(one) if job else ():
            if is_possible(ns):
                found.append(RecoveryEvent(job, point, ns, one.where, plain(one.host), one.rank, facts))
    return found


def _points_of(one: FailureEvidence) -> list[tuple[RecoveryPhase, int, Mapping[str, str | int]]]:
    assert one.lo is not None
    if one.row in _DETECTORS:
        facts: dict[str, str | int] = {} if one.waited_ns is None else {"timeout_ns": one.waited_ns}
        seen: list[tuple[RecoveryPhase, int, Mapping[str, str | int]]] = [(RecoveryPhase.DETECTED, one.lo, facts)]
        if one.row == _WATCHDOG and one.waited_ns is not None:
            seen.append((RecoveryPhase.FAILED, one.lo - one.waited_ns, {**facts, "exact": 1}))
        return seen
    if one.role != "root" or one.speaker not in _WITNESSES:
        return []
    return [(RecoveryPhase.FAILED, one.lo, {"cause": one.code})]


_WITNESSES = ("process", "kernel", "pod")
"""Who says that something failed when it did; launchers and schedulers say it when they have seen it."""


def few_signs(
    signs: Iterable[RecoveryEvent], sources: Sequence[str], notes: DiagnosticCollector
) -> tuple[RecoveryEvent, ...]:
    """The signs in order of time, those of each job in bounded number. sources: the names of all, by their codes."""
    by_job: defaultdict[str, list[RecoveryEvent]] = defaultdict(list)
    for one in signs:
        by_job[one.job].append(one)
    found: list[RecoveryEvent] = []
    for own in by_job.values():
        kept = thin_out(own, lambda sign: (sign.point, sign.time))
        if len(kept) < len(own):
            _note_left_out(len(own) - len(kept), own[0], by_source(sources), notes)
        found += kept
    return in_order(found)


def _note_left_out(many: int, first: RecoveryEvent, sources: Mapping[str, int], notes: DiagnosticCollector) -> None:
    source, _, line = first.where.rpartition(":")
    message = (
        f"more recovery events than the {MOST_SIGNS:,} that are kept per job: of each kind, only the first and the "
        "last per minute count, or per longer interval"
    )
    notes.add("signs_left_out", message, sources.get(source, 0), [int(line) if line.isdecimal() else 1], (), many)


def by_source(names: Sequence[str]) -> dict[str, int]:
    """The code of each source by its name."""
    return {name: code for code, name in enumerate(names)}


def sign(
    point: RecoveryPhase, *, host: str = "", rank: str | None = None, **facts: str | int | None
) -> RecoveryEventText:
    """A sign with the facts that are known, none of them longer than a name. rank: as it is written."""
    known = {name: plain(one) if isinstance(one, str) else one for name, one in facts.items() if one not in (None, "")}
    return RecoveryEventText(
        point, {name: one for name, one in known.items() if one is not None}, plain(host), rank_of(rank)
    )


_DIGITS = 8
"""Of a rank."""


def rank_of(text: str | None) -> int | None:
    """A rank as it is written; None: it is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < _DIGITS else None
