"""The table on the terminal: readable at 80 columns, without color, and piped.

Text of the log goes into `rich.text.Text`, never into markup, and is made safe first. Rows of tables are laid out here
and not by rich, because ten thousand of them would take seconds. Columns have their full width if there is room;
otherwise they are reduced step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from goodput_cli.analysis.document import (
    Block,
    CategoryLedger,
    Curves,
    Document,
    Facts,
    Gates,
    Headline,
    Losses,
    Pairs,
    Picture,
    Sentence,
)
from goodput_cli.analysis.goodput import phrases
from goodput_cli.analysis.sheet import Cell, Column, Sheet, Tone
from goodput_cli.analysis.threshold import Verdict
from goodput_cli.report.base import Page
from goodput_cli.report.insight_lines import insight_lines
from goodput_cli.report.terminal import (
    GAP,
    LONGEST_NAME,
    MOST_OF_NAME,
    NARROWEST,
    WIDEST_TEXT,
    bar,
    cell_texts,
    collected,
    collecting_console,
    colour_of,
    is_left,
    put,
    shown_columns,
    shown_rows,
    sparkline,
    strip_lines,
    time_texts,
)
from goodput_cli.vocabulary.categories import brief_name
from goodput_cli.vocabulary.text import duration, safe, seconds_text, shorten, text_width, wrap_spans

LEAST_BAR, WIDEST_BAR = 5, 30
_GOOD_BAR = 12
_LEAST_TEXT = 24
"""Minimum width of a shortened text: shorter names and locations are useless."""
_ELLIPSIS = "..."


@dataclass
class ColumnLayout:
    """A column with cells as text, and its layout."""

    place: int
    """Position of its cells in a row."""
    heading: str
    cells: Sequence[str]
    left: bool
    """True if it is aligned left."""
    is_text: bool
    """True if its cells may be shortened."""
    brief: Sequence[str] | None
    """Shorter cells, used if there is too little room."""
    spare: bool = False
    """True if it is left out first."""
    wraps: bool = False
    """True if its cells continue in further lines."""
    head: tuple[str, ...] = ()
    """The heading, line by line."""
    width: int = field(default=0)

    def __post_init__(self) -> None:
        """Set the width to that of its widest cell."""
        self.head = self.head or (self.heading,)
        self.width = max(map(text_width, (*self.head, *self.cells)))

    def shorten_cells(self) -> None:
        """Use the shorter cells."""
        self.cells, self.brief = self.brief or self.cells, None
        self.__post_init__()

    def stack_head(self) -> None:
        """Break the heading into two lines."""
        self.head = self._two_lines()
        self.__post_init__()

    @property
    def slack(self) -> int:
        """Return how much narrower its texts may become."""
        return max(self.width - _LEAST_TEXT, 0) if self.is_text else 0

    def gain(self) -> int:
        """Return how much narrower that makes the column."""
        return self.width - max(map(text_width, (*self._two_lines(), *self.cells)))

    def _two_lines(self) -> tuple[str, ...]:
        words = self.heading.split(" ")
        splits = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)) if words[at] != "h"]
        return min(splits, key=lambda two: max(map(text_width, two)), default=self.head)

    def lines(self, head_lines: int) -> list[str]:
        """Return heading and cells with one width. Texts that are too long are cut in the middle."""
        head = ("",) * (head_lines - len(self.head)) + self.head
        cells = [_shortened(cell, self.width) for cell in (*head, *self.cells)]
        blanks = (" " * (self.width - text_width(cell)) for cell in cells)
        return [cell + blank if self.left else blank + cell for cell, blank in zip(cells, blanks, strict=True)]

    def wrapped(self) -> list[list[str]]:
        """Return the lines of each cell, each as wide as the column; None if all fit or are shortened."""
        if not self.wraps or all(text_width(cell) <= self.width for cell in self.cells):
            return []
        parts = ([cell[start:end] for start, end in wrap_spans(cell, self.width)] for cell in self.cells)
        return [[_padded(_shortened(part, self.width), self.width) for part in cell] for cell in parts]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - text_width(cell))


def fit(columns: list[ColumnLayout], bars: int, room: int) -> list[str]:
    """Make columns fit into `room` next to a number of bars. Return the headings of columns left out.

    The steps are: shorter cells from the right, headings in two lines, no bars, narrower widest text, no spare columns,
    and then fewer columns from the right.
    """
    with_bars = room - bars * (_GOOD_BAR + GAP)
    for column in reversed(columns):
        if _needed(columns) > with_bars and column.brief is not None:
            column.shorten_cells()
    for column in sorted(columns, key=ColumnLayout.gain, reverse=True):
        if _needed(columns) > with_bars and column.gain() > 0:
            column.stack_head()
    return _narrowed(columns, room)


def _narrowed(columns: list[ColumnLayout], room: int) -> list[str]:
    """Narrow texts as far as they stay readable; then leave out columns, spare ones first."""
    left_out: list[ColumnLayout] = []
    while len(columns) > 1 and _needed(columns) - sum(column.slack for column in columns) > room:
        spare = [at for at, column in enumerate(columns) if column.spare]
        left_out.append(columns.pop(spare[-1] if spare else -1))
    while (excess := _needed(columns) - room) > 0:
        wide = [column for column in columns if column.slack > 0]
        if not wide:
            columns[0].width = room
            break
        widest = max(wide, key=lambda column: column.width)
        others = max([column.width for column in wide if column is not widest], default=0)
        widest.width -= min(excess, max(widest.width - max(others, _LEAST_TEXT), 1))
    return [column.heading for column in sorted(left_out, key=lambda column: column.place)]


def _needed(columns: Sequence[ColumnLayout]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def room_for_bar(columns: Sequence[ColumnLayout], bars: int, room: int) -> int:
    """Return the width of each bar; 0 without bars or room."""
    if not bars:
        return 0
    free = (room - _needed(columns) - GAP * bars) // bars
    return min(free, WIDEST_BAR) if free >= LEAST_BAR else 0


def _shortened(cell: str, width: int) -> str:
    """Return a cell in at most `width` columns."""
    if text_width(cell) <= width:
        return cell
    for length in range(width, 0, -1):
        shortened = shorten(cell, length, _ELLIPSIS)
        if text_width(shortened) <= width:
            return shortened
    return ""


_ROOM_FOR_SECONDS = 132
_BAR_WIDTH = 30
_ANY_WIDTH = 1000
_LEAST_EXPRESSION = 24
"""Columns of a threshold next to a long reason; the lines of thresholds show the reason in full."""
_VERDICT_STYLES: dict[Verdict, str] = {"failed": "bold red", "warning": "yellow", "passed": "green", "not_recorded": ""}
_COLOURS: dict[Tone, str] = {"good": "\x1b[32m", "bad": "\x1b[31m"}


def render(document: Document, page: Page) -> str:
    """Return an answer in lines of at most `page.width` columns (at least 40), with a blank line between two blocks."""
    width = max(page.width, NARROWEST)
    parts = (_block(block, width, page) for block in document.blocks())
    return "\n".join(part for part in parts if part)


def _block(block: Block, width: int, page: Page) -> str:
    """Return a block in lines; empty for one that the terminal does not show."""
    match block:
        case Sheet():
            return _sheet(block, width, page)
        case Pairs():
            return _pairs(block, width, page)
        case _:
            return _printed(_contents(block, width, page), width, page)


def _contents(block: Block, width: int, page: Page) -> Iterator[RenderableType]:
    match block:
        case Headline():
            yield from _headline(block, width)
        case Gates():
            yield _gates(block, width)
        case Losses():
            yield from insight_lines(block, min(width, WIDEST_TEXT) - 2, page)
        case Picture():
            yield from strip_lines(block, page.width - 2, page)
        case CategoryLedger():
            yield _ledger(block, width, page)
        case Facts():
            yield from (Text.assemble((name, "bold"), f": {words}") for name, words in block.rows)
        case Curves():
            yield from _curves(block, width, page)
        case Sentence():
            names = f": {', '.join(block.names)}" if block.names else ""
            yield Text(safe(block.sentence) + names, style="dim" if block.names else "")


def _printed(contents: Iterable[RenderableType], width: int, page: Page) -> str:
    console = collecting_console(width, page)
    for content in contents:
        put(console, content)
    return collected(console)


def _headline(block: Headline, width: int) -> Iterator[Text]:
    """Yield job, window and attempts, in one line if they fit; then the answer."""
    name = shorten(safe(block.subject), width - 2, "...")
    rest = f"{block.window}  {block.attempts}"
    if cell_len(f"{name}  {rest}") < width:
        yield Text.assemble((name, "bold"), "  ", rest)
    else:
        yield from (Text(name, style="bold"), Text(rest))
    if block.whole:
        yield Text(block.whole, style="dim")
    yield from (Text(block.progress, style="dim"), Text())
    yield Text.assemble((block.measure.upper(), "bold"), "  ", (block.value, "bold green"), "  ", block.amount)
    yield from (Text(f"warning: {safe(one)}", style="yellow") for one in block.doubts)


def _gates(block: Gates, width: int) -> Table:
    """Return one line per threshold: verdict, expression, value and limit."""
    rows = [
        (one.verdict, phrases.threshold_verdict(one), safe(one.expression), phrases.threshold_reason(one))
        for one in block.thresholds
    ]
    verdict_width = max(cell_len(row[1]) for row in rows)
    reason_width = min(
        max(cell_len(row[3]) for row in rows),
        width - 1 - verdict_width - 2 * GAP - min(max(cell_len(row[2]) for row in rows), _LEAST_EXPRESSION),
    )
    room = width - 1 - verdict_width - reason_width - 2 * GAP
    grid = Table.grid(padding=(0, GAP, 0, 0))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    for verdict, words, expression, reason in rows:
        grid.add_row(Text(words, style=_VERDICT_STYLES[verdict]), Text(shorten(expression, room, "...")),
                     Text(shorten(reason, reason_width, "...")))  # fmt: skip
    return grid


def _ledger(block: CategoryLedger, width: int, page: Page) -> Table:
    """Return one row per category, the largest first, and the sum; seconds if there is room."""
    rows, total = block.rows, block.total_ns
    lines = [
        ["category", "seconds", "time", "share"],
        *(
            [
                shorten(brief_name(safe(row.name)), MOST_OF_NAME, "..."),
                seconds_text(row.ns),
                duration(row.ns),
                row.percent,
            ]
            for row in rows
        ),
        ["total", seconds_text(total), duration(total), "100.00 %"],
    ]
    if width < _ROOM_FOR_SECONDS:
        lines = [[name, time, share] for name, _, time, share in lines]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*lines, strict=True)]
    widths[0] = min(widths[0], LONGEST_NAME)
    if sum(widths) + GAP * (len(widths) - 1) >= width:
        lines, widths = [[name, time] for name, time, _ in lines], widths[:2]
    bar_width = max(0, min(_BAR_WIDTH, width - 1 - sum(widths) - GAP * len(widths) - 1))
    drawn = [Text(bar(row.share, bar_width, page.unicode), colour_of(row.category, page)) for row in rows]
    styles = ["dim", *("green" if row.is_goodput else "" for row in rows), "dim"]
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(overflow="fold", width=widths[0])
    for column_width in widths[1:]:
        table.add_column(justify="right", no_wrap=True, min_width=column_width)
    table.add_column(no_wrap=True)
    for cells, drawn_bar, style in zip(lines, [Text(), *drawn, Text()], styles, strict=True):
        table.add_row(*(Text(cell, style=style) for cell in cells), drawn_bar)
    return table


def _curves(block: Curves, width: int, page: Page) -> Iterator[Text]:
    """Yield per window length: a sparkline of goodput, its minimum and its last window."""
    for place, row in enumerate(block.rows):
        if place:
            yield Text()
        yield Text.assemble(("goodput of windows", "bold"), f" {row.head}")
        yield Text(sparkline(row.shares, min(len(row.shares), width - 2), page.unicode), style="green")
        yield Text(f"{row.lowest}, {row.last}")


def _pairs(block: Pairs, width: int, page: Page) -> str:
    """Return two columns of pairs; one below the other if they do not fit."""
    console = collecting_console(width, page)
    put(console, Text(block.title, style="bold"))
    if block.pin:
        put(console, Text(f"pin it with {block.pin}"))
    grid = _columns_of_pairs(block.rows, 2)
    fits = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), grid).maximum <= console.width
    put(console, grid if fits else _columns_of_pairs(block.rows, 1))
    return collected(console)


def _columns_of_pairs(rows: Sequence[tuple[str, str]], columns: int) -> Table:
    """Return names and values, column by column."""
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


def _sheet(sheet: Sheet, width: int, page: Page) -> str:
    """Return a table with its title, the lines above and below it, and the tables below."""
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
    notes = [
        *(note for note in sheet.notes if note.partition(":")[0] not in left_out),
        *([f"not shown at this width: {', '.join(left_out)}"] if left_out else []),
    ]
    for note in notes:
        put(after, Text(safe(note.lstrip(" ")), style="dim"), indent=len(note) - len(note.lstrip(" ")))
    below = [f"\n{_sheet(part, width, page)}" for part in sheet.sections]
    return "".join([*parts, "\n" if notes else "", collected(after), *below])


def _rows(sheet: Sheet, page: Page, width: int) -> tuple[list[str], list[str], int]:
    """Return header and rows as lines, the headings of columns without room, and the number of header lines."""
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
    further = {column.place: more for column in columns if (more := column.wrapped())}
    widths = {place: text_width(shown[place][0]) for place in shown}
    lines: list[str] = []
    for at in range(heads + len(rows)):
        every = _lines_of({place: shown[place][at] for place in shown}, further, widths, at - heads)
        lines += [" " + gap.join(cells[place] for place in sorted(shown)) for cells in every]
        if 0 <= at - heads < len(sheet.details):
            lines += _indented(sheet.details[at - heads], width, page)
    return lines, left_out, heads


def _indented(details: Sequence[str], width: int, page: Page) -> list[str]:
    """Return the lines below a row, wrapped."""
    console = collecting_console(width, page)
    for line in details:
        put(console, Text(safe(line), style="dim"), indent=_DETAIL_INDENT)
    return collected(console).splitlines()


_DETAIL_INDENT = 4


def _lines_of(
    first: dict[int, str], further: dict[int, list[list[str]]], widths: dict[int, int], row: int
) -> Iterator[dict[int, str]]:
    """Yield the lines of a row, by column. Wrapped cells have words in all of them, others in the first."""
    parts = {place: more[row] for place, more in further.items()} if row >= 0 else {}
    yield first | {place: part[0] for place, part in parts.items()}
    for at in range(1, max(map(len, parts.values()), default=1)):
        yield {place: parts[place][at] if at < len(parts.get(place, ())) else " " * widths[place] for place in first}


def _toned(cell: str, tone: Tone | None) -> str:
    """Return a cell in color."""
    return cell if tone is None or not cell.strip() else f"{_COLOURS[tone]}{cell}\x1b[0m"


def _laid_out(sheet: Sheet, rows: Sequence[Sequence[Cell]], place: int, column: Column) -> ColumnLayout:
    cells = [row[place] for row in rows]
    brief: list[str] | None = None
    if column.kind == "instant":
        texts, brief = time_texts(sheet, rows, place)
    else:
        texts = [safe(text) for text in cell_texts(column, cells)]
    if column.brief is brief_name:  # Categories have readable names at any width.
        texts = [brief_name(text) for text in texts]
    elif column.brief is not None:
        brief = [safe(column.brief(cell)) if isinstance(cell, str) else "" for cell in cells]
    return ColumnLayout(
        place, safe(column.heading), texts, is_left(column), column.kind == "text", brief, column.spare, column.wraps
    )


def _bars(column: Column, rows: Sequence[Sequence[Cell]], place: int, size: tuple[int, int], page: Page) -> list[str]:
    """Return heading and bars. size: the width, and the number of heading lines."""
    width, heads = size
    shares = (row[place] for row in rows)
    drawn = (bar(100 * share, width, page.unicode) if isinstance(share, int | float) else "" for share in shares)
    return [cell.ljust(width) for cell in (*[""] * (heads - 1), safe(column.heading), *drawn)]
