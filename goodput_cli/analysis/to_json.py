"""JSON form of a result, computed once per class from its declaration (`json_fields.py`).

`json_type` returns the JSON form of a type: how a value is written, how a saved one is converted and restored, and its
schema. Every kind of type is handled here once, for all three.
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
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, defstruct, structs
from msgspec import field as wire_field

from goodput_cli.analysis.json_fields import Bounds, Json, SchemaEntry
from goodput_cli.analysis.sheet import READ_VERSIONS
from goodput_cli.analysis.table import FilledTable, TableDeclaration
from goodput_cli.vocabulary.option import declared as options_of
from goodput_cli.vocabulary.text import finite, iso

_RULES_SCHEMA = {
    "type": "integer",
    "minimum": 1,
    "description": "which version of the accounting rules made the answer; missing: 1",
}

Schema = dict[str, Any]
Value = Callable[[Any], Any]
INSTANT: Schema = {
    "description": "ISO-8601 in UTC, with 0, 3, 6 or 9 fractional digits",
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z$",
}


def _same(value: Any) -> Any:
    return value


class JsonType(Struct, frozen=True):
    """JSON form of a type."""

    saved: Any
    """Type to which msgspec converts a saved value."""
    schema: Callable[[], Schema]
    """Function that returns its schema. The schema of an object is a `$ref`, and has a title."""
    write: Value = _same
    """Function from a value to the written value: plain values, and rows that are made on demand."""
    back: Value = _same
    """Function from the `saved` type to the value. Raises ValueError for a written time that is invalid."""


class _JsonKey(Struct, frozen=True):
    """A key of an object, and its field or property."""

    name: str
    key: str
    of: JsonType
    words: str | None = None
    """Description in the schema, if it differs from the string under the field."""
    default: Any = MISSING
    """Default if it may be missing on reading."""
    nullable: bool = False
    """True if the field itself may be None."""
    optional: bool = False
    later: bool = False
    item: str | None = None
    """Key in the field, if that is a mapping whose items are fields of the object."""

    def value(self, result: Any) -> Any:
        """Return the value of a result."""
        value = getattr(result, self.name)
        return value if self.item is None else value.get(self.item)


def _seconds_key(name: str) -> str:
    """Return `lost_seconds` for `lost_ns`, `seconds` for `ns`."""
    return "_".join("seconds" if part == "ns" else part for part in name.split("_"))


def _ns_from_timestamp(text: str) -> int:
    from goodput_cli.events.timestamps import TimestampReader
    from goodput_cli.vocabulary.when import load_zone

    instant = TimestampReader(load_zone("UTC")).read(text)
    if instant is None:
        raise ValueError(f"{text!r} is not a time")
    return instant.ns


def _whole(value: float) -> float | int | None:
    if finite(value) is None:
        return None
    return int(value) if value == int(value) else float(value)


def _number() -> Schema:
    return {"type": "number"}


_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number"}
_SECONDS = JsonType(float, _number, lambda ns: ns / 1e9, lambda seconds: round(Fraction(seconds) * 10**9))
"""Seconds are read exactly, so that the same seconds are written again."""
_UNITS: dict[str | None, JsonType] = {
    "seconds": _SECONDS,
    "percent": JsonType(float, _number, lambda share: float(100 * share), lambda percent: percent / 100),
    "instant": JsonType(
        Annotated[str, Meta(pattern=INSTANT["pattern"])], lambda: {"$ref": {"title": "instant", **INSTANT}}, iso,
        _ns_from_timestamp,
    ),
    "whole": JsonType(float, _number, _whole),
}  # fmt: skip


_KEYS: dict[str | None, Value] = {
    "seconds": _seconds_key,
    "percent": lambda key: f"{key}_percent",
    "instant": lambda key: key.removesuffix("_ns"),
}
"""Function from a name to the key in JSON, by unit."""


def json_type(hint: Any) -> JsonType:
    """Return the JSON form of an annotated type."""
    kind, marks = _split(hint)
    table = next((one for one in marks if isinstance(one, TableDeclaration)), None)
    if table is not None:
        return _rows(table, kind)
    nullable, kind = NoneType in get_args(kind), _not_none(kind)
    json = _json(marks)
    found = _UNITS.get(json.unit) or (_unmarked(kind) if json.made is None else _made(json))
    for one in marks:
        if isinstance(one, Bounds):
            found = _bounded(found, one)
    if nullable and _about(kind).nulls:
        return _or_object_of_nulls(kind, found)
    return _or_null(found) if nullable or json.unit == "whole" else found


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type and its annotations."""
    if get_origin(hint) is Annotated:
        kind, marks = _split(get_args(hint)[0])
        return kind, (*marks, *get_args(hint)[1:])
    if NoneType in get_args(hint):
        kind, marks = _split(_not_none(hint))  # `Amount | None`
        return Union[kind, None], marks  # noqa: UP007 - of types that are known only now
    return hint, ()


