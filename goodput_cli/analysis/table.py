"""Tables from declared columns: the rows of a `Sheet`, the rows of a JSON answer, and the columns that capabilities
add to them.

Rows come in parts, which are processed as a whole. Each table defines its parts: a list of results, or columns of
numbers. A column takes its cells from a part by `Column.values`. A heading has one meaning in all commands: a new
column takes one of docs/glossary.md, or adds one there. Facts of a capability about rows are apart from its hooks
(`capability.py`), because results are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.sheet import Audience, Cell, Column, ColumnKind, Lazy
from goodput_cli.events.schema import NO_STEP
from goodput_cli.events.timestamps import isos
from goodput_cli.vocabulary.text import iso

if TYPE_CHECKING:
    import pandas as pd


UNKNOWN = NO_STEP
"""Value of None in a column of int64."""
JsonRow = dict[str, Any]
"""A row of a JSON answer."""
Row = TypeVar("Row")
Parts = Callable[[], Iterable[Any]]
"""Function that makes the parts of a table, again at each call."""


def column(
    kind: ColumnKind, words: str, *, heading: str | None = None, of: Callable[[Any], Any] | None = None,
    default: Any = MISSING, **more: Any,
) -> Any:  # fmt: skip
    """Return a dataclass field that is also a column, which `columns_of` finds.

    heading: for people; None hides the column from them. of: function from the subject of the row to the value; None if
    the subject has it under the same name (`filled`). default: of the field. more: further fields of `Column`. Its name
    is the field's, without `_ns`, and programs see it if no audience is given.
    """
    return field(default=default, metadata={"column": (kind, words, heading, more), "of": of})


def filled(row: type[Row], subject: object, **others: Any) -> Row:
    """Return a row about a subject: each field comes from the others, or is made from the subject as declared."""
    for one in fields(row):  # type: ignore[arg-type]
        if one.name not in others:
            of = one.metadata.get("of") or attrgetter(one.name)
            others[one.name] = of(subject)
    return row(**others)


def columns_of(record: type, values: Callable[[str], Callable[[Any], Any]]) -> tuple[Column, ...]:
    """Return the columns that a dataclass declares, in the order of its fields. values: from the name of a field to
    `Column.values`."""
    columns = []
    for one in fields(record):
        if "column" in one.metadata:
            kind, words, heading, more = one.metadata["column"]
            seen = more.get("audience", Audience.PROGRAMS) | (Audience(0) if heading is None else Audience.PEOPLE)
            columns.append(Column(**{
                "name": one.name.removesuffix("_ns"), "kind": kind, "values": values(one.name), "words": words,
                "nullable": "None" in str(one.type), "title": heading, **more, "audience": seen,
            }))  # fmt: skip
    return tuple(columns)


@dataclass(frozen=True)
class TableDeclaration:
    """Declaration of a table, once for every format: its columns in order.

    Raises ValueError for columns that would hide another, and for an order that omits one.
    """

    name: str
    """Name of a row in the JSON schema."""
    words: str
    """Description of a row in the JSON schema."""
    columns: tuple[Column, ...]
    """All columns, for any audience."""
    people: tuple[str, ...] = ()
    """Headings that people see, in their order if it differs from `columns`. The most important come first, as the last
    ones are omitted if there is no room."""
    first: tuple[str, ...] = ()
    """Names of the first columns in CSV and Parquet."""

    def __post_init__(self) -> None:
        for names in (
            [one.heading for one in seen_by(Audience.PEOPLE, self.columns)],
            [one.head() for one in seen_by(Audience.TABLES, self.columns)],
            [one.json_key for one in seen_by(Audience.JSON, self.columns)],
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(f"table {self.name}: two columns are called {', '.join(sorted(twice))}")
        headings = {one.heading for one in seen_by(Audience.PEOPLE, self.columns)}
        if self.people and set(self.people) != headings:
            odd = sorted(headings.symmetric_difference(self.people))
            raise ValueError(f"table {self.name}: {', '.join(odd)} in its columns or their order, but not in both")

    def sheet_columns(self, without: Collection[str] = ()) -> tuple[Column, ...]:
        """Return the columns of a sheet: for people, CSV and Parquet. without: headings to hide from people."""
        if not self.people and not self.first:
            shown = (
                replace(one, audience=one.audience & ~Audience.PEOPLE) if one.heading in without else one
                for one in self.columns
            )
            return seen_by(Audience.PEOPLE | Audience.TABLES, shown)
        return (*self.people_columns(without), *self.table_columns())

    def people_columns(self, without: Collection[str] = ()) -> tuple[Column, ...]:
        """Return the columns for people, in their order."""
        shown = {
            one.heading: replace(
                one, name=one.heading, title=None, audience=Audience.PEOPLE, values=one.people_values or one.values
            )
            for one in seen_by(Audience.PEOPLE, self.columns)
        }
        return tuple(shown[heading] for heading in self.people or shown if heading not in without)

    def table_columns(self) -> tuple[Column, ...]:
        """Return the columns of CSV and Parquet, in their order."""
        columns = tuple(replace(one, audience=Audience.TABLES) for one in seen_by(Audience.TABLES, self.columns))
        by_name = {one.name: one for one in columns}
        return (*(by_name[name] for name in self.first), *(one for one in columns if one.name not in self.first))

    def of(self, size: int, parts: Parts) -> FilledTable:
        """Return the table with its rows. size: the total number of rows of all parts."""
        return FilledTable(self, size, parts)

    def of_rows(self, rows: Sequence[Any]) -> FilledTable:
        """Return the table of these results."""
        return self.of(len(rows), lambda: [rows])

    def schema(self) -> JsonRow:
        """Return the JSON schema of a row."""
        return row_schema(self.columns, self.name, self.words)


@dataclass(frozen=True)
class FilledTable:
    """A table and its rows, which are made on demand."""

    table: TableDeclaration
    """Declaration of the table."""
    size: int
    """Number of rows."""
    parts: Parts
    """Function that makes the rows in parts."""

    def __len__(self) -> int:
        return self.size

    def cells(self, columns: Sequence[Column]) -> Lazy[tuple[Cell, ...]]:
        """Return the rows of a sheet with these columns."""
        return table_rows(columns, self.size, self.parts)

    def json(self) -> Lazy[JsonRow]:
        """Return the rows for JSON."""
        shown = seen_by(Audience.JSON, self.table.columns)
        keys = [column.json_key for column in shown]

        def rows() -> Iterator[JsonRow]:
            for part in self.parts():
                for row in zip(*(_json_values(column, part) for column in shown), strict=True):
                    yield dict(zip(keys, row, strict=True))

        return Lazy(self.size, rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with the columns of CSV, as declared: times in UTC, durations in seconds, unknown values
        missing."""
        import pandas as pd

        columns, parts = seen_by(Audience.TABLES, self.table.columns), list(self.parts())
        return pd.DataFrame({one.head(): _series(one.kind, [_values(one, part) for part in parts]) for one in columns})


