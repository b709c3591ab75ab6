"""A sheet as a table on the terminal: fits 80 columns, in plain text, without colour and piped.

The rows are laid out here and not by rich: ten thousand of them must not take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.sheets.cells import cell_text, is_left, same_day, short_instant, shown_columns, shown_rows
from goodput_cli.report.terminal import GAP, NARROWEST, bar, collected, collecting_console, put
from goodput_cli.vocabulary.text import safe, shorten

_LEAST_TEXT = 12
_LEAST_BAR, _WIDEST_BAR = 5, 30
_ELLIPSIS = "..."


def render(sheet: Sheet, page: Page) -> str:
    """The sheet as lines of at most `page.width` columns (72 at least)."""
    width = max(page.width, NARROWEST)
    before = collecting_console(width, page)
    put(before, Text(safe(sheet.title), style="bold"))
    for line in sheet.summary:
        put(before, Text(safe(line)))
    parts = [collected(before)]
    lines, left_out = _rows(sheet, page, width)
    if lines:
        head = collecting_console(width + 1, page)
        head.print(Text(lines[0], style="dim"), no_wrap=True, crop=False)
        parts += ["\n", collected(head), *(f"{line.rstrip()}\n" for line in lines[1:])]
    after = collecting_console(width, page)
    notes = [*sheet.notes, *([f"not shown for want of room: {', '.join(left_out)}"] if left_out else [])]
    for note in notes:
        put(after, Text(safe(note.lstrip(" ")), style="dim"), indent=len(note) - len(note.lstrip(" ")))
    below = [f"\n{render(part, page)}" for part in sheet.sections]
    return "".join([*parts, "\n" if notes else "", collected(after), *below])


def _rows(sheet: Sheet, page: Page, width: int) -> tuple[list[str], list[str]]:
    """Header and rows as lines, and the names of columns for which there is no room."""
    rows = list(shown_rows(sheet))
    if not rows:
        return [], []
    texts = [
        (position, column, _column_texts(sheet, rows, position, column))
        for position, column in shown_columns(sheet)
        if column.kind != "share"
    ]
    widths = {position: max(map(_width, cells)) for position, _, cells in texts}
    room = width - 1
    left_out = _fit([column for _, column, _ in texts], [place for place, _, _ in texts], widths, room)
    bar_width = _room_for_bar(sheet, widths, room)
    laid_out = []
    shown = {position: (column, cells) for position, column, cells in texts}
    for position, column in shown_columns(sheet):
        if column.kind == "share" and bar_width:
            shares = [row[position] for row in rows]
            laid_out.append(_padded([safe(column.name), *_bars(shares, bar_width, page)], bar_width, left=True))
        elif position in widths:
            laid_out.append(_padded(shown[position][1], widths[position], left=is_left(column)))
    gap = " " * GAP
    return [" " + gap.join(cells) for cells in zip(*laid_out, strict=True)], [safe(name) for name in left_out]


def _column_texts(sheet: Sheet, rows: Sequence[Sequence[Cell]], position: int, column: Column) -> list[str]:
    """Head and cells of a column."""
    if column.kind == "instant":
        with_day = not same_day(sheet, rows)
        return [safe(column.name), *(short_instant(row[position], with_day=with_day) for row in rows)]
    texts = (cell_text(column.kind, row[position]) for row in rows)
    return [safe(column.name), *(safe(text) for text in texts)]


def _fit(columns: Sequence[Column], places: Sequence[int], widths: dict[int, int], room: int) -> list[str]:
    """Narrow the widest columns of text until all fit; where that is not enough, leave out the last ones.

    Changes `widths`; returns the names of what was left out.
    """
    flexible = [place for column, place in zip(columns, places, strict=True) if column.kind == "text"]
    left_out: list[str] = []
    names = {place: column.name for column, place in zip(columns, places, strict=True)}
    while (excess := sum(widths.values()) + GAP * (len(widths) - 1) - room) > 0:
        wide = [place for place in flexible if place in widths and widths[place] > _LEAST_TEXT]
        if wide:
            widest = max(wide, key=lambda place: widths[place])
            others = max([widths[place] for place in wide if place != widest], default=0)
            widths[widest] -= min(excess, max(widths[widest] - max(others, _LEAST_TEXT), 1))
        elif len(widths) > 1:
            last = max(widths)
            del widths[last]
            left_out.insert(0, names[last])
        else:
            widths[min(widths)] = room
    return left_out


def _room_for_bar(sheet: Sheet, widths: dict[int, int], room: int) -> int:
    """Columns for each bar; 0 where there are none or no room."""
    bars = sum(column.kind == "share" for _, column in shown_columns(sheet))
    if not bars:
        return 0
    free = (room - sum(widths.values()) - GAP * (len(widths) + bars - 1)) // bars
    return min(free, _WIDEST_BAR) if free >= _LEAST_BAR else 0


def _bars(shares: Sequence[Cell], width: int, page: Page) -> Iterator[str]:
    for share in shares:
        yield bar(100 * share, width, page.unicode) if isinstance(share, int | float) else ""


def _padded(cells: Sequence[str], width: int, *, left: bool) -> list[str]:
    """Cells of one width; what is too long loses its middle."""
    return [_pad(_shortened(cell, width), width, left) for cell in cells]


def _pad(cell: str, width: int, left: bool) -> str:
    blanks = " " * (width - _width(cell))
    return cell + blanks if left else blanks + cell


def _shortened(cell: str, width: int) -> str:
    """At most `width` columns; characters of two columns count so."""
    if _width(cell) <= width:
        return cell
    for length in range(width, 0, -1):
        shortened = shorten(cell, length, _ELLIPSIS)
        if _width(shortened) <= width:
            return shortened
    return ""


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)
