"""States of progress bars of a block as columns: how many steps are done, and how long the bar has been drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.text.calm_bars import FIELDS, MOST_DIGITS, plain_bar
from goodput_cli.events.text.line_shapes import LineShapes, digits_in
from goodput_cli.events.text.lines import MASK, LineRules, Lines
from goodput_cli.events.text.programs.progress_bars import has_count_after_rate
from goodput_cli.events.text.step_columns import number_in
from goodput_cli.events.text.templates import LineReader

_FEWEST = 8
"""Fewer states in a row are read one by one."""


class States(NamedTuple):
    """States of one bar that follow each other, each with more steps done."""

    lines: I64
    fields: tuple[str, str]
    """Name and total, as the bar draws them."""
    done: I64
    elapsed: I64
    """s."""


@dataclass(frozen=True)
class Drawn:
    """The states of all bars of a block, in order of lines."""

    names: Sequence[tuple[str, str]]
    """Name and total of each bar."""
    lines: I64
    bar: I64
    done: I64
    elapsed: I64

    def in_rows(self, block: Lines, hits: I64) -> Iterator[States]:
        """Yield the states that follow each other. hits: the lines on which rules are tried, ascending."""
        first = block.first[self.lines]
        begins = first == self.lines
        follows = np.diff(np.searchsorted(hits, self.lines)) == 1
        follows &= (np.diff(first) == 0) | (begins[1:] & begins[:-1])
        follows &= (np.diff(self.bar) == 0) & (np.diff(self.done) > 0) & (np.diff(self.elapsed) >= 0)
        for begin, end in pairwise([0, *(np.flatnonzero(~follows) + 1).tolist(), len(self.lines)]):
            if end - begin >= _FEWEST:
                rows = slice(begin, end)
                fields = self.names[int(self.bar[begin])]
                yield States(self.lines[rows], fields, self.done[rows], self.elapsed[rows])


@dataclass
class _BarShape:
    """Positions at which the lines of a template contain the state of a bar."""

    bar: int
    where: slice
    """Position of its total."""
    total: bytes
    done: slice
    clock: Sequence[slice]
    """Positions of the parts of its clock, the longest unit first."""


class BarFinder:
    """Finds the states of bars in a document that need not be read one by one."""

    def __init__(self, rules: LineRules, reader: LineReader) -> None:
        self._rules, self._reader = rules, reader
        self._bars: dict[tuple[str, str], int] = {}
        self._names: list[tuple[str, str]] = []
        self._shapes = {False: self._shapes_of(False), True: self._shapes_of(True)}

    def _shapes_of(self, overwritten: bool) -> LineShapes[_BarShape]:
        return LineShapes(
            lambda raw, key: self._fixed_in(raw, key, overwritten), lambda raw: self._made(raw, overwritten)
        )

    def find(self, block: Lines) -> Drawn | None:
        """Return the states of bars in a block; None if there are none."""
        if block.find(b"%", 0, len(block.data)) < 0:
            return None
        found: list[tuple[I64, I64, I64, I64]] = []
        for overwritten, shapes in self._shapes.items():
            for lines, shape in shapes.alike(block, block.overwritten == overwritten):
                found += _columns(block, lines, shape)
        if not found:
            return None
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return Drawn(self._names, *(column[order] for column in columns))

    def _fixed_in(self, raw: bytes, key: bytes, overwritten: bool) -> list[int] | None:
        """Return the columns of digits in the name of a bar; None for lines that contain more or something else."""
        text = _text(raw)
        if text is None or "%" not in text or has_count_after_rate(text):
            return None
        template = self._reader.template(text, key, overwritten)
        fields = None if template is None else plain_bar(template)
        if fields is None:
            return None
        name = fields.places["name"]
        return digits_in(raw, 0, len(text[: 0 if name is None else name.stop].encode()))

    def _made(self, raw: bytes, overwritten: bool) -> _BarShape | None:
        text = raw.decode()
        template = self._reader.template(text, raw.translate(MASK), overwritten)
        fields = None if template is None else plain_bar(template)
        if fields is None:
            return None
        name, total, done, clock = (fields.places[field] or slice(0, 0) for field in FIELDS)
        parts: list[slice] = []
        at = clock.start
        for part in text[clock].split(":"):
            parts.append(slice(at, at + len(part)))
            at += len(part) + 1
        if (
            max(done.stop - done.start, total.stop - total.start, *(one.stop - one.start for one in parts))
            > MOST_DIGITS
        ):
            return None
        known = text[name], text[total]
        bar = self._bars.setdefault(known, len(self._names))
        if bar == len(self._names):
            self._names.append(known)

        def of_bytes(place: slice) -> slice:
            begin = len(text[: place.start].encode())
            return slice(begin, begin + place.stop - place.start)

        where = of_bytes(total)
        return _BarShape(bar, where, raw[where], of_bytes(done), [of_bytes(part) for part in parts])


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _columns(block: Lines, lines: I64, shape: _BarShape) -> Iterator[tuple[I64, I64, I64, I64]]:
    """Yield line, bar, steps done and seconds of the lines that draw the same bar as the line of their shape."""
    width = shape.where.stop - shape.where.start
    totals = block.columns(lines, width, shape.where.start)
    lines = lines[(totals == np.frombuffer(shape.total, dtype=np.uint8)).all(axis=1)]
    elapsed = np.zeros(len(lines), dtype=np.int64)
    for part in shape.clock:
        elapsed = 60 * elapsed + _number(block, lines, part)
    if len(lines):
        yield lines, np.full(len(lines), shape.bar), _number(block, lines, shape.done), elapsed


def _number(block: Lines, lines: I64, place: slice) -> I64:
    width = place.stop - place.start
    return number_in(block.columns(lines, width, place.start), range(width))
