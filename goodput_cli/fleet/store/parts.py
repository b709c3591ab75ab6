"""Results of runs as Parquet: a row a run, with its spans, up times and disruptions as lists in the row.

What is read back is checked by its type only: nothing of it is ever evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goodput_cli.fleet.store import arrow
from goodput_cli.fleet.store.results import KEY_BYTES, RunDisruption, RunResult, Spans
from goodput_cli.vocabulary.categories import CATEGORIES

_KEY = "key"
_PLAIN: dict[str, Callable[[Sequence[Any]], Any]] = {
    "str": arrow.texts, "str | None": arrow.texts, "int": arrow.maybe, "int | None": arrow.maybe,
    "bool": arrow.booleans,
}  # fmt: skip
"""How the fields of a result that hold one value become a column, by their types."""
_ROWS_AT_ONCE = 256


def write_part(path: Path, rows: Sequence[tuple[bytes, RunResult]]) -> None:
    """Write results, each with the key of its job."""
    results = [result for _, result in rows]
    columns = {_KEY: arrow.fixed([key for key, _ in rows], KEY_BYTES)}
    columns |= {one.name: _column(one.name, str(one.type), results) for one in fields(RunResult)}
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=_ROWS_AT_ONCE)


def read_part(path: Path, wanted: set[bytes]) -> Iterator[tuple[bytes, RunResult]]:
    """The results of some jobs, one after the other: a part may be larger than what is wanted of it. Parts are small:
    threads of Arrow would cost memory and gain nothing. Raises OSError or ValueError (pyarrow's errors are these) where
    it is damaged."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
            if not wanted.isdisjoint(keys):
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                yield from ((key, _result(table, row)) for row, key in enumerate(keys) if key in wanted)


def read_extents(path: Path, wanted: set[bytes]) -> list[tuple[str, int, int, int]]:
    """Job, number, start and end (ns) of the analysed runs of some jobs in a part. Errors as in `read_part`."""
    with pq.ParquetFile(path) as file:
        columns = file.read(columns=[_KEY, "job", "run", "start_ns", "end_ns", "reason"], use_threads=False).to_pydict()
    rows = zip(*columns.values(), strict=True)
    return [(job, run, start, end) for key, job, run, start, end, reason in rows if key in wanted and reason is None]


def part_keys(path: Path) -> list[bytes]:
    """The keys of the jobs in a part. Errors as in `read_part`."""
    with pq.ParquetFile(path) as file:
        keys: list[bytes] = file.read(columns=[_KEY], use_threads=False).column(_KEY).to_pylist()
        return keys


def _column(name: str, kind: str, results: Sequence[RunResult]) -> Any:
    values = [getattr(one, name) for one in results]
    match name:
        case "spans":
            return arrow.lists([len(one.start) for one in values], _spans(values))
        case "up" | "partial":
            sides = (np.concatenate([one[side] for one in values]) for side in (0, 1))
            flat = arrow.structs(dict(zip(("start", "end"), map(arrow.numbers, sides), strict=True)))
            return arrow.lists([len(one[0]) for one in values], flat)
        case "disruptions":
            rows = list(chain(*values))
            flat = arrow.structs({
                one.name: _PLAIN[str(one.type)]([getattr(row, one.name) for row in rows])
                for one in fields(RunDisruption)
            })  # fmt: skip
            return arrow.lists(list(map(len, values)), flat)
        case "findings":
            code, severity, count = ([row[place] for row in chain(*values)] for place in range(3))
            flat = arrow.structs(
                {"code": arrow.texts(code), "severity": arrow.texts(severity), "count": arrow.maybe(count)}
            )
            return arrow.lists(list(map(len, values)), flat)
        case "documents" | "formats":
            return arrow.lists(list(map(len, values)), arrow.texts(list(chain(*values))))
        case _:
            return _PLAIN[kind](values)


def _spans(values: Sequence[Spans]) -> Any:
    labels = sorted({label for one in values for label in one.labels})
    place = {label: code for code, label in enumerate(labels)}
    codes = [np.array([*(place[label] for label in one.labels), -1], dtype=np.int32) for one in values]
    label = np.concatenate([code[one.label] for code, one in zip(codes, values, strict=True)])
    return arrow.structs({
        "start": arrow.numbers(_joined(values, "start")),
        "end": arrow.numbers(_joined(values, "end")),
        "category": arrow.coded(_joined(values, "category"), np.int8, CATEGORIES),
        "label": arrow.coded(label, np.int32, labels),
        "slowdown": arrow.numbers(_joined(values, "slowdown")),
        "steps": arrow.numbers(_joined(values, "steps"), np.float64),
    })  # fmt: skip


def _joined(values: Sequence[Spans], name: str) -> Any:
    return np.concatenate([getattr(one, name) for one in values])


_LISTS = ("documents", "formats", "findings", "spans", "up", "partial", "disruptions")


def _result(table: pa.Table, row: int) -> RunResult:
    names = [one.name for one in fields(RunResult)]
    plain = {name: table.column(name)[row].as_py() for name in names if name not in _LISTS}
    lists = {name: table.column(name).chunk(0)[row].values for name in _LISTS}
    return RunResult(
        **plain,
        documents=tuple(lists["documents"].to_pylist()),
        formats=tuple(lists["formats"].to_pylist()),
        findings=tuple(tuple(one.values()) for one in lists["findings"].to_pylist()),
        spans=_spans_of(lists["spans"]),
        up=_interval(lists["up"]),
        partial=_interval(lists["partial"]),
        disruptions=tuple(RunDisruption(**one) for one in lists["disruptions"].to_pylist()),
    )


def _interval(array: Any) -> tuple[Any, Any]:
    return _numbers(array, "start"), _numbers(array, "end")


def _numbers(array: Any, name: str) -> Any:
    return arrow.column(array.field(name))


def _spans_of(array: Any) -> Spans:
    label, category = array.field("label"), array.field("category")
    places = np.array([CATEGORIES.index(name) for name in category.dictionary.to_pylist()], dtype=np.int8)
    return Spans(
        _numbers(array, "start"),
        _numbers(array, "end"),
        places[arrow.codes(category, np.int8)],
        arrow.codes(label, np.int32).astype(np.int32),
        _numbers(array, "slowdown"),
        arrow.column(array.field("steps"), np.float64),
        tuple(label.dictionary.to_pylist()),
    )
