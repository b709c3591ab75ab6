"""Timestamps of the ordinary layouts, a whole column at once: digits at fixed places, read with array arithmetic.

Whatever does not fit is left to the reader of single timestamps, so nothing here has to judge odd input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask, Words
from goodput_cli.events.columnar.eight_digits import DIGITS, digit_values, mask_of
from goodput_cli.vocabulary.units import NS_PER_SECOND

_LAYOUT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|([+-])(\d\d):?(\d\d))?", re.ASCII)
_MAX_LAYOUTS = 24
_DIGITS_OF_NS = 9
_ZERO, _NINE = ord("0"), ord("9")
_DATE, _TIME = len("20"), len("2025-01-01T")
"""Where `yy-mm-dd` and `hh:mm:ss` begin."""
_WORD = np.dtype("<u8")
_PAIRS = np.uint64(mask_of(0, 2) | mask_of(3, 5) | mask_of(6, 8))
_BYTE = np.uint64(0xFF)


@dataclass(frozen=True)
class LayoutColumn:
    """Timestamps of one layout. rows: int64[k], their positions. ns: int64[k] since 1970, local time if naive."""

    rows: I64
    ns: I64
    naive: bool


def read_layouts(texts: Sequence[Any]) -> Iterator[LayoutColumn]:
    """The timestamps among `texts` that are `YYYY-MM-DD[T ]hh:mm:ss[.f][zone]`, by layout. Others are left out."""
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
    """The same for texts of one length that differ in digits only, given as characters uint8[n, length]."""
    layout = _LAYOUT.fullmatch(grid[0].tobytes().decode("latin-1")) if len(grid) else None
    if layout:
        yield _read_grid(grid, np.arange(len(grid), dtype=np.int64), layout, alike=True)


def _read_grid(grid: Characters, rows: I64, layout: re.Match[str], *, alike: bool = False) -> LayoutColumn:
    """alike: whether digits are known to stand where the first one has digits, and nothing else differs."""
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
    """Days since 1970 of the dates, and whether there is such a day. Neighbours mostly have the same one."""
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
    """bool[n]: digits where the first timestamp has digits, and the same signs and zone as it has elsewhere."""
    zone_start = layout.start(2) if layout[2] else grid.shape[1]
    first = grid[0]
    is_digit = (first >= _ZERO) & (first <= _NINE)
    is_digit[zone_start:] = False
    digits = grid[:, is_digit]
    digits_fit = ((digits >= _ZERO) & (digits <= _NINE)).all(axis=1)
    fits: Mask = digits_fit & (grid[:, ~is_digit] == first[~is_digit]).all(axis=1)
    return fits


def _same_zone(grid: Characters, layout: re.Match[str]) -> Mask:
    """bool[n]: the same offset as the first timestamp has; it holds digits too."""
    if not layout[3]:
        return np.ones(len(grid), dtype=np.bool_)
    fits: Mask = (grid[:, layout.start(2) :] == grid[0, layout.start(2) :]).all(axis=1)
    return fits


def _three_pairs(grid: Characters, at: int) -> tuple[I64, I64, I64]:
    """The numbers in `dd?dd?dd` at a place: eight characters are one word, and neighbours in it are added at once."""
    words: Words = grid[:, at : at + DIGITS].view(_WORD)[:, 0]
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
