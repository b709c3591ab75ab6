"""Parts of answers that are no results: each is declared as a `msgspec.Struct`, as JSON has it.

docs/schema.json (report/schema.py) takes the string under a field as its description. A result that is written as it is
needs none of this: see `written.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from goodput_cli.analysis.sheet import SCHEMA_VERSION
from goodput_cli.analysis.table import Table
from goodput_cli.analysis.wire import InstantWire

Count = Annotated[int, Meta(ge=0)]
FromOne = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
"""Of time in seconds, or a number that is not below 0."""
Instant = InstantWire
Row = Mapping[str, Any]
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
