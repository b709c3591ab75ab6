"""Standard output and standard error: what may be written there; a reader that goes away is no error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from goodput_cli.errors import GoodputError
from goodput_cli.report.base import Depth, Page
from goodput_cli.vocabulary.text import safe_lines
from goodput_cli.vocabulary.wrap import wrapped

_FALLBACK_WIDTH = 80
_WIDEST = 400
_NARROWEST = 20
_AT_ONCE = 1 << 20
"""Characters that are encoded together: a long answer is not held twice."""
_DRAWN = "█▏"
"""What a page that is not plain ASCII is drawn with."""


def prepare_streams() -> None:
    """Never fail on a character that the terminal's encoding lacks (its escape is shown), nor on a stream that the
    caller closed (`>&-`: nobody wants to read it)."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def print_message(line: str) -> None:
    """Write a line to standard error, wrapped between words on a terminal. If it cannot be written, nothing is raised:
    the exit code still says how the command ended."""
    if sys.stderr.isatty():
        line = "\n".join(map(_broken, line.split("\n")))
    with contextlib.suppress(GoodputError):
        _write(sys.stderr, line + "\n", "standard error")


def _broken(line: str) -> str:
    before = " " * (len(line) - len(line.lstrip(" ")))
    width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
    return "\n".join(wrapped(line, max(width - 1, _NARROWEST), before + "  "))


def print_messages(lines: Iterable[str]) -> None:
    """Lines on standard error."""
    for line in lines:
        print_message(line)


def print_safely(sentence: str) -> None:
    """A sentence, or a message of ours with several lines, on standard error that may hold text from outside."""
    print_message(safe_lines(sentence))


def write_output(content: str | bytes) -> bool:
    """Text or bytes on standard output. A reader that has gone away (`| head`) is no error, but False; a full disk is
    one: `GoodputError`."""
    return _write(sys.stdout, content, "standard output")


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()


def page_of_terminal() -> Page:
    """How the table may look on standard output: as wide as the terminal (COLUMNS wins; 80 where there is none),
    coloured on a terminal unless NO_COLOR is set, ASCII where the encoding cannot draw bars."""
    columns = os.environ.get("COLUMNS", "")
    width = _FALLBACK_WIDTH
    if columns.isascii() and columns.isdigit() and 0 < len(columns) < 6:
        width = int(columns) or _FALLBACK_WIDTH
    elif is_terminal():
        width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
    colour = is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Page(min(width, _WIDEST), colour, _can_draw(sys.stdout), _depth())


def _depth() -> Depth:
    """How many colours the terminal says it has (COLORTERM, TERM)."""
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in os.environ.get("TERM", "") else "standard"


def _can_draw(stream: TextIO) -> bool:
    try:
        _DRAWN.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # open as long as the process


def _write(stream: TextIO, content: str | bytes, name: str) -> bool:
    try:
        if isinstance(content, bytes):
            stream.buffer.write(content)
        else:
            for start in range(0, len(content), _AT_ONCE):
                stream.write(content[start : start + _AT_ONCE])
        stream.flush()
    except OSError as error:
        # The interpreter flushes again when it exits: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise GoodputError(f"{name} cannot be written: {error.strerror or error}") from error
        return False
    return True
