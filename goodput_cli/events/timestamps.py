"""ISO-8601 timestamps of many records as ns, exact to the nanosecond, and the Cloud Logging entry around a payload,
which has one, as a sink writes it to a bucket and `gcloud logging read` prints it.

A timestamp without a zone is local time of a given zone.

Timestamps of ordinary layouts are read a whole column at once, with array arithmetic on digits at fixed positions. All
others are left to the reader of single timestamps, so the fast path need not judge irregular input.

`isos` formats a whole column of times, many times faster than `text.iso` of each.

`EntryZones` infers the zone of timestamps without one from the surrounding entries. A program that logs local time into
Cloud Logging leaves two clocks on every line: its own, and the entry's, which is UTC. Their difference, rounded to a
quarter of an hour, is the offset of the program's zone (docs/formats.md, Time).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Characters, Mask, Rows, Words
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.rows import Origin
from goodput_cli.events.schema import EventTable
from goodput_cli.events.values import DIGITS, MAX_NS, WORD, digit_values, mask_of
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_LAYOUT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|([+-])(\d\d):?(\d\d))?", re.ASCII)
_MAX_LAYOUTS = 24
_DIGITS_OF_NS = 9
_ZERO, _NINE = ord("0"), ord("9")
_DATE, _TIME = len("20"), len("2025-01-01T")
"""Offsets of `yy-mm-dd` and `hh:mm:ss`."""
_PAIRS = np.uint64(mask_of(0, 2) | mask_of(3, 5) | mask_of(6, 8))
_BYTE = np.uint64(0xFF)


class LayoutColumn(Struct, frozen=True):
    """Timestamps of one layout. rows: int64[k], their positions. ns: int64[k] since 1970, local time if naive."""

    rows: I64
    ns: I64
    naive: bool


def read_layouts(texts: Sequence[Any]) -> Iterator[LayoutColumn]:
    """Yield the timestamps among `texts` of the form `YYYY-MM-DD[T ]hh:mm:ss[.f][zone]`, by layout, without the
    others."""
    if set(map(type, texts)) != {str}:
        return
    sizes = list(map(len, texts))
    lengths = np.array(sizes, dtype=np.int64)
    for length in sorted(set(sizes))[:_MAX_LAYOUTS]:
        rows = np.flatnonzero(lengths == length)
        chosen = texts if len(rows) == len(texts) else [texts[at] for at in rows.tolist()]
        layout = _LAYOUT.fullmatch(chosen[0])
        joined = "".join(chosen) if layout else ""
        if layout and joined.isascii():
            grid = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).reshape(len(rows), length)
            yield _read_grid(grid, rows, layout)


def read_characters(grid: Characters) -> Iterator[LayoutColumn]:
    """Yield `read_layouts` of texts of one length that differ in digits only, given as characters uint8[n, length]."""
    layout = _LAYOUT.fullmatch(grid[0].tobytes().decode("latin-1")) if len(grid) else None
    if layout:
        yield _read_grid(grid, np.arange(len(grid), dtype=np.int64), layout, alike=True)


def _read_grid(grid: Characters, rows: I64, layout: re.Match[str], *, alike: bool = False) -> LayoutColumn:
    """Return the timestamps of a grid. alike: True if all rows are known to have digits at the positions of the first
    one's and no other difference."""
    fits = _same_zone(grid, layout) if alike else _same_layout(grid, layout)
    day, exists = _days(grid)
    hour, minute, second = _three_pairs(grid, _TIME)
    fits &= exists & (hour < 24) & (minute < 60) & (second < 60)
    seconds = day * 86_400 + hour * 3600 + minute * 60 + second - _seconds_east(layout)
    ns = np.where(fits, seconds, 0) * NS_PER_SECOND + _fraction(grid, layout)
    if fits.all():
        return LayoutColumn(rows, ns, layout[2] is None)
    return LayoutColumn(rows[fits], ns[fits], layout[2] is None)


