"""Declarations: options as fields of frozen dataclasses, and rows of other kinds in TOML files.

The field of an option contains the value, and its metadata describes the option. The command line, project settings,
the keywords of the library with their `help()`, and reports use the metadata, so a new option is a new field.
`goodput_cli.api.keywords`, for editors and type checkers, is generated from the fields. Readers of numbers and
durations know their limits.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.text import exact
from goodput_cli.vocabulary.when import ACCEPTED_DURATIONS, NS_PER_SECOND, parse_duration

_KEY = "option"


@dataclass(frozen=True)
class Option:
    """The description of an option."""

    group: str
    """Its heading in `--help`; empty if only the library has it."""
    help: str
    about: str = ""
    """Description of the value for `help()` of the library, if `help` describes a flag."""
    accepts: str = ""
    """The type of the keyword, if it accepts more than the field and is converted."""
    names: tuple[str, ...] = ()
    """Names on the command line; by default `--` and the name of the field."""
    negative: bool = False
    """The option and its keyword are the negation of the field: `--no-hindsight`."""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    """The only accepted values."""
    read: Callable[[Any], Any] | None = None
    """Converts a typed or passed value to the value of the field (one item, if that is a tuple). Raises UsageError.
    A converted value is returned unchanged."""
    path: bool = False
    """True for file names: shells complete them, and project settings cannot set them."""
    follows: str = ""
    """The field that it follows in `--help`, if that is not the previous one."""
    label: str = ""
    """Its name in the method section of a report."""
    phrase: Callable[[Any], str] = str
    """Its value in the method section of a report; empty to leave it out."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `click.option`."""


@dataclass(frozen=True)
class DeclaredOption:
    """An option and the field that declares it."""

    name: str
    default: Any
    option: Option
    kind: str = ""
    """The type of the field as declared."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names as typed, such as `--stall-factor`."""
        return self.option.names or (f"--{'no-' * self.option.negative}{self.name.replace('_', '-')}",)

    @property
    def keyword(self) -> str:
        """Return its name as an argument of the library's functions."""
        return f"no_{self.name}" if self.option.negative else self.name

    @property
    def annotation(self) -> str:
        """Return the type of that argument."""
        return self.option.accepts or self.kind

    @property
    def argument_default(self) -> Any:
        """Return the default of the argument: negated flags are off."""
        return False if self.option.negative else self.default

    @property
    def about(self) -> str:
        """Return the description of the argument."""
        return self.option.help if self.option.negative else self.option.about or self.option.help

    @property
    def several(self) -> bool:
        """Return True if it may be repeated."""
        return isinstance(self.default, tuple)

    def value(self, argument: Any) -> Any:
        """Return the value of the field from the argument with its keyword. Raises UsageError for a wrong one."""
        if self.option.negative:
            return not argument
        if self.option.choices and argument not in self.option.choices:
            raise UsageError(f"{self.names[0]} must be {' or '.join(self.option.choices)}, not {argument!r}")
        if not self.several:
            return self._read(argument)
        values = argument if isinstance(argument, list | tuple) else [argument]
        return tuple(dict.fromkeys(map(self._read, values)))

    def _read(self, given: Any) -> Any:
        """Return one value of the field. Raises UsageError for a wrong one."""
        read = self.option.read
        if read is None:
            return given
        return read(given if read in (str, os.fspath) else bounded_text(given))

    def typed(self, value: Any) -> str:
        """Return the value of the field as typed; on or off for a flag."""
        if isinstance(value, bool):
            return "on" if value != self.option.negative else "off"
        return f"{value:g}" if isinstance(value, float) else str(value)

    def words(self, value: Any) -> Iterator[str]:
        """Yield the command-line words for a value; nothing for the default."""
        if value == self.default:
            return
        name = min(self.names, key=len)
        if isinstance(value, bool):
            yield name
            return
        for each in value if self.several else (value,):
            yield from (name, _typed(each))


def _typed(value: Any) -> str:
    """Return a converted value as it was typed."""
    if isinstance(value, float | Fraction):
        return exact(float(value))
    return str(getattr(value, "text", value))


def argument(default: Any, about: str) -> Any:
    """Return a field of a dataclass that is a keyword of the library's functions, but not an option of a command."""
    return field(default=default, metadata={_KEY: Option("", "", about=about)})


def option(default: Any, group: str, help: str, **more: Any) -> Any:  # noqa: A002 - as click calls it
    """Return a field of a dataclass that is an option. `more`: the other fields of `Option`."""
    return field(default=default, metadata={_KEY: Option(group, help, **more)})


def in_order(options: Iterable[DeclaredOption]) -> list[DeclaredOption]:
    """Return options of several dataclasses in the order of help texts."""
    ordered = list(options)
    for late in [one for one in ordered if one.option.follows]:
        ordered.remove(late)
        ordered.insert([one.name for one in ordered].index(late.option.follows) + 1, late)
    return ordered


