"""ISO-8601 timestamps -> ns, exact to the nanosecond; what has no zone is local time of a given zone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask
from goodput_cli.events.timestamps.columns import LayoutColumn, read_characters, read_layouts
from goodput_cli.events.values import MAX_NS
from goodput_cli.vocabulary.units import NS_PER_SECOND

_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
_SECONDS_PER_MINUTE = 60
_BEYOND_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})")
_DATE_AND_TIME = re.compile(r"\d{4}(?:-\d\d-|\d\d)\d\d[Tt ]\d\d:?\d\d", re.ASCII)
_UTC_MARK = re.compile(r"(.*\d) ?(?:z|UTC)", re.IGNORECASE)  # what `fromisoformat` does not know
_CACHE_SIZE = 100_000


class Instant(NamedTuple):
    """A timestamp that was understood. ns: since 1970 UTC. oddity: code of a diagnostic about its local time."""

    ns: int
    naive: bool
    oddity: str | None


@dataclass(frozen=True)
class Instants:
    """n timestamps. ns: int64[n], 0 where not good. good, naive: bool[n]. odd: positions by code of a diagnostic."""

    ns: I64
    good: Mask
    naive: Mask
    odd: dict[str, list[int]]


class TimestampReader:
    """Reads timestamps; those without a zone are local time of `zone`. Remembers the offset of each minute."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._offsets: dict[int, tuple[int, str | None]] = {}

    def read_column(self, texts: Sequence[Any]) -> Instants:
        """`read` of each of `texts`; those of an ordinary layout are read together."""
        return self._read_all(len(texts), read_layouts(texts), lambda: texts)

    def read_grid(self, characters: Characters, texts: Callable[[], Sequence[Any]]) -> Instants:
        """The same for texts of one length given as uint8[n, length]; `texts` gives them as such if it has to."""
        return self._read_all(len(characters), read_characters(characters), texts)

    def _read_all(self, size: int, columns: Iterable[LayoutColumn], texts: Callable[[], Sequence[Any]]) -> Instants:
        ns, good, naive = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        odd: dict[str, list[int]] = defaultdict(list)
        for column in columns:
            good[column.rows] = True
            naive[column.rows] = column.naive
            ns[column.rows] = column.ns
            if column.naive and self.zone is not UTC:
                ns[column.rows] -= self._local_offsets(column, odd)
        missing = np.flatnonzero(~good).tolist()
        given = texts() if missing else ()
        for at in missing:
            instant = self.read(given[at])
            if instant is not None:
                ns[at], naive[at], good[at] = instant.ns, instant.naive, True
                if instant.oddity:
                    odd[instant.oddity].append(at)
        inside = (ns >= 0) & (ns < MAX_NS)
        return Instants(np.where(inside, ns, 0), good & inside, naive, odd)

    def read(self, text: Any) -> Instant | None:
        """The instant of a timestamp of 0 to 9 fractional digits (more are cut); None if it is none.

        A local time that occurs twice is the first one; one that a clock change skips is read with the offset before
        the change. Both name their diagnostic as `oddity`.
        """
        moment = _parse(text)
        if moment is None:
            return None
        since = moment.replace(tzinfo=None) - _EPOCH
        seconds = since.days * _SECONDS_PER_DAY + since.seconds
        naive = moment.tzinfo is None
        offset, oddity = self._offset(seconds // _SECONDS_PER_MINUTE) if naive else (_seconds_east(moment), None)
        ns = (seconds - offset) * NS_PER_SECOND + since.microseconds * 1000
        if extra := _BEYOND_MICROSECONDS.search(text):
            ns += int(extra[1].ljust(3, "0"))
        return Instant(ns, naive, oddity) if 0 <= ns < MAX_NS else None

    def from_local(self, ns: int) -> int:
        """ns since 1970 UTC of a local time that is given as if it were UTC."""
        return ns - self._offset(ns // (_SECONDS_PER_MINUTE * NS_PER_SECOND))[0] * NS_PER_SECOND

    def _local_offsets(self, column: LayoutColumn, odd: dict[str, list[int]]) -> I64:
        """ns int64[n] east of UTC for local times; adds the positions of odd ones to `odd`."""
        minutes, inverse = np.unique(column.ns // (_SECONDS_PER_MINUTE * NS_PER_SECOND), return_inverse=True)
        offsets = [self._offset(int(minute)) for minute in minutes]
        for at, (_, oddity) in enumerate(offsets):
            if oddity:
                odd[oddity].extend(column.rows[inverse == at].tolist())
        east: I64 = np.array([offset for offset, _ in offsets], dtype=np.int64)[inverse]
        return east * NS_PER_SECOND

    def _offset(self, minute: int) -> tuple[int, str | None]:
        """Seconds east of UTC in a minute of local time (since 1970), and the code of what is odd about it."""
        if self.zone is UTC:
            return 0, None
        known = self._offsets.get(minute)
        if known is None:
            if len(self._offsets) >= _CACHE_SIZE:
                self._offsets.clear()
            moment = _EPOCH + timedelta(minutes=minute)
            known = self._offsets[minute] = _local_offset(moment.replace(tzinfo=self.zone))
        return known


def _parse(text: Any) -> datetime | None:
    if type(text) is not str or not _DATE_AND_TIME.match(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    marked = _UTC_MARK.fullmatch(text)
    try:
        moment = datetime.fromisoformat(marked[1]) if marked else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else None


def _local_offset(moment: datetime) -> tuple[int, str | None]:
    first = _seconds_east(moment.replace(fold=0))
    second = _seconds_east(moment.replace(fold=1))
    if first == second:
        return first, None
    return first, "ambiguous_local_time" if first > second else "nonexistent_local_time"


def _seconds_east(moment: datetime) -> int:
    offset = moment.utcoffset()
    return offset.days * _SECONDS_PER_DAY + offset.seconds if offset is not None else 0
