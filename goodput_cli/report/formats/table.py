"""The table on the terminal: reads well at 80 columns, without colour, and piped.

Text of the log goes into `rich.text.Text`, never into markup, and is made safe first.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from goodput_cli.analysis.goodput import phrases as facts
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.rolling.sheet import rolling_lines
from goodput_cli.analysis.threshold import Verdict
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import insight_lines
from goodput_cli.report.strip import strip_lines
from goodput_cli.report.terminal import (
    GAP,
    NARROWEST,
    WIDEST_TEXT,
    bar,
    collected,
    collecting_console,
    colour_of,
    put,
    sparkline,
)
from goodput_cli.vocabulary.category_names import brief_name
from goodput_cli.vocabulary.text import duration, safe, seconds_text, shorten

_ROOM_FOR_TITLES = 132
_NAME_WIDTH = 39  # of the longest category name
_LABEL_WIDTH = 52  # where there is room for titles
_BAR_WIDTH = 30
_ANY_WIDTH = 1000
_VERDICT_STYLES: dict[Verdict, str] = {"failed": "bold red", "warning": "yellow", "passed": "green", "not_recorded": ""}


def render(analysis: Analysis, page: Page) -> str:
    """The analysis as lines of at most `page.width` columns (40 at least)."""
    width = max(page.width, NARROWEST)
    console = collecting_console(width, page)
    _print_job(console, analysis, width)
    console.print()
    _print_headline(console, analysis)
    _print_thresholds(console, analysis, width)
    for line in insight_lines(analysis, min(width, WIDEST_TEXT) - 2, page):
        put(console, line)
    console.print()
    for line in strip_lines(analysis, min(page.width, width) - 2, page):
        put(console, line)
    console.print()
    put(console, _categories(analysis, width, page))
    _print_beside(console, analysis)
    _print_rolling(console, analysis, width, page)
    _print_reference(console, analysis)
    _print_remarks(console, analysis)
    return collected(console)


def _print_job(console: Console, analysis: Analysis, width: int) -> None:
    """Job, window and attempts, in one line where they fit."""
    name = shorten(safe(analysis.job.name), width - 2, "...")
    rest = f"{facts.window_text(analysis)}  {facts.attempts_text(analysis)}"
    if cell_len(f"{name}  {rest}") < width:
        put(console, Text.assemble((name, "bold"), "  ", rest))
    else:
        put(console, Text(name, style="bold"))
        put(console, Text(rest))
    whole = facts.outside_window_text(analysis)
    if whole:
        put(console, Text(whole, style="dim"))
    put(console, Text(facts.progress_text(analysis), style="dim"))


def _print_headline(console: Console, analysis: Analysis) -> None:
    share, amount = facts.headline(analysis)
    put(console, Text.assemble(("GOODPUT", "bold"), "  ", (share, "bold green"), "  ", amount))


def _print_thresholds(console: Console, analysis: Analysis, width: int) -> None:
    """One line a threshold: verdict, what was asked, the value and the limit."""
    if not analysis.thresholds:
        return
    console.print()
    rows = [
        (one.verdict, facts.threshold_verdict(one), safe(one.expression), facts.threshold_reason(one))
        for one in analysis.thresholds
    ]
    verdict_width, reason_width = (max(cell_len(row[position]) for row in rows) for position in (1, 3))
    room = width - 1 - verdict_width - reason_width - 2 * GAP
    grid = Table.grid(padding=(0, GAP, 0, 0))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    for verdict, words, expression, reason in rows:
        grid.add_row(Text(words, style=_VERDICT_STYLES[verdict]), Text(shorten(expression, room, "...")), Text(reason))
    put(console, grid)


def _categories(analysis: Analysis, width: int, page: Page) -> Table:
    """One row per category, the largest first, and the sum; titles and seconds where there is room."""
    wide = width >= _ROOM_FOR_TITLES
    rows = facts.category_rows(analysis)
    total = analysis.window.counted_ns
    lines = [
        _cells("category", "", "seconds", "time", "share", wide),
        *(_cells(row.name, row.title, seconds_text(row.ns), duration(row.ns), row.percent, wide) for row in rows),
        _cells("total", "", seconds_text(total), duration(total), "100.00 %", wide),
    ]
    lines = lines if _needed(lines) < width else [[brief_name(name), *others] for name, *others in lines]
    lines = lines if _needed(lines) < width else [[name, time] for name, time, _ in lines]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*lines, strict=True)]
    bar_width = max(0, min(_BAR_WIDTH, width - 1 - sum(widths) - GAP * len(widths) - 1))
    drawn = [Text(bar(row.share, bar_width, page.unicode), colour_of(row.category, page)) for row in rows]
    styles = ["dim", *("green" if row.is_goodput else "" for row in rows), "dim"]
    table = Table.grid(padding=(0, GAP, 0, 0))
    for position, column_width in enumerate(widths):
        text = position == 0 or (wide and position == 1)
        table.add_column(justify="left" if text else "right", no_wrap=True, min_width=column_width)
    table.add_column(no_wrap=True)
    for cells, drawn_bar, style in zip(lines, [Text(), *drawn, Text()], styles, strict=True):
        table.add_row(*(Text(cell, style=style) for cell in cells), drawn_bar)
    return table


def _needed(lines: Sequence[Sequence[str]]) -> int:
    """How wide a table of these cells is."""
    return sum(GAP + max(map(cell_len, column)) for column in zip(*lines, strict=True)) - GAP


def _cells(name: str, title: str, seconds: str, time: str, share: str, wide: bool) -> list[str]:
    shown = shorten(safe(name), _LABEL_WIDTH if wide else _NAME_WIDTH, "...")
    return [shown, title, seconds, time, share] if wide else [shown, time, share]


def _print_beside(console: Console, analysis: Analysis) -> None:
    beside = list(facts.beside_ledger(analysis))
    if not beside:
        return
    console.print()
    for name, words in beside:
        put(console, Text.assemble((name, "bold"), f": {words}"))


def _print_rolling(console: Console, analysis: Analysis, width: int, page: Page) -> None:
    """Per window length: a sparkline of goodput, its lowest and its last window."""
    if analysis.rolling is None:
        return
    for head, shares, lowest, last in rolling_lines(analysis.rolling):
        console.print()
        put(console, Text.assemble(("goodput of windows", "bold"), f" {head}"))
        put(console, Text(sparkline(shares, min(len(shares), width - 2), page.unicode), style="green"))
        put(console, Text(f"{lowest}, {last}"))


def _print_reference(console: Console, analysis: Analysis) -> None:
    """The resiliency calculator's table in two columns of pairs; one below the other where they do not fit."""
    rows = facts.reference_rows(analysis)
    if not rows:
        return
    console.print()
    put(console, Text(facts.reference_text(analysis) or "", style="bold"))
    pin = facts.pin_option(analysis)
    if pin:
        put(console, Text(f"pin it with {pin}"))
    grid = _pairs(rows, 2)
    fits = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), grid).maximum <= console.width
    put(console, grid if fits else _pairs(rows, 1))


def _pairs(rows: Sequence[tuple[str, str]], columns: int) -> Table:
    """Names and values, column by column."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    for _ in range(columns):
        grid.add_column(no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
    height = -(-len(rows) // columns)
    for place in range(height):
        line = rows[place::height]
        last = len(line) - 1
        cells = ((name, value + " " * GAP * (at < last)) for at, (name, value) in enumerate(line))
        grid.add_row(*(Text(text) for pair in cells for text in pair))
    return grid


def _print_remarks(console: Console, analysis: Analysis) -> None:
    """Step times, and what the log holds no evidence for."""
    steps = facts.step_text(analysis)
    if steps:
        console.print()
        put(console, Text(f"step times, {steps}"))
    if analysis.not_recorded:
        console.print()
        words = ", ".join(analysis.not_recorded)
        put(console, Text(f"not recorded (unknown, not zero): {words}", style="dim"))
