"""A sheet: rows and columns that any format can show. What commands other than `analyze` answer with.

A command makes a `Sheet`; one renderer a format shows it. The sheet holds exact values (ns, percent), never text made
from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

Cell = str | int | float | None
ColumnKind = Literal["text", "count", "number", "duration", "change", "instant", "percent", "points", "share"]
Readers = Literal["all", "eye", "data"]


Item = TypeVar("Item")


class Lazy(Sequence[Item], Generic[Item]):
    """A sequence whose items are made when they are read, each time anew: a format costs only what it shows, and a
    million rows need not be in memory at once. size: how many `make` gives."""

    def __init__(self, size: int, make: Callable[[], Iterable[Item]]) -> None:
        self._size = size
        self._make = make

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        return iter(self._make())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        """By making all of them: meant for tests and short answers."""
        return list(self)[index]


@dataclass(frozen=True)
class Column:
    """name: as in the vocabulary; the head of the column in every format.

    kind: what a cell holds: `text`; `count` an int; `number` a float; `duration` ns (int); `change` ns (int) that
    were gained (+) or lost (-); `instant` ns since 1970 UTC (int); `percent` a float; `points` a float, percentage
    points that were gained or lost; `share` a float 0..1 that is drawn as a bar, and only for the eye (no CSV column).
    readers: who sees the column: everybody, the eye (table, Markdown), or programs that read CSV.
    """

    name: str
    kind: ColumnKind
    readers: Readers = "all"

    @property
    def for_eye(self) -> bool:
        """Whether tables and Markdown show it."""
        return self.readers != "data"

    @property
    def for_data(self) -> bool:
        """Whether CSV has it."""
        return self.readers != "eye" and self.kind != "share"


@dataclass(frozen=True)
class Sheet:
    """title, summary: a heading and lines above the rows. rows: every row, a cell a column; None is "not recorded".

    folded: rows for the eye (table, Markdown) where they differ, else None. notes: lines below. data: the whole answer
    as JSON writes it, keys as in docs/schema.json. more: further tables below, for the eye; their data is not used.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    data: Mapping[str, Any]
    summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folded: Sequence[tuple[Cell, ...]] | None = None
    more: tuple[Sheet, ...] = ()
