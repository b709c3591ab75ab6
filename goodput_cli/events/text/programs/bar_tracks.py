"""Merge progress bars that processes of several nodes drew of the same steps without rank prefixes: one of them
counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.text.programs.progress_bars import EVERY, FIRST, Bar, bar_of, is_of_bars
from goodput_cli.vocabulary.when import NS_PER_SECOND

_BURST = 60 * NS_PER_SECOND
"""Maximum time in which all nodes print the same line."""
_AGAIN = 4
_NODES = 64
"""Maximum number of bars that are compared."""


@dataclass
class _Track:
    """A bar drawn by one process. Times are on a clock consistent with all its states, ns."""

    begin: int
    first: Bar
    last: Bar
    rows: list[int]
    """Rows of its states in the log lines."""
    since: int
    """The last known time before its first state, ns."""
    until: int | None = None
    """The first known time after its last state, ns."""
    is_closed: bool = False
    """True if another process started since."""

    @property
    def end(self) -> int:
        return self.begin + self.last.elapsed * NS_PER_SECOND

    def is_over(self, same: Sequence[_Track]) -> bool:
        """Return True if another bar of its name began after its last state and was redrawn repeatedly, as bars of
        nodes alternate."""
        later = (track for track in reversed(same) if track.rows[0] > self.rows[-1])
        return any(len(track.rows) >= _AGAIN and track.last.elapsed >= EVERY for track in later)

    def goes_on(self, bar: Bar, now: int) -> bool:
        """Return True if a state may belong to this bar, whose clock covers all time since its last state. now: last
        known time before the state, ns."""
        if self.is_closed or bar.done < self.last.done or bar.elapsed < self.last.elapsed:
            return False
        since = (bar.elapsed - self.last.elapsed) * NS_PER_SECOND
        return self.until is None or now - self.until <= since + _BURST

    def distance_to(self, bar: Bar) -> tuple[bool, bool, int, int]:
        """Return a sort key for the distance of a state from this bar's last one. A full bar comes last, then one with
        the same count but another time."""
        ahead, later = bar.done - self.last.done, bar.elapsed - self.last.elapsed
        return self.last.is_full, ahead == 0 < later, ahead, later

    def is_parallel(self, other: _Track) -> bool:
        """Return True if another process drew a bar at the same time: the states alternate, in sequence they would take
        longer than the lines around them show, or the times overlap by over half of the shorter."""
        first, second = sorted((self, other), key=lambda one: one.rows[0])
        if second.rows[0] < first.rows[-1]:
            return True
        if second.first.elapsed >= first.last.elapsed > 0 and second.first.done < first.last.done:
            return False  # The same process returned to an earlier step.
        both = (first.last.elapsed + second.last.elapsed) * NS_PER_SECOND
        if second.until is not None and both > second.until - first.since + _BURST:
            return True
        if second.until is not None and first.since == second.since and second.end > second.until + _BURST:
            return True  # It follows all bars since the same line, which others report.
        shorter = min(first.end - first.begin, second.end - second.begin)
        return 2 * (min(first.end, second.end) - max(first.begin, second.begin)) > shorter


def one_bar_each(log_lines: Sequence[LogLine], of_one_process: Container[str] = ()) -> list[LogLine]:
    """Return the log lines of one source without duplicates of nodes: of bars of the same steps without rank prefixes,
    only the one with most states, and lines printed next to the bars once. of_one_process: streams without
    duplicates."""
    streams: defaultdict[str, list[int]] = defaultdict(list)
    for row, log_line in enumerate(log_lines):
        streams[log_line.stream].append(row)
    dropped: set[int] = set()
    for rows in (rows for stream, rows in streams.items() if stream not in of_one_process):
        tracks, clock = _tracks(log_lines, rows)
        others = [row for same in tracks.values() for track in _repeated(same) for row in track.rows]
        dropped.update(others)
        dropped.update(_duplicates(log_lines, [row for row in rows if row not in dropped], clock))
    return [
        replace(log_line, event=None) if row in dropped else log_line
        for row, log_line in enumerate(log_lines)
        if row not in dropped or log_line.stamp is not None
    ]


def _tracks(
    log_lines: Sequence[LogLine], rows: Sequence[int]
) -> tuple[dict[tuple[str, int, int], list[_Track]], dict[int, int]]:
    """Return the bars of one stream by name, epoch and total, and the earliest time (ns) of each log line."""
    tracks: defaultdict[tuple[str, int, int], list[_Track]] = defaultdict(list)
    clock: dict[int, int] = {}
    now = shown = next(
        (log_line.stamp.ns for log_line in map(log_lines.__getitem__, rows) if log_line.stamp is not None), 0
    )
    drawn: list[_Track] = []  # Since the last timestamp.
    epochs: set[tuple[str, int]] = set()  # Bars without an epoch, as of evaluations, are others in each.
    for row in rows:
        log_line, bar = log_lines[row], bar_of(log_lines[row])
        if log_line.stamp is not None:
            shown, now = max(shown, log_line.stamp.ns), max(now, log_line.stamp.ns)
            for track in drawn:
                track.until = shown
            drawn = []
        if is_of_bars(log_line, EventType.START):
            _close(tracks.values(), shown)
        if bar is not None:
            if bar.epoch is not None:
                epochs.add((bar.name, bar.epoch))
            same = tracks[bar.name, len(epochs) if bar.epoch is None else bar.epoch, bar.total]
            going = [track for track in same[-_NODES:] if track.goes_on(bar, shown) and not track.is_over(same)]
            if going:
                track = _continued(going, bar)
                track.last, track.until = bar, None if log_line.stamp is None else shown
                track.rows.append(row)
                now = max(now, track.end)
            else:
                track = _Track(
                    now - bar.elapsed * NS_PER_SECOND, bar, bar, [row], shown, None if log_line.stamp is None else shown
                )
                same.append(track)
            drawn.append(track)
        clock[row] = now
    return tracks, clock


def _close(tracks: Iterable[Sequence[_Track]], shown: int) -> None:
    """Close the bars drawn for long when a process starts, as they are of earlier processes. shown: the time, ns."""
    for same in tracks:
        for track in same:
            track.is_closed |= shown - track.since > _BURST


def _continued(going: Sequence[_Track], bar: Bar) -> _Track:
    """Return the bar that a state belongs to. It is the one drawn last if that is drawn again, or if it was drawn
    repeatedly and no other one since its begin; otherwise the nearest. going: bars that the state may belong to."""
    latest = max(going, key=lambda one: one.rows[-1])
    is_again = len(latest.rows) > 1 and (latest.last.done, latest.last.elapsed) == (bar.done, bar.elapsed)
    is_alone = len(latest.rows) >= FIRST and all(one.rows[-1] < latest.rows[0] for one in going if one is not latest)
    return latest if is_again or is_alone else min(going, key=lambda one: one.distance_to(bar))


def _repeated(tracks: Sequence[_Track]) -> list[_Track]:
    """Return the bars, in order, that duplicate another one with more states."""
    groups: list[list[_Track]] = []
    for track in tracks:
        group = next((group for group in groups[-_NODES:] if any(track.is_parallel(one) for one in group)), None)
        if group is None:
            groups.append([track])
        else:
            group.append(track)
    best = {id(max(group, key=lambda one: (len(one.rows), one.last.done))) for group in groups}
    return [track for track in tracks if id(track) not in best]


def _duplicates(log_lines: Sequence[LogLine], rows: Sequence[int], clock: dict[int, int]) -> set[int]:
    """Return duplicate lines of the Trainer on several nodes: all but the first start in a burst, the last end, and the
    longest of similar evaluations without a step in between."""
    again: set[int] = set()
    started: int | None = None
    finished: int | None = None
    evaluated: int | None = None
    for row in rows:
        log_line = log_lines[row]
        if log_line.event is not None and log_line.event.type in ENDS and not is_of_bars(log_line, EventType.FINISHED):
            started = None
        elif is_of_bars(log_line, EventType.START):
            if started is not None and clock[row] - clock[started] <= _BURST and finished is None:
                again.add(row)
            else:
                started, finished, evaluated = row, None, None
        elif is_of_bars(log_line, EventType.FINISHED):
            if finished is not None and clock[row] - clock[finished] <= _BURST:
                again.add(finished)
            finished, evaluated = row, None
        elif is_of_bars(log_line, EventType.EVAL):
            shorter, longer = sorted(
                (row if evaluated is None else evaluated, row), key=lambda at: _took(log_lines[at])
            )
            if evaluated is not None and 10 * _took(log_lines[shorter]) >= 9 * _took(log_lines[longer]):
                again.add(shorter)
            evaluated = longer
        elif bar_of(log_line) is not None:
            evaluated = None
    return again


def _took(log_line: LogLine) -> int:
    return log_line.event.took or 0 if log_line.event is not None else 0
