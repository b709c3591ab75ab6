"""The front door of the reader: URIs in, one `EventLog` out.

Events that a program has: records in a list or a DataFrame become the lines that a recorder would have written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from goodput_cli.arrays import garbage_collection_paused
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents, says_something
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import EventLog, Kind
from goodput_cli.sources.base import Batch, Progress, RawBatch, ReadContext, SourceFilter, source_for
from goodput_cli.vocabulary.when import AUTO, load_zone

NAME = "records"
"""What stands for the file in `file:line`: the line is the number of the record, from 1."""


def is_table(source: object) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return hasattr(source, "columns") and (hasattr(source, "to_dicts") or hasattr(source, "to_dict"))


def is_records(source: object) -> bool:
    """Whether it is a list of dicts."""
    return isinstance(source, Sequence) and len(source) > 0 and all(isinstance(one, Mapping) for one in source)


def batch_of(source: Any) -> RawBatch:
    """The records as lines. What is missing (None, NaN, NaT) is left out: formats are known by their keys.

    `UsageError`: a record holds what JSON cannot.
    """
    import orjson

    lines = []
    for number, record in enumerate(_records(source), 1):
        try:
            kept = {str(key): value for key, value in record.items() if not _is_missing(value)}
            lines.append(orjson.dumps(kept, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY))
        except (TypeError, ValueError) as error:
            raise UsageError(f"record {number} is no event: {error}") from error
    return RawBatch(NAME, 1, b"\n".join([*lines, b""]))


def _records(source: Any) -> Iterable[Mapping[str, Any]]:
    if not is_table(source):
        return source  # type: ignore[no-any-return]
    records = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
    return ({key: _narrowed(value) for key, value in record.items()} for record in records)


def _narrowed(value: Any) -> Any:
    """A whole number as such: a column with gaps holds them as floats."""
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
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
) -> EventLog:
    """Read the logs behind `uris` (files, globs, folders, `-`, or what plug-ins add; lines in memory as a batch) into
    one table.

    Rows of all jobs, in order of arrival, duplicates included. `timezone` is the zone of timestamps without one,
    `stdin` the stream behind `-` (default: the standard input of the process). What a line gets wrong is a diagnostic
    of the result, never an exception. `wanted` is for places that can be hints for a part; `notice` takes sentences for
    the person who waits. `hints` is what the person knows and the log does not say.

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
    batches = [iter([uri]) if isinstance(uri, RawBatch) else source_for(uri).read(uri, context) for uri in uris]
    context.begin(len(batches))
    return decode_batches(batches, timezone, context, notices, hints)


def is_log(hints: ReadingOptions | None) -> Callable[[bytes], bool]:
    """What says whether text that begins like this is a log."""
    return lambda head: says_something(head, hints)


def gives_steps(hints: ReadingOptions | None) -> Callable[[Iterator[Batch]], bool]:
    """What says whether a document gives steps, as far as its first block tells."""

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
) -> EventLog:
    """The events in the batches of some sources. timezone: of timestamps without one. notices: what the sources report
    to `context` while they are read."""
    hints = (hints or ReadingOptions()).about(context.wanted.job_name)
    decoder = Decoder(timezone, hints)
    with garbage_collection_paused():
        for batches in found:
            for source, parsed in Documents(hints).read_all(batches):
                decoder.add(source, parsed)
                context.add_lines(len(parsed))
                del parsed  # while the next block is read there is no other one
        log = decoder.finish()
    context.finish()
    return replace(log, diagnostics=(*notices, *log.diagnostics)) if notices else log
