"""The pieces of a Markdown document (GitHub's): text that is only text, rows of tables, folded parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from goodput_cli.vocabulary.categories import BY_NAME
from goodput_cli.vocabulary.text import safe, shorten

LONGEST_NAME = 200
"""Characters of a name from a log that a document shows; what is longer loses its middle."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~$@]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape(text: str) -> str:
    """Text as Markdown that shows exactly this text, in one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", "".join(_ENTITIES.get(char, char) for char in safe(text)))
    return escaped.replace("://", "\\://").replace("www.", "www\\.")


def name_text(text: str, longest: int = LONGEST_NAME) -> str:
    """As `escape`, at most `longest` characters of it."""
    return escape(shorten(safe(text), longest))


def code_text(text: str, longest: int = LONGEST_NAME) -> str:
    """Text as code, to be copied: nothing in it is markup, but what would end it, which makes it text."""
    shown = shorten(safe(text), longest)
    return escape(shown) if "`" in shown else f"`{shown}`"


def category_text(name: str) -> str:
    """The full name of a category, as code; its label, and a sign before it, are text."""
    sign = name[:2] if name[1:2] == " " else ""
    category, _, label = name.removeprefix(sign).partition(":")
    if category not in BY_NAME:
        return name_text(name)
    return f"{escape(sign)}`{category}`" + (f" {name_text(label)}" if label else "")


def table_head(*columns: str, left: int = 1) -> Iterator[str]:
    """Header and rule; the first `left` columns are text, the others numbers."""
    yield table_row(*columns)
    yield table_row(*("---" if i < left else "---:" for i in range(len(columns))))


def table_row(*cells: str) -> str:
    """A row; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def folded(summary: str, lines: Iterable[str], *, is_open: bool = False) -> Iterator[str]:
    """A part of the document that a reader unfolds. summary: words of our own, nothing from a log."""
    yield from ("", f"<details{' open' if is_open else ''}><summary>{summary}</summary>", "")
    yield from lines
    yield from ("", "</details>")
