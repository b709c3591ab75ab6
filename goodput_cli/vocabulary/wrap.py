"""Long lines for people: broken between words, and never inside an amount, as in `p99 1 min 21 s`."""

from __future__ import annotations

import re

_TOGETHER = re.compile(
    r"(?<=\d) (?=[a-z%]|UTC\b)"  # a number and what it counts
    r"|(?<=\d h) (?=\d\d min)|(?<=\d d) (?=\d\d h)|(?<=\d min) (?=\d\d s)"  # two units
    r"|(?<=\b(?:p90|p99)) (?=\d)|(?<=\bmean) (?=\d)|(?<=\bmedian) (?=\d)|(?<=\bideal) (?=\d)|(?<=\bMTBF) (?=\d)"
    r"|(?<=\d\d\d\d-\d\d-\d\d) (?=\d\d:\d\d)"  # a date and its time
)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most `width` columns, those after the first behind `indent`. A word that is longer is cut."""
    spans = wrap_spans(text, width, len(indent))
    return [text[start:end] if at == 0 else indent + text[start:end] for at, (start, end) in enumerate(spans)]


def wrap_spans(text: str, width: int, indent: int = 0) -> list[tuple[int, int]]:
    """Where lines begin and end in a text, without the blanks between them."""
    if text_width(text) <= width:
        return [(0, len(text))]
    kept = {match.start() for match in _TOGETHER.finditer(text)}
    spans: list[tuple[int, int]] = []
    start = end = 0
    for word in _words(text, kept):
        room = max(width - (indent if spans else 0), 1)
        if end > start and text_width(text[start : word[1]]) > room:
            spans.append((start, end))
            start, room = word[0], max(width - indent, 1)
        end = word[1]
        while text_width(text[start:end]) > room:
            cut = _cut(text, start, room)
            spans.append((start, cut))
            start, room = cut, max(width - indent, 1)
    return [*spans, (start, end)]


def text_width(text: str) -> int:
    """Columns on a terminal; characters of two columns count so."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _words(text: str, kept: set[int]) -> list[tuple[int, int]]:
    """Where words begin and end, a leading blank with the first one; `kept` blanks are inside of one."""
    blanks = [one.span() for one in re.finditer(r" +", text) if one.start() not in kept and one.start() > 0]
    starts, ends = [0, *(end for _, end in blanks)], [*(start for start, _ in blanks), len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


def _cut(text: str, start: int, room: int) -> int:
    end = start + 1
    while end < len(text) and text_width(text[start : end + 1]) <= room:
        end += 1
    return end
