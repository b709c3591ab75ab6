"""The source for `cloud-logging://PROJECT/LOG_ID`, and for a job name without a source.

A log is read with one query from the first entry to the last, and a diagnostic reports if the beginning of the job is
missing. Cached entries are not read again. Late entries are found, too: entries reach Cloud Logging out of order, some
long after their timestamp. So two groups are read again: entries with a timestamp in the last hour of the cache, and
entries with any timestamp that Cloud Logging received since ten minutes before the last reading.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from urllib.parse import unquote

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import Batch, ReadContext, Record, RecordBatch, is_new
from goodput_cli.sources.cache import CacheCoverage, CachedEntries, CacheFile, CacheWriter, DamagedCacheError, identity
from goodput_cli.sources.cloud_logging_pages import LogQuery, LogReader, QueryRefusedError, log_ids, ns_of, rfc3339
from goodput_cli.sources.google_credentials import ENDPOINT_VARIABLE, Connection, connect
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_HOUR

_STARTS = ("user_scheduled", "job_started")
_SOON_NS = 600 * 10**9


class Beginning:
    """Search for the start of the job among the oldest entries."""

    def __init__(self) -> None:
        self.oldest: Record | None = None
        self._start_ns: int | None = None

    def look(self, records: list[Record]) -> None:
        """Inspect some of the entries, the oldest first."""
        first = records[0]
        if self.oldest is None or first["timestamp"] < self.oldest["timestamp"]:
            self.oldest = first
        if self._start_ns is None and ns_of(first["timestamp"]) - ns_of(self.oldest["timestamp"]) <= _SOON_NS:
            start = next((one for one in records if _is_start(one.get("jsonPayload", {}))), None)
            self._start_ns = ns_of(start["timestamp"]) if start else None

    def is_known(self) -> bool:
        """Return True if a start of the job has about the time of the oldest entry."""
        if self.oldest is None or self._start_ns is None:
            return False
        return self._start_ns - ns_of(self.oldest["timestamp"]) <= _SOON_NS


def _is_start(payload: Record) -> bool:
    return "job_start_time" in payload or payload.get("event_type") in _STARTS


def report_cut(reader: LogReader, query: LogQuery, beginning: Beginning, context: ReadContext) -> None:
    """Report `lookback_truncated` if the log has, or may have had, older entries of the job."""
    if beginning.oldest is None or query.job_name is None:
        return
    where = (beginning.oldest["insertId"],)
    if query.since_ns is not None:
        if reader.any_entry(replace(query, since_ns=None, before_ns=query.since_ns)):
            message = (
                f"{query.log_id} has entries of the job before {rfc3339(query.since_ns)[:19]}Z, the start of "
                "--lookback; they are not counted. Use a longer --lookback, or none"
            )
            context.report(Diagnostic.of("lookback_truncated", message, 1, where))
    elif not beginning.is_known():
        message = (
            f"the oldest entry of the job in {query.log_id}, of {beginning.oldest['timestamp'][:19]}Z, is not its "
            "start. Older entries may have expired (the default is 30 days) and are not counted"
        )
        context.report(Diagnostic.of("lookback_truncated", message, 1, where))


SCHEME = "cloud-logging"


class CloudLoggingSource:
    """Source of `cloud-logging://PROJECT/LOG_ID`; an empty PROJECT is that of the credentials. With an empty LOG_ID,
    the job's log is searched under the conventional names of the libraries."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """Read as in `Source.read`: the entries of the wanted job, or all entries of the log without one."""
        project, log_id = (unquote(part) for part in uri.partition("://")[2].partition("/")[::2])
        wanted = context.wanted
        if not (log_id or wanted.log_name or wanted.job_name):
            raise UsageError(f"{uri}: no log", tip="use cloud-logging://PROJECT/LOG_ID, or --job-name NAME")
        connection = connect()
        project = project or connection.project or ""
        if not project:
            hint = "use cloud-logging://PROJECT/LOG_ID, or set GOOGLE_CLOUD_PROJECT"
            raise SourceError("Cloud Logging: the credentials contain no project", tip=hint)
        since = None if wanted.lookback_days is None else time.time_ns() - round(wanted.lookback_days * NS_PER_DAY)
        ids = log_ids(wanted.job_name, log_id, wanted.log_name)
        queries = [LogQuery(project, one, wanted.job_name, since, heartbeats=wanted.heartbeats) for one in ids]
        queries = [query for query in queries if is_new((SCHEME, query.log_name, query.job_name), context)]
        return _read_all(connection, queries, context)


