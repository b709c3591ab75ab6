"""Storms: one failure said by so many lines that none but the first of each kind is worth reading.

Lines that differ in nothing but the digits of their stamps, and of what no one asks the row for, say the same: they are
told apart by their bytes, many at once, and what the first of them says is counted for the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import I64

if TYPE_CHECKING:
    from goodput_cli.events.text.lines import Lines, Ruleset
    from goodput_cli.events.text.observer import Repeatable

BEGINS = 256
"""Behind so many lines of a document that are worth a look the others are compared."""
_ALIKE = 64
"""Fewer lines of one shape are not worth comparing."""
_SHAPES = 8
"""So many shapes of one length are compared."""
_LONGEST = 4096
_MOST = 1 << 16
"""So many kinds of lines are known at once."""
_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b[WIEF]\d{3,4} \d\d:\d\d:\d\d(?:\.\d+)?|\[ *\d+\.\d{6}\]"
)
_PLACE = re.compile(r"\d\]:|@")
"""What says which process wrote a line, wherever it stands."""
_NOT_ASKED = frozenset({"sequence", "waited"})
"""Fields of rows that say nothing of a line that is counted."""
_ZERO, _NINE = ord("0"), ord("9")
_SHAPE = np.arange(256, dtype=np.uint8)
_SHAPE[_ZERO : _NINE + 1] = _ZERO


@dataclass(slots=True)
class Kind:
    """Lines that say the same."""

    quiet: bool = False
    """Whether no rule reads them, and a row may: what was read of one holds for all."""
    of: Repeatable | None = None
    """What the first of them became; None: each is looked at."""


@dataclass
class Storms:
    """The kinds of lines of one document that were met in a storm."""

    rules: Ruleset
    _kinds: dict[bytes, Kind] = field(default_factory=dict)
    _told_apart: dict[bytes, NDArray[np.intp]] = field(default_factory=dict)
    """By shape, the columns that count."""

    @cached_property
    def _with_digits(self) -> list[bytes]:
        """Literals of rules and rows that hold digits, as shapes: digits of a line that has one may be of it."""
        literals = (*(rule.anchor for rule in self.rules.rules), *self.rules.causes.anchors)
        return [one.encode().translate(_SHAPE.tobytes()) for one in literals if any(char.isdigit() for char in one)]

    def kinds(self, block: Lines, lines: I64) -> dict[int, Kind]:
        """By line, its kind, of those that are of a shape with many others."""
        if self.rules.reads_all or block.overwritten.any():
            return {}
        if len(self._kinds) > _MOST:
            self._kinds.clear()
        found: dict[int, Kind] = {}
        length = block.end[lines] - block.start[lines]
        sizes, counts = np.unique(length, return_counts=True)
        for size in sizes[(counts >= _ALIKE) & (sizes <= _LONGEST) & (sizes > 0)].tolist():
            of_size = lines[length == size]
            self._of_size(block.columns(of_size, size), of_size, found)
        return found

    def _of_size(self, rows: NDArray[np.uint8], lines: I64, found: dict[int, Kind]) -> None:
        """Those of lines of one length."""
        shapes = _SHAPE[rows]
        for _ in range(_SHAPES):
            if len(lines) < _ALIKE:
                return
            same = (shapes == shapes[0]).all(axis=1)
            if np.count_nonzero(same) >= _ALIKE:
                self._of_shape(shapes[0].tobytes(), rows[same], lines[same], found)
            rows, shapes, lines = rows[~same], shapes[~same], lines[~same]

    def _of_shape(self, shape: bytes, rows: NDArray[np.uint8], lines: I64, found: dict[int, Kind]) -> None:
        columns = self._told_apart.get(shape)
        if columns is None:
            columns = self._told_apart[shape] = self._columns(rows[0].tobytes())
        told = np.ascontiguousarray(rows[:, columns])
        if told.shape[1] == 0:
            names, which = [b""], np.zeros(len(lines), dtype=np.intp)
        else:
            distinct, which = np.unique(told.view(f"V{told.shape[1]}")[:, 0], return_inverse=True)
            names = [one.tobytes() for one in distinct]
        kinds = [self._kinds.setdefault(shape + b"\0" + name, Kind()) for name in names]
        found.update(zip(lines.tolist(), map(kinds.__getitem__, which.tolist()), strict=True))

    def _columns(self, line: bytes) -> NDArray[np.intp]:
        """The digits of a line that tell lines of its shape apart: all but those of stamps, those of fields that nobody
        asks for, and those behind what the only row that may read it reads."""
        digits = np.array([_ZERO <= char <= _NINE for char in line])
        shape = line.translate(_SHAPE.tobytes())
        if not line.isascii() or any(literal in shape for literal in self._with_digits):
            return np.flatnonzero(digits)
        text = line.decode("ascii")
        begin = len(text)
        row = self.rules.causes.first_of(text)
        match = None if row is None else row.pattern.search(text)
        if row is not None and match is not None:
            begin = match.start()
            if not _PLACE.search(text, match.end()):
                digits[match.end() :] = False
            for name in row.pattern.groupindex.keys() & _NOT_ASKED:
                low, high = match.span(row.pattern.groupindex[name])
                if low >= 0 and _is_whole(text, low, high):
                    digits[low:high] = False
        for stamp in _STAMP.finditer(text, 0, begin):
            digits[stamp.start() : stamp.end()] = False
        return np.flatnonzero(digits)


def _is_whole(text: Sequence[str], low: int, high: int) -> bool:
    """Whether a number stands there alone, with no digit before or behind it."""
    return not (low > 0 and text[low - 1].isdigit()) and not (high < len(text) and text[high].isdigit())
