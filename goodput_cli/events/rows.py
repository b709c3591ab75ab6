"""Construction of the columns of an `EventTable` from pieces, without an object per event.

`Measurements` collects the metrics of programs while their lines are read (see `Metric`).

Growing columns take no memory while all values are equal.

`DetailCollector` stores the remaining fields of events, each once: a save of Orbax has a dozen, mostly unique ones.

`Interner` numbers repeated values: a column contains the number, and each value is stored once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import orjson
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.schema import COLUMNS, NO_STEP, NONE, Edge, EventTable, Kind, Metric, rows_of_column


def constant(size: int, value: int, dtype: type[np.generic] = np.int32) -> NDArray[Any]:
    """Return a column of one value that takes no memory; `is_constant` recognizes it."""
    return np.ndarray((size,), dtype, np.array(value, dtype=dtype), 0, (0,))


def is_constant(column: NDArray[Any]) -> bool:
    """Return True if a column is known to contain one value only."""
    return column.strides == (0,)


class GrowingColumn:
    """A column to append to, stored in pieces until all of it is requested."""

    def __init__(self, dtype: type[np.generic], narrow: type[np.signedinteger[Any]] | None = None) -> None:
        """narrow: the type used as long as all values fit."""
        self._dtype, self._narrow = dtype, narrow
        self._pieces: list[NDArray[Any]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, piece: NDArray[Any]) -> None:
        """Append rows. The piece is stored, and must not be changed afterwards."""
        if not len(piece):
            return
        self._size += len(piece)
        last = self._pieces[-1] if self._pieces else None
        if last is not None and is_constant(last) and is_constant(piece) and last[0] == piece[0]:
            self._pieces[-1] = constant(len(last) + len(piece), int(last[0]), self._dtype)
        elif is_constant(piece):
            self._pieces.append(constant(len(piece), int(piece[0]), self._dtype))
        else:
            self._pieces.append(self._narrowed(piece))

    def whole(self) -> NDArray[Any]:
        """Return the rows so far. They do not change when more are added; a column of one value takes no memory."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate([self._narrowed(piece) for piece in self._pieces])]
        return self._pieces[0] if self._pieces else np.empty(0, dtype=self._dtype)

    def _narrowed(self, piece: NDArray[Any]) -> NDArray[Any]:
        if self._narrow is None or piece.dtype == self._narrow:
            return piece
        bounds = np.iinfo(self._narrow)
        fits = bounds.min <= piece.min() and piece.max() <= bounds.max
        return piece.astype(self._narrow if fits else self._dtype, copy=False)


T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Numbers of distinct values, from 0 in order of first use."""

    def __init__(self) -> None:
        self._codes: dict[T, int] = {}

    def code(self, value: T) -> int:
        """Return the number of a value."""
        return self._codes.setdefault(value, len(self._codes))

    def codes(self, values: Sequence[T]) -> NDArray[np.int32]:
        """Return int32[n]: the number of each value."""
        known = self._codes
        codes = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int32)
        return constant(len(codes), int(codes[0])) if len(codes) and (codes == codes[0]).all() else codes

    def values(self) -> tuple[T, ...]:
        """Return all values, in order of their numbers."""
        return tuple(self._codes)


Detail = tuple[Any, ...]
_BLANK = b" "


class DetailCollector(Interner[Detail]):
    """Numbers of distinct details. Pairs of keys and values are stored as the text of the values if possible, which
    takes a fifth of the memory of their tuples."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Interner[tuple[str, ...]] = Interner()

    def codes_of_pairs(self, keys: tuple[str, ...], values: Sequence[tuple[Any, ...]]) -> NDArray[np.int32]:
        """Return int32[n]: the number of each detail of pairs of these keys and values. The values are texts, booleans
        and finite numbers, and no float is a whole number."""
        shape = b"%d " % self._keys.code(keys)
        packed: list[Any] = [_packed(shape, keys, one) for one in values]
        return self.codes(packed)

    def values(self) -> Sequence[Detail]:  # type: ignore[override]
        """Return all details, in order of their numbers."""
        return DetailList(super().values(), self._keys.values())


class DetailList(Sequence[Detail]):
    """A sequence of details, each created when it is read."""

    def __init__(self, held: tuple[Detail | bytes, ...], keys: tuple[tuple[str, ...], ...]) -> None:
        self._held, self._keys = held, keys

    def __len__(self) -> int:
        return len(self._held)

    @overload
    def __getitem__(self, at: int) -> Detail: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Detail]: ...
    def __getitem__(self, at: int | slice) -> Detail | Sequence[Detail]:
        """Return one detail, or a slice."""
        held = self._held[at]
        if isinstance(at, slice):
            return DetailList(held, self._keys)  # type: ignore[arg-type]
        if not isinstance(held, bytes):
            return held
        shape, _, values = held.partition(_BLANK)
        return tuple(zip(self._keys[int(shape)], orjson.loads(values), strict=True))


