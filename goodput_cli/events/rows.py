"""Builds the columns of an `EventTable` from pieces, without an object per event."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from goodput_cli.events.schema import COLUMNS, NO_STEP, NONE, Edge, EventTable, Kind

T = TypeVar("T", bound=Hashable)
Ints = NDArray[Any] | int
_DEFAULTS: dict[str, int] = {"step": NO_STEP, "rank": NONE, "label": NONE, "detail": NONE}


class Interner(Generic[T]):
    """Numbers distinct values from 0 in the order in which they come."""

    def __init__(self) -> None:
        self._codes: dict[T, int] = {}

    def code(self, value: T) -> int:
        """The number of a value."""
        return self._codes.setdefault(value, len(self._codes))

    def codes(self, values: Sequence[T]) -> NDArray[np.int32]:
        """int32[n]: the number of each value."""
        distinct = {value: self.code(value) for value in dict.fromkeys(values)}
        if len(distinct) == 1:
            return np.full(len(values), next(iter(distinct.values())), dtype=np.int32)
        return np.array([distinct[value] for value in values], dtype=np.int32)

    def values(self) -> tuple[T, ...]:
        """All values, in order of their numbers."""
        return tuple(self._codes)


@dataclass(frozen=True)
class Origin:
    """Where n records come from. order: position within the block; line: 0 where there is none; entry, job: codes."""

    source: int
    order: NDArray[np.int64]
    line: NDArray[np.int64]
    entry: NDArray[np.int32]
    job: NDArray[np.int32]

    def take(self, rows: NDArray[Any]) -> Origin:
        """The records chosen by an index array or a mask."""
        return Origin(self.source, self.order[rows], self.line[rows], self.entry[rows], self.job[rows])


class RowBuilder:
    """Rows of a block in any order -> columns in order of arrival."""

    def __init__(self) -> None:
        self._order: list[NDArray[np.int64]] = []
        self._block: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
        self._done: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}

    def add(
        self,
        origin: Origin,
        kept: NDArray[np.bool_],
        kind: Kind | NDArray[np.int8],
        edge: Edge,
        time: NDArray[np.int64],
        *,
        end: NDArray[np.int64] | None = None,
        step: NDArray[np.int64] | None = None,
        rank: NDArray[np.int32] | None = None,
        label: NDArray[np.int32] | None = None,
        detail: NDArray[np.int32] | None = None,
    ) -> None:
        """One row per record of `origin` where `kept`; all arrays are as long as `origin`."""
        size = int(np.count_nonzero(kept))
        if not size:
            return
        values: dict[str, Any] = {
            "time": time, "end": time if end is None else end, "kind": kind, "edge": edge, "step": step, "rank": rank,
            "label": label, "detail": detail, "job": origin.job, "source": origin.source, "line": origin.line,
            "entry": origin.entry,
        }  # fmt: skip
        every = size == len(kept)
        self._order.append(origin.order if every else origin.order[kept])
        for name, value in values.items():
            self._block[name].append(_column(name, value, kept, size, every))

    def end_block(self) -> None:
        """Put the rows of a block, several per record in the order in which they were added, in order of arrival."""
        if not self._order:
            return
        arrival = np.argsort(np.concatenate(self._order), kind="stable")
        self._order.clear()
        for name, pieces in self._block.items():
            self._done[name].append(np.concatenate(pieces)[arrival])
            pieces.clear()

    def columns(self) -> dict[str, NDArray[Any]]:
        """All rows so far as whole columns. The pieces go, column by column, to need little memory; more can follow."""
        whole: dict[str, NDArray[Any]] = {}
        for name, pieces in self._done.items():
            whole[name] = np.concatenate(pieces) if pieces else np.empty(0, dtype=COLUMNS[name])
            pieces[:] = [whole[name]]
        return whole


def _column(name: str, value: Any, kept: NDArray[np.bool_], size: int, every: bool) -> NDArray[Any]:
    if value is None:
        value = _DEFAULTS[name]
    if not isinstance(value, np.ndarray):
        return np.full(size, int(value), dtype=COLUMNS[name])
    chosen = value if every else value[kept]
    return chosen.astype(COLUMNS[name], copy=False)


def build_table(
    columns: dict[str, NDArray[Any]],
    *,
    jobs: tuple[str, ...],
    labels: tuple[str, ...],
    sources: tuple[str, ...],
    details: tuple[tuple[Any, ...], ...],
    entries: tuple[tuple[str, str, str], ...],
) -> EventTable:
    """Columns and the values behind their codes as a table. Jobs and labels without a row are left out."""
    columns = dict(columns)
    columns["job"], jobs = _only_used(columns["job"], jobs)
    columns["label"], labels = _only_used(columns["label"], labels)
    return EventTable(**columns, jobs=jobs, labels=labels, sources=sources, details=details, entries=entries)


def _only_used(codes: NDArray[np.int32], values: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Codes and values without the unused ones, in order of first use."""
    first = np.full(len(values), len(codes), dtype=np.int64)
    used = np.flatnonzero(codes >= 0)
    np.minimum.at(first, codes[used], used)
    order = [int(code) for code in np.argsort(first, kind="stable") if first[code] < len(codes)]
    renamed = np.full(len(values) + 1, NONE, dtype=np.int32)  # the last place is that of NONE
    renamed[order] = np.arange(len(order), dtype=np.int32)
    return renamed[codes], tuple(values[code] for code in order)
