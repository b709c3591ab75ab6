"""Files that are made from the program: a man page and completions, installed with it; a picture of the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from textwrap import dedent

from click.shell_completion import get_completion_class
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import goodput_cli
from goodput_cli.cli.main import goodput
from goodput_cli.report.base import Page
from tests.support.generated_docs import commands
from tests.support.rendered import as_table as render

COMPLETIONS = {
    "bash": "share/bash-completion/completions/goodput",
    "zsh": "share/zsh/site-functions/_goodput",
    "fish": "share/fish/vendor_completions.d/goodput.fish",
}
"""Location of the completions of each shell, below the folder into which the package is installed."""
MAN_PAGE = "share/man/man1/goodput.1"
PICTURES: dict[str, tuple[int, int | None]] = {
    "docs/images/terminal.svg": (80, None),
    "docs/images/first-screen-80.svg": (80, 24),
    "docs/images/first-screen-120.svg": (120, 24),
}
"""Pictures of the terminal: how wide it is, and how many lines it has (None: all that there are)."""
_THEME = TerminalTheme(
    (15, 20, 25),
    (230, 233, 236),
    [(40, 46, 54), (255, 123, 114), (76, 214, 166), (242, 189, 102), (124, 192, 255), (210, 168, 255), (118, 227, 234),
     (230, 233, 236)],
    [(110, 118, 129), (255, 154, 143), (126, 231, 190), (255, 214, 140), (160, 210, 255), (226, 196, 255),
     (160, 240, 245), (255, 255, 255)],
)  # fmt: skip
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def completion(shell: str) -> str:
    """The script that completes in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(goodput, {}, "goodput", "_GOODPUT_COMPLETE").source()


def man_page() -> str:
    """Return all commands with their help, as troff."""
    return "\n".join(_man_lines()) + "\n"


def _man_lines() -> Iterator[str]:
    yield '.TH GOODPUT 1 "" "goodput-cli" "User Commands"'
    yield from (".SH NAME", "goodput \\- where the time of a training job went")
    yield from (".SH SYNOPSIS", ".B goodput", "[OPTIONS] COMMAND [ARGS]...", ".br", ".B goodput", "LOG")
    for name, command, context in commands():
        yield f'.SH "{name.upper()}"' if name == "goodput" else f'.SH "{_troff(name)}"'
        yield from (".nf", *map(_troff, dedent(command.get_help(context)).splitlines()), ".fi")
    yield from (".SH EXIT STATUS", ".nf")
    yield from ("0 fine, 1 could not do it, 2 wrong usage, 3 a threshold failed, 4 inconclusive,",)
    yield from ("5 \\-\\-strict or goodput check found problems, 130 interrupted", ".fi")


def _troff(line: str) -> str:
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


def terminal_picture(log: str, width: int, lines: int | None) -> str:
    """Return the output of the command for a log, in color, as SVG without external fonts."""
    text = render(goodput_cli.analyze(log), Page(width, colour=True, depth="truecolor"))
    return picture_of("\n".join(text.splitlines()[:lines]), width, f"$ goodput {log}")


def picture_of(text: str, width: int, title: str) -> str:
    """Text with a terminal's colours as SVG."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title=title, theme=_THEME, unique_id="goodput")
    return _FONT.sub("", svg).rstrip("\n") + "\n"
