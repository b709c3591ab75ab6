"""The parts of a store, as Parquet: a row a run with its spans, up times and disruptions as lists in it, and a row a
document that was read. What is read back is checked by its type only: nothing of it is ever evaluated.

`pyarrow.array` and `Array.to_numpy` import pandas, should somebody want it: half a second and 40 MB, in every worker.
Hence the columns are made buffer by buffer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goodput_cli.fleet.passes.work import DocumentRow
from goodput_cli.fleet.results import KEY_BYTES, RunDisruption, RunResult, Spans
from goodput_cli.sources.base import Document
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import well_formed


def numbers(values: NDArray[Any] | Sequence[float], kind: type[np.generic] = np.int64) -> Any:
    """A column of numbers without nulls, of the NumPy type `kind`."""
    column = np.ascontiguousarray(values, dtype=kind)
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])


def maybe(values: Sequence[int | None]) -> Any:
    """A column of int64 with nulls."""
    column = np.array([0 if value is None else value for value in values], dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(column), [_validity(values), pa.py_buffer(column)])


def booleans(values: Sequence[bool]) -> Any:
    """A column of truth values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def texts(values: Sequence[str | None]) -> Any:
    """A column of texts; lone surrogates are replaced."""
    encoded = [b"" if value is None else well_formed(value).encode() for value in values]
    ends = np.array([0, *accumulate(map(len, encoded))], dtype=np.int32)
    buffers = [_validity(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def fixed(values: Sequence[bytes], size: int) -> Any:
    """A column of byte strings of one size."""
    return pa.Array.from_buffers(pa.binary(size), len(values), [None, pa.py_buffer(b"".join(values))])


def coded(codes: NDArray[Any], kind: type[np.generic], names: Sequence[str]) -> Any:
    """A column of texts by their positions in `names`; null below 0."""
    column = np.ascontiguousarray(codes, dtype=kind)
    known = column >= 0
    buffers = [_bits(known) if not known.all() else None, pa.py_buffer(np.maximum(column, 0))]
    indices = pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), buffers)
    return pa.DictionaryArray.from_arrays(indices, texts(names))


def lists(lengths: Sequence[int], flat: Any) -> Any:
    """Lists of so many items each, of all items behind one another."""
    return pa.ListArray.from_arrays(numbers([0, *accumulate(lengths)], np.int32), flat)


def structs(fields: dict[str, Any]) -> Any:
    """Objects with these columns as fields."""
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def parquet(table: Any, **settings: Any) -> bytes:
    """The table as a file of Parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **settings)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def column(array: Any, kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """The numbers of a column, of the NumPy type `kind`; anything where there is none."""
    _, values = array.buffers()
    whole = np.frombuffer(values if values is not None else b"", dtype=kind)
    return whole[array.offset : array.offset + len(array)]


def codes(array: Any, kind: type[np.generic]) -> NDArray[np.int64]:
    """The positions behind a column of coded texts; -1 where there is none."""
    indices = column(array.indices, kind).astype(np.int64)
    valid, _ = array.indices.buffers()
    if valid is not None:
        bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")
        indices[bits[array.offset : array.offset + len(array)] == 0] = -1
    return indices


def _validity(values: Sequence[Any]) -> Any:
    known = [value is not None for value in values]
    return None if all(known) else _bits(known)


def _bits(values: Sequence[bool] | NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(np.asarray(values, dtype=np.bool_), bitorder="little"))


_COLUMNS = ("uri", "version", "reader", "about")
_NOBODY = Document("", "")


@dataclass(frozen=True)
class ReadDocument:
    """A document as it was read."""

    uri: str
    version: str
    reader: str
    """How it was read."""
    read_ns: int
    """An instant before that."""
    row: DocumentRow
    """Of no document: the one that is listed now stands in for it."""

    def of(self, document: Document) -> DocumentRow:
        """What it says of the document, which has not changed."""
        return replace(self.row, document=document)


def has_name(document: Document) -> bool:
    """Whether it can be remembered: names of files are bytes, and not all of them are the UTF-8 that Parquet wants."""
    return bool(document.version) and well_formed(document.uri) == document.uri


def part_of_documents(rows: Sequence[DocumentRow], reader: str, read_ns: int) -> bytes:
    """A file of documents that were read. reader: how; read_ns: an instant before that."""
    listed = [(row.document.uri, row.document.version, reader, _about(row, read_ns)) for row in rows]
    columns = (texts(column) for column in zip(*listed, strict=True))
    return parquet(pa.table(dict(zip(_COLUMNS, columns, strict=True))))


def read_documents(part: bytes) -> Iterator[ReadDocument]:
    """The rows of such a file."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        rows = file.read(columns=list(_COLUMNS), use_threads=False).to_pylist()
    for row in rows:
        yield msgspec.convert({**row, **json.loads(row.pop("about"))}, ReadDocument)


def _about(row: DocumentRow, read_ns: int) -> str:
    """What a row of a document holds besides its name; as `json` writes it, which knows half characters."""
    return json.dumps({"row": asdict(replace(row, document=_NOBODY)), "read_ns": read_ns})


_KEY = "key"
_PLAIN: dict[str, Callable[[Sequence[Any]], Any]] = {
    "str": texts, "str | None": texts, "int": maybe, "int | None": maybe,
    "bool": booleans,
}  # fmt: skip
"""How the fields of a result that hold one value become a column, by their types."""
_ROWS_AT_ONCE = 256


