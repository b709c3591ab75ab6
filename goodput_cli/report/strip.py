"""The strip on a terminal: cells, marks of disruptions, a clock and a legend. Letters say what colours say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.text import Text

from goodput_cli.analysis.picture.strip import Strip, strip_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.terminal import colour_of
from goodput_cli.vocabulary.categories import BY_NAME, CATEGORIES, Category
from goodput_cli.vocabulary.category_names import title
from goodput_cli.vocabulary.text import clock
from goodput_cli.vocabulary.units import NS_PER_DAY, NS_PER_HOUR, NS_PER_MINUTE, NS_PER_SECOND

_TICKS = (
    *(n * NS_PER_SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * NS_PER_MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * NS_PER_HOUR for n in (1, 2, 3, 6, 12)),
    *(n * NS_PER_DAY for n in (1, 2, 7, 14, 28, 91, 364, 728, 1820, 3640)),
)
_NARROWEST = 40
_ROOM_OF_TICK = 10
"""Columns from one label of the clock to the next, at least."""


def strip_lines(analysis: Analysis, width: int, page: Page) -> Iterator[Text]:
    """The window of an analysis in lines of at most `width` columns (40 at least: the legend needs them)."""
    window = analysis.window
    if window.ns <= 0:
        return
    width = max(width, _NARROWEST)
    strip = strip_of(analysis.timeline.ledger, analysis.disruptions, window.start_ns, window.end_ns, width)
    yield _cells(strip, page)
    marks = "".join(_mark(count, page.unicode) for count in strip.disruptions).rstrip()
    if marks:
        yield Text(marks, style="bold", no_wrap=True)
    ticks = _clock(strip, width)
    if ticks:
        yield Text(ticks, style="dim", no_wrap=True)
    yield from _filled(_legend(strip, page), width)


def _cells(strip: Strip, page: Page) -> Text:
    """A letter a cell. In colour it stands on the category's colour, and productive cells are left without one."""
    text = Text(no_wrap=True)
    for category, alike in groupby(strip.categories):
        text.append(_sign(category, page) * len(list(alike)), _style(category, page))
    return text


def _sign(category: str, page: Page) -> str:
    if category != Category.PRODUCTIVE.id:
        return BY_NAME[category].look.letter
    if page.colour:
        return " "
    return "━" if page.unicode else BY_NAME[category].look.letter


def _style(category: str, page: Page) -> str:
    return f"{_ink_on(BY_NAME[category].look.colour)} on {colour_of(category, page)}" if page.colour else ""


def _ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on the colour (relative luminance, ITU-R BT.709)."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 110 else "bright_white"


def _mark(disruptions: int, unicode: bool) -> str:
    """One disruption is a pointer, several are their number."""
    if disruptions == 0:
        return " "
    if disruptions == 1:
        return "▲" if unicode else "^"
    return str(disruptions) if disruptions <= 9 else "+"


def _clock(strip: Strip, width: int) -> str:
    """Round times (UTC) below the cells in which they lie: `|21:00`; days as `|01-13`, months as `|2026-01`."""
    length = strip.end_ns - strip.start_ns
    step = next((tick for tick in _TICKS if length * _ROOM_OF_TICK <= tick * width), None)
    if step is None:
        return ""
    line = ""
    for instant in range(-(-strip.start_ns // step) * step, strip.end_ns, step):
        label = f"|{_label(instant, step)}"
        column = (instant - strip.start_ns) * width // length
        if column + len(label) <= width and (column > len(line) or not line):
            line = line.ljust(column) + label
    return line


def _label(instant: int, step: int) -> str:
    day, time = clock(instant)
    if step >= 91 * NS_PER_DAY:
        return day[:7]
    if step >= NS_PER_DAY:
        return day[5:]
    return time if step < NS_PER_MINUTE else time[:5]


def _legend(strip: Strip, page: Page) -> Iterator[tuple[str, str, str]]:
    """Sign, style and words of what the strip shows: categories in the fixed order, then disruptions."""
    for name in CATEGORIES:
        if name in strip.categories:
            yield _sign(name, page), _style(name, page), title(name)
    if any(strip.disruptions):
        several = ", a number: that many" if max(strip.disruptions) > 1 else ""
        yield _mark(1, page.unicode), "bold", f"disruption{several}"


def _filled(entries: Iterable[tuple[str, str, str]], width: int) -> Iterator[Text]:
    """Entries side by side, as many a line as fit."""
    line = Text(no_wrap=True)
    for sign, style, words in entries:
        entry = Text.assemble((sign, style), (f" {words}", "dim"))
        if line and len(line) + 2 + len(entry) > width:
            yield line
            line = Text(no_wrap=True)
        line.append("  " if line else "").append_text(entry)
    yield line
