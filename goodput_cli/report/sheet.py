"""A sheet: rows and columns that any format can show. What commands other than `analyze` answer with.

A command makes a `Sheet`; one renderer a format shows it. The sheet holds exact values (ns, percent), never text made
from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Cell = str | int | float | None
ColumnKind = Literal["text", "count", "number", "duration", "instant", "percent", "share"]


@dataclass(frozen=True)
class Column:
    """name: as in the vocabulary; the head of the column in every format.

    kind: what a cell holds: `text`; `count` an int; `number` a float; `duration` ns (int); `instant` ns since 1970
    UTC (int); `percent` a float; `share` a float 0..1 that is drawn as a bar, and only for the eye (no CSV column).
    """

    name: str
    kind: ColumnKind


@dataclass(frozen=True)
class Sheet:
    """title, summary: a heading and lines above the rows. rows: every row, a cell a column; None is "not recorded".

    folded: rows for the eye (table, Markdown) where they differ, else None. notes: lines below. data: the whole answer
    as JSON writes it, keys as in docs/schema.json.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: Mapping[str, Any]
    summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folded: tuple[tuple[Cell, ...], ...] | None = None