def _read_all(connection: Connection, queries: list[LogQuery], context: ReadContext) -> Iterator[Batch]:
    entries = 0
    try:
        for query in queries:
            for batch in _read_one(connection, query, context):
                entries += len(batch.records)
                yield batch
    finally:
        connection.close()
    if not entries and queries:
        logs = " and ".join(query.log_id for query in queries)
        job = f" of job {queries[0].job_name}" if queries[0].job_name is not None else ""
        since = f" since {rfc3339(queries[0].since_ns)[:19]}Z (--lookback)" if queries[0].since_ns is not None else ""
        context.say(f"Cloud Logging, project {queries[0].project}: no entries{job} in {logs}{since}.")


def _read_one(connection: Connection, query: LogQuery, context: ReadContext) -> Iterator[RecordBatch]:
    reader = LogReader(connection, context)
    beginning = Beginning()
    try:
        for records in read_cached(reader, query, context):
            beginning.look(records)
            yield RecordBatch(f"{SCHEME}://{query.project}/{query.log_id}", records)
        if context.wanted.since_ns is None:
            report_cut(reader, query, beginning, context)
    finally:
        reader.close()


OVERLAP_NS = NS_PER_HOUR
CLOCK_MARGIN_NS = 600 * 10**9

Identity = tuple[str, str, str]


def read_cached(reader: LogReader, query: LogQuery, context: ReadContext) -> Iterator[list[Record]]:
    """Yield the records of a query, each once, from the cache and the server as the context requires."""
    wanted = context.wanted
    if wanted.since_ns is not None:
        known = CacheCoverage(query.since_ns, wanted.since_ns, wanted.received_ns or 0)
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
        context.say(f"Cannot use the cache {reading.cache.path} ({error.strerror}); reading without it.")
        yield from reader.read(query)


def _overlap_start(known: CacheCoverage) -> int:
    return max(0, min(known.newest_ns, known.fetched_ns) - OVERLAP_NS)


def _newer(query: LogQuery, known: CacheCoverage) -> LogQuery:
    return replace(query, since_ns=max(_overlap_start(known), query.since_ns or 0))


def _late(reader: LogReader, query: LogQuery, known: CacheCoverage) -> Iterator[list[Record]]:
    """Yield records received since the last reading that are older than the part that is read again anyway."""
    before = _overlap_start(known)
    if before <= (query.since_ns or 0):
        return
    older = replace(query, before_ns=before)
    try:
        yield from reader.read(replace(older, received_ns=known.fetched_ns - CLOCK_MARGIN_NS))
    except QueryRefusedError:  # the server does not support queries by receive time: look at all entries
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
                yield from self._stream(self._query, writer, CacheCoverage(self._query.since_ns, 0, now), set())
            else:
                yield from self._again(held, writer, now)
        finally:
            writer.close()

    def _again(self, held: CachedEntries, writer: CacheWriter, now: int) -> Iterator[list[Record]]:
        known = held.coverage
        held_query = replace(self._query, since_ns=known.start_ns)
        since = self._query.since_ns
        older: Iterable[list[Record]] = ()  # entries that no earlier query requested
        if known.start_ns is not None and (since is None or since < known.start_ns):
            older = self._reader.read(replace(self._query, before_ns=known.start_ns))
        late = chain(_late(self._reader, held_query, known), older)
        unknown = {identity(record): record for records in late for record in records}
        again = rfc3339(_overlap_start(known))
        overlap: set[Identity] = set()
        for records in self.cache.records():
            overlap.update(identity(record) for record in records if record["timestamp"] >= again)
            for record in records if unknown else ():
                unknown.pop(identity(record), None)
            yield from self._select_requested(records)
        missing = list(unknown.values())
        writer.add(missing)
        yield from self._select_requested(missing)
        starts = (known.start_ns, since)
        start = None if None in starts else min(start for start in starts if start is not None)
        coverage = replace(known, start_ns=start, fetched_ns=now)
        yield from self._stream(_newer(held_query, known), writer, coverage, overlap)

    def _stream(
        self, query: LogQuery, writer: CacheWriter, coverage: CacheCoverage, known: set[Identity]
    ) -> Iterator[list[Record]]:
        """Read, cache and yield; records read before an interruption are cached, too."""
        newest = coverage.newest_ns
        try:
            for page in self._reader.read(query):
                records = [record for record in page if identity(record) not in known] if known else page
                writer.add(records)
                newest = max(newest, ns_of(page[-1]["timestamp"]))
                yield from self._select_requested(records)
        finally:
            if newest:
                with suppress(DamagedCacheError):
                    writer.commit(replace(coverage, newest_ns=newest))

    def _select_requested(self, records: list[Record]) -> Iterator[list[Record]]:
        """Yield the records that the query requests: the cache may contain older ones."""
        if self._query.since_ns is not None:
            since = rfc3339(self._query.since_ns)
            records = [record for record in records if record["timestamp"] >= since]
        if records:
            yield records
