"""Read records of steps as columns: JSON objects and table rows with the same keys that one rule reads. The first and
the last record of each stretch must equal what the rule reads in them alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, I64, Characters, Mask
from goodput_cli.events.formats.base import Records
from goodput_cli.events.mappings.times import EPOCHS, MAX_EPOCH, read_time
from goodput_cli.events.text.date_positions import find_date
from goodput_cli.events.text.line_timestamps import TimestampError
from goodput_cli.events.text.log_lines import BadValueError, EventType, ParsedEvent, Stretch
from goodput_cli.events.text.step_columns import (
    AnyFields,
    FoundRecords,
    Precision,
    StepColumns,
    StepRecords,
    StretchKind,
    dates_at,
)
from goodput_cli.events.text.stretches import EDGE, inner_records, stretch_of
from goodput_cli.events.values import decimal, us_column

Values = Sequence[Any] | NDArray[Any]
"""Values of one key: int64[n] or finite float64[n] if all are such numbers, otherwise a list."""
_LARGEST = 1e15
"""Greater whole numbers are read one by one."""
_FEWEST = 16
"""Fewer records are read one by one."""
_ZONE = re.compile(r"[+-]\d\d:?\d\d$")
_NO_ROWS = np.zeros(0, dtype=np.int64)


class RecordStretch(NamedTuple):
    """Records of a group that need not be read one by one."""

    rows: I64
    """Their indexes in the group, int64[n]."""
    line_before: int
    """The line of the record of the same kind before them."""
    stretch: Stretch


class StepReader(NamedTuple):
    """The only rule that reads some records: one for plain records of steps."""

    read: Callable[[Mapping[str, Any]], ParsedEvent | None]
    columns: Callable[[AnyFields], StepColumns | None]
    fields: Mapping[str, str]
    """The key of each field that the records have, except the time."""
    time: str
    """The key of the time."""
    written: str
    """The format of the time."""


class ValueFields(AnyFields):
    """Fields of records with the same keys."""

    def __init__(self, fields: Mapping[str, Values]) -> None:
        self._fields = fields

    @property
    def names(self) -> Set[str]:
        """Return the names of the fields."""
        return self._fields.keys()

    def whole(self, name: str) -> I64 | None:
        """Return whole numbers of a field; None if they are something else."""
        numbers = self.decimal(name)
        if numbers is None or not bool(((numbers == np.floor(numbers)) & (numbers < _LARGEST)).all()):
            return None
        return numbers.astype(np.int64)

    def decimal(self, name: str) -> F64 | None:
        """Return the numbers of a field; None if they are something else."""
        numbers = _numbers(self._fields[name])
        return numbers if numbers is not None and bool((numbers >= 0).all()) else None


def _numbers(values: Values) -> F64 | None:
    """Return finite numbers, float64[n]; None if some values are something else."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    kinds = set(map(type, values))
    if kinds == {str}:
        values = [decimal(one.replace(",", "")) for one in values]
        kinds = set(map(type, values))
    if not kinds <= {int, float}:
        return None
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        return None
    return numbers if bool(np.isfinite(numbers).all()) else None


