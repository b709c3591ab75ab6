"""Find lines of a block that differ only in digits together, and classify them by a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar

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


class Shape(Protocol):
    """A class of lines that differ only in digits."""

    @property
    def prefix(self) -> bytes:
        """Return the characters at their beginning that are equal, including digits."""


OneShape = TypeVar("OneShape", bound=Shape)


class Alike(NamedTuple, Generic[OneShape]):
    """Lines of one shape, in order of lines."""

    lines: I64
    shape: OneShape


class LineShapes(Generic[OneShape]):
    """The shapes of the lines of a document."""

    def __init__(
        self, prefix_of: Callable[[bytes, bytes], int | None], make: Callable[[bytes], OneShape | None]
    ) -> None:
        """prefix_of: returns the length of the prefix of a line; None for irrelevant lines. Its second argument is the
        line with its digits masked. make: returns the shape of a line."""
        self._prefix_of, self._make = prefix_of, make
        self._prefixes: dict[bytes, int | None] = {}
        """By the line with its digits masked."""
        self._shapes: dict[tuple[bytes, bytes], OneShape | None] = {}
        """By that and the prefix of the line as it is."""

    def alike(self, block: Lines, chosen: Mask) -> Iterator[Alike[OneShape]]:
        """Yield the lines of each shape, of some lines of a block."""
        for lines, length in _by_length(block, chosen):
            yield from self._of_length(block, lines, length)

    def _of_length(self, block: Lines, lines: I64, length: int) -> Iterator[Alike[OneShape]]:
        rows: Characters | None = None
        for _ in range(_SHAPES):
            key, shape = self._sampled(block, lines)
            if shape is None:
                return
            rows = block.masked_columns(lines, length) if rows is None else rows
            same: Mask = (rows == np.frombuffer(key, dtype=np.uint8)).all(axis=1)
            if shape.prefix:
                begins = block.columns(lines, len(shape.prefix))
                same &= (begins == np.frombuffer(shape.prefix, dtype=np.uint8)).all(axis=1)
            if np.count_nonzero(same) >= FEWEST:
                yield Alike(lines[same], shape)
            lines, rows = lines[~same], rows[~same]
            if len(lines) < FEWEST:
                return

    def _sampled(self, block: Lines, lines: I64) -> tuple[bytes, OneShape | None]:
        """Return the shape of one of some lines of a length, None if none of a few matters, and its masked line."""
        for part in range(1, _SAMPLES + 1):
            raw = block.bytes_of(int(lines[len(lines) * part // (_SAMPLES + 1)]), _LONGEST)
            key = raw.translate(MASK)
            shape = self._shape(raw, key)
            if shape is not None:
                return key, shape
        return b"", None

    def _shape(self, raw: bytes, key: bytes) -> OneShape | None:
        if key not in self._prefixes:
            if len(self._prefixes) >= _MOST:
                self._prefixes.clear()
            self._prefixes[key] = self._prefix_of(raw, key)
        length = self._prefixes[key]
        if length is None:
            return None
        known = key, raw[:length]
        if known not in self._shapes:
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            self._shapes[known] = self._make(raw)
        return self._shapes[known]


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