def _series(kind: ColumnKind, parts: list[Any]) -> pd.Series[Any]:
    """Return the values of all parts with the type of the column."""
    import pandas as pd

    if kind == "text":
        return pd.Series([value for part in parts for value in part], dtype=object)
    values = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    known = pd.Series(values, dtype="Int64").mask(pd.Series(values == UNKNOWN, dtype=bool))
    match kind:
        case "instant":
            return pd.to_datetime(known, unit="ns", utc=True)
        case "duration" | "change":
            return known.astype("Float64") / 1e9
        case _:
            return known


def attribute(name: str) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function from lists of results to the values of a column: an attribute of each."""
    return each(attrgetter(name))


def each(value: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function from lists of results to the values of a column, computed from each."""
    return lambda rows: [value(row) for row in rows]


def seen_by(audience: Audience, columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns that the audience sees."""
    return tuple(column for column in columns if column.audience & audience)


def table_rows(columns: Sequence[Column], size: int, parts: Parts) -> Lazy[tuple[Cell, ...]]:
    """Return the rows of a sheet with these columns."""

    def rows() -> Iterator[tuple[Cell, ...]]:
        for part in parts():
            yield from zip(*(_known(_values(column, part)) for column in columns), strict=True)

    return Lazy(size, rows)


def row_schema(columns: Iterable[Column], title: str, words: str) -> JsonRow:
    """Return the JSON schema of a row with these columns."""
    shown = seen_by(Audience.JSON, columns)
    always = [column.json_key for column in shown if not column.later]
    return {
        "title": title,
        "type": "object",
        "description": words,
        "properties": {column.json_key: _value_schema(column) for column in shown},
        **({} if len(always) == len(shown) else {"required": always}),
    }


def _values(column: Column, part: Any) -> Any:
    assert column.values is not None, f"the column {column.name!r} is filled by hand"
    return column.values(part)


def _known(values: Any) -> Sequence[Any]:
    """Return the values, with None for unknown ones."""
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
    if column.kind == "instant" and isinstance(values, np.ndarray):
        texts = np.full(len(values), None, dtype=object)
        known = values != UNKNOWN
        texts[known] = isos(values[known])
        return texts.tolist()
    match column.kind:
        case "duration" | "change":
            return [None if value is None else value / 1e9 for value in _known(values)]
        case "instant":
            return [None if value is None else iso(value) for value in values]
        case _:
            return _known(values)


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


DEFINITIONS: dict[str, str] = {
    "goodput": "productive time divided by the window without exclusions; the window is cut to the job",
    "badput": "time in any other category; goodput and badput add up to the window without exclusions, exactly",
    "cumulative goodput": "goodput from the start of the window to each point in time",
    "rolling goodput": "goodput of a window of fixed length that ends at each point in time",
    "data_loading_async": "data loading inside a step: it overlaps training and is not badput",
    "at_risk": "kept progress after the last completed checkpoint, in a log with saves and without a clean end",
    "not recorded": "categories without any evidence in the log: unknown, not zero",
    "disruption": "a transition from one attempt to the next that does not follow a clean end",
    "last sign of life": "the last time at which an attempt is known to have been running",
    "lost steps": "steps that were trained again; wasted is the time that they had taken",
    "downtime": (
        "from an attempt's last training until the next attempt is up, as far as that is recovery, undetermined or "
        "stopped"
    ),
    "regained": "from the last log activity until training caught up",
    "MTBF": "time in which attempts were up, divided by the number of disruptions; with a 95 % Poisson interval",
    "ETTR": "effective training time ratio: goodput as a fraction",
    "step time": "from one step record to the next of the same attempt, over the steps between them",
    "ideal step time": "the mean of the step times without the long ones: at most median + 3 \xd7 MAD",
    "slow period": "consecutive steps whose typical step time rose and stayed high",
    "slices": "the share of a job's slices that were stepping, or available, over time",
}


Facts = Mapping[str, Any]
"""Facts of a row by the name of the capability."""


@dataclass(frozen=True, kw_only=True)
class DisruptionFacts:
    """Columns of one capability in the table of disruptions."""

    name: str
    """Name of the capability."""
    columns: tuple[Column, ...]
    """Columns; their parts have `facts(name)`, a fact per row."""
    of: Callable[[Timeline, Any, Sequence[int]], Sequence[Any]]
    """Returns the fact about each of some attempts that ended, from the job and its `AttemptCosts`."""


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """Columns of one capability in the table of jobs."""

    name: str
    """Name of the capability."""
    columns: tuple[Column, ...]
    """Columns; their rows have `facts`, with the name of the capability as the key."""
    of: Callable[[Timeline], Any]
    """Returns the fact about a job, of plain values: a fleet stores it."""
