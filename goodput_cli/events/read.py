"""Entry point of the reader: returns one `EventLog` for some URIs.

Events in memory (records in a list or a DataFrame) are converted to the lines that a recorder would have written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents, is_known_table_or_text
from goodput_cli.events.joined_logs import read_sources
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import EventLog, Kind
from goodput_cli.sources.base import Batch, Progress, RawBatch, ReadContext, SourceFilter
from goodput_cli.vocabulary.when import AUTO, load_zone

if TYPE_CHECKING:
    from goodput_cli.events.text.passes import Trace

NAME = "records"
"""Replaces the file name in `file:line`; the line is the number of the record, from 1."""


def is_table(source: object) -> bool:
    """Return True for a DataFrame of pandas or polars."""
    return hasattr(source, "columns") and (hasattr(source, "to_dicts") or hasattr(source, "to_dict"))


def is_records(source: object) -> bool:
    """Return True for a list of dicts."""
    return isinstance(source, Sequence) and len(source) > 0 and all(isinstance(one, Mapping) for one in source)


def batch_of(source: Any) -> RawBatch:
    """Return the records as lines. Missing values (None, NaN, NaT) are left out, because formats are recognized by
    their keys.

    Raises UsageError for a record with values that JSON cannot represent.
    """
    import orjson

    lines = []
    for number, record in enumerate(_records(source), 1):
        try:
            kept = {str(key): value for key, value in record.items() if not _is_missing(value)}
            lines.append(orjson.dumps(kept, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY))
        except (TypeError, ValueError) as error:
            raise UsageError(f"record {number} is not an event: {error}") from error
    return RawBatch(NAME, 1, b"\n".join([*lines, b""]))


def _records(source: Any) -> Iterable[Mapping[str, Any]]:
    if not is_table(source):
        return source  # type: ignore[no-any-return]
    records = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
    return ({key: _narrowed(value) for key, value in record.items()} for record in records)


def _narrowed(value: Any) -> Any:
    """Return a whole number as int: a column with gaps contains floats."""
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # skips NaN and NaT
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """Return the JSON representation of a value of another type."""
    if isinstance(value, date):  # a pandas Timestamp is a datetime
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def read_events(
    uris: Sequence[str | RawBatch],
    *,
    timezone: str = AUTO,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
    wanted: SourceFilter | None = None,
    notice: Callable[[str], None] | None = None,
    hints: ReadingOptions | None = None,
    trace: Trace | None = None,
) -> EventLog:
    """Read the logs at `uris` (files, globs, folders, `-`, or kinds from plug-ins; lines in memory as a batch) into one
    table.

    The rows of all jobs are in order of arrival, with duplicates. `timezone` is the zone of timestamps without one,
    `stdin` the stream behind `-` (default: the standard input of the process). Errors in a line are diagnostics of the
    result, never exceptions. `wanted` selects a part of the sources that support it; `notice` is called with status
    messages. `hints` contains information that the log lacks. `trace` follows the passes over text.

    Raises SourceError if one of the sources cannot be read, UsageError for an unknown time zone or kind of source.
    """
    load_zone(timezone)
    notices: list[Diagnostic] = []
    wanted = wanted or SourceFilter()
    context = ReadContext(
        notices.append,
        stdin,
        progress,
        wanted=wanted,
        notice=notice,
        is_log=is_log(hints),
        gives_steps=gives_steps(hints),
    )
    batches = read_sources(uris, context, hints)
    context.begin(len(uris))
    return decode_batches([batches], timezone, context, notices, hints, trace)


def is_log(hints: ReadingOptions | None) -> Callable[[bytes], bool]:
    """Return a test of whether text that begins like this is a log."""
    return lambda head: is_known_table_or_text(head, hints)


def gives_steps(hints: ReadingOptions | None) -> Callable[[Iterator[Batch]], bool]:
    """Return a test of whether the first block of a document contains steps."""

    def ask(batches: Iterator[Batch]) -> bool:
        context = ReadContext(lambda _: None)
        log = decode_batches([islice(batches, 1)], AUTO, context, [], hints)
        return bool(np.isin(log.table.kind, (Kind.STEP, Kind.FINISHED)).any())

    return ask


def decode_batches(
    found: Iterable[Iterator[Batch]],
    timezone: str,
    context: ReadContext,
    notices: list[Diagnostic],
    hints: ReadingOptions | None = None,
    trace: Trace | None = None,
) -> EventLog:
    """Return the events in the batches of some sources. timezone: of timestamps without one. notices: messages that the
    sources report to `context` during reading. trace: follows the passes over text."""
    hints = (hints or ReadingOptions()).about(context.wanted.job_name)
    decoder = Decoder(timezone, hints, trace)
    with garbage_collection_paused():
        for batches in found:
            for source, parsed in Documents(hints).read_all(batches):
                decoder.add(source, parsed)
                context.add_lines(len(parsed))
                del parsed  # free it before the next block is read
        log = decoder.finish()
    context.finish()
    return replace(log, diagnostics=(*notices, *log.diagnostics)) if notices else log