def part_of(rows: Sequence[tuple[bytes, RunResult]]) -> bytes:
    """A file of results, each with the key of its job."""
    results = [result for _, result in rows]
    columns = {_KEY: fixed([key for key, _ in rows], KEY_BYTES)}
    columns |= {name: _column(name, kind, results) for name, kind in RunResult.__annotations__.items()}
    return parquet(pa.table(columns), row_group_size=_ROWS_AT_ONCE)


def read_part(part: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, RunResult]]:
    """The results of some jobs, one after the other: a part may be larger than what is wanted of it. Parts are small:
    threads of Arrow would cost memory and gain nothing."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
            if not wanted.isdisjoint(keys):
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                yield from ((key, _result(table, row)) for row, key in enumerate(keys) if key in wanted)


def read_extents(part: bytes, wanted: set[bytes]) -> list[tuple[str, int, int, int]]:
    """Job, number, start and end (ns) of the analysed runs of some jobs in a part."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        columns = file.read(columns=[_KEY, "job", "run", "start_ns", "end_ns", "reason"], use_threads=False).to_pydict()
    rows = zip(*columns.values(), strict=True)
    return [(job, run, start, end) for key, job, run, start, end, reason in rows if key in wanted and reason is None]


def part_keys(part: bytes) -> list[bytes]:
    """The keys of the jobs in a part."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        keys: list[bytes] = file.read(columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
        return keys


def _column(name: str, kind: str, results: Sequence[RunResult]) -> Any:
    values = [getattr(one, name) for one in results]
    match name:
        case "spans":
            return lists([len(one.start) for one in values], _spans(values))
        case "up" | "partial":
            sides = (np.concatenate([one[side] for one in values]) for side in (0, 1))
            flat = structs(dict(zip(("start", "end"), map(numbers, sides), strict=True)))
            return lists([len(one[0]) for one in values], flat)
        case "disruptions":
            rows = list(chain(*values))
            flat = structs({
                name: _PLAIN[kind]([getattr(row, name) for row in rows])
                for name, kind in RunDisruption.__annotations__.items()
            })  # fmt: skip
            return lists(list(map(len, values)), flat)
        case "findings":
            code, severity, count = ([row[place] for row in chain(*values)] for place in range(3))
            flat = structs({"code": texts(code), "severity": texts(severity), "count": maybe(count)})
            return lists(list(map(len, values)), flat)
        case "listed":
            return lists(list(map(len, values)), numbers(np.concatenate(values)))
        case "documents" | "formats" | "hosts":
            return lists(list(map(len, values)), texts(list(chain(*values))))
        case _:
            return _PLAIN[kind](values)


def _spans(values: Sequence[Spans]) -> Any:
    labels = sorted({label for one in values for label in one.labels})
    place = {label: code for code, label in enumerate(labels)}
    codes = [np.array([*(place[label] for label in one.labels), -1], dtype=np.int32) for one in values]
    label = np.concatenate([code[one.label] for code, one in zip(codes, values, strict=True)])
    return structs({
        "start": numbers(_joined(values, "start")),
        "end": numbers(_joined(values, "end")),
        "category": coded(_joined(values, "category"), np.int8, CATEGORIES),
        "label": coded(label, np.int32, labels),
        "slowdown": numbers(_joined(values, "slowdown")),
        "steps": numbers(_joined(values, "steps"), np.float64),
    })  # fmt: skip


def _joined(values: Sequence[Spans], name: str) -> Any:
    return np.concatenate([getattr(one, name) for one in values])


_LISTS = ("documents", "formats", "findings", "spans", "up", "hosts", "listed", "partial", "disruptions")


def _result(table: pa.Table, row: int) -> RunResult:
    names = RunResult.__struct_fields__
    plain = {name: table.column(name)[row].as_py() for name in names if name not in _LISTS}
    lists = {name: table.column(name).chunk(0)[row].values for name in _LISTS}
    return RunResult(
        **plain,
        documents=tuple(lists["documents"].to_pylist()),
        formats=tuple(lists["formats"].to_pylist()),
        findings=tuple(tuple(one.values()) for one in lists["findings"].to_pylist()),
        spans=_spans_of(lists["spans"]),
        up=_interval(lists["up"]),
        hosts=tuple(lists["hosts"].to_pylist()),
        listed=column(lists["listed"]),
        partial=_interval(lists["partial"]),
        disruptions=tuple(RunDisruption(**one) for one in lists["disruptions"].to_pylist()),
    )


def _interval(array: Any) -> tuple[Any, Any]:
    return _numbers(array, "start"), _numbers(array, "end")


def _numbers(array: Any, name: str) -> Any:
    return column(array.field(name))


def _spans_of(array: Any) -> Spans:
    label, category = array.field("label"), array.field("category")
    places = np.array([CATEGORIES.index(name) for name in category.dictionary.to_pylist()], dtype=np.int8)
    return Spans(
        _numbers(array, "start"),
        _numbers(array, "end"),
        places[codes(category, np.int8)],
        codes(label, np.int32).astype(np.int32),
        _numbers(array, "slowdown"),
        column(array.field("steps"), np.float64),
        tuple(label.dictionary.to_pylist()),
    )