def _packed(shape: bytes, keys: tuple[str, ...], values: tuple[Any, ...]) -> Detail | bytes:
    try:
        return shape + orjson.dumps(values)
    except TypeError:  # lone surrogates, integers of more than 64 bits
        return tuple(zip(keys, values, strict=True))


_PIECE = 1 << 20
_DEFAULTS: dict[str, int] = {
    "step": NO_STEP, "step_time": NONE, "rank": NONE, "label": NONE, "detail": NONE, "writer": NONE,
}  # fmt: skip

_NARROW: dict[str, type[np.signedinteger[Any]]] = {"line": np.int32, "label": np.int8, "detail": np.int16}
"""Columns that are narrower as long as all values fit."""

_Added = NDArray[Any] | int | None
"""Values added to a column: one per row, one for all rows, or None for `end` if it equals `time`."""


class Origin(Struct, frozen=True):
    """Origin of n records. order: position within the block; line: 0 if unknown; entry, job, writer: codes; no writer:
    unknown."""

    source: int
    order: I64
    line: I64
    entry: NDArray[np.int32]
    job: NDArray[np.int32]
    writer: NDArray[np.int32] | None = None

    def take(self, rows: NDArray[Any]) -> Origin:
        """Return the records chosen by an index array or a mask."""
        entry, job = rows_of_column(self.entry, rows), rows_of_column(self.job, rows)
        writer = None if self.writer is None else rows_of_column(self.writer, rows)
        return Origin(self.source, self.order[rows], self.line[rows], entry, job, writer)


class RowBuilder:
    """Builder of columns in order of arrival from rows of a block in any order."""

    def __init__(self) -> None:
        self._order: list[I64] = []
        self._block: dict[str, list[_Added]] = {name: [] for name in COLUMNS}
        self._done = {name: GrowingColumn(dtype, _NARROW.get(name)) for name, dtype in COLUMNS.items() if name != "end"}
        # rows whose end differs from their time, and the ends
        self._lasting = GrowingColumn(np.int64), GrowingColumn(np.int64)

    def add(
        self,
        origin: Origin,
        kept: Mask,
        kind: Kind | NDArray[np.int8],
        edge: Edge | NDArray[np.int8],
        time: I64,
        *,
        end: I64 | None = None,
        step: I64 | None = None,
        step_time: I64 | None = None,
        rank: NDArray[np.int32] | None = None,
        label: NDArray[np.int32] | None = None,
        detail: NDArray[np.int32] | None = None,
    ) -> None:
        """Add one row per record of `origin` where `kept`. All arrays are as long as `origin`; the default of `end` is
        `time`."""
        size = int(np.count_nonzero(kept))
        if not size:
            return
        values: dict[str, Any] = {
            "time": time, "end": end, "kind": kind, "edge": edge, "step": step, "step_time": step_time, "rank": rank,
            "label": label, "detail": detail, "job": origin.job, "source": origin.source, "line": origin.line,
            "entry": origin.entry, "writer": origin.writer,
        }  # fmt: skip
        every = size == len(kept)
        self._order.append(origin.order if every else origin.order[kept])
        for name, value in values.items():
            self._block[name].append(_added(name, value, kept, every))

    def end_block(self) -> None:
        """Sort the rows of a block in order of arrival; several rows of a record stay in the order in which they were
        added."""
        if not self._order:
            return
        order = self._order[0] if len(self._order) == 1 else np.concatenate(self._order)
        sizes = [len(order) for order in self._order]
        arrival = None if bool((order[1:] >= order[:-1]).all()) else np.argsort(order, kind="stable")
        self._order.clear()
        if any(end is not None for end in self._block["end"]):
            self._append_ends(sizes, arrival)
        for name, column in self._done.items():
            column.append(_joined(name, self._block[name], sizes, arrival))
        for pieces in self._block.values():
            pieces.clear()

    def _append_ends(self, sizes: list[int], arrival: NDArray[np.intp] | None) -> None:
        times = self._block["time"]
        pieces = [time if end is None else end for end, time in zip(self._block["end"], times, strict=True)]
        ends, time = _joined("end", pieces, sizes, arrival), _joined("time", times, sizes, arrival)
        own = np.flatnonzero(ends != time)
        if len(own) == 0:
            return
        for column, piece in zip(self._lasting, (own + len(self._done["time"]), ends[own]), strict=True):
            column.append(piece)

    def columns(self) -> dict[str, Any]:
        """Return all rows so far as whole columns, which do not change when more are added.

        A column of one value takes no memory; `end` is the same array as `time` if no row has a different end.
        """
        whole: dict[str, Any] = {name: column.whole() for name, column in self._done.items()}
        rows, own = (column.whole() for column in self._lasting)
        whole["end"] = whole["time"]
        if len(rows):
            whole["end"] = whole["time"].copy()
            whole["end"][rows] = own
        return {name: whole[name] for name in COLUMNS}


