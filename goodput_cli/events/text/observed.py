"""What was seen in all sources, with the times that it was written at: sightings become observations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from goodput_cli.events.observations import Observation, Observed
from goodput_cli.events.text.causes import CauseRows
from goodput_cli.events.text.marks import CollectedSource, Said, What
from goodput_cli.events.text.observer import OF_PATH, Line, Observer, Sighting, is_ordinary
from goodput_cli.events.text.stamps import Stamp, Zone, with_year, year_of
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_SECOND

_MOST_WATCHED = 64
_AGREE = 2 * NS_PER_SECOND
_BEGINS = (What.START, What.INIT, What.SCHEDULED)
_PROGRESS = (What.STEP, What.START, What.STEP_START)


@dataclass
class EntryObserver:
    """Observes lines that come one by one, each with the time when a collector took it."""

    rows: CauseRows
    source: str = ""
    _observer: Observer = field(init=False)
    _watched: list[tuple[Sighting, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._observer = Observer(self.rows, self.source)

    def take(self, line: Line, worth: bool, said: Sequence[Said]) -> bool:
        """Look at a line. worth: whether it may say something. said: what the rules read in it. Returns whether it is
        part of an observation."""
        if any(one.what in _BEGINS for one in said):
            for one, _ in self._watched:
                one.ends = one.ordinary is None and one.late is None
            self._watched.clear()
        self._observer.epoch += any(one.what in _PROGRESS for one in said)
        part = False
        if worth or self._observer.wants_more:
            found, part = self._observer.take(line, lambda _: ())
            if found is not None and found.role == "root" and found.speaker == "process" and found.count == 1:
                prefix = line.raw[: len(line.raw) - len(line.text)].strip()
                self._watched = [*self._watched[1 - _MOST_WATCHED :], (found, prefix)]
        if not part and self._watched and is_ordinary(line):
            for one, prefix in self._watched:
                one.ends = False
                if one.stream == line.stream and prefix and "rank" in prefix and prefix in line.raw:
                    one.ordinary = one.ordinary or line.number
                one.late = line.stamp or one.late
        return part

    def fresh(self) -> list[Sighting]:
        """What was seen since the last call."""
        found = self._observer.fresh()
        for one in found:
            one.ends = one.role == "root"  # until something ordinary follows
        return found


def observations_of(
    sources: Mapping[int, CollectedSource],
    names: Sequence[str],
    local: Callable[[int], Callable[[int], int]],
    near: Mapping[int, Sequence[int]],
    year: int | None,
    now_ns: int,
) -> Observed:
    """All observations of some sources. local: by source, what a local time is in ns UTC. near: by source, times beside
    it that tell a year. year: that of stamps without one, where it was given."""
    rows: list[Observation] = []
    dropped: dict[str, int] = {}
    for code, source in sources.items():
        clock = _Clock(source, local(code), near.get(code, ()), year, now_ns)
        _name_nodes(source.seen)
        rows += [_observation(one, names[code], clock) for one in source.seen]
        if source.left_out:
            dropped[names[code]] = source.left_out
    return Observed(tuple(rows), read=frozenset(names[code] for code in sources), dropped=dropped)


def _name_nodes(seen: Sequence[Sighting]) -> None:
    """The host of a launcher's lines, where lines of its processes name it: those of one launcher are of one node."""
    hosts = {one.pid: one.host for one in seen if one.speaker == "process" and one.pid is not None and one.host}
    launched = [one for one in seen if one.speaker == "launcher"]
    named = {hosts[one.pid] for one in launched if one.pid in hosts} | {one.host for one in launched if one.host}
    if len(named) == 1 and hosts:
        for one in launched:
            one.host = one.host or next(iter(named))


class _Clock:
    """Reads the stamps of one source."""

    def __init__(
        self, source: CollectedSource, local: Callable[[int], int], near: Sequence[int], year: int | None, now_ns: int
    ) -> None:
        self._local, self._year = local, year
        dated = sorted((mark.line, mark.time) for mark in source.marks if mark.stamp is not None and mark.time)
        own = [
            (one.line, stamp.ns) for one in source.seen for stamp in (one.stamp, one.before, one.behind)
            if stamp is not None and stamp.zone is not Zone.YEARLESS
        ]  # fmt: skip
        self._lines = dated or sorted(own)
        self._near = near[0] if near else None
        self.modified = source.modified_ns if source.modified_ns is not None else now_ns

    def ns(self, stamp: Stamp, line: int) -> int:
        """The instant of a stamp, ns UTC."""
        if stamp.zone is Zone.YEARLESS:
            stamp = self._with_year(stamp, line)
        return stamp.ns if stamp.zone is Zone.EXACT else self._local(stamp.ns)

    def _with_year(self, stamp: Stamp, line: int) -> Stamp:
        if self._year is not None:
            return with_year(stamp, self._year, None)
        near = self._nearest(line)
        if near is None:
            latest = self.modified + NS_PER_DAY
            return with_year(stamp, year_of(latest), latest, latest=True)
        return with_year(stamp, year_of(near), near)

    def _nearest(self, line: int) -> int | None:
        if not self._lines:
            return self._near
        at = bisect_left(self._lines, (line, 0))
        return self._lines[min(at, len(self._lines) - 1)][1] if at else self._lines[0][1]


def _observation(one: Sighting, source: str, clock: _Clock) -> Observation:
    path = OF_PATH.search(source) if one.row == "error.json" else None
    if path is not None:
        one.own_life, one.local_rank = path["life"], int(path["local"])
    lo, hi, stamped = _bounds(one, clock)
    late = None if one.late is None else clock.ns(one.late, one.line)
    return Observation(
        one.code, one.role, one.text, one.row, one.speaker, source, one.line, lo, hi, stamped, one.stream, one.rank,
        one.local_rank, one.host, one.device, one.pid, one.exit, one.peer, tuple(sorted(one.suspects)), one.waited_ns,
        tuple(sorted(one.ranks.items(), key=lambda pair: (pair[1], pair[0]))), tuple(one.hosts), one.count,
        one.last_line, one.unhandled, one.garbled, one.ends, one.ordinary, late, one.first, one.before_steps,
        one.process, one.own_life, one.job, one.identity,
    )  # fmt: skip


def _bounds(one: Sighting, clock: _Clock) -> tuple[int | None, int | None, bool]:
    """Not earlier, not later, and whether the line itself says it. What a block says of itself, in whole seconds of
    some zone, counts where it agrees with the lines around it."""
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
        return None, None, False
    return before, behind, False


def says_events(source: CollectedSource) -> bool:
    """Whether a source of text tells of a job, and not only of deaths on a host."""
    if source.events or source.tracked or source.bad or any(mark.said is not None for mark in source.marks):
        return True
    return not (source.by_host or source.seen)
