"""Documents that were read, as Parquet: a row each, with what is known of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.fleet.passes.work import DocumentRow, JobPart
from goodput_cli.fleet.store import arrow
from goodput_cli.sources.base import Document
from goodput_cli.vocabulary.text import well_formed

_COLUMNS = ("uri", "version", "reader", "about")


def has_name(document: Document) -> bool:
    """Whether it can be remembered: names of files are bytes, and not all of them are the UTF-8 that Parquet wants."""
    return bool(document.version) and well_formed(document.uri) == document.uri


def write_documents(path: Path, rows: Sequence[DocumentRow], reader: str, read_ns: int) -> None:
    """Write documents that were read. reader: how; read_ns: an instant before that."""
    listed = [(row.document.uri, row.document.version, reader, _about(row, read_ns)) for row in rows]
    columns = (arrow.texts(column) for column in zip(*listed, strict=True))
    pq.write_table(pa.table(dict(zip(_COLUMNS, columns, strict=True))), path, compression="zstd")


def read_documents(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, `about` parsed. Raises OSError, ValueError or KeyError where it is damaged."""
    with pq.ParquetFile(path) as file:
        rows = file.read(columns=list(_COLUMNS)).to_pylist()
    return [{**row, "about": json.loads(row["about"])} for row in rows]


def document_row(document: Document, row: Mapping[str, Any]) -> DocumentRow:
    """What such a row says of a document."""
    about = row["about"]
    of_source, of_lines = (
        tuple(Diagnostic(**{**one, "where": tuple(one["where"])}) for one in about[name])
        for name in ("of_source", "of_lines")
    )
    parts = tuple(JobPart(**{**part, "parts": tuple(part["parts"])}) for part in about["jobs"])
    return DocumentRow(
        document, about["digest"], about["bytes"], about["lines"], parts, tuple(about["other_jobs"]), None, of_source,
        of_lines, about["has_text"],
    )  # fmt: skip


def _about(row: DocumentRow, read_ns: int) -> str:
    """What a row of a document holds besides its name."""
    about = asdict(replace(row, document=Document("", "")))
    del about["document"], about["problem"]
    return json.dumps({**about, "read_ns": read_ns})