def _joined(name: str, pieces: Sequence[_Added], sizes: list[int], arrival: NDArray[np.intp] | None) -> NDArray[Any]:
    """Return one column of a block, a constant one if all rows have the same value. sizes: of the pieces. arrival: the
    sort order of the rows; None if they are sorted."""
    first = pieces[0]
    if isinstance(first, int) and all(isinstance(piece, int) and piece == first for piece in pieces):
        return constant(sum(sizes), first, COLUMNS[name])
    whole: NDArray[Any] = np.empty(sum(sizes), dtype=COLUMNS[name])
    stop = 0
    for piece, size in zip(pieces, sizes, strict=True):
        start, stop = stop, stop + size
        whole[start:stop] = piece
    return whole if arrival is None else whole[arrival]


def _added(name: str, value: Any, kept: Mask, every: bool) -> _Added:
    if value is None:
        return _DEFAULTS.get(name)
    if not isinstance(value, np.ndarray):
        return int(value)
    if is_constant(value):
        return int(value[0])
    chosen: NDArray[Any] = value if every else value[kept]
    return chosen.astype(COLUMNS[name], copy=False)


def joined(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the concatenated columns of both."""
    if not len(second["time"]):
        return first
    if not len(first["time"]):
        return second
    return {name: np.concatenate((first[name], second[name])) for name in first}


def build_table(
    columns: dict[str, NDArray[Any]],
    *,
    jobs: tuple[str, ...],
    labels: tuple[str, ...],
    sources: tuple[str, ...],
    details: Sequence[tuple[Any, ...]],
    entries: tuple[tuple[str, str, str], ...],
    writers: tuple[tuple[str, str], ...] = (),
) -> EventTable:
    """Return a table of the columns and the values of their codes. Jobs and labels without a row are left out."""
    columns = dict(columns)
    columns["job"], jobs = _only_used(columns["job"], jobs)
    columns["label"], labels = _only_used(columns["label"], labels)
    whole: dict[str, Any] = columns
    return EventTable(
        **whole, jobs=jobs, labels=labels, sources=sources, details=details, entries=entries, writers=writers
    )


def _only_used(codes: NDArray[np.int32], values: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return codes and values without unused ones, in order of first use."""
    if is_constant(codes) and len(codes):
        code = int(codes[0])
        return (constant(len(codes), 0), (values[code],)) if code >= 0 else (codes, ())
    order = _first_uses(codes, len(values))
    if order == list(range(len(values))):
        return codes, values
    renamed = np.full(len(values) + 1, NONE, dtype=codes.dtype)
    renamed[order] = np.arange(len(order))
    return renamed[codes], tuple(values[code] for code in order)


def _first_uses(codes: NDArray[np.int32], count: int) -> list[int]:
    """Return the used codes below `count` in order of first use. A long column is processed in pieces."""
    order: dict[int, None] = {}
    for begin in range(0, len(codes), _PIECE):
        piece = codes[begin : begin + _PIECE]
        first = np.full(count + 1, len(piece), dtype=np.int64)  # the last position is that of NONE
        first[piece[::-1]] = np.arange(len(piece) - 1, -1, -1)
        used = np.flatnonzero(first[:-1] < len(piece))
        order |= dict.fromkeys(used[np.argsort(first[used])].tolist())
    return list(order)


MOST_NAMES = 50
"""Maximum number of metrics per job: memory stays bounded for any log."""


class Measurements:
    """Values by job and name; duplicates count once."""

    def __init__(self) -> None:
        self._found: defaultdict[int, dict[str, dict[tuple[int, int, float], None]]] = defaultdict(dict)

    def add(self, job: int, name: str, time: int, step: int, value: float) -> None:
        """Add a value. job: its code. time: ns since 1970 UTC. step: `NO_STEP` if it belongs to no step."""
        names = self._found[job]
        if name in names or len(names) < MOST_NAMES:
            names.setdefault(name, {})[time, step, value] = None

    def metrics(self, jobs: Sequence[str]) -> tuple[Metric, ...]:
        """Return all metrics, each in order of time. jobs: the names by their codes."""
        found: list[Metric] = []
        for job, names in self._found.items():
            for name, rows in sorted(names.items()):
                time, step, value = zip(*sorted(rows), strict=True)
                ints = np.array(time, dtype=np.int64), np.array(step, dtype=np.int64)
                found.append(Metric(jobs[job], name, "", *ints, np.array(value, dtype=np.float64)))
        return tuple(found)
