"""What JSON has of a result: from its declaration (`written.py`), worked out once per class.

`wire_type` is the object of JSON as a `msgspec.Struct`: it is written, a saved answer is converted to it, and
docs/schema.json is made of it. `wire` makes one of a result. Only what writes or reads JSON imports this module.

Parts of answers that are no results: each is declared as a `msgspec.Struct`, as JSON has it.

docs/schema.json (report/schema.py) takes the string under a field as its description. A result that is written as it is
needs none of this: see `written.py`.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import cache
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs
from msgspec import field as wire_field

from goodput_cli.analysis.sheet import SCHEMA_VERSION
from goodput_cli.analysis.table import FilledTable, Table
from goodput_cli.analysis.written import (
    After,
    Both,
    Each,
    InstantText,
    Key,
    Least,
    Nulls,
    OneOf,
    Optional,
    Pattern,
    Percent,
    Seconds,
    Through,
    Unknown,
    Whole,
    Written,
)
from goodput_cli.vocabulary.text import finite, iso

InstantWire = Annotated[
    str,
    Meta(
        title="instant",
        description="ISO-8601 in UTC, with 0, 3, 6 or 9 fractional digits",
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z$",
    ),
]
Row = Mapping[str, Any]
Value = Callable[[Any], Any]


class Wire(Struct, kw_only=True):
    """An object of JSON, made of a result that is declared in `declared`."""

    declared: ClassVar[type]
    indented: ClassVar[bool] = False


def _same(value: Any) -> Any:
    return value


class _Entry(Struct, frozen=True):
    """A key of JSON."""

    key: str
    type: Any
    value: Value
    """From the value of the field to what is written."""
    back: Value = _same
    """From what was written, parts of it read already, to the value of the field."""
    words: str | None = None
    """What the schema says, where that is not the string under the field."""


class _Field(Struct, frozen=True):
    """A field, or a property, of a result, and the keys that JSON has of it."""

    name: str
    entries: tuple[_Entry, ...]
    default: Any
    """Where it may be missing on reading; MISSING where it may not."""
    nullable: bool
    """Whether its value may be None."""
    behind: str | None = None
    """The field that it stands behind, where that is not the one before it."""


def wire(result: Any) -> Any:
    """The result as JSON has it; what is no `written` class is written as it is."""
    if not hasattr(type(result), "__written__"):
        return _plain(result)
    kind: Any = type(result)
    values = {entry.key: entry.value(getattr(result, one.name)) for one in _fields_of(kind) for entry in one.entries}
    return wire_type(kind)(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, FilledTable):
        return value.json()
    if isinstance(value, list | tuple) and any(hasattr(type(one), "__written__") for one in value):
        return [wire(one) for one in value]
    if isinstance(value, dict):
        return {key: wire(one) for key, one in value.items()}
    return value


def result_of(part: Wire) -> Any:
    """The result that a saved answer, or a part of one, was made of: what `wire` makes, undone. Fields that JSON does
    not have are None if they have no default, and rows of tables stay as JSON has them.

    Raises ValueError for what is written as an instant and is none.
    """
    in_json = {one.name: one.entries[-1] for one in _fields_of(part.declared)}
    values = {}
    for one in fields(part.declared):
        entry = in_json.get(one.name)
        if entry is not None:
            read = _read(getattr(part, entry.key))
            values[one.name] = None if read is None else entry.back(read)
        elif one.default is MISSING:
            values[one.name] = None
    return part.declared(**values)


def _read(value: Any) -> Any:
    """What was written, with a result in the place of each object that one was written as; None in the place of an
    object of nulls."""
    if isinstance(value, Wire):
        nulls = (getattr(value, one.entries[-1].key) is None for one in _fields_of(value.declared) if not one.nullable)
        return None if any(nulls) else result_of(value)
    if isinstance(value, list):
        return tuple(map(_read, value))
    return None if value is UNSET else value


@cache
def wire_type(kind: type) -> type:
    """The object of JSON that a `written` class gives; any other class as it is."""
    about: Written | None = getattr(kind, "__written__", None)
    if about is None:
        return kind
    declared = []
    for one in _fields_of(kind):
        for entry in one.entries:
            default = UNSET if entry.type is not _without_unset(entry.type) else one.default
            declared.append(
                (entry.key, entry.type) if default is MISSING else (entry.key, entry.type, _default(default))
            )
    if about.kind is not None:
        version, kinds = Literal[SCHEMA_VERSION], Literal[about.kind]
        declared = [("schema_version", version, SCHEMA_VERSION), ("kind", kinds, about.kind), *declared]
    name = "".join(part.title() for part in about.name.split("_"))
    made: Any = defstruct(name, declared, bases=(Wire,), kw_only=True, module=__name__)
    made.declared, made.indented = kind, about.indented
    made.__doc__ = about.words
    return_type: type = made
    return return_type


def descriptions(kind: type[Wire]) -> dict[str, str]:
    """What the schema says of each key: the string under its field."""
    strings = _field_strings(kind.declared)
    said = {}
    for one in _fields_of(kind.declared):
        for entry in one.entries:
            words = strings.get(one.name, "") if entry.words is None else entry.words
            if words:
                said[entry.key] = words
    return said


def _default(value: Any) -> Any:
    if isinstance(value, type):
        return wire_field(default_factory=value)
    return value


@cache
def _fields_of(kind: type) -> tuple[_Field, ...]:
    """The fields that JSON has, and behind them the properties that it has as well."""
    about: Written = kind.__written__  # type: ignore[attr-defined]
    names: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names |= vars(sys.modules[base.__module__])
    found = [
        _field_of(one.name, _evaluated(one.type, names), one.default, nulls=about.nulls)
        for one in fields(kind)
        if one.name not in about.without
    ]
    for name, attribute in {name: one for base in reversed(kind.__mro__) for name, one in vars(base).items()}.items():
        getter = attribute.fget if isinstance(attribute, property) else None
        behind = getattr(getter, "__written_after__", None)
        if behind is not None:
            hint = get_type_hints(getter, names, include_extras=True)["return"]
            place = [one.name for one in found].index(behind)
            found.insert(place + 1, _field_of(name, hint, MISSING, nulls=about.nulls))
    return tuple(_in_order(found))


def _in_order(found: list[_Field]) -> list[_Field]:
    for one in tuple(found):
        if one.behind is not None:
            found.remove(one)
            found.insert([other.name for other in found].index(one.behind) + 1, one)
    return found


def _evaluated(hint: Any, names: dict[str, Any]) -> Any:
    return eval(hint, names) if isinstance(hint, str) else hint


def _field_of(name: str, hint: Any, default: Any, *, nulls: bool) -> _Field:
    """How a field is written. hint: its type, evaluated. nulls: whether JSON may have null in any case."""
    kind, marks = _split(hint)
    named = {type(mark): mark for mark in marks}
    key = named[Key].name if Key in named else name
    entries = _entries(key, kind, named)
    if Nulls in named:
        part = _not_none(kind) if _is_nullable(kind) else kind
        entries = (_Entry(key, wire_type(part), lambda value: wire_type(part)() if value is None else wire(value)),)
        default = wire_type(part)
    if Optional in named:
        (entry,) = entries
        write = entry.value
        kind_or_unset = entry.type | UnsetType
        entries = (_Entry(key, kind_or_unset, lambda value: UNSET if value is None else write(value), entry.back),)
    if Unknown in named:
        default = named[Unknown].value
    elif nulls:
        entries = tuple(structs.replace(entry, type=_or_null(entry.type, True)) for entry in entries)
        default = None
    return _Field(name, entries, default, _is_nullable(kind), named[After].field if After in named else None)


def _entries(key: str, kind: Any, marks: dict[type, Any]) -> tuple[_Entry, ...]:
    nullable = _is_nullable(kind)
    number = _number(key, nullable, marks)
    if number:
        return number
    if Each in marks:
        each: Each = marks[Each]
        part: Any = wire_type(each.kind)
        back = each.back or _same
        return (
            _Entry(
                key,
                Sequence[part],
                lambda values: [wire(each.made(one)) for one in values],
                lambda values: tuple(map(back, values)),
            ),
        )
    if Through in marks:
        through: Through = marks[Through]
        made = through.made
        return (
            _Entry(
                key,
                _or_null(_type(wire_type(through.kind), marks), nullable),
                lambda value: None if value is None else wire(made(value)),
                through.back or _same,
            ),
        )
    table = next((mark for mark in marks.values() if isinstance(mark, Table)), None)
    if table is not None:
        row: Any = Annotated[Row, Meta(extra_json_schema=table.schema())]
        if get_origin(kind) is None and kind is not FilledTable:  # of one row
            return (_Entry(key, row, lambda value: table.of_rows([value]).json()[0]),)
        return (_Entry(key, Sequence[row], lambda value: _rows(table, value)),)
    if OneOf in marks:
        choices = {"enum": [*marks[OneOf].choices]}
        return (_Entry(key, Annotated[str, Meta(extra_json_schema=choices)], wire),)
    if Whole in marks:
        return (_Entry(key, _or_null(_type(kind, marks), True), _whole),)
    return (_Entry(key, _type(kind, marks), wire),)


def _number(key: str, nullable: bool, marks: dict[type, Any]) -> tuple[_Entry, ...]:
    """Times and shares that JSON has in another unit; empty for anything else."""
    if Both in marks:
        both: Both = marks[Both]
        return (
            _Entry(_in_seconds(key), _or_null(float, nullable), _seconds),
            _Entry(key, _or_null(_bounded(int, both.least), nullable), _same, words=both.ns),
        )
    if Seconds in marks:
        kind = _or_null(_bounded(float, marks[Seconds].least), nullable)
        return (_Entry(_in_seconds(key), kind, _seconds, _ns_of_seconds),)
    if Percent in marks:
        return (_Entry(f"{key}_percent", _or_null(float, nullable), _percent, lambda percent: percent / 100),)
    if InstantText in marks:
        return (_Entry(key.removesuffix("_ns"), _or_null(InstantWire, nullable), _instant, _ns_of_instant),)
    return ()


def _rows(table: Table, value: Any) -> Any:
    """Rows as JSON has them, of a table that is filled or of results."""
    if isinstance(value, FilledTable):
        return value.json()
    return table.of_rows(value).json() if value else ()


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what is said of it."""
    if get_origin(hint) is Annotated:
        kind, marks = _split(get_args(hint)[0])
        return kind, (*marks, *get_args(hint)[1:])
    if get_origin(hint) in (Union, UnionType) and _is_nullable(hint):
        kind, marks = _split(_not_none(hint))  # `Amount | None`
        return Union[kind, None], marks  # noqa: UP007 - of types that are known only now
    return hint, ()


