"""The parts of a store, as Parquet: one row per run with its spans, up times and disruptions as lists in it, and one
row per document that was read. Data that is read back is checked by its type only and never evaluated.

Rows become columns through JSON. Everything else that makes columns of Python's values (`pyarrow.array`, and its
callers) imports pandas if it is installed: half a second and 50 MB, in every worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from goodput_cli.analysis.results import UNKNOWN_IN_VERSION_1
from goodput_cli.fleet.passes.work import DocumentRow
from goodput_cli.fleet.results import RunDisruption, RunPhase, RunResult
from goodput_cli.sources.base import SourceDocument
from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.text import well_formed

_NO_DOCUMENT = SourceDocument("", "")
_DOCUMENTS = pa.schema([(name, pa.string()) for name in ("uri", "version", "reader", "about")])


@dataclass(frozen=True)
class ReadDocument:
    """A document as it was read."""

    uri: str
    version: str
    reader: str
    """Hash of the reading options."""
    read_ns: int
    """Time before it was read."""
    row: DocumentRow
    """Row without a document: the currently listed document takes its place."""


def has_name(document: SourceDocument) -> bool:
    """Return True if it can be stored: names of files are bytes, and not all of them are the UTF-8 that Parquet
    requires."""
    return bool(document.version) and well_formed(document.uri) == document.uri


def part_of_documents(rows: Sequence[DocumentRow], reader: str, read_ns: int) -> bytes:
    """Return a file of documents that were read. reader: hash of the options; read_ns: a time before that."""
    listed = (
        {
            "uri": row.document.uri,
            "version": row.document.version,
            "reader": reader,
            "about": json.dumps({"row": asdict(replace(row, document=_NO_DOCUMENT)), "read_ns": read_ns}),
        }
        for row in rows
    )
    return _parquet(listed, _DOCUMENTS)


def read_documents(part: bytes) -> Iterator[ReadDocument]:
    """The rows of such a file."""
    for row in _columns(part, *_DOCUMENTS.names).to_pylist():
        yield msgspec.convert({**row, **json.loads(row.pop("about"))}, ReadDocument)


def _parquet(rows: Iterable[dict[str, Any]], schema: Any, **settings: Any) -> bytes:
    """The rows as a file of Parquet."""
    lines = b"\n".join(map(msgspec.json.encode, rows))
    table = pj.read_json(
        pa.BufferReader(lines),
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **settings)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _listed(**columns: Any) -> Any:
    """A list of rows with these columns."""
    return pa.list_(pa.struct(list(columns.items())))


_AMOUNTS = ("joules", "trained", "powered", "idle", "watched")
"""Usage of accelerators."""
_INT, _TEXT, _KEY, _RULES = pa.int64(), pa.string(), "key", "rules"
_TYPES = {
    "int": _INT, "int | None": _INT, "float | None": pa.float64(), "bool": pa.bool_(),
    "str": _TEXT, "str | None": _TEXT,
    "tuple[str, ...]": pa.list_(_TEXT),
    "I64": pa.list_(_INT),
    "tuple[I64, I64]": _listed(start=_INT, end=_INT),
    "tuple[tuple[str, str, int], ...]": _listed(code=_TEXT, severity=_TEXT, count=_INT),
    "RunSpans": _listed(start=_INT, end=_INT, category=_TEXT, label=_TEXT, slowdown=_INT, steps=pa.float64()),
    "AcceleratorUse": _listed(start=_INT, end=_INT, **dict.fromkeys(_AMOUNTS, pa.float64())),
}  # fmt: skip
"""Column types of the fields of a result, by their Python types."""
_TYPES["tuple[RunPhase, ...]"] = _listed(**{name: _TYPES[kind] for name, kind in RunPhase.__annotations__.items()})
_TYPES["tuple[RunDisruption, ...]"] = _listed(
    **{name: _TYPES[kind] for name, kind in RunDisruption.__annotations__.items()}
)
_RESULTS = pa.schema([
    (_KEY, _TEXT), *((name, _TYPES[kind]) for name, kind in RunResult.__annotations__.items()),
])  # fmt: skip
_ROWS_AT_ONCE = 256
_CODES = {name: code for code, name in enumerate(CATEGORIES)}


def part_of(rows: Sequence[tuple[str, RunResult]]) -> bytes:
    """A file of results, each with the key of its job."""
    return _parquet((_row(key, result) for key, result in rows), _RESULTS, row_group_size=_ROWS_AT_ONCE)


def _row(key: str, result: RunResult) -> dict[str, Any]:
    """Lone surrogates in texts of the log are replaced."""
    row: dict[str, Any] = msgspec.to_builtins(result, enc_hook=np.ndarray.tolist)
    spans = row["spans"]
    labels = [*map(well_formed, spans.pop("labels")), None]  # -1: none
    spans["category"] = [CATEGORIES[code] for code in spans["category"]]
    spans["label"] = [labels[code] for code in spans["label"]]
    columns = {"spans": spans.values(), "used": row["used"].values(), "up": row["up"], "partial": row["partial"]}
    lists = {"findings": row["findings"], **{name: zip(*lists, strict=True) for name, lists in columns.items()}}
    for name, rows in lists.items():
        names = [one.name for one in _RESULTS.field(name).type.value_type]
        row[name] = [dict(zip(names, one, strict=True)) for one in rows]
    return {**row, _KEY: key, "job": well_formed(result.job), "hosts": list(map(well_formed, result.hosts))}


def read_part(part: bytes, wanted: set[str]) -> Iterator[tuple[str, RunResult]]:
    """The results of some jobs, one after the other: a part may be larger than what is wanted of it. Parts are small:
    threads of Arrow would cost memory and gain nothing."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
            if not wanted.isdisjoint(keys):
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                yield from ((key, _result(table, row)) for row, key in enumerate(keys) if key in wanted)


