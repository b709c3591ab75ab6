"""Tables of TOML, read key by key: every mistake is said with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.places import Place
from goodput_cli.vocabulary.text import did_you_mean


class Table:
    """A table at its place. Raises UsageError for what is none."""

    def __init__(self, content: Any, place: Place, what: str) -> None:
        """what: it is, and how it is written, as a sentence."""
        if not isinstance(content, dict):
            raise place.error(what)
        self.content: dict[str, Any] = content
        self.place = place

    def check_keys(self, known: Iterable[str], holder: str) -> None:
        """Every key has to be known. holder: what has the keys, such as `a rule`."""
        known = sorted(known)
        for key in self.content:
            if key not in known:
                hint = did_you_mean(key, known, f"{holder} has {', '.join(known)}")
                raise self.place.of(key).error(f"unknown key `{key}`; {hint}")

    def error(self, key: str, sentence: str) -> UsageError:
        """A mistake in the value of a key; of the table, if it has no such key."""
        return self.place.of(key).error(sentence)

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.content.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, f"`{key}` is a text, in quotes")
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, f"`{key}` is true or false, without quotes")
        return value

    def whole(self, key: str, default: int | None, least: int) -> int | None:
        """A whole number."""
        value = self.content.get(key, default)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise self.error(key, f"`{key}` is a whole number from {least}")
        return value

    def one_of(self, key: str, values: Sequence[str]) -> str:
        """One of some texts; the first is the default."""
        value = self.content.get(key, values[0])
        if not isinstance(value, str) or value not in values:
            close = did_you_mean(value, values) if isinstance(value, str) else ""
            raise self.error(key, f"`{key}` is one of {', '.join(values)}{'; ' if close else ''}{close}")
        return value

    def tables(self, key: str, what: str) -> list[Any]:
        """What is written as `[[key]]`, several times or never."""
        value = self.content.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, what)
        return value