def _type(kind: Any, marks: Mapping[type, Any] = {}) -> Any:
    """A type as msgspec has it."""
    if _is_nullable(kind):
        return _or_null(_type(_not_none(kind), marks), True)
    if Meta in marks:
        return Annotated[_type(kind), marks[Meta]]
    if Pattern in marks:
        return Annotated[kind, Meta(pattern=marks[Pattern].pattern)]
    if Least in marks:
        return _bounded(kind, marks[Least].value)
    if is_dataclass(kind) and hasattr(kind, "__written__"):
        return wire_type(kind)  # type: ignore[arg-type]
    inner = get_args(kind)
    if get_origin(kind) is dict:
        return dict[inner[0], _type(inner[1])]  # type: ignore[misc, valid-type]
    if get_origin(kind) in (Sequence, tuple, list) and inner and get_origin(kind) is not Annotated:
        if get_origin(kind) is tuple and inner[-1] is not Ellipsis:
            return kind
        part, marked = _split(inner[0])
        named = {type(mark): mark for mark in marked}
        entry = _entries("", part, named)[0]
        return Sequence[entry.type]  # type: ignore[name-defined]
    return kind


def _without_unset(kind: Any) -> Any:
    return kind if UnsetType not in get_args(kind) else None


def _is_nullable(kind: Any) -> bool:
    return NoneType in get_args(kind)


