"""A sheet as a table on the terminal: fits 80 columns, in plain text, without colour and piped.

The rows are laid out here and not by rich: ten thousand of them must not take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from goodput_cli.analysis.sheet import Cell, Column, Sheet, Tone
from goodput_cli.report.base import Page
from goodput_cli.report.sheets.cells import cell_texts, instant_texts, is_left, shown_columns, shown_rows
from goodput_cli.report.sheets.layout import LaidOut, fit, room_for_bar
from goodput_cli.report.terminal import GAP, NARROWEST, bar, collected, collecting_console, put
from goodput_cli.vocabulary.text import safe

_COLOURS: dict[Tone, str] = {"good": "\x1b[32m", "bad": "\x1b[31m"}


def render(sheet: Sheet, page: Page) -> str:
    """The sheet as lines of at most `page.width` columns (40 at least)."""
    width = max(page.width, NARROWEST)
    before = collecting_console(width, page)
    put(before, Text(safe(sheet.title), style="bold"))
    for line in sheet.summary:
        put(before, Text(safe(line)))
    parts = [collected(before)]
    lines, left_out, heads = _rows(sheet, page, width)
    if lines:
        head = collecting_console(width + 1, page)
        for line in lines[:heads]:
            head.print(Text(line, style="dim"), no_wrap=True, crop=False)
        parts += ["\n", collected(head), *(f"{line.rstrip()}\n" for line in lines[heads:])]
    after = collecting_console(width, page)
    notes = [*sheet.notes, *([f"not shown for want of room: {', '.join(left_out)}"] if left_out else [])]
    for note in notes:
        put(after, Text(safe(note.lstrip(" ")), style="dim"), indent=len(note) - len(note.lstrip(" ")))
    below = [f"\n{render(part, page)}" for part in sheet.sections]
    return "".join([*parts, "\n" if notes else "", collected(after), *below])


def _rows(sheet: Sheet, page: Page, width: int) -> tuple[list[str], list[str], int]:
    """Header and rows as lines, the headings of columns for which there is no room, and how many lines are header."""
    rows = list(shown_rows(sheet))
    if not rows:
        return [], [], 0
    columns = [_laid_out(sheet, rows, *one) for one in shown_columns(sheet) if one[1].kind != "share"]
    bars = {place: column for place, column in shown_columns(sheet) if column.kind == "share"}
    room = width - 1
    left_out = fit(columns, len(bars), room)
    bar_width = room_for_bar(columns, len(bars), room)
    heads = max(len(column.head) for column in columns)
    shown = {column.place: column.lines(heads) for column in columns}
    if bar_width:
        shown |= {place: _bars(column, rows, place, (bar_width, heads), page) for place, column in bars.items()}
    for place, column in shown_columns(sheet):
        if place in shown and column.tone is not None and page.colour:
            cells = (row[place] for row in rows)
            shown[place][heads:] = map(_toned, shown[place][heads:], map(column.tone, cells))
    gap = " " * GAP
    lines = [" " + gap.join(cells) for cells in zip(*(shown[place] for place in sorted(shown)), strict=True)]
    return lines, left_out, heads


def _toned(cell: str, tone: Tone | None) -> str:
    """A cell in colour."""
    return cell if tone is None or not cell.strip() else f"{_COLOURS[tone]}{cell}\x1b[0m"


def _laid_out(sheet: Sheet, rows: Sequence[Sequence[Cell]], place: int, column: Column) -> LaidOut:
    cells = [row[place] for row in rows]
    brief: list[str] | None = None
    if column.kind == "instant":
        texts, brief = instant_texts(sheet, rows, place)
    else:
        texts = [safe(text) for text in cell_texts(column, cells)]
    if column.brief is not None:
        brief = [safe(column.brief(cell)) if isinstance(cell, str) else "" for cell in cells]
    return LaidOut(place, safe(column.heading), texts, is_left(column), column.kind == "text", brief, column.spare)


def _bars(column: Column, rows: Sequence[Sequence[Cell]], place: int, size: tuple[int, int], page: Page) -> list[str]:
    """Heading and bars. size: the width, and how many lines headings have."""
    width, heads = size
    shares = (row[place] for row in rows)
    drawn = (bar(100 * share, width, page.unicode) if isinstance(share, int | float) else "" for share in shares)
    return [cell.ljust(width) for cell in (*[""] * (heads - 1), safe(column.heading), *drawn)]