def _days(grid: Characters) -> tuple[I64, Mask]:
    """Return days since 1970 of the dates, and True for valid dates. Neighbors mostly have the same one."""
    year, month, day = _three_pairs(grid, _DATE)
    year += _digits(grid, 0, _DATE) * 100
    date = (year * 100 + month) * 100 + day
    heads = np.flatnonzero(np.append(True, date[1:] != date[:-1]))
    runs = np.diff(heads, append=len(grid))
    year, month, day = year[heads], month[heads], day[heads]
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1970) & (year < _END_YEAR)
    first_of_month = np.where(exists, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = first_of_month.astype("datetime64[D]") + (day - 1)
    exists &= days.astype("datetime64[M]") == first_of_month
    return np.repeat(days.astype(np.int64), runs), np.repeat(exists, runs)


_END_YEAR = 2255


def _same_layout(grid: Characters, layout: re.Match[str]) -> Mask:
    """Return bool[n]: True for digits at the positions of the first timestamp's digits, and the same other characters
    and zone."""
    zone_start = layout.start(2) if layout[2] else grid.shape[1]
    first = grid[0]
    is_digit = (first >= _ZERO) & (first <= _NINE)
    is_digit[zone_start:] = False
    digits = grid[:, is_digit]
    digits_fit = ((digits >= _ZERO) & (digits <= _NINE)).all(axis=1)
    fits: Mask = digits_fit & (grid[:, ~is_digit] == first[~is_digit]).all(axis=1)
    return fits


def _same_zone(grid: Characters, layout: re.Match[str]) -> Mask:
    """Return bool[n]: True for the same offset as the first timestamp's. The offset contains digits, too."""
    if not layout[3]:
        return np.ones(len(grid), dtype=np.bool_)
    fits: Mask = (grid[:, layout.start(2) :] == grid[0, layout.start(2) :]).all(axis=1)
    return fits


def _three_pairs(grid: Characters, at: int) -> tuple[I64, I64, I64]:
    """Return the numbers in `dd?dd?dd` at an offset: eight characters are one word, and neighbors in it are added at
    once."""
    words: Words = grid[:, at : at + DIGITS].view(WORD)[:, 0]
    values = digit_values(words, _PAIRS)
    pairs = values * np.uint64(10) + (values >> np.uint64(8))
    first, second, third = ((pairs >> np.uint64(shift) & _BYTE).astype(np.int64) for shift in (0, 24, 48))
    return first, second, third


def _digits(grid: Characters, start: int, end: int) -> I64:
    value = np.zeros(len(grid), dtype=np.int64)
    for place in range(start, end):
        value = value * 10 + (grid[:, place].astype(np.int64) - _ZERO)
    return value


def _fraction(grid: Characters, layout: re.Match[str]) -> I64:
    if not layout[1]:
        return np.zeros(len(grid), dtype=np.int64)
    start, end = layout.span(1)
    return _digits(grid, start, end) * int(10 ** (_DIGITS_OF_NS - (end - start)))


def _seconds_east(layout: re.Match[str]) -> int:
    if not layout[3]:
        return 0
    east = int(layout[4]) * 3600 + int(layout[5]) * 60
    return -east if layout[3] == "-" else east


_EPOCH = datetime(1970, 1, 1)
_SECONDS_PER_DAY = 86_400
_SECONDS_PER_MINUTE = 60
_BEYOND_MICROSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})")
_DATE_AND_TIME = re.compile(r"\d{4}(?:-\d\d-|\d\d)\d\d[Tt ]\d\d:?\d\d", re.ASCII)
_UTC_MARK = re.compile(r"(.*\d) ?(?:z|UTC)", re.IGNORECASE)  # `fromisoformat` does not accept it
_CACHE_SIZE = 100_000
_AMBIGUOUS, _NONEXISTENT = "ambiguous_local_time", "nonexistent_local_time"
"""Codes of diagnostics."""


class ParsedTimestamp(NamedTuple):
    """A parsed timestamp. ns: since 1970 UTC. oddity: code of a diagnostic about its local time."""

    ns: int
    naive: bool
    oddity: str | None


class ParsedTimestamps(Struct, frozen=True):
    """n timestamps. ns: int64[n], 0 where not good. good, naive: bool[n]. odd: positions by code of a diagnostic."""

    ns: I64
    good: Mask
    naive: Mask
    odd: dict[str, list[int]]