def record_stretches(
    records: Records, where: Sequence[str], reader_of: Callable[[Mapping[str, Any]], StepReader | None]
) -> Iterator[RecordStretch]:
    """Yield the stretches in records with the same keys, in order of lines within each kind. where: keys whose values
    decide which rule reads a record. reader_of: returns the reader of a record and of all that have the same values
    there; None if they are read one by one."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    columns = [records.column(key) for key in where]
    try:
        for at in range(len(records)):
            kinds.setdefault(tuple((type(one[at]), one[at]) for one in columns), []).append(at)
    except TypeError:  # A list or an object.
        return
    for rows in kinds.values():
        reader = reader_of(records.records[rows[0]]) if len(rows) >= _FEWEST else None
        if reader is not None:
            yield from _stretches(records, np.array(rows, dtype=np.int64), reader)


def _stretches(records: Records, rows: I64, reader: StepReader) -> Iterator[RecordStretch]:
    """Yield the stretches of records that one rule reads."""
    every = [records.records[at] for at in rows.tolist()]
    columns = reader.columns(ValueFields({name: [one[key] for one in every] for name, key in reader.fields.items()}))
    times = None if columns is None else read_times([one[reader.time] for one in every], reader.written)
    if columns is None or times is None:
        return
    ns, is_time, precision = times
    event = reader.read(every[0])
    if event is None or event.type is not EventType.STEP:
        return
    event.at = None
    kind = StretchKind(event, "", precision, None, 0, columns.step_time is not None, tuple(sorted(columns.same)))
    lines = records.origin.line[rows]
    found = FoundRecords(lines, 0, columns, ns, None)
    nothing = np.full(len(rows), -1)
    of_steps = StepRecords(
        lines, np.zeros(len(rows), dtype=np.int64), [kind], ns, np.zeros(len(rows), dtype=np.int64), columns.step,
        nothing if columns.step_time is None else columns.step_time, columns.same, columns.metrics,
    ).take(np.flatnonzero(columns.good & is_time))  # fmt: skip
    rows, at = rows[columns.good & is_time], np.flatnonzero(columns.good & is_time)
    for inner in inner_records(of_steps, of_steps.at, _NO_ROWS, EDGE):
        ends = (inner.begin, inner.end - 1)
        if all(_agrees(reader.read(records.records[int(rows[one])]), found, int(at[one]), precision) for one in ends):
            stretch = stretch_of(of_steps, inner, of_steps.at[inner.begin : inner.end], int(of_steps.at[inner.end]))
            yield RecordStretch(rows[inner.begin : inner.end], int(of_steps.at[inner.begin - 1]), stretch)


def _agrees(event: ParsedEvent | None, found: FoundRecords, row: int, precision: Precision) -> bool:
    """Return True if a record of columns equals what its rule reads."""
    if event is None or event.at is None or (event.at.zone, event.at.whole) != precision:
        return False
    stamp, event.at = event.at, None
    return found.event(row, event) == event and found.has_times(row, stamp, None)


def read_times(values: Sequence[Any], written: str) -> tuple[I64, Mask, Precision] | None:
    """Return times in ns, which of them are known, and their precision; None if they are read one by one."""
    try:
        first = read_time(str(values[0]), written)
    except (BadValueError, TimestampError):
        return None
    precision = Precision(first.zone, first.whole)
    numbers = _numbers(values) if written in EPOCHS or not isinstance(values[0], str) else None
    if numbers is not None:
        unit = EPOCHS.get(written, 1.0)
        known = (numbers >= 0) & (numbers < MAX_EPOCH / unit)
        return _epoch_ns(np.where(known, numbers, 0.0), unit), known, precision
    if written not in ("", "iso") or not all(isinstance(one, str) for one in values):
        return None
    zone = _ZONE.search(values[0])
    suffix = "" if zone is None else zone[0]
    dated = _dates([one.removesuffix(suffix) for one in values])
    if dated is None:
        return None
    ns, known = dated
    if suffix:
        known &= np.array([one.endswith(suffix) for one in values], dtype=np.bool_)
        ns = ns + (first.ns - int(ns[0]))
    return ns, known, precision


def _epoch_ns(numbers: F64, unit: float) -> I64:
    """Return Unix times in ns. unit: s."""
    is_whole = numbers == np.floor(numbers)
    whole = np.where(is_whole, numbers, 0.0).astype(np.int64) * round(unit * 1e9)
    return np.where(is_whole, whole, us_column(np.where(is_whole, 0.0, numbers) * unit))


def _dates(texts: Sequence[str]) -> tuple[I64, Mask] | None:
    """Return the dates in texts that differ from the first only in the digits of the date, ns, and which do; None if
    the first has another form."""
    first, date = texts[0], find_date(texts[0])
    if date is None or date.at < 0 or not first.isascii():
        return None
    fits = np.array([len(one) == len(first) and one.isascii() for one in texts], dtype=np.bool_)
    joined = "".join(one if fit else first for one, fit in zip(texts, fits.tolist(), strict=True))
    characters: Characters = np.frombuffer(joined.encode(), dtype=np.uint8).reshape(len(texts), len(first))
    digits = {*range(date.at, date.at + 19), *range(date.fraction.start or 0, date.fraction.stop)}
    is_digit = (characters >= ord("0")) & (characters <= ord("9"))
    for column, char in enumerate(first):
        fits &= is_digit[:, column] if column in digits and char.isdigit() else characters[:, column] == ord(char)
    ns, known = dates_at(date, first, lambda start, stop: characters[:, start:stop])
    return ns, known & fits
