"""Read step records of a block as columns: lines that differ only in digits have their numbers at the same positions.

A template is tested once with one of its lines, whose columns must equal the result of its rule.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Characters, Mask
from goodput_cli.events.text.date_positions import DatePosition, as_bytes, bytes_of, masked, minute_of
from goodput_cli.events.text.equal_widths import with_equal_widths
from goodput_cli.events.text.line_shapes import LineShapes, digits_in
from goodput_cli.events.text.line_timestamps import Timestamp, TimestampError, Zone, strip_prefixes, timestamp_of
from goodput_cli.events.text.lines import MASK, LineRules, Lines
from goodput_cli.events.text.log_lines import (
    LONGEST_SECONDS,
    BadValueError,
    EventType,
    ParsedEvent,
    Running,
    Stamps,
    changed,
)
from goodput_cli.events.text.templates import Fields, LineReader, Template, TextMatch
from goodput_cli.events.values import us_column
from goodput_cli.vocabulary.when import NS_PER_SECOND

_DIGITS = 15
"""Numbers of more digits are read one by one."""
_NUMBER = re.compile(r"0[0,]*(?:\.0*)?")
_ZERO = ord("0")
_CLOCK = 19
"""Characters of `2026-03-01 10:00:00`."""
_MINUTE_DIGITS = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15)
_LAST_SECOND = 60
Take = Callable[[int, int], Characters]
"""Returns uint8[n, stop - start], the characters of lines from start to stop."""


class AnyFields(ABC):
    """Fields of lines of one template, or of records with the same keys, as columns."""

    @property
    @abstractmethod
    def names(self) -> Set[str]:
        """Return the names of the fields that have a value."""

    @abstractmethod
    def whole(self, name: str) -> I64 | None:
        """Return whole numbers of a field; None if they are something else."""

    @abstractmethod
    def decimal(self, name: str) -> F64 | None:
        """Return the numbers of a field, each the nearest float64 to the written value; None if they are something
        else."""

    def duration(self, name: str, unit: float) -> I64 | None:
        """Return the durations of a field in ns. unit: s."""
        values = self.decimal(name)
        if values is None or not bool((values * unit < LONGEST_SECONDS).all()):
            return None
        return us_column(values * unit)

    def time_per(self, name: str) -> I64 | None:
        """Return the times of rates (1/s) of a field in ns."""
        values = self.decimal(name)
        if values is None or not bool((values > 1 / LONGEST_SECONDS).all()):
            return None
        return us_column(1.0 / values)


class FieldColumns(AnyFields):
    """Fields of lines of one template. Numbers other than digits with a point are None."""

    def __init__(self, text: str, fields: Fields, take: Take) -> None:
        """text: one of the lines."""
        self.text = text
        """One of the lines."""
        self._fields, self._take = fields, take

    @property
    def names(self) -> Set[str]:
        """Return the names of the fields that have a value."""
        return {name for name in self._fields.names if self._fields.places.get(name) is not None}

    def position(self, name: str) -> slice:
        """Return the position of a field in the lines."""
        place = self._fields.places[name]
        assert place is not None
        return place

    def word(self, name: str) -> str | None:
        """Return the text of a field that is the same in all lines; None if it contains digits."""
        text = self.text[self.position(name)]
        return None if any(char.isdigit() for char in text) else text

    def whole(self, name: str) -> I64 | None:
        """Return whole numbers of a field; None if they are something else."""
        found = numbers_at(self.text, self.position(name), self._take)
        return None if found is None or found.after_point is not None else found.digits

    def decimal(self, name: str) -> F64 | None:
        """Return the numbers of a field; None if they are something else."""
        return self.decimal_at(self.position(name))

    def decimal_at(self, place: slice) -> F64 | None:
        """Return the numbers at a position; None if they are something else."""
        found = numbers_at(self.text, place, self._take)
        return None if found is None else found.decimal()


class NumberColumn(NamedTuple):
    """Numbers at one position of lines that differ only in digits."""

    digits: I64
    """The numbers without their points."""
    after_point: int | None
    """Number of digits after the point; None without a point."""

    def decimal(self) -> F64:
        """Return the numbers, each the nearest float64 to the written value."""
        values = self.digits.astype(np.float64)
        return values if not self.after_point else values / 10.0**self.after_point


def numbers_at(text: str, place: slice, take: Take) -> NumberColumn | None:
    """Return the numbers at a position of lines; None if they are not digits with a point. text: one of the lines."""
    text = text[place]
    at = [column for column, char in enumerate(text) if char.isdigit()]
    if not text.isascii() or len(at) > _DIGITS or not _NUMBER.fullmatch(masked(text)):
        return None
    point = text.find(".")
    after = None if point < 0 else sum(one > point for one in at)
    return NumberColumn(number_in(take(place.start, place.stop), at), after)


def number_in(characters: Characters, columns: Sequence[int]) -> I64:
    """Return the numbers that at most 18 digits in some columns spell."""
    whole = np.zeros(len(characters), dtype=np.int64)
    for column in columns:
        whole *= 10
        whole += characters[:, column]
    whole -= _ZERO * ((10 ** len(columns) - 1) // 9)
    return whole


@dataclass
class StepColumns:
    """The records of lines of one template."""

    step: I64
    good: Mask
    """True if the rule reads a record in the line; only then is the rest of its row valid."""
    step_time: I64 | None = None
    elapsed: I64 | None = None
    """Time (ns) since the clock in the line began."""
    same: dict[str, I64] = field(default_factory=dict)
    """Values common to all records of a stretch: `total` (steps), `epochs`, `epoch`, `of` (steps of an epoch)."""
    metrics: dict[str, F64] = field(default_factory=dict)
    """NaN where the line contains none."""


class Precision(NamedTuple):
    """What timestamps of a kind have in common."""

    zone: Zone
    whole: bool

    def stamps(self, ns: I64) -> Stamps:
        """Return timestamps."""
        return Stamps(ns.copy(), self.zone, self.whole)


class StretchKind(NamedTuple):
    """Common properties of step records in one stretch."""

    event: ParsedEvent
    stream: str
    stamp: Precision | None
    """None if the lines have no timestamps."""
    local: Precision | None
    """Of the timestamps of the lines themselves, if `stamp` is a collector's."""
    cut: int
    """Bytes before the text of a line."""
    has_time: bool
    """True if the records contain step times."""
    same: tuple[str, ...]
    """See `StepColumns`."""