class TimestampReader:
    """Reader of timestamps; those without a zone are local time of `zone`. It caches the offset of each minute."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._offsets: dict[int, tuple[int, str | None]] = {}

    def read_column(self, texts: Sequence[Any]) -> ParsedTimestamps:
        """Return `read` of each of `texts`; those of an ordinary layout are read together."""
        return self._read_all(len(texts), read_layouts(texts), lambda: texts)

    def read_grid(self, characters: Characters, texts: Callable[[], Sequence[Any]]) -> ParsedTimestamps:
        """Return `read_column` of texts of one length given as uint8[n, length]; `texts` returns them as strings on
        demand."""
        return self._read_all(len(characters), read_characters(characters), texts)

    def _read_all(
        self, size: int, columns: Iterable[LayoutColumn], texts: Callable[[], Sequence[Any]]
    ) -> ParsedTimestamps:
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
        return ParsedTimestamps(np.where(inside, ns, 0), good & inside, naive, odd)

    def read(self, text: Any) -> ParsedTimestamp | None:
        """Return the time of a timestamp with 0 to 9 fractional digits (more are cut); None if it is invalid.

        A local time that occurs twice is the first one. A local time that a clock change skips is read with the offset
        before the change. Both set the diagnostic in `oddity`.
        """
        moment = _parse(text)
        if moment is None:
            return None
        since = moment.replace(tzinfo=None) - _EPOCH
        seconds = since.days * _SECONDS_PER_DAY + since.seconds
        naive = moment.tzinfo is None
        offset, oddity = self._offset(seconds // _SECONDS_PER_MINUTE) if naive else (_seconds_east_iso(moment), None)
        ns = (seconds - offset) * NS_PER_SECOND + since.microseconds * 1000
        if extra := _BEYOND_MICROSECONDS.search(text):
            ns += int(extra[1].ljust(3, "0"))
        return ParsedTimestamp(ns, naive, oddity) if 0 <= ns < MAX_NS else None

    def from_local(self, ns: int) -> int:
        """Return ns since 1970 UTC of a local time that is given as if it were UTC."""
        return ns - self._offset(ns // (_SECONDS_PER_MINUTE * NS_PER_SECOND))[0] * NS_PER_SECOND

    def _local_offsets(self, column: LayoutColumn, odd: dict[str, list[int]]) -> I64:
        """Return ns int64[n] east of UTC for local times; add the positions of odd ones to `odd`."""
        minutes, inverse = np.unique(column.ns // (_SECONDS_PER_MINUTE * NS_PER_SECOND), return_inverse=True)
        offsets = [self._offset(int(minute)) for minute in minutes]
        for at, (_, oddity) in enumerate(offsets):
            if oddity:
                odd[oddity].extend(column.rows[inverse == at].tolist())
        east: I64 = np.array([offset for offset, _ in offsets], dtype=np.int64)[inverse]
        return east * NS_PER_SECOND

    def _offset(self, minute: int) -> tuple[int, str | None]:
        """Return seconds east of UTC in a minute of local time (since 1970), and the code of a diagnostic about it."""
        if self.zone is UTC:
            return 0, None
        known = self._offsets.get(minute)
        if known is None:
            if len(self._offsets) >= _CACHE_SIZE:
                self._offsets.clear()
            moment = (_EPOCH + timedelta(minutes=minute)).replace(tzinfo=self.zone)
            first, second = (_seconds_east_iso(moment.replace(fold=fold)) for fold in (0, 1))
            oddity = None if first == second else _AMBIGUOUS if first > second else _NONEXISTENT
            known = self._offsets[minute] = first, oddity
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


def _seconds_east_iso(moment: datetime) -> int:
    offset = moment.utcoffset()
    return offset.days * _SECONDS_PER_DAY + offset.seconds if offset is not None else 0


_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))


def isos(instants: I64) -> list[str]:
    """Return ISO-8601 in UTC with `Z` and 0, 3, 6 or 9 fractional digits, as few as are exact. instants: ns since
    1970."""
    text = np.empty(len(instants), dtype=object)
    left = np.arange(len(instants))
    for unit, size in _UNITS:
        exact = instants[left] % size == 0
        here = left[exact]
        if len(here):
            text[here] = np.datetime_as_string(instants[here].view("M8[ns]").astype(f"M8[{unit}]"), timezone="UTC")
        left = left[~exact]
    texts: list[str] = text.tolist()
    return texts


QUARTER_NS = 900 * 10**9
"""Clocks of different zones differ by multiples of a quarter of an hour."""
_EARLIEST, _LATEST = -5 * 10**9, 60 * 10**9
"""An entry gets its timestamp when the line is sent: between this long before and after the line's own timestamp."""
_WHOLE = range(-12 * 4, 14 * 4 + 1, 4)
_PARTIAL = (-38, -14, -10, 14, 18, 22, 23, 26, 35, 38, 42, 51, 55)
OFFSETS = frozenset((*_WHOLE, *_PARTIAL))
"""Offsets from UTC that a zone has or had since 1970, in quarters of an hour."""
SHIFTS = tuple(sorted(({*OFFSETS} | {-one for one in OFFSETS}) - {0}))
"""Possible differences between a clock in local time and one in UTC, either way, in quarters of an hour."""


