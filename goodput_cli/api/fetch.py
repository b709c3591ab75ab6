"""`goodput_cli.fetch(...)`: download logs from any sources into one local file that every command reads.

import goodput_cli
goodput_cli.fetch(["cloud-logging://my-project/goodput_llm"], "run.jsonl.gz")
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

import orjson

from goodput_cli.api.options import FETCH, SnapshotMode, Source, addresses, parsed_options, split, takes
from goodput_cli.diagnostics.diagnostic import Diagnostic, merge
from goodput_cli.errors import UsageError
from goodput_cli.events.documents import document_reader
from goodput_cli.events.formats.base import ParsedPart
from goodput_cli.events.read import decode_batches, is_log
from goodput_cli.events.tensorboard import EventFile
from goodput_cli.events.text.scan import TextLines
from goodput_cli.sources import snapshot
from goodput_cli.sources.base import (
    FILE_SCHEME,
    Batch,
    RawBatch,
    ReadContext,
    RecordBatch,
    SourceFilter,
    scheme_of,
    source_for,
    without_password,
)
from goodput_cli.sources.files import STDIN, source_of_path
from goodput_cli.sources.snapshot import Manifest
from goodput_cli.vocabulary.text import iso_of_nine_digits
from goodput_cli.vocabulary.when import AUTO

if TYPE_CHECKING:
    from goodput_cli.api.keywords import FetchOptions

_AT_ONCE = 20_000
"""Number of lines that are decoded together."""
_NOT_COMPARED = ("lookback_truncated",)
"""Diagnostics of an earlier reading that are replaced by those of the newest."""


@dataclass
class _FetchedLines:
    """The lines read so far, and the diagnostics of the sources."""

    lines: list[bytes] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    newest: dict[str, str] = field(default_factory=dict)
    apart: list[str] = field(default_factory=list)
    """Documents that a snapshot cannot contain unchanged."""
    complete: bool = False


@takes(FETCH)
def fetch(
    sources: Source | Sequence[Source],
    output: str | os.PathLike[str],
    **options: Unpack[FetchOptions],
) -> Manifest:
    """Download logs into a snapshot `output` (`*.jsonl.gz`, `*.jsonl` or `*.parquet`) with a manifest.

    With `update`, new lines are added, and lines that are gone from the sources stay. Only new and late entries are
    read from Cloud Logging, and everything from other sources. The other arguments are those of `analyze`. After an
    error, the lines read so far are kept and marked as incomplete, except after a KeyboardInterrupt while files are
    read.

    Raises UsageError (the file exists, or is a snapshot of other sources), SourceError or GoodputError.
    """
    path = Path(output)
    snapshot.check_name(path)
    keeping, of_reading = parsed_options(SnapshotMode, options)
    reading, _ = split(of_reading)
    named = addresses(sources)
    _check_overwrites_no_source(path, named, reading.stdin, update=keeping.update)
    before = _before(path, named, reading.job_name, keeping)
    uris = tuple(named) or (before.sources if before else ())
    wanted = _wanted(before, reading.wanted)
    fetched_ns = time.time_ns()
    fetched = _FetchedLines()
    context = ReadContext(
        fetched.diagnostics.append, reading.stdin, reading.progress, wanted=wanted, notice=reading.notice,
        is_log=is_log(None),
    )  # fmt: skip
    try:
        readers = [source_for(uri).read(uri, context) for uri in uris]
        context.begin(len(readers))
        _gather(readers, fetched, context)
    except BaseException as error:
        if fetched.lines and (before is not None or not path.exists()) and _is_worth_keeping(uris, error):
            context.finish()
            context.say(f"Keeping the {len(fetched.lines):,} lines that were read; press Ctrl-C to discard them.")
            _write(path, before, fetched, uris, wanted, fetched_ns)
            context.say(f"The lines read so far are in {path}; continue with --update.")
        raise
    return _write(path, before, fetched, uris, wanted, fetched_ns)


def _check_overwrites_no_source(path: Path, sources: Sequence[str], stdin: BinaryIO | None, *, update: bool) -> None:
    """Raise UsageError if the snapshot or its manifest would overwrite one of the logs.

    A snapshot in the folder of its sources can be updated.
    """
    for place in (path, snapshot.manifest_path(path)):
        log = source_of_path(place, sources, stdin)
        if log is not None and not (update and snapshot.read_manifest(path) is not None):
            also = "" if log == str(place) else f" ({log})"
            raise UsageError(f"{place}: is one of the input logs{also}", tip="choose another file for the snapshot")


def _check_manifest_is_own(path: Path) -> None:
    """Raise UsageError if the manifest would overwrite another file."""
    place = snapshot.manifest_path(path)
    if os.path.lexists(place) and snapshot.written_manifest(path) is None:
        raise UsageError(
            f"{place}: the file exists and is not the manifest of a snapshot",
            tip="choose another name for the snapshot, or replace it with --force",
        )


def _is_worth_keeping(uris: Sequence[str], error: BaseException) -> bool:
    """Return True if the lines read so far are kept. Reading files again takes as long as writing them, so an interrupt
    does not wait for that."""
    if not isinstance(error, KeyboardInterrupt):
        return True
    return any(uri == STDIN or scheme_of(uri) != FILE_SCHEME or Path(uri).is_fifo() for uri in uris)


def _before(path: Path, sources: Sequence[str], job_name: str | None, keeping: SnapshotMode) -> Manifest | None:
    """Return the manifest of the snapshot to update. Raises UsageError if writing would destroy a file."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist", tip="create it first")
    if not keeping.force:
        _check_manifest_is_own(path)
    if not path.exists() or (keeping.force and not keeping.update):
        if keeping.update and not sources:
            raise UsageError(f"{path}: no such snapshot", tip="pass the SOURCE")
        return None
    if not keeping.update:
        raise UsageError(f"{path}: the file exists", tip="add new lines with --update, or replace it with --force")
    before = snapshot.read_manifest(path)
    if before is None:
        raise UsageError(f"{path}: its manifest is missing or does not match", tip="download it again with --force")
    if (sources and tuple(map(without_password, sources)) != before.sources) or (
        job_name and job_name != before.job_name
    ):
        named = " ".join(before.sources)
        job = f" of job {before.job_name}" if before.job_name else ""
        raise UsageError(f"{path}: is a snapshot of {named}{job}", tip="use --update without another SOURCE")
    return before


