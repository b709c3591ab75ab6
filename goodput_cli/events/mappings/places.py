"""Where something stands in a TOML file: `tomllib` says what a file holds, and of mistakes in TOML only where.

TOML of people and of strangers, in bounded time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from goodput_cli.errors import UsageError

MOST_PARTS = 100
_LONG_KEY = re.compile(rf"(?:^|[\[,{{\s])(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_PARTS}}}")
"""A dotted key of so many parts: the time that `tomllib` takes grows with their square."""


def read_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """What a text of TOML says. Raises tomllib.TOMLDecodeError, for what is nested too deep too."""
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None


Path = tuple[str | int, ...]
"""Keys and numbers (from 0) that lead to a value."""


class TomlFile:
    """The text of a TOML file, and what it holds. Raises UsageError where it is none."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._lines = text.splitlines(keepends=True)
        try:
            self.content: dict[str, Any] = read_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise self._no_toml(str(error)) from None

    def position(self, path: Path) -> tuple[int, int]:
        """Line and column, from 1, of what a path leads to; of the nearest thing above it where it leads to nothing."""
        while path and not _leads(self.content, path):
            path = path[:-1]
        if not path:
            return 1, 1
        line = self._first_line(path)
        text = self._lines[line - 1]
        names = [part for part in self._as_written(path, text) if isinstance(part, str)]
        written = re.search(rf"(?<![\w-])[\"']?{re.escape(names[-1])}[\"']?(?![\w-])", text) if names else None
        blank = len(text) - len(text.lstrip())
        header = text.lstrip().startswith("[") and "=" not in text
        return line, 1 + (blank if written is None or header else written.start())

    @staticmethod
    def _as_written(path: Path, text: str) -> Path:
        """A path up to an array that begins on a line: which element something is of cannot be told there."""
        for at, part in enumerate(path):
            if isinstance(part, int) and re.search(rf"(?<![\w-]){re.escape(str(path[at - 1]))}[\"']?\s*=\s*\[", text):
                return path[:at]
        return path

    def _first_line(self, path: Path) -> int:
        """The line on which what a path leads to begins: behind the longest beginning of the file that is TOML and does
        not hold it. Beginnings that end inside a value are no TOML, and are passed over."""
        without, within = 0, len(self._lines)
        while within - without > 1:
            middle = (without + within) // 2
            probe, content = self._beginning(middle, without)
            if content is None:  # all between is one value
                probe, content = self._beginning_after(middle, within)
                if content is None:
                    break
            if _leads(content, path):
                within = probe
            else:
                without = probe
        return without + 1

    def _beginning(self, count: int, least: int) -> tuple[int, dict[str, Any] | None]:
        """The longest beginning of `least` to `count` lines that is TOML, and what it holds."""
        return self._first_that_is_toml(count, least, -1)

    def _beginning_after(self, count: int, most: int) -> tuple[int, dict[str, Any] | None]:
        return self._first_that_is_toml(count + 1, most, 1)

    def _first_that_is_toml(self, count: int, until: int, way: int) -> tuple[int, dict[str, Any] | None]:
        for lines in range(count, until, way):
            try:
                return lines, read_toml("".join(self._lines[:lines]))
            except tomllib.TOMLDecodeError:
                continue
        return until, None

    def _no_toml(self, message: str) -> UsageError:
        found = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line, column = (int(found[1]), int(found[2])) if found else (max(1, len(self._lines)), 1)
        if not found and self._lines:  # "at end of document"
            column = len(self._lines[-1].rstrip("\n")) + 1
        sentence = message.split(" (at ")[0]
        return UsageError(f"{self.name}:{line}:{column}: no TOML: {sentence[:1].lower()}{sentence[1:]}")


class Mistake(ValueError):
    """What is wrong with a table; `path` leads from it to where."""

    def __init__(self, sentence: str, *path: str | int) -> None:
        super().__init__(sentence)
        self.path: Path = path


class Place(Struct, frozen=True):
    """A place in a file, looked for only if something is wrong there."""

    file: TomlFile
    path: Path = ()

    def of(self, *path: str | int) -> Place:
        """A place below."""
        return Place(self.file, (*self.path, *path))

    def error(self, sentence: str, kind: Callable[[str], UsageError] = UsageError) -> UsageError:
        """A mistake at this place."""
        return kind(f"{self}: {sentence}")

    def error_of(self, mistake: Mistake) -> UsageError:
        """A mistake in the table at this place."""
        return self.of(*mistake.path).error(str(mistake))

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self.file.position(self.path)[0]

    def __str__(self) -> str:
        line, column = self.file.position(self.path)
        return f"{self.file.name}:{line}:{column}"


def _leads(content: Any, path: Path) -> bool:
    for part in path:
        if isinstance(part, int):
            if not isinstance(content, list) or part >= len(content):
                return False
        elif not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return True