@dataclass
class EntryZones:
    """Lines with a timestamp without a zone inside an entry with one, collected while they are read."""

    _lines: list[I64] = field(default_factory=list)
    """int64[5, n] each: source, line and entry, how far (ns) the line's own time is ahead, and the day of the entry."""

    def add(self, origin: Origin, stamp: I64, ns: I64, chosen: Mask) -> None:
        """Add some of n lines. stamp: the times of the entries, ns: the times of the lines, read as UTC."""
        sources = np.full(len(stamp), origin.source, dtype=np.int64)
        lines = np.stack((sources, origin.line, origin.entry, ns - stamp, stamp // NS_PER_DAY))
        self._lines.append(lines[:, chosen])

    def applied(
        self, table: EventTable, diagnostics: tuple[Diagnostic, ...]
    ) -> tuple[EventTable, tuple[Diagnostic, ...]]:
        """Return the table with the corrected times of these lines, and the updated diagnostics. diagnostics: of
        reading; the one about lines read as UTC is dropped if all of them were corrected."""
        if not self._lines:
            return table, diagnostics
        source, line, entry, ahead, day = np.concatenate(self._lines, axis=1)
        quarters = np.zeros(len(day), dtype=np.int64)
        for each in np.unique(day).tolist():
            chosen = day == each
            quarters[chosen] = offset_of_day(ahead[chosen])
        moved = quarters != 0
        if not moved.any():
            return table, diagnostics
        keys = _keys(source, line, entry)[moved]
        order = np.argsort(keys)
        rows = _keys(table.source, table.line, table.entry)
        place = np.minimum(np.searchsorted(keys, rows, sorter=order), len(keys) - 1)
        matched = keys[order[place]] == rows
        shift = np.where(matched, quarters[moved][order[place]] * QUARTER_NS, 0)
        named = ", ".join(map(offset_text, np.unique(quarters[moved]).tolist()))
        said = Diagnostic.of(
            "timezone_found",
            f"timestamps without a zone are read as UTC{named}, which their Cloud Logging entries reveal; "
            "--timezone overrides it",
            len(keys),
        )
        others = [one for one in diagnostics if (one.code, one.count) != ("naive_timestamps", said.count)]
        return replace(table, time=table.time - shift, end=table.end - shift), (*others, said)


def offset_of_day(ahead: I64) -> int:
    """Return the offset from UTC of the lines of one day, in quarters of an hour; 0 if unknown.

    ahead: how far (ns) each line's own time, read as UTC, is ahead of its entry's.
    """
    latest = np.rint((ahead + (_EARLIEST + _LATEST) // 2) / QUARTER_NS).astype(np.int64)
    values, counts = np.unique(latest, return_counts=True)
    quarter = int(values[np.argmax(counts)])
    late = quarter * QUARTER_NS - ahead
    fits = np.count_nonzero((late >= _EARLIEST) & (late <= _LATEST))
    return quarter if quarter in OFFSETS and 10 * fits >= 9 * len(ahead) else 0


def _keys(source: Rows, line: Rows, entry: Rows) -> I64:
    """Return one key per line: its entry if it has no line number, otherwise its source and its line."""
    lines = (np.asarray(source, dtype=np.int64) << 40) | np.asarray(line, dtype=np.int64)
    return np.where(np.asarray(line) > 0, lines, -1 - np.asarray(entry, dtype=np.int64))


def offset_text(quarter: int) -> str:
    """Return an offset from UTC in quarters of an hour as text."""
    hours, minutes = divmod(abs(quarter) * 15, 60)
    return f"{'-' if quarter < 0 else '+'}{hours:02d}:{minutes:02d}"


PAYLOAD, TIMESTAMP, INSERT_ID, LOG_NAME = "jsonPayload", "timestamp", "insertId", "logName"
TEXT_PAYLOAD, MESSAGE = "textPayload", "message"
"""Keys with a line of text: an entry's own payload, or the message that a logger wrote as JSON."""
GENERIC_NAMES = frozenset({"logging.googleapis.com/diagnostic"})
"""Keys of records that a writer's own library adds without information about a job: Google's client library writes its
name and version once per process."""
PRINTED_AS_YAML = "an entry printed as YAML"
NO_STAMP = -1
"""Replaces a missing or invalid timestamp of an envelope."""

_LABELS, _RESOURCE, _LOGGER, _NODE = "labels", "resource", "python_logger", ("instance_id", "pod_name")
Identity = tuple[str, str, str]
Writer = tuple[str, str]
"""(node, process): see `EventTable.writers`."""


_CLOCK = TimestampReader(UTC)


def entry_timestamps(entries: Sequence[Mapping[str, Any]]) -> I64:
    """Return the timestamps of entries, ns since 1970 UTC, or NO_STAMP. Cloud Logging always writes a zone."""
    return _timestamps(_CLOCK.read_column([entry.get(TIMESTAMP, "") for entry in entries]))


def character_timestamps(characters: Characters) -> I64:
    """Return `entry_timestamps` of timestamps of one length, given as uint8[n, length]."""
    return _timestamps(_CLOCK.read_grid(characters, lambda: _texts(characters)))


def identities(entries: Sequence[Mapping[str, Any]], times: I64) -> list[Identity | None]:
    """Return (log name, timestamp, insertId) of each entry, equal for every copy of it; None without an insertId.

    times: those of `entry_timestamps`. The timestamp is written as ns, so that two spellings of one time are equal.
    """
    ids: list[Any] = [entry.get(INSERT_ID) for entry in entries]
    if set(map(type, ids)) != {str} or "" in ids or bool((times == NO_STAMP).any()):
        return [_identity(entry, stamp) for entry, stamp in zip(entries, times.tolist(), strict=True)]
    logs = [str(entry.get(LOG_NAME, "")) for entry in entries]
    return list(zip(logs, map(str, times.tolist()), ids, strict=True))


def identities_of(log_name: str, stamps: I64, times: Characters, ids: Characters) -> list[Identity]:
    """Return `identities` of entries of one log, with their timestamps and insertIds as characters, uint8[n, width]."""
    named = list(map(str, stamps.tolist()))
    for at in np.flatnonzero(stamps == NO_STAMP).tolist():
        named[at] = times[at].tobytes().decode()
    return [(log_name, time, insert_id) for time, insert_id in zip(named, _texts(ids), strict=True)]


def named_writer(entry: Mapping[str, Any]) -> Writer | None:
    """Return the writer of an entry from its labels and those of its resource: the instance and pod, and the logger.
    Each recorder of a process has its own logger."""
    resource = labels_in(entry.get(_RESOURCE))
    node = [str(resource.get(key) or "") for key in _NODE]
    logger = str(labels_in(entry).get(_LOGGER) or "")
    return ("/".join(node) if any(node) else "", logger) if logger or any(node) else None


def numbered_writer(insert_id: object) -> Writer | None:
    """Return the writer of an entry without named labels: writers number their entries, as `624b-17`."""
    prefix = insert_id.rpartition("-")[0] if isinstance(insert_id, str) else ""
    return ("", prefix) if prefix else None


def numbered_writers(ids: Characters) -> tuple[list[Writer | None], NDArray[np.intp]]:
    """Return `numbered_writer` of many insertIds, uint8[n, width]: the writers, and the index of the writer of each."""
    dashes = ids == ord("-")
    if not dashes.any():
        return [None], np.zeros(len(ids), dtype=np.intp)
    behind = np.where(dashes.any(axis=1), ids.shape[1] - 1 - np.argmax(dashes[:, ::-1], axis=1), 0)
    prefixes = np.where(np.arange(ids.shape[1]) < behind[:, None], ids, 0).astype(np.uint8)
    heads = np.append(True, (prefixes[1:] != prefixes[:-1]).any(axis=1))  # a process writes many consecutive lines
    texts = (row.tobytes().rstrip(b"\0").decode("ascii") for row in prefixes[heads])
    return [("", text) if text else None for text in texts], np.cumsum(heads) - 1


def labels_in(holder: object) -> Mapping[str, Any]:
    """Return the labels of an entry or a resource; empty if it has none."""
    labels = holder.get(_LABELS) if isinstance(holder, dict) else None
    return labels if isinstance(labels, dict) else {}


def _timestamps(instants: ParsedTimestamps) -> I64:
    return np.where(instants.good, instants.ns, NO_STAMP)


def _texts(characters: Characters) -> list[str]:
    """Return ASCII texts of one length, given as uint8[n, length]."""
    width = characters.shape[1]
    joined = characters.tobytes().decode("ascii")
    return [joined[at : at + width] for at in range(0, len(joined), width)]


def _identity(entry: Mapping[str, Any], stamp: int) -> Identity | None:
    insert_id = entry.get(INSERT_ID)
    if not isinstance(insert_id, str) or not insert_id:
        return None
    time = str(stamp) if stamp != NO_STAMP else str(entry.get(TIMESTAMP, ""))
    return str(entry.get(LOG_NAME, "")), time, insert_id
