"""ISO weeks of a time zone: Monday 00:00 to Monday 00:00 by its clocks, so that one with a clock change is 167 or 169
hours long."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Week:
    """A week, or what of it lies in the window."""

    name: str
    """`2026-W05`."""
    start: int
    end: int
    """ns since 1970 UTC, inside the window."""
    full_ns: int
    """Length of the whole week."""

    @property
    def partial(self) -> bool:
        """Whether the window holds only a part of it."""
        return self.end - self.start < self.full_ns


class Calendar:
    """A window [start, end) (ns since 1970 UTC) and the weeks in it."""

    def __init__(self, start: int, end: int, zone: tzinfo) -> None:
        self.start, self.end = start, end
        self.weeks = weeks_of(start, end, zone)
        self._edges = [start, *(week.end for week in self.weeks)]

    def edges(self, start: int, end: int) -> list[int]:
        """The instants at which weeks begin inside [start, end)."""
        return self._edges[bisect_right(self._edges, start) : bisect_left(self._edges, end)]

    def week_at(self, instant: int) -> int:
        """Position of the week that holds an instant of the window."""
        return bisect_right(self._edges, instant) - 1


def weeks_of(start: int, end: int, zone: tzinfo) -> list[Week]:
    """The weeks of [start, end) (ns), in order."""
    return list(_weeks(start, end, zone))


def _weeks(start: int, end: int, zone: tzinfo) -> Iterator[Week]:
    day = (_EPOCH + timedelta(microseconds=start // 1000)).astimezone(zone).date()
    monday = day - timedelta(days=day.weekday())
    while (begin := _midnight(monday, zone)) < end:
        following = monday + timedelta(days=7)
        stop = _midnight(following, zone)
        year, number, _ = monday.isocalendar()
        if stop > start:
            yield Week(f"{year}-W{number:02d}", max(begin, start), min(stop, end), stop - begin)
        monday = following


def _midnight(day: date, zone: tzinfo) -> int:
    moment = datetime.combine(day, time(), zone).astimezone(UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
