"""Drawing for terminals, also without colors and piped: a console that collects text, bars, sparklines, and the strip
of a window: cells, marks of disruptions, a clock and a legend. Letters repeat the meaning of colors.

Also the cells of a sheet in words, for the table and for Markdown. Renderers escape the text.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from goodput_cli.analysis.document import Picture, Strip
from goodput_cli.analysis.sheet import Audience, Cell, Column, ColumnKind, Sheet
from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import BY_NAME, CATEGORIES, Category, title
from goodput_cli.vocabulary.text import change, clock, duration, finite, number, percent, points, wrap_spans
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_HOUR, NS_PER_MINUTE, NS_PER_SECOND

NARROWEST = 40
"""Minimum width in columns for every table."""
WIDEST_TEXT = 160
"""Maximum width of a sentence: the next line of a longer one is hard to find."""
GAP = 2
LONGEST_NAME = 39
"""Columns for the name of a category; a longer label goes on in the next line."""
MOST_OF_NAME = 3 * LONGEST_NAME
"""Maximum length of such a name."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.:-=+*#"


def collecting_console(width: int, page: Page) -> Console:
    """Return a console that keeps what is printed, for `collected`."""
    return Console(
        file=io.StringIO(),
        width=width,
        height=100,
        force_terminal=page.colour,
        color_system=page.depth if page.colour else None,
        no_color=not page.colour,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


def put(console: Console, content: RenderableType, indent: int = 0) -> None:
    """Print with a margin of one column plus `indent`, also for continuation lines.

    Text is broken between words unless its `no_wrap` is set. Text with the `overflow` "ignore" stays on one line of any
    length, so that commands can be pasted.
    """
    parts: list[RenderableType] = [content]
    if isinstance(content, Text) and content.overflow == "ignore":
        console.print(Text(" " * (1 + indent)).append_text(content), soft_wrap=True)
        return
    if isinstance(content, Text) and not content.no_wrap:
        spans = wrap_spans(content.plain, min(console.width - 1, WIDEST_TEXT) - indent)
        parts = [content[start:end] for start, end in spans]
    for part in parts:
        console.print(Padding(part, (0, 0, 0, 1 + indent)))


def collected(console: Console) -> str:
    """Return everything printed, without trailing blanks."""
    output = console.file
    assert isinstance(output, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def colour_of(category: str, page: Page) -> str:
    """Return the color of a category for this terminal; empty without colors."""
    if not page.colour:
        return ""
    look = BY_NAME[category].look
    return look.basic if page.depth == "standard" else look.colour


def bar(share: float, width: int, unicode: bool) -> str:
    """Return a bar for 0 to 100 percent. Values above zero are always visible."""
    if width <= 0 or not share > 0:
        return ""
    if not unicode:
        return "#" * max(1, round(min(share, 100.0) * width / 100))
    eighths = max(1, round(min(share, 100.0) * width * 8 / 100))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(shares: Sequence[float | None], width: int, unicode: bool) -> str:
    """Return shares of 0 to 100 percent as one line of at most `width` characters. If they do not fit, each character
    is the minimum of several. None is a blank."""
    levels = _LEVELS if unicode else _ASCII_LEVELS
    size = -(-len(shares) // width) if shares else 1
    groups = [[share for share in shares[at : at + size] if share is not None] for at in range(0, len(shares), size)]
    lowest = [min(max(min(group), 0.0), 100.0) if group else None for group in groups]
    return "".join(" " if low is None else levels[min(int(low * 8 / 100), 7)] for low in lowest)


_TICKS = (
    *(n * NS_PER_SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * NS_PER_MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * NS_PER_HOUR for n in (1, 2, 3, 6, 12)),
    *(n * NS_PER_DAY for n in (1, 2, 7, 14, 28, 91, 364, 728, 1820, 3640)),
)
_ROOM_OF_TICK = 10
"""Minimum number of columns between two labels of the clock."""


def strip_lines(picture: Picture, width: int, page: Page) -> Iterator[Text]:
    """Yield a window in lines of at most `width` columns (at least 40, for the legend)."""
    if picture.end_ns <= picture.start_ns:
        return
    width = max(width, NARROWEST)
    strip = picture.strip(width)
    yield _cells(strip, page)
    marks = "".join(_mark(count, page.unicode) for count in strip.disruptions).rstrip()
    if marks:
        yield Text(marks, style="bold", no_wrap=True)
    ticks = _clock(strip, width)
    if ticks:
        yield Text(ticks, style="dim", no_wrap=True)
    yield from _filled(_legend(strip, page), width)


def _cells(strip: Strip, page: Page) -> Text:
    """Return one letter per cell. With colors, the background is the color of the category, and productive cells have
    none."""
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
    """Return black or white, whichever has more contrast (relative luminance, ITU-R BT.709)."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 110 else "bright_white"


def _mark(disruptions: int, unicode: bool) -> str:
    """Return a pointer for one disruption, or the number of several."""
    if disruptions == 0:
        return " "
    if disruptions == 1:
        return "▲" if unicode else "^"
    return str(disruptions) if disruptions <= 9 else "+"


def _clock(strip: Strip, width: int) -> str:
    """Return round times (UTC) below the cells that contain them: `|21:00`; days as `|01-13`, months as `|2026-01`."""
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
    """Yield sign, style and words of the strip's content: categories in their fixed order, then disruptions."""
    for name in CATEGORIES:
        if name in strip.categories:
            yield _sign(name, page), _style(name, page), title(name)
    if any(strip.disruptions):
        several = " (digit = several per cell)" if max(strip.disruptions) > 1 else ""
        yield _mark(1, page.unicode), "bold", f"disruption{several}"


def _filled(entries: Iterable[tuple[str, str, str]], width: int) -> Iterator[Text]:
    """Yield lines with as many entries as fit."""
    line = Text(no_wrap=True)
    for sign, style, words in entries:
        entry = Text.assemble((sign, style), (f" {words}", "dim"))
        if line and len(line) + 2 + len(entry) > width:
            yield line
            line = Text(no_wrap=True)
        line.append("  " if line else "").append_text(entry)
    yield line


NOT_RECORDED = "-"
_MONEY = 2
_NO_YEAR, _TIME = len("2026-"), len("2026-01-31 ")
_LEFT: tuple[ColumnKind, ...] = ("text", "share")


def shown_rows(sheet: Sheet) -> Sequence[tuple[Cell, ...]]:
    """Return the rows for people."""
    return sheet.rows if sheet.grouped_rows is None else sheet.grouped_rows


def shown_columns(sheet: Sheet) -> list[tuple[int, Column]]:
    """Return the columns for people, each with its position."""
    return [(position, column) for position, column in enumerate(sheet.columns) if column.audience & Audience.PEOPLE]


def is_left(column: Column) -> bool:
    """Return True if a column is aligned left: text and bars are, numbers are not."""
    return column.kind in _LEFT


def full_heading(column: Column) -> str:
    """Return the long heading, which contains the time zone."""
    return column.heading + (" (UTC)" if column.kind == "instant" else "")


def cell_text(kind: ColumnKind, value: Cell) -> str:
    """Return a cell in words. Unrecorded values are `-`, or empty in a text column. Bars are not text."""
    if value is None or (isinstance(value, float) and finite(value) is None):
        return "" if kind in _LEFT else NOT_RECORDED
    if kind == "text" or isinstance(value, str):
        return str(value)
    match kind:
        case "duration":
            return duration(int(value))
        case "change":
            return change(int(value))
        case "points":
            return points(float(value))
        case "instant":
            return " ".join(clock(int(value)))
        case "percent":
            return percent(float(value))
        case "count":
            return str(int(value))
        case _:
            return number(float(value))


def cell_texts(column: Column, values: Sequence[Cell]) -> list[str]:
    """Return the cells of a column in words. Numbers with at most two decimals all get the same number of decimals."""
    texts = [cell_text(column.kind, value) for value in values]
    if column.kind != "number" or any(isinstance(value, str) for value in values):
        return texts
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    if not 0 < decimals <= _MONEY:
        return texts
    return [f"{float(text):.{decimals}f}" if text != NOT_RECORDED else text for text in texts]


def time_texts(sheet: Sheet, rows: Sequence[Sequence[Cell]], place: int) -> tuple[list[str], list[str] | None]:
    """Return the times of a column as `2026-01-31 10:00:00`, without the day or year if the lines above the table
    contain it; and, for narrow terminals, without the year if there is only one."""
    above = " ".join((sheet.title, *sheet.summary))
    places = [position for position, column in shown_columns(sheet) if column.kind == "instant"]
    days = {clock(value)[0] for row in rows for position in places if isinstance(value := row[position], int)}
    years = {day[:4] for day in days}
    cells = [row[place] for row in rows]
    if len(days) == 1 and days <= set(above.split()):
        return [_time_text(cell, _TIME) for cell in cells], None
    short = [_time_text(cell, _NO_YEAR) for cell in cells] if len(years) <= 1 else None
    if short is not None and any(f"{year}-" in above for year in years):
        return short, None
    return [_time_text(cell, 0) for cell in cells], short


def _time_text(value: Cell, start: int) -> str:
    return " ".join(clock(value))[start:] if isinstance(value, int) else NOT_RECORDED


def table_columns(sheet: Sheet) -> list[tuple[int, Column]]:
    """Return the columns of CSV and Parquet, each with its position. Columns that only draw bars are left out."""
    columns = enumerate(sheet.columns)
    return [(at, column) for at, column in columns if column.audience & Audience.TABLES and column.kind != "share"]