def _json(marks: tuple[Any, ...]) -> Json:
    """Return the combined `Json` annotation."""
    given = ((one.name, getattr(mark, one.name), one.default) for mark in marks if isinstance(mark, Json)
             for one in fields(mark))  # fmt: skip
    return Json(**{name: value for name, value, default in given if value is not default})


def _not_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007


def _unmarked(kind: Any) -> JsonType:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return JsonType(kind, lambda: {"type": _PLAIN[kind]})
    if kind is Any:
        return JsonType(Any, dict)
    if kind is Fraction:
        return JsonType(float, _number, float)
    if origin is Literal:
        return JsonType(kind, lambda: {"enum": sorted(inner)})
    if origin is dict:
        of = json_type(inner[1])
        return JsonType(
            dict[inner[0], of.saved],  # type: ignore[name-defined, valid-type]
            lambda: {"type": "object", "additionalProperties": of.schema()},
            _same if of.write is _same else lambda values: {key: of.write(one) for key, one in values.items()},
            lambda values: {key: of.back(one) for key, one in values.items()},
        )
    if origin is tuple and inner[-1] is not Ellipsis:
        items = [json_type(one) for one in inner]
        size = {"type": "array", "minItems": len(items), "maxItems": len(items)}
        return JsonType(kind, lambda: {**size, "prefixItems": [one.schema() for one in items], "items": False})
    if origin in (Sequence, tuple):
        item = json_type(inner[0])
        return JsonType(
            Sequence[item.saved],  # type: ignore[name-defined]
            lambda: {"type": "array", "items": item.schema()},
            _same if item.write is _same else lambda values: [item.write(one) for one in values],
            lambda values: tuple(map(item.back, values)),
        )
    if is_dataclass(kind):
        return _object(kind)  # type: ignore[arg-type]
    raise TypeError(f"{kind}: JSON has no such type")


def _made(json: Json) -> JsonType:
    """Return the JSON form of a value that is converted before it is written."""
    of, made, back = json_type(json.kind), json.made or _same, json.back or _same
    return JsonType(of.saved, of.schema, lambda value: of.write(made(value)), lambda saved: back(of.back(saved)))


def _bounded(of: JsonType, bounds: Bounds) -> JsonType:
    lengths = Meta(min_length=bounds.min_length, pattern=bounds.pattern)
    meta = lengths if bounds.ge is None else Meta(ge=bounds.ge)
    words = {"minimum": bounds.ge, "minItems": bounds.min_length, "pattern": bounds.pattern}
    known = {name: value for name, value in words.items() if value is not None}
    choices = {"enum": [*bounds.enum]} if bounds.enum else {}
    return structs.replace(of, saved=Annotated[of.saved, meta], schema=lambda: {**choices, **of.schema(), **known})


def _or_null(of: JsonType) -> JsonType:
    def schema() -> Schema:
        one = of.schema()
        if "type" not in one or "properties" in one:
            return {"anyOf": [one, {"type": "null"}]}
        return {**one, "type": [one["type"], "null"]}

    return JsonType(of.saved | None, schema, _unless_none(of.write), _unless_none(of.back))


def _unless_none(change: Value) -> Value:
    return _same if change is _same else lambda value: None if value is None else change(value)


def _rows(table: TableDeclaration, kind: Any) -> JsonType:
    """Return the JSON form of rows of a table, which is filled or of results, or of one result. After reading they keep
    their JSON form."""
    if is_dataclass(_not_none(kind)) and _not_none(kind) is not FilledTable:
        one = JsonType(Mapping[str, Any], table.schema, lambda row: table.of_rows([row]).json()[0])
        return _or_null(one) if NoneType in get_args(kind) else one

    def write(rows: Any) -> Any:
        if isinstance(rows, FilledTable):
            return rows.json()
        return table.of_rows(rows).json() if rows else ()

    return JsonType(
        Sequence[Mapping[str, Any]], lambda: {"type": "array", "items": table.schema()}, write, lambda rows: tuple(rows)
    )


def _about(kind: Any) -> SchemaEntry:
    """Return the entry of a dataclass; for others that are written, made from their names and docstrings."""
    about: SchemaEntry | None = getattr(kind, "__written__", None)
    if about is not None or not (isinstance(kind, type) and is_dataclass(kind)):
        return about or SchemaEntry("")
    name = "".join(f"_{one.lower()}" if one.isupper() else one for one in kind.__name__).removeprefix("_")
    return SchemaEntry(name, " ".join(inspect.cleandoc(kind.__doc__ or "").split()))


