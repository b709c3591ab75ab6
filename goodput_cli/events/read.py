"""The front door of the reader: URIs in, one `EventLog` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

import numpy as np

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents, says_something
from goodput_cli.events.hints import Hints
from goodput_cli.events.schema import EventLog, Kind
from goodput_cli.gc_pause import garbage_collection_paused
from goodput_cli.sources.base import Batch, Progress, RawBatch, ReadContext, SourceFilter, source_for
from goodput_cli.vocabulary.when import AUTO, load_zone


def read_events(
    uris: Sequence[str | RawBatch],
    *,
    timezone: str = AUTO,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
    wanted: SourceFilter | None = None,
    notice: Callable[[str], None] | None = None,
    hints: Hints | None = None,
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


def is_log(hints: Hints | None) -> Callable[[bytes], bool]:
    """What says whether text that begins like this is a log."""
    return lambda head: says_something(head, hints)


def gives_steps(hints: Hints | None) -> Callable[[Iterator[Batch]], bool]:
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
    hints: Hints | None = None,
) -> EventLog:
    """The events in the batches of some sources. timezone: of timestamps without one. notices: what the sources report
    to `context` while they are read."""
    hints = (hints or Hints()).about(context.wanted.job_name)
    decoder = Decoder(timezone, hints)
    with garbage_collection_paused():
        for batches in found:
            for source, parsed in Documents(hints).read_all(batches):
                decoder.add(source, parsed)
                context.add_lines(len(parsed))
                del parsed  # while the next block is read there is no other one
        log = decoder.finish()
    context.finish()
    return replace(log, diagnostics=(*notices, *log.diagnostics))
