"""Snapshots: a local file with the contents of some sources, and a manifest next to it that describes it.

`run.jsonl.gz` contains the original lines (entries of Cloud Logging as a sink would have written them). `run.parquet`
contains the same lines in a column `record`, next to the identity of an entry. `run.jsonl.gz.manifest` is JSON. Both
are written under temporary names and renamed, the manifest last: one that does not match its file is ignored.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import orjson

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, UsageError, not_written
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.blocks import BLOCK_BYTES, MANIFEST_ENDING, PARQUET_ENDING
from goodput_cli.whole_file import flush_to_disk, replace_file

ENDINGS = (".jsonl.gz", ".jsonl", PARQUET_ENDING)
VERSION = 1
RECORD_COLUMN = "record"
_ROWS = 20_000

Identity = tuple[str, str, str] | bytes


@dataclass(frozen=True)
class Manifest:
    """Description of a snapshot."""

    sources: tuple[str, ...]
    """The sources as named, without passwords: --update of such a source must name it again."""
    job_name: str | None
    """`--job-name` of the Cloud Logging query; None: every job."""
    log_name: str | None
    """`--log-name` of the Cloud Logging query; None: every log."""
    lookback_days: float | None
    """Number of days that were read back from Cloud Logging; None: not limited."""
    start: str | None
    """Time of the first event, RFC 3339; None without events."""
    end: str | None
    """Time of the last event, RFC 3339; None without events."""
    lines: int
    """Number of lines in the snapshot."""
    fetched_at: str
    """Time when reading began, RFC 3339."""
    complete: bool
    """False after an interruption."""
    newest_ns: dict[str, int]
    """The newest timestamp of each log of Cloud Logging, ns since 1970 UTC."""
    fetched_ns: int
    """Time when reading began, ns since 1970 UTC."""
    bytes: int
    """Size of the snapshot."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the reading."""
    digest: str = ""
    """SHA-256 of the lines, each with its line break, in hexadecimal digits; "": from a version without digests."""


def check_name(path: Path) -> None:
    """Raise UsageError for a name that is not that of a snapshot."""
    if not path.name.lower().endswith(ENDINGS):
        raise UsageError(f"{path}: a snapshot must be named {', '.join('*' + ending for ending in ENDINGS)}")


def manifest_path(path: Path) -> Path:
    """Return the path of a snapshot's manifest."""
    return path.with_name(path.name + MANIFEST_ENDING)


def read_manifest(path: Path) -> Manifest | None:
    """Return the manifest of a snapshot; None without one, or if the file has changed."""
    manifest = written_manifest(path)
    try:
        if manifest is None or manifest.bytes != path.stat().st_size:
            return None
        return manifest if not manifest.digest or _digest_of_file(path) == manifest.digest else None
    except (OSError, EOFError, zlib.error, SourceError):
        return None


def _digest_of_file(path: Path) -> str:
    digest = sha256()
    if path.name.lower().endswith(PARQUET_ENDING):
        for batch in read_parquet(str(path), str(path)):
            digest.update(batch.data)
        return digest.hexdigest()
    with gzip.open(path) if path.name.lower().endswith(".gz") else open(path, "rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def written_manifest(path: Path) -> Manifest | None:
    """Return the manifest next to a file, even if the file has changed; None without a valid one."""
    try:
        manifest = orjson.loads(manifest_path(path).read_bytes())
        if manifest.pop("version") != VERSION:
            return None
        manifest["sources"] = tuple(manifest["sources"])
        manifest["diagnostics"] = tuple(
            Diagnostic(**{**one, "where": tuple(one["where"])}) for one in manifest["diagnostics"]
        )
        return Manifest(**manifest)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_snapshot(path: Path, lines: Sequence[bytes], manifest: Manifest) -> Manifest:
    """Write a snapshot and its manifest, both or neither: an interruption leaves existing files unchanged. Return the
    manifest with the size of the file and the digest of the lines. Raises GoodputError."""
    digest = sha256()
    for line in lines:
        digest.update(line + b"\n")
    try:
        with replace_file(manifest_path(path), durable=False) as note, replace_file(path, durable=False) as stream:
            _write(path, stream, lines)
            manifest = replace(manifest, bytes=flush_to_disk(stream), digest=digest.hexdigest())
            note.write(orjson.dumps({"version": VERSION, **asdict(manifest)}, option=orjson.OPT_INDENT_2) + b"\n")
            flush_to_disk(note)
    except OSError as error:
        raise not_written(path, error) from error
    return manifest


def read_parquet(name: str, path: str) -> Iterator[RawBatch]:
    """Yield the lines of a snapshot in Parquet, or the rows of any other table as lines of JSON, in blocks.

    Raises SourceError for a damaged file.
    """
    from pyarrow.parquet import ParquetFile

    modified = os.stat(path).st_mtime_ns
    try:
        file = ParquetFile(path)
        is_snapshot = RECORD_COLUMN in file.schema_arrow.names
        columns = [RECORD_COLUMN] if is_snapshot else _plain_columns(file.schema_arrow)
        first_line = 1
        for batch in file.iter_batches(_ROWS, columns=columns):
            lines = batch.column(0).to_pylist() if is_snapshot else _as_lines(batch.to_pylist())
            yield RawBatch(name, first_line, b"\n".join(lines) + b"\n", modified)
            first_line += len(lines)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise SourceError(f"{name}: is not a valid Parquet file: {error}") from error


def _plain_columns(schema: Any) -> list[str]:
    """Return columns of numbers, times, texts and booleans, without lists, pictures or bytes."""
    from pyarrow import types

    kinds = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_string,
        types.is_timestamp,
        types.is_decimal,
    )
    return [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]


def _as_lines(rows: Sequence[dict[str, Any]]) -> list[bytes]:
    """Return rows as JSON, without missing values."""
    kept = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return [orjson.dumps(row, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS, default=str) for row in kept]


def identity_of(line: bytes) -> Identity:
    """Return the identity that copies of a line share: log, timestamp and insertId of an entry, otherwise the line."""
    entry = _entry(line)
    return line if entry is None else (entry["logName"], entry["timestamp"], entry["insertId"])


def timestamp_of(line: bytes) -> str | None:
    """Return the timestamp of an entry of Cloud Logging; None for other lines."""
    entry = _entry(line)
    return None if entry is None else entry["timestamp"]


def _entry(line: bytes) -> dict[str, str] | None:
    if b'"insertId"' not in line:
        return None
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    names = ("insertId", "logName", "timestamp")
    return entry if isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in names) else None


def _write(path: Path, stream: IO[bytes], lines: Sequence[bytes]) -> None:
    """Write the lines in the form given by the name of a snapshot."""
    name = path.name.lower()
    if name.endswith(PARQUET_ENDING):
        _write_parquet(stream, lines)
    elif name.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
            packed.writelines(line + b"\n" for line in lines)
    else:
        stream.writelines(line + b"\n" for line in lines)


def _write_parquet(stream: IO[bytes], lines: Sequence[bytes]) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    entries = [_entry(line) or {} for line in lines]
    columns = {key: pyarrow.array([one.get(key) for one in entries], pyarrow.string()) for key in
               ("timestamp", "insertId", "logName")}  # fmt: skip
    columns[RECORD_COLUMN] = pyarrow.array(lines, pyarrow.binary())
    write_table(pyarrow.table(columns), stream, compression="zstd", row_group_size=_ROWS)
