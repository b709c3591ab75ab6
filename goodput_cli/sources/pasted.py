"""Text that was pasted from a viewer or quoted: marks before each line are replaced by blanks.

A quote has `> ` before each line, a viewer the number of each line, also of empty ones. Blanks keep the columns of the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

_HEAD = 1 << 16
"""Bytes that decide if lines are marked."""
_FEWEST = 3
"""Minimum number of lines."""
_QUOTED = re.compile(rb"^[ \t]{0,3}>(?=[ \t\r]|$)", re.MULTILINE)
_NUMBERED = re.compile(rb"^[ \t]{0,9}\[?(\d{1,9})(?:\]|[:|.])?(?=[ \t\r]|$)", re.MULTILINE)


def without_marks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the chunks of a text, of whole lines or parts of them, without the marks of a viewer or a quote."""
    stream = iter(chunks)
    head = next(stream, b"")
    marks = marks_of(head[:_HEAD])
    stream = chain((head,), stream)
    return stream if marks is None else _blanked(stream, marks)


def marks_of(head: bytes) -> re.Pattern[bytes] | None:
    """Return the pattern of the marks that all lines of a text begin with; None without marks. head: its begin."""
    lines = head.split(b"\n")[: -1 if len(head) == _HEAD else None]
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < _FEWEST:
        return None
    if all(_QUOTED.match(line) or not line.strip() for line in lines) and _QUOTED.match(lines[0]):
        return _QUOTED
    found = [_NUMBERED.match(line) for line in lines]
    numbers = [int(one[1]) for one in found if one is not None]
    counts = len(numbers) == len(lines) and numbers == [*range(numbers[0], numbers[0] + len(lines))]
    # A program may number its steps, but no step is empty.
    is_viewed = counts and any(one is not None and not one.string[one.end() :].strip() for one in found)
    return _NUMBERED if is_viewed else None


def _blanked(chunks: Iterable[bytes], marks: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield whole lines with blanks instead of marks."""
    rest = b""
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if not end:
            rest += chunk
            continue
        yield marks.sub(_blank, rest + chunk[:end])
        rest = chunk[end:]
    if rest:
        yield marks.sub(_blank, rest)


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found[0])