@cache
def _object(kind: type) -> JsonType:
    """Return the JSON form of a dataclass."""
    about, keys = _about(kind), _keys_of(kind)
    by_name = {one.name: one for one in keys}

    def schema() -> Schema:
        words = _field_strings(kind)
        properties: Schema = {}
        if about.kind is not None:
            properties = {
                "schema_version": {"enum": [*READ_VERSIONS]}, "kind": {"const": about.kind}, "rules": _RULES_SCHEMA,
            }  # fmt: skip
        for one in keys:
            said = words.get(one.name, "") if one.words is None else one.words
            properties[one.key] = {**one.of.schema(), **({"description": said} if said else {})}
        left_out = {"rules", *(one.key for one in keys if one.optional or one.later)}
        return {"$ref": {
            "title": about.name,
            **({"description": about.words} if about.words else {}),
            "type": "object",
            "properties": properties,
            "required": [key for key in properties if key not in left_out],
        }}  # fmt: skip

    def write(result: Any) -> Any:
        values = ((one, one.value(result)) for one in keys)
        return {one.key: one.of.write(value) for one, value in values if not (one.optional and value is None)}

    def back(saved: Any) -> Any:
        values: dict[str, Any] = {}
        for one in fields(kind):
            key = by_name.get(one.name)
            if key is not None and key.item is not None:
                values[one.name] = {}
            elif key is not None:
                values[one.name] = key.of.back(getattr(saved, key.key))
            elif one.default is MISSING:
                values[one.name] = None
        return kind(**values)

    entries = [
        (one.key, one.of.saved) if one.default is MISSING else (one.key, one.of.saved, one.default) for one in keys
    ]
    return JsonType(defstruct(kind.__name__, entries, kw_only=True, module=__name__), schema, write, back)


def _or_object_of_nulls(kind: type, of: JsonType) -> JsonType:
    """Return the JSON form of a result for which JSON has an object of nulls if it is missing."""
    keys = _keys_of(kind)

    def back(saved: Any) -> Any:
        nothing = any(getattr(saved, one.key) is None for one in keys if not one.nullable)
        return None if nothing else of.back(saved)

    return structs.replace(
        of,
        write=lambda value: {one.key: one.default for one in keys} if value is None else of.write(value),
        back=back,
    )


@cache
def _keys_of(kind: type) -> tuple[_JsonKey, ...]:
    """Return the keys of the object, in its order."""
    about = _about(kind)
    names: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names |= vars(sys.modules[base.__module__])
    declared = {one.name: one for one in fields(kind)}
    unasked = {one.name for one in options_of(kind) if one.default is None}
    keys: list[_JsonKey] = []
    for name in about.keys or declared:
        one = declared.get(name)
        hint = getattr(kind, name).fget.__annotations__["return"] if one is None else one.type
        hint = eval(hint, names) if isinstance(hint, str) else hint
        left_out = name in unasked
        keys += _keys(name, hint, MISSING if one is None else one.default, nulls=about.nulls, left_out=left_out)
    return tuple(keys)


def _keys(name: str, hint: Any, default: Any, *, nulls: bool, left_out: bool) -> Iterator[_JsonKey]:
    """Yield the keys of a field. nulls: whether JSON may have null in any case. left_out: whether JSON omits an unset
    option."""
    kind, marks = _split(hint)
    json = _json((Json(missing=None, optional=True), *marks)) if left_out else _json(marks)
    if json.spread is not None:
        for item, of_item, words in json.spread():
            form = json_type(of_item | None)
            yield _JsonKey(name, item, form, words, None, nullable=True, later=True, item=item)
        return
    key, of, nullable = json.key or name, json_type(hint), NoneType in get_args(kind)
    if _about(_not_none(kind)).nulls:
        default = wire_field(default_factory=of.saved)
    if json.missing is not ...:
        default = json.missing
    elif nulls:
        default = None
        of = of if nullable or json.unit == "whole" else _or_null(of)
    if json.optional:
        of = structs.replace(of, saved=of.saved | None, back=_unless_none(of.back))
    both = json.unit == "seconds and ns"
    if both:
        seconds = _or_null(_SECONDS) if nullable or nulls else _SECONDS
        yield _JsonKey(name, _seconds_key(key), seconds, default=default, nullable=nullable)
    written_key = _KEYS.get(json.unit, _same)(key)
    yield _JsonKey(name, written_key, of, json.ns if both else None, default, nullable, json.optional, json.later)


def _field_strings(kind: type) -> dict[str, str]:
    """Return the description of each field and property of the class: that of its column, or the string."""
    found = {one.name: one.metadata["column"][1] for one in fields(kind) if "column" in one.metadata}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("goodput_cli."):
            continue
        (definition,) = ast.parse(dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        for one, below in zip(definition.body, [*definition.body[1:], None], strict=True):
            if isinstance(one, ast.FunctionDef):
                found[one.name] = " ".join((ast.get_docstring(one) or "").split())
            elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
                found[one.target.id] = " ".join(ast.literal_eval(below.value).split())
    return found
