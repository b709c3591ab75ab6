"""Drawing for a terminal, without colour and piped too: the console that collects text, bars and sparklines."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from goodput_cli.report.base import Page
from goodput_cli.vocabulary.categories import BY_NAME
from goodput_cli.vocabulary.wrap import wrap_spans

NARROWEST = 40
"""Columns that every table takes for granted."""
WIDEST_TEXT = 160
"""Columns beyond which no sentence goes: nobody finds the next line of a longer one."""
GAP = 2
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.:-=+*#"


def collecting_console(width: int, page: Page) -> Console:
    """A console that keeps what is printed, for `collected`."""
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
    """Print one column in from the left, and `indent` more, continuation lines too; text is broken between words, but
    for text of which `no_wrap` is set."""
    parts: list[RenderableType] = [content]
    if isinstance(content, Text) and not content.no_wrap:
        spans = wrap_spans(content.plain, min(console.width - 1, WIDEST_TEXT) - indent)
        parts = [content[start:end] for start, end in spans]
    for part in parts:
        console.print(Padding(part, (0, 0, 0, 1 + indent)))


def collected(console: Console) -> str:
    """Everything printed, without blanks at the ends of lines."""
    output = console.file
    assert isinstance(output, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def colour_of(category: str, page: Page) -> str:
    """The category's colour as the terminal can show it; empty where it shows none."""
    if not page.colour:
        return ""
    look = BY_NAME[category].look
    return look.basic if page.depth == "standard" else look.colour


def bar(share: float, width: int, unicode: bool) -> str:
    """A bar for 0 to 100 percent; what is not zero shows."""
    if width <= 0 or not share > 0:
        return ""
    if not unicode:
        return "#" * max(1, round(min(share, 100.0) * width / 100))
    eighths = max(1, round(min(share, 100.0) * width * 8 / 100))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(shares: Sequence[float | None], width: int, unicode: bool) -> str:
    """Shares of 0 to 100 percent as one line of at most `width` characters: where they do not fit, each character is
    the lowest of its neighbours. What is not known (None) is a blank."""
    levels = _LEVELS if unicode else _ASCII_LEVELS
    size = -(-len(shares) // width) if shares else 1
    groups = [[share for share in shares[at : at + size] if share is not None] for at in range(0, len(shares), size)]
    lowest = [min(max(min(group), 0.0), 100.0) if group else None for group in groups]
    return "".join(" " if low is None else levels[min(int(low * 8 / 100), 7)] for low in lowest)