@dataclass
class StepRecords:
    """Records of steps in a block, in order of lines."""

    at: I64
    """The lines of the block."""
    kind: I64
    kinds: list[StretchKind]
    ns: I64
    """Timestamps; 0 for none."""
    local: I64
    """Timestamps of the lines themselves next to those of a collector; 0 for none."""
    step: I64
    step_time: I64
    same: dict[str, I64]
    metrics: dict[str, F64]

    def kind_of(self, row: int) -> StretchKind:
        """Return the kind of a record."""
        return self.kinds[int(self.kind[row])]

    def event(self, row: int) -> ParsedEvent:
        """Return what the records of a stretch have in common. row: of one of them."""
        kind = self.kind_of(row)
        return changed(kind.event, **_in_common({name: int(self.same[name][row]) for name in kind.same}))

    def stamp(self, row: int) -> Timestamp | None:
        """Return the timestamp of a record."""
        precision = self.kind_of(row).stamp
        return None if precision is None else Timestamp(int(self.ns[row]), *precision)

    def take(self, rows: Any) -> StepRecords:
        """Return some of the records."""
        columns = (self.ns[rows], self.local[rows], self.step[rows], self.step_time[rows])
        same, metrics = ({name: one[rows] for name, one in some.items()} for some in (self.same, self.metrics))
        return StepRecords(self.at[rows], self.kind[rows], self.kinds, *columns, same, metrics)


class _Shape(NamedTuple):
    """Conversion of the lines of a template to records."""

    raw: str
    """One of the lines; positions are in bytes, each of which is a character of it."""
    begin: int
    """Position of its text."""
    fields: Fields
    date: DatePosition
    collected: DatePosition | None
    kind: int = -1

    @classmethod
    def of(cls, raw: str, template: Template) -> _Shape:
        """Return the conversion of the lines of a template. raw: one of them."""
        assert template.date is not None
        text = raw[template.begin :]
        return cls(
            as_bytes(raw),
            bytes_of(raw[: template.begin]),
            template.rules[0].in_bytes(text),
            template.date.in_bytes(text),
            None if template.collected is None else template.collected.in_bytes(raw),
        )