def _wanted(before: Manifest | None, wanted: SourceFilter) -> SourceFilter:
    if before is None:
        return wanted
    newest = min(before.newest_ns.values(), default=None)
    known = before.complete and newest is not None
    return replace(
        wanted,
        job_name=before.job_name,
        log_name=before.log_name,
        lookback_days=before.lookback_days,
        since_ns=newest if known else None,
        received_ns=before.fetched_ns if known else None,
    )


def _gather(readers: Iterable[Iterator[Batch]], fetched: _FetchedLines, context: ReadContext) -> None:
    for batches in readers:
        for lines in _lines(batches, fetched):
            fetched.lines += lines
            context.add_lines(len(lines))
    if fetched.apart:
        message = "text and event files are not completely in the snapshot; analyze the original files"
        fetched.diagnostics.append(
            Diagnostic.of("not_in_snapshot", message, len(fetched.apart), tuple(sorted(fetched.apart)))
        )
    fetched.complete = True
    context.finish()


def _lines(batches: Iterator[Batch], fetched: _FetchedLines) -> Iterator[list[bytes]]:
    """Yield the lines of a source. A document without one record per line becomes a single line."""
    reader = None
    source = ""
    for batch in batches:
        if isinstance(batch, RecordBatch):
            yield _entries(batch, fetched)
            continue
        if reader is None or batch.first_line == 1:
            if reader is not None:
                yield _parsed(reader.finish(), source, fetched)
            reader, source = document_reader(batch), batch.source
            if isinstance(reader, TextLines | EventFile):
                fetched.apart.append(source)
        if reader.by_line:
            yield _as_they_are(batch)
        else:
            yield _parsed(reader.feed(batch), source, fetched)
    if reader is not None:
        yield _parsed(reader.finish(), source, fetched)


