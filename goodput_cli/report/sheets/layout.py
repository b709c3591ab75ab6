"""How wide the columns of a table are: all of it where there is room, then step by step what can be done without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goodput_cli.report.terminal import GAP
from goodput_cli.vocabulary.text import shorten
from goodput_cli.vocabulary.wrap import text_width

LEAST_BAR, WIDEST_BAR = 5, 30
_GOOD_BAR = 12
_LEAST_TEXT = 24
"""A shorter name or place is of no use to anybody."""
_ELLIPSIS = "..."


@dataclass
class LaidOut:
    """A column whose cells are text, and how it is shown."""

    place: int
    """Of its cells in a row."""
    heading: str
    cells: Sequence[str]
    left: bool
    """Whether it is aligned at its left."""
    is_text: bool
    """Whether its cells may be shortened."""
    brief: Sequence[str] | None
    """Shorter cells, for want of room."""
    spare: bool = False
    """Whether it is left out first."""
    head: tuple[str, ...] = ()
    """The heading, line by line."""
    width: int = field(default=0)

    def __post_init__(self) -> None:
        """As wide as its widest cell."""
        self.head = self.head or (self.heading,)
        self.width = max(map(text_width, (*self.head, *self.cells)))

    def shorten_cells(self) -> None:
        """Take the shorter cells."""
        self.cells, self.brief = self.brief or self.cells, None
        self.__post_init__()

    def stack_head(self) -> None:
        """Let the heading stand in two lines."""
        self.head = self._two_lines()
        self.__post_init__()

    @property
    def slack(self) -> int:
        """How much narrower its texts may be."""
        return max(self.width - _LEAST_TEXT, 0) if self.is_text else 0

    def gain(self) -> int:
        """How much narrower that makes the column."""
        return self.width - max(map(text_width, (*self._two_lines(), *self.cells)))

    def _two_lines(self) -> tuple[str, ...]:
        words = self.heading.split(" ")
        splits = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
        return min(splits, key=lambda two: max(map(text_width, two)), default=self.head)

    def lines(self, head_lines: int) -> list[str]:
        """Heading and cells, all of one width; what is too long loses its middle."""
        head = ("",) * (head_lines - len(self.head)) + self.head
        return [self._padded(_shortened(cell, self.width)) for cell in (*head, *self.cells)]

    def _padded(self, cell: str) -> str:
        blanks = " " * (self.width - text_width(cell))
        return cell + blanks if self.left else blanks + cell


def fit(columns: list[LaidOut], bars: int, room: int) -> list[str]:
    """Make columns fit into `room` beside a number of bars; returns the headings of those that were left out.

    First shorter cells, from the right; then headings in two lines. Bars give way then, the widest text is narrowed,
    and spare columns are left out, then the last ones.
    """
    with_bars = room - bars * (_GOOD_BAR + GAP)
    for column in reversed(columns):
        if _needed(columns) > with_bars and column.brief is not None:
            column.shorten_cells()
    for column in sorted(columns, key=LaidOut.gain, reverse=True):
        if _needed(columns) > with_bars and column.gain() > 0:
            column.stack_head()
    return _narrowed(columns, room)


def _narrowed(columns: list[LaidOut], room: int) -> list[str]:
    """Narrow texts as far as they still say something; else leave out columns, spare ones first."""
    left_out: list[LaidOut] = []
    while len(columns) > 1 and _needed(columns) - _slack(columns) > room:
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


def _slack(columns: Sequence[LaidOut]) -> int:
    return sum(column.slack for column in columns)


def _needed(columns: Sequence[LaidOut]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def room_for_bar(columns: Sequence[LaidOut], bars: int, room: int) -> int:
    """Columns for each bar; 0 where there are none or no room."""
    if not bars:
        return 0
    free = (room - _needed(columns) - GAP * bars) // bars
    return min(free, WIDEST_BAR) if free >= LEAST_BAR else 0


def _shortened(cell: str, width: int) -> str:
    """At most `width` columns."""
    if text_width(cell) <= width:
        return cell
    for length in range(width, 0, -1):
        shortened = shorten(cell, length, _ELLIPSIS)
        if text_width(shortened) <= width:
            return shortened
    return ""