class FoundRecords(NamedTuple):
    """Records of a shape."""

    lines: I64
    kind: int
    columns: StepColumns
    ns: I64 | None
    local: I64 | None

    def event(self, row: int, event: ParsedEvent) -> ParsedEvent:
        """Return an event with the values of a record."""
        one = self.columns
        return changed(
            event,
            step=int(one.step[row]),
            step_time=None if one.step_time is None else int(one.step_time[row]),
            metrics={name: float(values[row]) for name, values in one.metrics.items() if not np.isnan(values[row])},
            **_in_common({name: int(values[row]) for name, values in one.same.items()}),
        )

    def has_times(self, row: int, stamp: Timestamp | None, local: Timestamp | None) -> bool:
        """Return True if a record has these times."""
        pairs = ((stamp, self.ns), (local, self.local))
        return all((None if one is None else one.ns) == (ns if ns is None else ns[row]) for one, ns in pairs)


class StepFinder:
    """Finds the records of steps of a document that can be read as columns."""

    def __init__(self, rules: LineRules, reader: LineReader) -> None:
        self._rules, self._reader = rules, reader
        self._shapes = LineShapes(self._fixed_in, self._made)
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._events: list[StretchKind] = []

    def find(self, block: Lines) -> list[FoundRecords]:
        """Return the records in a block, in lines that no carriage return separates."""
        every = (self._columns(block, lines, shape) for lines, shape in self._shapes.alike(block, block.is_alone))
        return [one for one in every if one is not None]

    def find_widened(self, block: Lines, lines: I64) -> list[FoundRecords]:
        """Return the records in lines of a block whose numbers differ in the count of their digits, too."""
        equal = with_equal_widths(block, lines[block.is_alone[lines]])
        if equal is None:
            return []
        found = []
        for rows, shape in self._shapes.alike(equal.lines, equal.lines.is_alone):
            one = self._columns(equal.lines, rows, shape)
            ends = (0, len(rows) - 1)
            if one is not None and all(self._agrees(block.text(int(equal.rows[rows[at]])), one, at) for at in ends):
                found.append(one._replace(lines=equal.rows[rows]))
        return found

    def _agrees(self, raw: str, found: FoundRecords, row: int) -> bool:
        """Return True if a record of columns equals what the rules read in its line."""
        if not found.columns.good[row]:
            return True  # it is read alone
        line = strip_prefixes(raw)
        said, _, _ = self._rules.read(line.text)
        try:
            own = timestamp_of(line.text)
        except TimestampError:
            return False
        stamp, local = (own, None) if line.collected is None else (line.collected, own)
        is_same = len(said) == 1 and said[0] == found.event(row, said[0])
        return is_same and line.stream == self._events[found.kind].stream and found.has_times(row, stamp, local)

    def _fixed_in(self, raw: bytes, key: bytes) -> list[int] | None:
        """Return the columns of digits in the prefix of a line that one rule reads, as columns; None for others."""
        if b"%|" in raw or self._rules.anchors.search(raw) is None:
            return None
        line = raw.decode(errors="replace")
        template = self._reader.template(line, key)
        if not raw.isascii() and line.encode() != raw:
            return None
        if template is None or len(template.rules) != 1 or template.signs or template.date is None:
            return None
        rule, collected = template.rules[0].rule, template.collected
        if rule.columns is None or rule.also or template.begin < 0 or (template.cut < 0 and collected is None):
            return None
        begin = bytes_of(line[: template.begin])
        if collected is None:
            return digits_in(raw, 0, begin)
        collected = collected.in_bytes(line)
        return [*digits_in(raw, 0, collected.at), *digits_in(raw, collected.end, begin)]

    def _made(self, raw: bytes) -> _Shape | None:
        template = self._reader.template(raw.decode(), raw.translate(MASK))
        assert template is not None
        fields, date = template.rules[0], template.date
        assert date is not None
        line = template.bare(raw.decode())
        try:
            event = fields.rule.read(TextMatch(line.text, fields.places, fields.names))
            own = date.read_here(line.text) if date.at >= 0 else None
        except (BadValueError, TimestampError):
            return None
        if event is None or (own is None and date.at >= 0) or event.type is not EventType.STEP or event.step is None:
            return None
        shape = _Shape.of(raw.decode(), template)
        found = self._columns(Lines(raw + b"\n"), np.zeros(1, dtype=np.int64), shape)
        if found is None or not found.columns.good[0]:
            return None
        one = found.columns
        stamp, local = (own, None) if line.collected is None else (line.collected, own)
        if found.event(0, event) != event or not found.has_times(0, stamp, local):
            return None
        of_stamp, of_local = (None if one is None else Precision(one.zone, one.whole) for one in (stamp, local))
        has = one.step_time is not None, tuple(sorted(one.same))
        rule = (id(fields.rule), line.stream, of_stamp, of_local, shape.begin, *has)
        number = self._kinds.setdefault(rule, len(self._events))
        if number == len(self._events):
            self._events.append(StretchKind(event, line.stream, of_stamp, of_local, shape.begin, *has))
        return shape._replace(kind=number)

    def _columns(self, block: Lines, lines: I64, shape: _Shape) -> FoundRecords | None:
        """Return the records of lines of a shape, and their timestamps."""

        def take_raw(start: int, stop: int) -> Characters:
            return block.columns(lines, stop - start, start)

        def take(start: int, stop: int) -> Characters:
            return block.columns(lines, stop - start, shape.begin + start)

        fields, date, text = shape.fields, shape.date, shape.raw[shape.begin :]
        assert fields.rule.columns is not None
        columns: StepColumns | None = fields.rule.columns(FieldColumns(text, fields, take))
        if columns is None:
            return None
        ns = local = None
        if date.at >= 0:
            ns, good = dates_at(date, text, take)
            columns.good = columns.good & good
        if shape.collected is not None:
            local = ns
            ns, good = dates_at(shape.collected, shape.raw, take_raw)
            columns.good = columns.good & good
        return FoundRecords(lines, shape.kind, columns, ns, local)

    def joined(self, found: Sequence[FoundRecords]) -> StepRecords | None:
        """Return records in order of lines; None if there are none."""
        if not found:
            return None

        def column(values: Callable[[FoundRecords], I64 | None], nothing: int = -1) -> I64:
            pieces = ((one, values(one)) for one in found)
            return np.concatenate([np.full(len(one.lines), nothing) if own is None else own for one, own in pieces])

        names = sorted({name for one in found for name in one.columns.metrics})
        in_common = sorted({name for one in found for name in one.columns.same})
        at = column(lambda one: one.lines)
        order = np.flatnonzero(np.concatenate([one.columns.good for one in found]))
        order = order[np.argsort(at[order], kind="stable")]
        metrics = {
            name: np.concatenate([one.columns.metrics.get(name, np.full(len(one.lines), np.nan)) for one in found])
            for name in names
        }
        return StepRecords(
            at,
            column(lambda one: np.full(len(one.lines), one.kind)),
            self._events,
            column(lambda one: one.ns, 0),
            column(lambda one: one.local, 0),
            column(lambda one: one.columns.step),
            column(lambda one: one.columns.step_time),
            {name: column(lambda one, name=name: one.columns.same.get(name)) for name in in_common},  # type: ignore[misc]
            metrics,
        ).take(order)