def read_extents(part: bytes, wanted: set[str]) -> list[tuple[str, int, int, int]]:
    """Job, number, start and end (ns) of the analysed runs of some jobs in a part."""
    columns = _columns(part, _KEY, "job", "run", "start_ns", "end_ns", "reason").to_pydict()
    rows = zip(*columns.values(), strict=True)
    return [(job, run, start, end) for key, job, run, start, end, reason in rows if key in wanted and reason is None]


def part_keys(part: bytes) -> list[tuple[str, str, int]]:
    """Return the job key, the job, and the version of the rules of each run in a part: 1 if the part is older than that
    column."""
    names = [_KEY, "job", _RULES]
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        known = [name for name in names if name in file.schema_arrow.names]
        columns: dict[str, list[Any]] = file.read(columns=known, use_threads=False).to_pydict()
    return list(zip(*(columns.get(name, [1] * len(columns[_KEY])) for name in names), strict=True))


def _columns(part: bytes, *names: str) -> pa.Table:
    """Some columns of a part whole."""
    with pq.ParquetFile(pa.BufferReader(part)) as file:
        return file.read(columns=names, use_threads=False)


_ARRAYS = ("spans", "used", "up", "partial", "listed")
"""Columns that are read as arrays: as values of Python they would take time."""


def _result(table: pa.Table, row: int) -> RunResult:
    values = {name: table.column(name)[row] for name in RunResult.__struct_fields__}
    plain = {name: value.as_py() for name, value in values.items() if name not in _ARRAYS}
    spans, used, up, partial, listed = (values[name].values for name in _ARRAYS)
    names = spans.field("label").to_pylist()
    labels = list(dict.fromkeys(name for name in names if name is not None))
    code_of = {name: code for code, name in enumerate(labels)}
    arrays = {
        "spans": {
            **{name: np.from_dlpack(spans.field(name)) for name in ("start", "end", "slowdown", "steps")},
            "category": np.array([_CODES[name] for name in spans.field("category").to_pylist()], dtype=np.int8),
            "label": np.array([code_of.get(name, -1) for name in names], dtype=np.int32),
            "labels": labels,
        },
        "used": {name: np.from_dlpack(used.field(name)) for name in ("start", "end", *_AMOUNTS)},
        "up": [np.from_dlpack(up.field(name)) for name in ("start", "end")],
        "partial": [np.from_dlpack(partial.field(name)) for name in ("start", "end")],
        "listed": np.from_dlpack(listed),
        "findings": [tuple(one.values()) for one in plain["findings"]],
    }
    for one in plain["disruptions"]:
        if one["recovery"] == UNKNOWN_IN_VERSION_1:
            one["recovery"] = None
    return msgspec.convert(plain | arrays, RunResult, dec_hook=lambda _, array: array)