def _entries(batch: RecordBatch, fetched: _FetchedLines) -> list[bytes]:
    for record in batch.records:
        name, time_ = record.get("logName"), record.get("timestamp")
        if isinstance(name, str) and isinstance(time_, str):
            fetched.newest[name] = max(fetched.newest.get(name, ""), time_)
    return [orjson.dumps(record) for record in batch.records]


def _as_they_are(batch: RawBatch) -> list[bytes]:
    lines = batch.data.replace(b"\r\n", b"\n").split(b"\n")
    return [line for line in lines if line.strip()]


def _parsed(parsed: ParsedPart, source: str, fetched: _FetchedLines) -> list[bytes]:
    if parsed.bad:
        places = tuple(f"{source}:{line}" for line, _ in parsed.bad)
        message = "parts of a document without a record are not in the snapshot"
        fetched.diagnostics.append(Diagnostic.of("malformed_lines", message, len(places), places))
    return [json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() for record in parsed.records]


def _write(
    path: Path,
    before: Manifest | None,
    fetched: _FetchedLines,
    sources: Sequence[str],
    wanted: SourceFilter,
    fetched_ns: int,
) -> Manifest:
    lines, diagnostics, newest = fetched.lines, fetched.diagnostics, _newest_ns(fetched.newest)
    if before is not None:
        old = source_for(str(path)).read(str(path), ReadContext(lambda _: None))
        lines = _joined([line for batch in old if isinstance(batch, RawBatch) for line in _as_they_are(batch)], lines)
        earlier = (one for one in before.diagnostics if one.code not in _NOT_COMPARED or wanted.since_ns)
        diagnostics = [*earlier, *diagnostics]
        newest = {name: max(before.newest_ns.get(name, 0), ns) for name, ns in {**before.newest_ns, **newest}.items()}
    log = decode_batches([_blocks(str(path), lines)], AUTO, ReadContext(lambda _: None), [])
    manifest = Manifest(
        sources=tuple(map(without_password, sources)),
        job_name=wanted.job_name,
        log_name=wanted.log_name,
        lookback_days=wanted.lookback_days,
        start=iso_of_nine_digits(int(log.table.time.min())) if len(log.table) else None,
        end=iso_of_nine_digits(int(log.table.end.max())) if len(log.table) else None,
        lines=len(lines),
        fetched_at=iso_of_nine_digits(fetched_ns),
        complete=fetched.complete,
        newest_ns=newest,
        fetched_ns=fetched_ns,
        bytes=0,
        diagnostics=tuple({(one.code, one.message): one for one in merge(diagnostics)}.values()),
    )
    return snapshot.write_snapshot(path, lines, manifest)


def _blocks(name: str, lines: Sequence[bytes]) -> Iterator[Batch]:
    """Yield the lines as they are read from the snapshot."""
    for first in range(0, len(lines), _AT_ONCE):
        yield RawBatch(name, first + 1, b"\n".join(lines[first : first + _AT_ONCE]) + b"\n")


def _joined(old: list[bytes], new: list[bytes]) -> list[bytes]:
    """Return old lines and the new ones that are not among them; sorted by time if all are entries."""
    known = {snapshot.identity_of(line) for line in old}
    lines = old + [line for line in new if snapshot.identity_of(line) not in known]
    stamps = [snapshot.timestamp_of(line) for line in lines]
    if None in stamps:
        return lines
    return [line for _, line in sorted(zip(stamps, lines, strict=True), key=lambda pair: str(pair[0]))]


def _newest_ns(newest: dict[str, str]) -> dict[str, int]:
    from goodput_cli.events.timestamps import TimestampReader
    from goodput_cli.vocabulary.when import load_zone

    clock = TimestampReader(load_zone("UTC"))
    instants = {name: clock.read(text) for name, text in newest.items()}
    return {name: instant.ns for name, instant in instants.items() if instant is not None}