def _in_common(same: Mapping[str, int]) -> dict[str, Any]:
    """Return the values of an event that records of a stretch have in common."""
    running = Running(same["epoch"], same.get("of")) if "epoch" in same else None
    return {"total": same.get("total"), "epochs": same.get("epochs"), "running": running}


def dates_at(date: DatePosition, text: str, take: Take) -> tuple[I64, Mask]:
    """Return the timestamps of lines, and which of them are times."""
    characters = take(date.at, date.at + _CLOCK)
    minute = number_in(characters, _MINUTE_DIGITS)
    second = number_in(characters, (17, 18))
    changes = np.flatnonzero(np.append(True, minute[1:] != minute[:-1]))
    of_minute = [_minute(text[date.at : date.at + 16], int(one)) for one in minute[changes].tolist()]
    spread = np.repeat(np.array([-1 if one is None else one for one in of_minute]), np.diff([*changes, len(minute)]))
    ns = spread + second * NS_PER_SECOND
    digits = date.fraction.stop - (date.fraction.start or 0)
    if digits:
        ns += number_in(take(date.fraction.start, date.fraction.stop), range(digits)) * 10 ** (9 - digits)
    return ns, (spread >= 0) & (second <= _LAST_SECOND)


def _minute(text: str, digits: int) -> int | None:
    """Return the ns of a minute that is written with these digits, as one that is written in a text."""
    shown = list(text)
    for column, digit in zip(_MINUTE_DIGITS, f"{digits:012d}", strict=True):
        shown[column] = digit
    return minute_of("".join(shown))