def _not_none(kind: Any) -> Any:
    return Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007


def _or_null(kind: Any, nullable: bool) -> Any:
    return Union[kind, None] if nullable else kind  # noqa: UP007


def _bounded(kind: Any, least: int | None) -> Any:
    return kind if least is None else Annotated[kind, Meta(ge=least)]


def _in_seconds(key: str) -> str:
    """`lost_ns` as `lost_seconds`, `ns` as `seconds`."""
    return "_".join("seconds" if part == "ns" else part for part in key.split("_"))


def _seconds(value: int | None) -> float | None:
    return None if value is None else value / 1e9


def _ns_of_seconds(value: float) -> int:
    """Exact, so that the same seconds are written again."""
    return round(Fraction(value) * 10**9)


def _percent(value: Any) -> float | None:
    return None if value is None else float(100 * value)


def _instant(value: int | None) -> str | None:
    return None if value is None else iso(value)


def _ns_of_instant(text: str) -> int:
    from goodput_cli.events.timestamps import TimestampReader
    from goodput_cli.vocabulary.when import load_zone

    instant = TimestampReader(load_zone("UTC")).read(text)
    if instant is None:
        raise ValueError(f"{text!r} is not a time")
    return instant.ns


def _whole(value: float | None) -> float | int | None:
    """An int where the number is whole: counts of steps are, but for shares."""
    if value is None or finite(value) is None:
        return None
    return int(value) if value == int(value) else float(value)


def _field_strings(kind: type) -> dict[str, str]:
    """Each field and property of the class with the string that describes it."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("goodput_cli."):
            (definition,) = ast.parse(dedent(inspect.getsource(base))).body
            assert isinstance(definition, ast.ClassDef)
            found.update(_strings_of(definition))
    return found


def _strings_of(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for one, below in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(one, ast.FunctionDef):
            yield one.name, " ".join((ast.get_docstring(one) or "").split())
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
            yield one.target.id, " ".join(ast.literal_eval(below.value).split())


Count = Annotated[int, Meta(ge=0)]
FromOne = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
"""Of time in seconds, or a number that is not below 0."""
Instant = InstantWire
Rows = Sequence[Row]
"""Rows of a table, as `FilledTable.json` makes them of its columns."""


def row_of(table: Table) -> Meta:
    """What the schema says of a row of the table."""
    return Meta(extra_json_schema=table.schema())


class Part(Struct):
    """An object inside an answer."""


class Answer(Struct, kw_only=True):
    """A whole answer. Each has a field `kind`, which says of what."""

    schema_version: Literal[1] = SCHEMA_VERSION

    indented: ClassVar[bool] = False
    """Whether objects and short lists are spread over several lines."""
