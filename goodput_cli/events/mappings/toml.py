"""Read untrusted TOML in bounded time, convert its tables to types, and report the location of every mistake.

`tomllib` reports only the position of syntax errors; msgspec checks types.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import date, datetime, time
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.text import did_you_mean

MOST_PARTS = 100
_LONG_KEY = re.compile(rf"(?:^|[\[,{{\s])(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_PARTS}}}")
"""A dotted key with too many parts: the run time of `tomllib` is quadratic in their number."""
_LONG_NUMBER = re.compile(r"[\d_]{4300,}")


def read_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Parse TOML. Raises tomllib.TOMLDecodeError, also for too deep nesting."""
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # Python refuses to read thousands of digits.
        raise tomllib.TOMLDecodeError(_long_number(text) or str(error)) from None


def _long_number(text: str) -> str:
    """Return the error for the first number with thousands of digits, with its key and position; empty if there is
    none."""
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LONG_NUMBER.search(line)
        if found is not None:
            key = line.partition("=")[0].strip() if "=" in line[: found.start()] else ""
            named = f"`{key}` has " if key else ""
            digits = sum(map(str.isdigit, found[0]))
            return f"{named}a number of {digits:,} digits (at line {number}, column {found.start() + 1})"
    return ""


Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""


class TomlFile:
    """Text and content of a TOML file. Raises UsageError for invalid TOML."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._lines = text.splitlines(keepends=True)
        try:
            self.content: dict[str, Any] = read_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise self._no_toml(str(error)) from None

    def position(self, path: Path) -> tuple[int, int]:
        """Return line and column, from 1, of the value at a path, or of its nearest existing parent."""
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
        """Return a path up to an array that begins on this line; the element within it is unknown."""
        for at, part in enumerate(path):
            if isinstance(part, int) and re.search(rf"(?<![\w-]){re.escape(str(path[at - 1]))}[\"']?\s*=\s*\[", text):
                return path[:at]
        return path

    def _first_line(self, path: Path) -> int:
        """Return the first line of the value at a path, by bisection over the beginnings of the file that are valid
        TOML."""
        without, within = 0, len(self._lines)
        while within - without > 1:
            middle = (without + within) // 2
            probe, content = self._first_that_is_toml(range(middle, without, -1))
            if content is None:  # All lines between are one value.
                probe, content = self._first_that_is_toml(range(middle + 1, within))
                if content is None:
                    break
            if _leads(content, path):
                within = probe
            else:
                without = probe
        return without + 1

    def _first_that_is_toml(self, counts: range) -> tuple[int, dict[str, Any] | None]:
        """Return the first number of lines that are valid TOML, and their content; (0, None) if there is none."""
        for lines in counts:
            try:
                return lines, read_toml("".join(self._lines[:lines]))
            except tomllib.TOMLDecodeError:
                continue
        return 0, None

    def _no_toml(self, message: str) -> UsageError:
        found = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line, column = (int(found[1]), int(found[2])) if found else (max(1, len(self._lines)), 1)
        if not found and self._lines:  # "at end of document"
            column = len(self._lines[-1].rstrip("\n")) + 1
        sentence = message.split(" (at ")[0]
        return UsageError(f"{self.name}:{line}:{column}: invalid TOML: {sentence[:1].lower()}{sentence[1:]}")


class Mistake(ValueError):
    """Raised for a wrong table; `path` leads from it to the mistake."""

    def __init__(self, sentence: str, *path: str | int) -> None:
        super().__init__(sentence)
        self.path: Path = path


class TomlLocation(Struct, frozen=True):
    """A location in a file, computed only if something is wrong there."""

    file: TomlFile
    path: Path = ()

    def of(self, *path: str | int) -> TomlLocation:
        """Return a location within this one."""
        return TomlLocation(self.file, (*self.path, *path))

    def error(self, sentence: str, kind: Callable[[str], UsageError] = UsageError) -> UsageError:
        """Return an error at this location."""
        return kind(f"{self}: {sentence}")

    def error_of(self, mistake: Mistake) -> UsageError:
        """Return the error for a mistake in the table at this location."""
        return self.of(*mistake.path).error(str(mistake))

    @property
    def line(self) -> int:
        """Return its line number, from 1."""
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


Table = TypeVar("Table", bound=Struct)
_WRITTEN = {
    str: "a string, in quotes",
    bool: "true or false, without quotes",
    int: "a whole number",
    float: "a number",
}


def converted(kind: type[Table], content: Any, place: TomlLocation, holder: str) -> Table:
    """Convert a TOML table to its type. holder: its description, such as `a mapping`. Raises UsageError with the
    location of the first mistake."""
    try:
        table: Table = _convert(content, kind)
    except ValidationError as error:
        raise place.error_of(_mistake(kind, content, error, holder)) from None
    return table


def _convert(content: Any, kind: Any) -> Any:
    return convert(content, kind, builtin_types=(datetime, date, time))


def _mistake(hint: Any, content: Any, error: ValidationError, holder: str, key: str = "", words: str = "") -> Mistake:
    """Return the mistake in content that does not fit a type; msgspec reports only the first one, without the names of
    keys.

    holder: what has its keys, such as `a rule`. key: of its value. words: the expected value.
    """
    words = _description(hint) or words
    for kind in _alternatives(hint):
        inside = _inside(kind, content)
        present: dict[Any, Any] = {}
        if inside:
            present = content if isinstance(content, dict) else dict(enumerate(content))
        unknown = next((at for at in present if at not in inside), None)
        if unknown is not None:
            known = sorted(inside)
            close = did_you_mean(unknown, known, f"{holder} has {', '.join(known)}")
            return Mistake(f"unknown key `{unknown}`; {close}", unknown)
        for at, value in present.items():
            try:
                _convert(value, inside[at])
            except ValidationError as deeper:
                about = (f"`{at}`", str(at)) if _is_table(kind) else (f"a {key}", key, words)
                found = _mistake(inside[at], value, deeper, *about)
                return Mistake(str(found), at, *found.path)
        missing = next((one for one in _needed(kind) if one not in present), "") if inside else ""
        if missing:
            part = inside[missing]
            sentence = _description(part) or f"{holder} needs `{missing}`; {_sentence(missing, part, None)}"
            return Mistake(sentence, missing)
    return error.__cause__ if isinstance(error.__cause__, Mistake) else Mistake(words or _sentence(key, hint, content))


def _inside(kind: Any, content: Any) -> dict[Any, Any]:
    """Return the allowed keys or indices of content with their types; empty if it is of another kind."""
    inner = get_args(kind)
    if isinstance(content, dict) and _is_table(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {one.encode_name: hints[one.name] for one in fields(kind)}
    if isinstance(content, dict) and get_origin(kind) is dict:
        return dict.fromkeys(get_args(inner[0]) or content, inner[1])
    if isinstance(content, list) and get_origin(kind) is tuple:
        return dict.fromkeys(range(len(content)), inner[0])
    return {}


def _needed(kind: Any) -> list[str]:
    return [one.encode_name for one in fields(kind) if one.required] if _is_table(kind) else []


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _alternatives(hint: Any) -> list[Any]:
    """Return the alternative types of a value."""
    if get_origin(hint) is Annotated:
        return _alternatives(get_args(hint)[0])
    return [kind for one in get_args(hint) for kind in _alternatives(one)] if _is_union(hint) else [hint]


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _metas(hint: Any) -> list[Meta]:
    """Return the metadata of a type, the outermost first."""
    if get_origin(hint) is Annotated:
        return [*(one for one in get_args(hint)[1:] if isinstance(one, Meta)), *_metas(get_args(hint)[0])]
    return [meta for one in get_args(hint) for meta in _metas(one)] if _is_union(hint) else []


def _description(hint: Any) -> str:
    return next((meta.description for meta in _metas(hint) if meta.description), "")


def _sentence(key: str, hint: Any, content: Any) -> str:
    """Return how a value of a type is written."""
    for kind in _alternatives(hint):
        if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
            choices = [str(one) for one in get_args(kind) or kind]
            close = did_you_mean(content, choices) if isinstance(content, str) else ""
            return f"`{key}` is one of {', '.join(choices)}{'; ' if close else ''}{close}"
        if kind in _WRITTEN:
            least = next((f" from {meta.ge}" for meta in _metas(hint) if meta.ge is not None), "")
            return f"`{key}` is {_WRITTEN[kind]}{least}"
        if _is_table(kind):
            return f"`{key}` is a table such as {{ {fields(kind)[0].encode_name} = … }}"
    return f"`{key}` is a table"
