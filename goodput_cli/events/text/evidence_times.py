"""Add times to the evidence of all sources."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from goodput_cli.events.evidence import CHANGED_WITH_TIME, EvidenceOfLog, FailureEvidence, UntimedEvidence
from goodput_cli.events.signs import RecoveryEvent
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.evidence_reader import OF_PATH
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, in_latest_year, with_year, year_of
from goodput_cli.events.text.sign_lines import by_source, signs_of_evidence, timed_signs
from goodput_cli.events.timestamps import Identity
from goodput_cli.vocabulary.when import NS_PER_SECOND

_AGREE = 2 * NS_PER_SECOND


def observations_of(
    sources: Mapping[int, CollectedSource],
    names: Sequence[str],
    clock_of: Callable[[int], SourceClock],
    jobs: Mapping[int, str],
    entries: Sequence[Identity],
) -> EvidenceOfLog:
    """Return all observations and recovery signs of some sources.

    clock_of: by source. jobs: by source, if known. entries: identities of Cloud Logging entries, by code.
    """
    rows: list[FailureEvidence] = []
    signs: list[RecoveryEvent] = []
    dropped: dict[str, int] = {}
    for code, source in sources.items():
        clock = clock_of(code)
        _name_nodes(source.seen)
        rows += [_observation(one, names[code], clock) for one in source.seen]
        if source.left_out:
            dropped[names[code]] = source.left_out
        if source.signs and code in jobs:
            signs += timed_signs(source, jobs[code], clock.ns, names[code], entries)
    read = frozenset(names[code] for code in sources)
    codes = by_source(names)
    signs += signs_of_evidence(rows, lambda one: _job_of(one, jobs, codes))
    return EvidenceOfLog(tuple(rows), read=read, dropped=dropped, signs=tuple(signs))


def _job_of(one: FailureEvidence, jobs: Mapping[int, str], codes: Mapping[str, int]) -> str:
    """Return the job of an observation; empty if unknown. A host's log belongs to the only job of all logs."""
    if one.of_host:
        every = set(jobs.values())
        return next(iter(every)) if len(every) == 1 else ""
    return jobs.get(codes[one.source], "")


def _name_nodes(seen: Sequence[UntimedEvidence]) -> None:
    """Set the host of launcher lines from lines of their processes: a launcher's processes run on one node."""
    hosts = {one.pid: one.host for one in seen if one.speaker == "process" and one.pid is not None and one.host}
    launched = [one for one in seen if one.speaker == "launcher"]
    named = {hosts[one.pid] for one in launched if one.pid in hosts} | {one.host for one in launched if one.host}
    if len(named) == 1 and hosts:
        for one in launched:
            one.host = one.host or next(iter(named))


class SourceClock:
    """Reads the timestamps of one source."""

    def __init__(
        self, source: CollectedSource, local: Callable[[int], int], near: Sequence[int], year: int | None, now_ns: int
    ) -> None:
        """local: the conversion of local time to ns UTC. near: other times that determine the year. year: for all
        timestamps without one. now_ns: used if the modification time of the source is unknown."""
        self._local, self._year = local, year
        dated = sorted(
            (log_line.line, log_line.time)
            for log_line in source.log_lines
            if log_line.stamp is not None and log_line.time
        )
        own = [
            (one.line, stamp.ns) for one in source.seen for stamp in (one.stamp, one.before, one.behind)
            if stamp is not None and stamp.zone is not Zone.YEARLESS
        ]  # fmt: skip
        self._lines = dated or sorted(own)
        self._dated = dated
        self._near = near[0] if near else None
        self.modified = source.modified_ns if source.modified_ns is not None else now_ns

    def ns(self, stamp: Timestamp, line: int) -> int:
        """Return the time of a timestamp, ns UTC."""
        if stamp.zone is Zone.YEARLESS:
            stamp = self._with_year(stamp, line)
        return stamp.ns if stamp.zone is Zone.EXACT else self._local(stamp.ns)

    def around(self, line: int) -> tuple[int | None, int | None]:
        """Return the times of the lines before and after a line, from timestamped formats; None if there are none."""
        at = bisect_left(self._dated, (line, 0))
        before = self._dated[at - 1][1] if at else None
        return before, self._dated[at][1] if at < len(self._dated) else None

    def _with_year(self, stamp: Timestamp, line: int) -> Timestamp:
        if self._year is not None:
            return with_year(stamp, self._year, None)
        near = self._nearest(line)
        if near is None:
            return in_latest_year(stamp, self.modified)
        return with_year(stamp, year_of(near), near)

    def _nearest(self, line: int) -> int | None:
        if not self._lines:
            return self._near
        at = bisect_left(self._lines, (line, 0))
        return self._lines[min(at, len(self._lines) - 1)][1] if at else self._lines[0][1]


_AS_SEEN = tuple(
    sorted(
        ({one.name for one in fields(FailureEvidence)} & {one.name for one in fields(UntimedEvidence)})
        - CHANGED_WITH_TIME
    )
)
"""Fields that an observation copies from untimed evidence."""


def _observation(one: UntimedEvidence, source: str, clock: SourceClock) -> FailureEvidence:
    path = OF_PATH.search(source) if one.row == "error.json" else None
    if path is not None:
        one.own_life, one.local_rank = path["life"], int(path["local"])
    lo, hi, stamped = _bounds(one, clock)
    return FailureEvidence(
        **{name: getattr(one, name) for name in _AS_SEEN},
        source=source,
        lo=lo,
        hi=hi,
        stamped=stamped,
        suspects=tuple(sorted(one.suspects)),
        ranks=tuple(sorted(one.ranks.items(), key=lambda pair: (pair[1], pair[0]))),
        hosts=tuple(one.hosts),
        late=None if one.late is None else clock.ns(one.late, one.line),
    )


def _bounds(one: UntimedEvidence, clock: SourceClock) -> tuple[int | None, int | None, bool]:
    """Return the earliest and latest time, and True if the line itself has a timestamp. The time of an agent block, in
    whole seconds of an unknown zone, counts only if it agrees with the lines around it."""
    before = None if one.before is None else clock.ns(one.before, one.line)
    behind = None if one.behind is None else clock.ns(one.behind, one.line)
    if before is not None and behind is not None and before > behind:
        before, behind = behind, before
    if one.stamp is not None:
        own = clock.ns(one.stamp, one.line)
        disagrees = (before is not None and own < before - _AGREE) or (behind is not None and own > behind + _AGREE)
        if not (one.row == "agent block" and disagrees):
            return own, own + (NS_PER_SECOND if one.stamp.whole else 0), True
    if before is None and behind is None:
        before, behind = clock.around(one.line)
    return before, behind, False


def has_events(source: CollectedSource) -> bool:
    """Return True if a text source contains events of a job, not only failures of a host."""
    if (
        source.events
        or source.tracked
        or source.bad
        or any(log_line.event is not None for log_line in source.log_lines)
    ):
        return True
    return not (source.by_host or source.seen)
