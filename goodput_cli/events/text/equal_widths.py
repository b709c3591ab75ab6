"""Write the numbers of similar lines with equally many digits, so that lines that differ only in numbers have the same
length: `step 7` and `step 12` become `step 07` and `step 12`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64, Characters, Mask, alike
from goodput_cli.events.text.lines import Lines

FEWEST = 64
"""Fewer lines are read one by one."""
FEWEST_ALIKE = 8
"""Fewer similar lines are read one by one."""
_LONGEST = 1024
_MOST_DIGITS = 19
"""Lines with longer numbers stay as they are."""
_ZERO, _NINE, _POINT, _COMMA, _NEWLINE = b"09.,\n"
_WEIGHTS = np.random.default_rng(20260301).integers(1, 2**63, _LONGEST + 1, dtype=np.uint64) | np.uint64(1)
"""Of the bytes of a line in its hash. Lines with equal hashes are compared."""


class EqualWidths(NamedTuple):
    """Lines whose numbers have as many digits as those of similar lines."""

    lines: Lines
    rows: I64
    """Index of the original of each line, int64[n]."""


class _Numbers(NamedTuple):
    """Runs of digits in lines, in order."""

    line: I64
    start: I64
    length: I64
    is_fraction: Mask
    """True for digits after a decimal point: zeros are added after them."""
    is_group: Mask
    """True for digits after a comma: `1,234` may be one number, so their count stays."""


def with_equal_widths(block: Lines, lines: I64) -> EqualWidths | None:
    """Return lines of a block with numbers of equal widths; None if too few are similar. Lines that are not similar to
    others are left out."""
    length = block.end[lines] - block.start[lines]
    lines = lines[(length > 0) & (length < _LONGEST)]
    if len(lines) < FEWEST:
        return None
    data, start = _joined(block, lines)
    numbers = _numbers_in(data, start)
    texts = _without_digits(data, start, numbers)
    too_long = numbers.line[numbers.length > _MOST_DIGITS]
    pieces: list[tuple[I64, Characters]] = []
    for some in alike(texts.hashes(numbers)).values():
        rows = np.setdiff1d(some, too_long)
        rows = texts.equal_to_first(rows) if len(rows) >= FEWEST_ALIKE else rows
        if len(rows) >= FEWEST_ALIKE:
            pieces.append((rows, _widened(data, start, rows, numbers)))
    if not pieces:
        return None
    sizes = np.concatenate([np.full(len(rows), text.shape[1]) for rows, text in pieces])
    ends = np.cumsum(sizes)
    joined = b"".join(text.tobytes() for _, text in pieces)
    return EqualWidths(Lines.of(joined, ends - sizes, ends - 1), lines[np.concatenate([rows for rows, _ in pieces])])


def _joined(block: Lines, lines: I64) -> tuple[Characters, I64]:
    """Return the bytes of lines, each with a line end, and the position of each; and of the end of the last."""
    size = block.end[lines] - block.start[lines] + 1
    start = np.append(0, np.cumsum(size))
    at = np.repeat(block.start[lines] - start[:-1], size) + np.arange(start[-1])
    view = np.frombuffer(block.data + b"\n", dtype=np.uint8)
    data = view[at]
    data[start[1:] - 1] = _NEWLINE
    return data, start


def _numbers_in(data: Characters, start: I64) -> _Numbers:
    digit = (data >= _ZERO) & (data <= _NINE)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], digit, [False]]).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    around = np.concatenate([[_NEWLINE, _NEWLINE], data, [_NEWLINE, _NEWLINE]]).astype(np.uint8)
    before, two_before = around[begin + 1], around[begin]
    after_point, after_digit = before == _POINT, _is_digit(two_before)
    follows_point = (around[end + 2] == _POINT) & _is_digit(around[np.minimum(end + 3, len(around) - 1)])
    second = np.zeros(len(begin), dtype=np.bool_)  # true for the third part of 1.2.3
    second[1:] = after_point[:-1] & (begin[1:] == end[:-1] + 1)
    is_fraction = after_point & ~_is_letter(two_before) & ~second & ~follows_point
    return _Numbers(
        np.searchsorted(start, begin, side="right") - 1,
        begin,
        end - begin,
        is_fraction,
        (before == _COMMA) & after_digit,
    )


def _is_digit(characters: Characters) -> Mask:
    found: Mask = (characters >= _ZERO) & (characters <= _NINE)
    return found


def _is_letter(characters: Characters) -> Mask:
    lower = characters | 32
    found: Mask = ((lower >= ord("a")) & (lower <= ord("z"))) | (characters == ord("_")) | (characters > 127)
    return found


class _Texts(NamedTuple):
    """Lines in which each number is one 0."""

    characters: Characters
    start: I64
    """Of each line, and the end of the last one."""

    def hashes(self, numbers: _Numbers) -> I64:
        """Return a number that is the same for equal lines, int64[n]."""
        length = np.diff(self.start)
        line = np.repeat(np.arange(len(length)), length)
        content = self.characters * _WEIGHTS[np.arange(self.start[-1]) - self.start[line]]
        hashes = np.add.reduceat(content, self.start[:-1])
        # a number after a comma keeps its width: lines with other widths are not similar
        groups = numbers.line[numbers.is_group], numbers.length[numbers.is_group].astype(np.uint64)
        np.add.at(hashes, groups[0], groups[1] * _WEIGHTS[groups[1].astype(np.int64)] * hashes[groups[0]])
        found: I64 = hashes.view(np.int64)
        return found

    def equal_to_first(self, rows: I64) -> I64:
        """Return the lines that equal the first one."""
        length = np.diff(self.start)[rows]
        rows = rows[length == length[0]]
        texts = np.lib.stride_tricks.sliding_window_view(self.characters, int(length[0]))[self.start[rows]]
        found: I64 = rows[(texts == texts[0]).all(axis=1)]
        return found


def _without_digits(data: Characters, start: I64, numbers: _Numbers) -> _Texts:
    kept = np.ones(len(data), dtype=np.bool_)
    more = numbers.length - 1
    inner = np.repeat(numbers.start + 1, more) + np.arange(more.sum()) - np.repeat(np.cumsum(more) - more, more)
    kept[inner] = False
    characters = data.copy()
    characters[numbers.start] = _ZERO
    return _Texts(characters[kept], np.append(0, np.cumsum(kept))[start])


def _widened(data: Characters, start: I64, rows: I64, numbers: _Numbers) -> Characters:
    """Return lines that differ only in digits with numbers of equal widths and a line end, uint8[n, length]."""
    first = np.searchsorted(numbers.line, rows)
    count = int(np.searchsorted(numbers.line, rows[0], side="right") - first[0])
    at = first[:, None] + np.arange(count)
    length, begin = numbers.length[at], numbers.start[at]
    widths = length.max(axis=0)
    sample = data[start[rows[0]] : start[rows[0] + 1]]
    text = _template(sample, begin[0] - start[rows[0]], length[0], widths)
    made = np.repeat(text.characters[None, :], len(rows), axis=0)
    for number, width in enumerate(widths.tolist()):
        is_fraction = bool(numbers.is_fraction[at[0, number]])
        for digit in range(width):
            used = digit < length[:, number]
            source = begin[:, number] + (digit if is_fraction else length[:, number] - 1 - digit)
            column = int(text.columns[number]) + (digit if is_fraction else width - 1 - digit)
            made[used, column] = data[source[used]]
    return made


class _Template(NamedTuple):
    characters: Characters
    columns: I64
    """Column of each number."""


def _template(sample: Characters, begin: I64, length: I64, widths: I64) -> _Template:
    """Return a line whose numbers are zeros of some widths."""
    pieces: list[Characters] = []
    columns: list[int] = []
    done = size = 0
    for at, digits, width in zip(begin.tolist(), length.tolist(), widths.tolist(), strict=True):
        pieces += [sample[done:at], np.full(width, _ZERO, dtype=np.uint8)]
        size += at - done
        columns.append(size)
        size, done = size + width, at + digits
    pieces.append(sample[done:])
    return _Template(np.concatenate(pieces), np.array(columns, dtype=np.int64))