def declared(kind: type) -> Iterator[DeclaredOption]:
    """Yield the options of a dataclass in order, including those of nested dataclasses."""
    return (one for one in keywords(kind) if one.option.group)


def keywords(kind: type) -> Iterator[DeclaredOption]:
    """Yield the options as `declared`, and those that only the library has."""
    for one in fields(kind):
        if _KEY in one.metadata:
            default = None if one.default is MISSING else one.default
            yield DeclaredOption(one.name, default, one.metadata[_KEY], str(one.type))
        elif is_dataclass(inside := one.default if one.default_factory is MISSING else one.default_factory):
            yield from keywords(inside if isinstance(inside, type) else type(inside))


@dataclass(frozen=True)
class Keywords:
    """The options that some functions of the library take by keyword."""

    name: str
    """Name of the class in `goodput_cli.api.options` for editors and type checkers."""
    doc: str
    base: Keywords | None
    own: tuple[DeclaredOption, ...]
    """Options in addition to those of the base."""

    @staticmethod
    def of(
        name: str,
        doc: str,
        *kinds: type,
        base: Keywords | None = None,
        only: Collection[str] = (),
        without: Collection[str] = (),
    ) -> Keywords:
        """Return the keywords that the dataclasses `kinds` declare. only, without: select them by name; all if neither
        is given."""
        own = [one for kind in kinds for one in keywords(kind) if one.keyword not in without]
        return Keywords(name, doc, base, tuple(one for one in own if not only or one.keyword in only))

    @property
    def all(self) -> tuple[DeclaredOption, ...]:
        """Return all keywords; those without a command-line option come last."""
        every = (*(self.base.all if self.base else ()), *self.own)
        return tuple(sorted(every, key=lambda one: not one.option.group))


LONGEST_TEXT = 4096
"""Maximum length of a value that a pattern parses. Typed values are shorter, but settings files can contain any."""


def bounded_text(given: Any, most: int = LONGEST_TEXT) -> Any:
    """Return the given value. Raises UsageError for a text that is too long to be intended."""
    if isinstance(given, str) and len(given) > most:
        raise UsageError(f"{given[:40]!r}… has {len(given)} characters; the limit is {most}")
    return given


T = TypeVar("T")
DAY = 86_400


def bounded(
    make: Callable[[Fraction], T],
    complaint: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    unit: int | None = None,
) -> Callable[[Any], T]:
    """Return a reader of exact numbers greater than `above`, and from `least` to `most`.

    make: converts the number, such as `float`. complaint: the end of the error message, after the wrong value. unit:
    seconds of a unit, if the value is a duration (`90s`, `1h30m`, or a number of that unit).
    """

    def read(value: Any) -> T:
        number = _number(value, unit)
        if number is None or not (above < float(number) and least <= float(number) <= most):
            raise UsageError(f"{value!r} {complaint}")
        return make(number)

    return read


def _number(value: Any, unit: int | None) -> Fraction | None:
    """Return the number in a value; None without one."""
    if isinstance(value, Fraction):
        return value
    text = str(value).strip()
    try:
        rough = float(text)  # a Fraction of 1e-999999999 would be very long
        return Fraction(text) if math.isfinite(rough) and rough else Fraction(0) if rough == 0 else None
    except ValueError:
        pass
    try:
        return None if unit is None else Fraction(parse_duration(text), unit * NS_PER_SECOND)
    except UsageError:
        return None


read_length = bounded(
    lambda seconds: round(seconds * NS_PER_SECOND),
    f"is not a positive duration; use one such as {ACCEPTED_DURATIONS}, or a number of seconds",
    above=0.5 / NS_PER_SECOND,
    most=9e9,
    unit=1,
)
"""Reader of a duration from text to ns; a plain number is in seconds."""


def read_ns(value: str | int) -> int:
    """Return a duration in ns from text, or unchanged if it is an integer."""
    return value if isinstance(value, int) else read_length(value)


Row = TypeVar("Row")


class TomlRows(Mapping[str, Row]):
    """The rows of a file by name, in its order. Nothing is read until needed, and rows are parsed one by one: a run
    needs three or four of a hundred, and help none."""

    def __init__(self, file: Path, kind: type[Row]) -> None:
        """kind: the dataclass of a row. A file that does not fit is a bug (msgspec raises its errors)."""
        self._file, self._kind = file, kind
        self._rows: dict[str, Row] = {}

    @cached_property
    def _tables(self) -> dict[str, str]:
        """Return the text below each heading. A heading with a dot is part of the table above it."""
        pieces = re.split(r"^\[(\w+)\]$", self._file.read_text("utf-8"), flags=re.MULTILINE)
        return dict(zip(pieces[1::2], pieces[2::2], strict=True))

    def __getitem__(self, name: str) -> Row:
        if name not in self._rows:
            import msgspec  # takes six milliseconds, which help does not need

            table = f"[{name}]{self._tables[name]}"
            self._rows[name] = msgspec.toml.decode(table, type=dict[str, self._kind])[name]  # type: ignore[name-defined]
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
