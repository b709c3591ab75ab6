"""Collect signs of a recovery (`events/signs.py`) from lines of text, and add time and job when both are known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
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
from goodput_cli.events.text.line_timestamps import Timestamp
from goodput_cli.events.text.log_lines import LogLine, ParsedEvent
from goodput_cli.events.timestamps import Identity
from goodput_cli.events.values import MAX_NS
from goodput_cli.vocabulary.text import file_line

_WATCHDOG = "watchdog"
_DETECTORS = frozenset({_WATCHDOG, "watchdog exception", "heartbeat monitor", "no heartbeat of a rank"})
"""Rows of processes that waited for others until a timeout."""


def signs_in(log_lines: Iterable[LogLine]) -> list[UntimedRecoveryEvent]:
    """Return the signs in log lines with a time."""
    return [
        sign
        for log_line in log_lines
        if log_line.event is not None and log_line.event.signs
        for sign in _signs_of(log_line, log_line.event, log_line.event.at or log_line.stamp)
    ]


def _signs_of(log_line: LogLine, event: ParsedEvent, stamp: Timestamp | None) -> Iterable[UntimedRecoveryEvent]:
    if stamp is not None:
        for said in event.signs:
            yield UntimedRecoveryEvent(said, log_line.line, stamp, log_line.entry)


def timed_signs(
    source: CollectedSource, job: str, ns: Callable[[Timestamp, int], int], name: str, entries: Sequence[Identity]
) -> list[RecoveryEvent]:
    """Return the signs of one source with times. job: of the source. ns: converts the timestamp of a line. name: of the
    source. entries: identities of Cloud Logging entries, by code."""
    return [
        RecoveryEvent(job, one.said.point, at, _where(one, name, entries), one.said.host, one.said.rank, one.said.facts)
        for one in source.signs
        if is_possible(at := ns(one.stamp, one.line))
    ]


def _where(one: UntimedRecoveryEvent, name: str, entries: Sequence[Identity]) -> str:
    if one.line <= 0 and 0 <= one.entry < len(entries):
        return str(entries[one.entry][2])
    return file_line(name, one.line)


def is_possible(ns: int) -> bool:
    """Return True if a time (ns) is plausible for a log."""
    return 0 < ns < MAX_NS


def signs_of_evidence(rows: Iterable[FailureEvidence], job_of: Callable[[FailureEvidence], str]) -> list[RecoveryEvent]:
    """Return when processes failed, and when that was detected, from observations with their own timestamp."""
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
"""Speakers that report a failure when it happens; launchers and schedulers report it when they detect it."""


def few_signs(
    signs: Iterable[RecoveryEvent], sources: Sequence[str], notes: DiagnosticCollector
) -> tuple[RecoveryEvent, ...]:
    """Return a bounded number of signs per job, in order of time. sources: names by code."""
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
    """Return the code of each source by name."""
    return {name: code for code, name in enumerate(names)}


def sign(
    point: RecoveryPhase, *, host: str = "", rank: str | None = None, **facts: str | int | None
) -> RecoveryEventText:
    """Return a sign with the known facts, shortened to the length of a name. rank: as written."""
    known = {name: plain(one) if isinstance(one, str) else one for name, one in facts.items() if one not in (None, "")}
    return RecoveryEventText(
        point, {name: one for name, one in known.items() if one is not None}, plain(host), rank_of(rank)
    )


_DIGITS = 8
"""Of a rank."""


def rank_of(text: str | None) -> int | None:
    """Return a rank; None if the text is not one."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < _DIGITS else None
