"""A log read through the cache: what is held is not read again, and what came late is found all the same.

Entries reach Cloud Logging out of order, some long after their timestamp. So two things are read again: entries with
a timestamp in the last hour of what is held, and, whatever their timestamp, entries that Cloud Logging received since
ten minutes before the last reading.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from goodput_cli.sources.base import ReadContext, Record
from goodput_cli.sources.cache import CacheFile, CacheWriter, Coverage, DamagedCacheError, Held, identity, with_start
from goodput_cli.sources.cloud_logging.credentials import ENDPOINT_VARIABLE
from goodput_cli.sources.cloud_logging.faults import RefusedError
from goodput_cli.sources.cloud_logging.query import LogQuery, rfc3339
from goodput_cli.sources.cloud_logging.reading import LogReader, ns_of
from goodput_cli.vocabulary.units import NS_PER_HOUR

OVERLAP_NS = NS_PER_HOUR
CLOCK_MARGIN_NS = 600 * 10**9

Identity = tuple[str, str, str]


def read_cached(reader: LogReader, query: LogQuery, context: ReadContext) -> Iterator[list[Record]]:
    """The records of a query, each once, from the cache and the server as the context wants it."""
    wanted = context.wanted
    if wanted.since_ns is not None:
        known = Coverage(query.since_ns, wanted.since_ns, wanted.received_ns or 0)
        yield from _late(reader, query, known)
        yield from reader.read(_newer(query, known))
        return
    if not wanted.use_cache:
        yield from reader.read(query)
        return
    reading = _CachedReading(reader, query)
    try:
        yield from reading.records()
    except DamagedCacheError:
        reading.cache.discard()
        yield from reader.read(query)
    except OSError as error:
        context.say(f"The cache {reading.cache.path} cannot be used ({error.strerror}); reading without it.")
        yield from reader.read(query)


def _overlap_start(known: Coverage) -> int:
    return max(0, min(known.newest_ns, known.fetched_ns) - OVERLAP_NS)


def _newer(query: LogQuery, known: Coverage) -> LogQuery:
    return replace(query, since_ns=max(_overlap_start(known), query.since_ns or 0))


def _late(reader: LogReader, query: LogQuery, known: Coverage) -> Iterator[list[Record]]:
    """What was received since the last reading and is older than what is read again anyway."""
    before = _overlap_start(known)
    if before <= (query.since_ns or 0):
        return
    older = replace(query, before_ns=before)
    try:
        yield from reader.read(replace(older, received_ns=known.fetched_ns - CLOCK_MARGIN_NS))
    except RefusedError:  # a server that cannot tell when it got an entry: look at all of them
        yield from reader.read(older)


class _CachedReading:
    def __init__(self, reader: LogReader, query: LogQuery) -> None:
        self._reader = reader
        self._query = query
        endpoint = os.environ.get(ENDPOINT_VARIABLE)
        asked: dict[str, str | None] = {"endpoint": endpoint, "log": query.log_name, "job": query.job_name}
        if not query.heartbeats:
            asked["without"] = "heartbeats"
        self.cache = CacheFile("cloud-logging", asked)

    def records(self) -> Iterator[list[Record]]:
        now = time.time_ns()
        held = self.cache.load()
        writer = self.cache.writer(held)
        try:
            if held is None:
                yield from self._first_time(writer, now)
            else:
                yield from self._again(held, writer, now)
        finally:
            writer.close()

    def _first_time(self, writer: CacheWriter, now: int) -> Iterator[list[Record]]:
        yield from self._stream(self._query, writer, Coverage(self._query.since_ns, 0, now), set())

    def _again(self, held: Held, writer: CacheWriter, now: int) -> Iterator[list[Record]]:
        known = held.coverage
        late = [*_flat(_late(self._reader, replace(self._query, since_ns=known.start_ns), known)),
                *_flat(self._older(known))]  # fmt: skip
        start = _earlier(known.start_ns, self._query.since_ns)
        unknown = {identity(record): record for record in late}
        again = rfc3339(_overlap_start(known))
        overlap: set[Identity] = set()
        for records in self.cache.records():
            overlap.update(identity(record) for record in records if record["timestamp"] >= again)
            for record in records if unknown else ():
                unknown.pop(identity(record), None)
            yield from self._asked_for(records)
        missing = list(unknown.values())
        writer.add(missing)
        yield from self._asked_for(missing)
        coverage = with_start(replace(known, fetched_ns=now), start)
        newer = _newer(replace(self._query, since_ns=known.start_ns), known)
        yield from self._stream(newer, writer, coverage, overlap)

    def _older(self, known: Coverage) -> Iterator[list[Record]]:
        """What was not asked for so far."""
        since = self._query.since_ns
        if known.start_ns is not None and (since is None or since < known.start_ns):
            yield from self._reader.read(replace(self._query, before_ns=known.start_ns))

    def _stream(
        self, query: LogQuery, writer: CacheWriter, coverage: Coverage, known: set[Identity]
    ) -> Iterator[list[Record]]:
        """Read, keep and give; what was read before an interruption is kept too."""
        newest = coverage.newest_ns
        try:
            for page in self._reader.read(query):
                records = [record for record in page if identity(record) not in known] if known else page
                writer.add(records)
                newest = max(newest, ns_of(page[-1]["timestamp"]))
                yield from self._asked_for(records)
        finally:
            if newest:
                with suppress(DamagedCacheError):
                    writer.commit(replace(coverage, newest_ns=newest))

    def _asked_for(self, records: list[Record]) -> Iterator[list[Record]]:
        """The records that the query asks for: the cache may hold older ones."""
        if self._query.since_ns is not None:
            since = rfc3339(self._query.since_ns)
            records = [record for record in records if record["timestamp"] >= since]
        if records:
            yield records


def _earlier(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def _flat(pages: Iterator[list[Record]]) -> list[Record]:
    return [record for records in pages for record in records]
