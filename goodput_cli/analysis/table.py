"""Tables from declared columns: the rows of a `Sheet`, and the rows of a JSON answer.

Rows come in parts, as much of them as is worked on together. What a part is, each table says: a list of results, or
columns of numbers. A column takes its cells from a part by `Column.values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from goodput_cli.analysis.sheet import Audience, Cell, Column, ColumnKind, Lazy
from goodput_cli.arrays import I64
from goodput_cli.events.schema import NO_STEP
from goodput_cli.events.timestamps.text import isos
from goodput_cli.vocabulary.text import iso

UNKNOWN = NO_STEP
"""In a column of int64: None."""
JsonRow = dict[str, Any]
"""A row of a JSON answer."""
Parts = Callable[[], Iterable[Any]]
"""Makes the parts of a table, anew each time."""


def column(kind: ColumnKind, words: str, *, people: tuple[int, str] | None = None, **more: Any) -> Any:
    """A field of a dataclass that is a column as well: `columns_of` and `people_columns` find it.

    people: its place among the columns that people see, and its heading there; None where they do not see it. more:
    further fields of `Column`; its name is the field's, without `_ns`.
    """
    return field(metadata={"column": (kind, words, people, more)})


def columns_of(record: type, values: Callable[[str], Callable[[Any], Any]]) -> tuple[Column, ...]:
    """The columns for programs that a dataclass declares, in the order of its fields. values: from the name of a field
    to `Column.values`."""
    return tuple(
        Column(**{
            "name": name.removesuffix("_ns"), "kind": kind, "audience": Audience.PROGRAMS, "values": values(name),
            "words": words, "nullable": "None" in type_, **more,
        })
        for name, type_, (kind, words, _, more) in _declared(record)
    )  # fmt: skip


def people_columns(record: type, values: Callable[[str], Callable[[Any], Any]]) -> dict[int, Column]:
    """The columns for people that a dataclass declares, by their places."""
    return {
        people[0]: Column(
            people[1], kind, Audience.PEOPLE, values(name), brief=more.get("brief"), spare=more.get("spare", False)
        )
        for name, _, (kind, _, people, more) in _declared(record)
        if people is not None
    }


def _declared(record: type) -> Iterator[tuple[str, str, Any]]:
    return ((one.name, str(one.type), one.metadata["column"]) for one in fields(record) if "column" in one.metadata)


def ordered(columns: Sequence[Column], *first: str) -> tuple[Column, ...]:
    """The same columns, those that are named in front."""
    by_name = {column.name: column for column in columns}
    return (*(by_name[name] for name in first), *(column for column in columns if column.name not in first))


def attribute(name: str) -> Callable[[Sequence[Any]], list[Any]]:
    """The values of a column whose parts are lists of results: an attribute of each."""
    return each(attrgetter(name))


def each(value: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """The values of a column whose parts are lists of results: something made of each."""
    return lambda rows: [value(row) for row in rows]


def seen_by(audience: Audience, columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns that somebody of the audience sees."""
    return tuple(column for column in columns if column.audience & audience)


def table_rows(columns: Sequence[Column], size: int, parts: Parts) -> Lazy[tuple[Cell, ...]]:
    """The rows of a sheet with these columns."""
    return Lazy(size, lambda: chain.from_iterable(_cells(columns, part) for part in parts()))


def json_rows(columns: Iterable[Column], size: int, parts: Parts) -> Lazy[JsonRow]:
    """The rows as JSON writes them, a key for each column that JSON has."""
    shown = seen_by(Audience.JSON, columns)
    return Lazy(size, lambda: chain.from_iterable(_json_objects(shown, part) for part in parts()))


def row_schema(columns: Iterable[Column], title: str, words: str) -> JsonRow:
    """The JSON schema of such a row."""
    shown = seen_by(Audience.JSON, columns)
    return {
        "title": title,
        "type": "object",
        "description": words,
        "properties": {column.json_key: _value_schema(column) for column in shown},
    }


def _cells(columns: Sequence[Column], part: Any) -> Iterable[tuple[Cell, ...]]:
    return zip(*(_known(_values(column, part)) for column in columns), strict=True)


def _json_objects(columns: Sequence[Column], part: Any) -> Iterator[JsonRow]:
    keys = [column.json_key for column in columns]
    values = [_json_values(column, part) for column in columns]
    return (dict(zip(keys, row, strict=True)) for row in zip(*values, strict=True))


def _values(column: Column, part: Any) -> Any:
    assert column.values is not None, f"the column {column.name!r} is filled by hand"
    return column.values(part)


def _known(values: Any) -> Sequence[Any]:
    """Values with None for what is not known."""
    if not isinstance(values, np.ndarray):
        return values  # type: ignore[no-any-return]
    listed: list[Any] = values.tolist()
    for place in np.flatnonzero(values == UNKNOWN).tolist():
        listed[place] = None
    return listed


def _json_values(column: Column, part: Any) -> Sequence[Any]:
    if column.json_values is not None:
        return column.json_values(part)  # type: ignore[no-any-return]
    values = _values(column, part)
    if column.json is not None:
        return _known(values)
    match column.kind:
        case "duration" | "change":
            return _seconds(values)
        case "instant":
            if isinstance(values, np.ndarray):
                return _instants(values)
            return [None if value is None else iso(value) for value in values]
        case _:
            return _known(values)


def _instants(values: I64) -> list[Any]:
    known = values != UNKNOWN
    if known.all():
        return list(isos(values))
    texts = np.full(len(values), None, dtype=object)
    texts[known] = isos(values[known])
    listed: list[Any] = texts.tolist()
    return listed


def _seconds(values: Any) -> list[float | None]:
    if not isinstance(values, np.ndarray):
        return [None if value is None else value / 1e9 for value in values]
    seconds: list[float | None] = (values / 1e9).tolist()
    for place in np.flatnonzero(values == UNKNOWN).tolist():
        seconds[place] = None
    return seconds


_TYPES = {"text": "string", "count": "integer", "number": "number", "percent": "number", "points": "number"}
INSTANT: Mapping[str, Any] = {"$ref": "#/$defs/instant"}


def _value_schema(column: Column) -> JsonRow:
    if column.json is not None:
        schema = dict(column.json)
    elif column.kind == "instant":
        schema = dict(INSTANT)
    else:
        schema = {"type": _TYPES.get(column.kind, "number")}
    if column.least is not None:
        schema["minimum"] = column.least
    if column.nullable:
        schema = _or_null(schema)
    return {**schema, **({"description": column.words} if column.words else {})}


def _or_null(schema: JsonRow) -> JsonRow:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "type" in schema and "properties" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
