"""Find lines of a block that differ only in digits together, and classify them by a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask
from goodput_cli.events.text.lines import MASK, Lines

FEWEST = 4
"""Fewer lines of one length are read one by one."""
_SHAPES = 16
"""Maximum number of shapes of one length in a block."""
_SAMPLES = 3
"""Number of lines of one length that are tested to find a relevant one."""
_LONGEST = 1024
_MOST = 8192


OneShape = TypeVar("OneShape")


class Alike(NamedTuple, Generic[OneShape]):
    """Lines of one shape, in order of lines."""

    lines: I64
    shape: OneShape


class _Sample(NamedTuple, Generic[OneShape]):
    """What the lines of a shape have in common."""

    masked: bytes
    """The lines with their digits masked."""
    fixed: Sequence[int]
    """Columns of digits that are the same in all lines."""
    digits: bytes
    """These digits."""
    shape: OneShape


class LineShapes(Generic[OneShape]):
    """The shapes of the lines of a document: classes of lines that differ only in digits."""

    def __init__(
        self, fixed_in: Callable[[bytes, bytes], Sequence[int] | None], make: Callable[[bytes], OneShape | None]
    ) -> None:
        """fixed_in: returns the columns of digits that are the same in all lines of a shape; None for irrelevant lines.
        Its second argument is the line with its digits masked. make: returns the shape of a line."""
        self._fixed_in, self._make = fixed_in, make
        self._fixed: dict[bytes, Sequence[int] | None] = {}
        """By the line with its digits masked."""
        self._shapes: dict[tuple[bytes, bytes], OneShape | None] = {}
        """By that and the digits that are the same."""

    def alike(self, block: Lines, chosen: Mask) -> Iterator[Alike[OneShape]]:
        """Yield the lines of each shape, of some lines of a block."""
        for lines, length in _by_length(block, chosen):
            yield from self._of_length(block, lines, length)

    def _of_length(self, block: Lines, lines: I64, length: int) -> Iterator[Alike[OneShape]]:
        rows: Characters | None = None
        for _ in range(_SHAPES):
            sample = self._sampled(block, lines)
            if sample is None:
                return
            rows = block.masked_columns(lines, length) if rows is None else rows
            same: Mask = (rows == np.frombuffer(sample.masked, dtype=np.uint8)).all(axis=1)
            for column, digit in zip(sample.fixed, sample.digits, strict=True):
                same &= block.columns(lines, 1, column)[:, 0] == digit
            if np.count_nonzero(same) >= FEWEST:
                yield Alike(lines[same], sample.shape)
            lines, rows = lines[~same], rows[~same]
            if len(lines) < FEWEST:
                return

    def _sampled(self, block: Lines, lines: I64) -> _Sample[OneShape] | None:
        """Return the shape of one of some lines of a length; None if none of a few matters."""
        for part in range(1, _SAMPLES + 1):
            raw = block.bytes_of(int(lines[len(lines) * part // (_SAMPLES + 1)]), _LONGEST)
            found = self._sample(raw, raw.translate(MASK))
            if found is not None:
                return found
        return None

    def _sample(self, raw: bytes, masked: bytes) -> _Sample[OneShape] | None:
        if masked not in self._fixed:
            if len(self._fixed) >= _MOST:
                self._fixed.clear()
            self._fixed[masked] = self._fixed_in(raw, masked)
        fixed = self._fixed[masked]
        if fixed is None:
            return None
        digits = bytes(raw[column] for column in fixed)
        if (masked, digits) not in self._shapes:
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            self._shapes[masked, digits] = self._make(raw)
        shape = self._shapes[masked, digits]
        return None if shape is None else _Sample(masked, fixed, digits, shape)


def digits_in(raw: bytes, begin: int, end: int) -> list[int]:
    """Return the columns of ASCII digits in a part of a line."""
    return [column for column in range(begin, end) if 48 <= raw[column] < 58]


def _by_length(block: Lines, chosen: Mask) -> Iterator[tuple[I64, int]]:
    """Yield the lines of each length that several have, in order of lines."""
    length = block.end - block.start
    lines = np.flatnonzero(chosen & (length > 0) & (length <= _LONGEST))
    sizes = length[lines].astype(np.int16)
    order = np.argsort(sizes, kind="stable")
    lines, sizes = lines[order], sizes[order]
    bounds = np.append(np.flatnonzero(np.append(True, sizes[1:] != sizes[:-1])[: len(sizes)]), len(sizes))
    for begin, end in pairwise(bounds.tolist()):
        if end - begin >= FEWEST:
            yield lines[begin:end], int(sizes[begin])
