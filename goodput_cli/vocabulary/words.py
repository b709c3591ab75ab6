"""The words of reports and documents: `goodput help WORD`, and the table of docs/glossary.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goodput_cli.vocabulary.toml_rows import TomlRows


@dataclass(frozen=True)
class Word:
    """All that is declared of a word: a table of `words.toml`."""

    means: str
    word: str = ""
    """As it is written, where that is not its heading."""
    also: str = ""
    """Other words of which the same is said, with commas between."""
    found: str = ""
    """How it is found."""
    isnt: str = ""
    """What it is not."""
    next: str = ""
    """The command that shows more."""


WORDS: Mapping[str, Word] = TomlRows(Path(__file__).with_name("words.toml"), Word)
"""By their headings, in the order of the alphabet."""


def words() -> dict[str, Word]:
    """All of them as they are written."""
    return {row.word or heading: row for heading, row in WORDS.items()}


def others() -> dict[str, str]:
    """Words of which the same is said as of another one, and that one."""
    return {one: word for word, row in words().items() for one in filter(None, row.also.split(", "))}
