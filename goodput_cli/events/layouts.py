"""Timestamps of the ordinary layouts, a whole column at once: digits at fixed places, read with array arithmetic.

Whatever does not fit is left to the reader of single timestamps, so nothing here has to judge odd input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import NS_PER_SECOND

_LAYOUT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|([+-])(\d\d):?(\d\d))?", re.ASCII)
_SECOND_END = len("2025-01-01T00:00:00")
_MAX_LAYOUTS = 24
_DIGITS_OF_NS = 9
_ZERO, _NINE = ord("0"), ord("9")

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class LayoutColumn:
    """Timestamps of one layout. rows: int64[k], their positions. ns: int64[k] since 1970, local time if naive."""

    rows: Longs
    ns: Longs
    naive: bool


def read_layouts(texts: Sequence[Any]) -> Iterator[LayoutColumn]:
    """The timestamps among `texts` that are `YYYY-MM-DD[T ]hh:mm:ss[.f][zone]`, by layout. Others are left out."""
    if set(map(type, texts)) != {str}:
        return
    lengths = np.array(list(map(len, texts)), dtype=np.int64)
    for length in np.unique(lengths)[:_MAX_LAYOUTS]:
        rows = np.flatnonzero(lengths == length)
        chosen = texts if len(rows) == len(texts) else [texts[at] for at in rows.tolist()]
        layout = _LAYOUT.fullmatch(chosen[0])
        joined = "".join(chosen) if layout else ""
        if layout and joined.isascii():
            grid = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).reshape(len(rows), int(length))
            yield _read_grid(grid, rows, layout)


def read_characters(grid: Bytes) -> Iterator[LayoutColumn]:
    """The same for texts of one length, given as characters uint8[n, length]."""
    layout = _LAYOUT.fullmatch(grid[0].tobytes().decode("latin-1")) if len(grid) else None
    if layout:
        yield _read_grid(grid, np.arange(len(grid), dtype=np.int64), layout)


def _read_grid(grid: Bytes, rows: Longs, layout: re.Match[str]) -> LayoutColumn:
    fits = _same_layout(grid, layout)
    year, month, day = _digits(grid, 0, 4), _digits(grid, 5, 7), _digits(grid, 8, 10)
    hour, minute, second = _digits(grid, 11, 13), _digits(grid, 14, 16), _digits(grid, 17, 19)
    fits &= (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 60) & (year >= 1970)
    first_of_month = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    date = first_of_month.astype("datetime64[D]") + (day - 1)
    fits &= date.astype("datetime64[M]") == first_of_month
    fits &= year < _END_YEAR
    seconds = date.astype(np.int64) * 86_400 + hour * 3600 + minute * 60 + second - _seconds_east(layout)
    ns = np.where(fits, seconds, 0) * NS_PER_SECOND + _fraction(grid, layout)
    return LayoutColumn(rows[fits], ns[fits], layout[2] is None)


_END_YEAR = 2255


def _same_layout(grid: Bytes, layout: re.Match[str]) -> NDArray[np.bool_]:
    """bool[n]: digits where the first timestamp has digits, and the same signs and zone as it has elsewhere."""
    zone_start = layout.start(2) if layout[2] else grid.shape[1]
    first = grid[0]
    is_digit = (first >= _ZERO) & (first <= _NINE)
    is_digit[zone_start:] = False
    digits = grid[:, is_digit]
    digits_fit = ((digits >= _ZERO) & (digits <= _NINE)).all(axis=1)
    fits: NDArray[np.bool_] = digits_fit & (grid[:, ~is_digit] == first[~is_digit]).all(axis=1)
    return fits


def _digits(grid: Bytes, start: int, end: int) -> Longs:
    value = np.zeros(len(grid), dtype=np.int64)
    for place in range(start, end):
        value = value * 10 + (grid[:, place].astype(np.int64) - _ZERO)
    return value


def _fraction(grid: Bytes, layout: re.Match[str]) -> Longs:
    if not layout[1]:
        return np.zeros(len(grid), dtype=np.int64)
    start, end = layout.span(1)
    return _digits(grid, start, end) * int(10 ** (_DIGITS_OF_NS - (end - start)))


def _seconds_east(layout: re.Match[str]) -> int:
    if not layout[3]:
        return 0
    east = int(layout[4]) * 3600 + int(layout[5]) * 60
    return -east if layout[3] == "-" else east
