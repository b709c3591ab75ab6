"""Texts that are parts of bytes, as columns: the digits of many are read at once."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, I64, Characters, Mask, blocks
from goodput_cli.events.values import clock_seconds, decimal

_WIDEST = 32
"""Maximum length of a number that is read together with others."""
_EXACT = 15
"""Numbers of this many digits are exact as float64, and so is their quotient by a power of ten."""
_WHOLE = re.compile(r"\+?\d{1,15}(?:\.0+)?", re.ASCII)
_ZERO, _COMMA, _DOT, _PLUS, _MINUS = map(ord, "0,.+-")


class Texts:
    """Texts as numbers."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def first(self) -> str:
        """Return the first text."""
        return self.texts[0]

    def take(self, rows: I64) -> Texts:
        """Return some of the texts."""
        return Texts([self.texts[row] for row in rows.tolist()])

    @cached_property
    def whole(self) -> I64 | None:
        """Return the texts as integers, int64[n]; None if some are not."""
        found = [text.replace(",", "") for text in self.texts]
        if not all(map(_WHOLE.fullmatch, found)):
            return None
        return np.array([int(float(text)) for text in found], dtype=np.int64)

    @cached_property
    def numbers(self) -> F64:
        """Return the texts as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        return np.array([_number(text) for text in self.texts], dtype=np.float64)


class Cells(Texts):
    """Texts that are parts of bytes."""

    def __init__(self, data: bytes, begin: I64, end: I64) -> None:
        self._data, self._begin, self._end = data, begin, end

    def __len__(self) -> int:
        return len(self._begin)

    def _text(self, row: int) -> str:
        return self._data[int(self._begin[row]) : int(self._end[row])].decode()

    @property
    def first(self) -> str:
        """Return the first text."""
        return self._text(0)

    @cached_property
    def texts(self) -> Sequence[str]:  # type: ignore[override]
        """Return all texts."""
        return [self._text(row) for row in range(len(self))]

    def take(self, rows: I64) -> Cells:
        """Return some of the texts."""
        return Cells(self._data, self._begin[rows], self._end[rows])

    @cached_property
    def whole(self) -> I64 | None:
        """Return the texts as integers, int64[n]; None if some are not."""
        if not _WHOLE.fullmatch(self.first.replace(",", "")):
            return None
        parsed = self.parsed()
        if not parsed.good.all():
            return Texts(self.texts).whole
        found, rest = np.divmod(parsed.digits, parsed.power)
        return None if rest.any() or parsed.negative.any() else found

    @cached_property
    def numbers(self) -> F64:
        """Return the texts as numbers, float64[n], a clock such as 1:02:03 in seconds; nan for other texts."""
        if self.whole is not None:
            return self.whole.astype(np.float64)
        parsed = self.parsed()
        found = parsed.digits / parsed.power
        found[parsed.negative] *= -1.0
        for row in np.flatnonzero(~parsed.good).tolist():
            found[row] = _number(self._text(row))
        return found

    def parsed(self) -> ParsedDigits:
        """Return the texts as digits."""
        return parse(self._data, self._begin, self._end)


def cells_of(texts: Sequence[str]) -> Cells:
    """Return texts as parts of bytes."""
    encoded = [text.encode(errors="replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Cells(b"".join(encoded), ends[:-1], ends[1:])


@dataclass(frozen=True)
class ParsedDigits:
    """Texts as decimal numbers: digits without the dot, number of digits after it, and sign."""

    digits: I64
    scale: NDArray[np.int8]
    negative: Mask
    """True if a minus sign precedes them."""
    good: Mask
    """bool[n]: whether a text is such a number, and an exact one."""

    @property
    def power(self) -> I64:
        """Return the power of ten by which the digits are divided, int64[n]."""
        return 10 ** self.scale.astype(np.int64)


def parse(data: bytes, begin: I64, end: I64) -> ParsedDigits:
    """Return the numbers between positions of some bytes."""
    view = np.frombuffer(data, dtype=np.uint8)
    parts = [_parsed(view, begin[start:stop], end[start:stop]) for start, stop in blocks(len(begin))]
    parts = parts or [_parsed(view, begin, end)]
    return ParsedDigits(*(np.concatenate([getattr(one, name) for one in parts]) for name in _FIELDS))


_FIELDS = ("digits", "scale", "negative", "good")


def _parsed(view: Characters, begin: I64, end: I64) -> ParsedDigits:
    length = end - begin
    size = len(begin)
    digits, scale, count = (np.zeros(size, dtype=np.int64) for _ in range(3))
    behind_dot, bad = np.zeros(size, dtype=np.bool_), length > _WIDEST
    negative = np.zeros(size, dtype=np.bool_)
    for at in range(min(int(length.max(initial=0)), _WIDEST)):
        inside = at < length
        char = view[np.where(inside, begin + at, 0)]
        value = char - np.uint8(_ZERO)
        is_digit = inside & (value < 10)
        digits = np.where(is_digit & (count < _EXACT), digits * 10 + value, digits)
        count += is_digit
        scale += is_digit & behind_dot
        is_dot = inside & (char == _DOT)
        bad |= is_dot & (behind_dot | (count == 0))
        behind_dot |= is_dot
        is_sign = inside & ((char == _PLUS) | (char == _MINUS)) if at == 0 else False
        negative |= is_sign & (char == _MINUS)
        bad |= inside & ~(is_digit | is_dot | is_sign | (char == _COMMA))
    return ParsedDigits(
        digits, np.minimum(scale, _EXACT).astype(np.int8), negative, ~bad & (count > 0) & (count <= _EXACT)
    )


def _number(text: str) -> float:
    value = clock_seconds(text)
    value = decimal(text.replace(",", "")) if value is None else value
    return math.nan if value is None else value
