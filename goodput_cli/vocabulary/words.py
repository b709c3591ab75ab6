"""The words of reports and documents: `goodput help WORD`, and the table of docs/glossary.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goodput_cli.vocabulary.toml_rows import TomlRows


@dataclass(frozen=True)
class Word:
    """The declaration of a word: a table of `words.toml`."""

    means: str
    word: str = ""
    """Its spelling, if different from the heading."""
    also: str = ""
    """Other words with the same meaning, separated by commas."""
    found: str = ""
    """The values it is computed from, or the log lines that show it."""
    isnt: str = ""
    """A sentence about what it is not."""
    next: str = ""
    """The command that shows more."""


WORDS: Mapping[str, Word] = TomlRows(Path(__file__).with_name("words.toml"), Word)
"""The words by their headings, in alphabetical order."""


def words() -> dict[str, Word]:
    """Return all words by their spelling."""
    return {row.word or heading: row for heading, row in WORDS.items()}


def others() -> dict[str, str]:
    """Return the words with the meaning of another one, and that one."""
    return {one: word for word, row in words().items() for one in filter(None, row.also.split(", "))}
