"""The source behind `cloud-logging://PROJECT/LOG_ID`, and behind a job name with no source at all.

A log is read by one query from the first entry to the last, and it is said whether the beginning of the job is in what
was read. What the cache holds is not read again, and what came late is found all the same: entries reach Cloud Logging
out of order, some long after their timestamp. So two things are read again: entries with a timestamp in the last hour
of what is held, and, whatever their timestamp, entries that Cloud Logging received since ten minutes before the last
reading.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import numpy as np

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import Batch, ReadContext, Record, RecordBatch
from goodput_cli.sources.cache import (
    CacheCoverage,
    CacheFile,
    CacheWriter,
    DamagedCacheError,
    Held,
    identity,
    with_start,
)
from goodput_cli.sources.cloud_logging_pages import LogQuery, LostPlaceError, PageReader, RefusedError, log_ids, rfc3339
from goodput_cli.sources.google_credentials import ENDPOINT_VARIABLE, Connection, connect
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_HOUR


def records_of(entries: Sequence[Any]) -> list[Record]:
    """The records of google.logging.v2.LogEntry messages: `insertId`, `logName`, `timestamp` (nine digits, UTC),
    `resource` and the payload."""
    resources: dict[bytes, Record] = {}  # mostly one, which all of them share
    return [_record(*pair, resources) for pair in zip(entries, _timestamps(entries), strict=True)]


def _record(entry: Any, timestamp: str, resources: dict[bytes, Record]) -> Record:
    record = {"insertId": entry.insert_id, "logName": entry.log_name, "timestamp": timestamp}
    serialised = entry.resource.SerializeToString()
    if serialised not in resources:
        resources[serialised] = {"type": entry.resource.type, "labels": dict(entry.resource.labels)}
    record["resource"] = resources[serialised]
    if entry.HasField("json_payload"):
        record["jsonPayload"] = _object(entry.json_payload)
    else:
        record["textPayload"] = entry.text_payload  # the reader reports that it cannot use it
    return record


def _timestamps(entries: Sequence[Any]) -> list[str]:
    times = [entry.timestamp for entry in entries]
    seconds = np.array([time.seconds for time in times], dtype="datetime64[s]")
    texts = np.datetime_as_string(seconds).tolist()
    return [f"{text}.{time.nanos:09d}Z" for text, time in zip(texts, times, strict=True)]


def _object(struct: Any) -> Record:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


ENTRIES_A_MINUTE = 60_000
"""What the quota allows: 60 reads of 1000 entries a minute and project."""
_LONG_NS = 10 * 10**9


class Patient:
    """Says how it goes to the person who waits."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._first_ns = self._newest_ns = 0
        self._entries = 0
        self._said = False

    def read(self, records: list[Record], size: int) -> None:
        """Records were read, `size` bytes of them."""
        self._context.advance(size)
        self._entries += len(records)
        if records:
            self._newest_ns = ns_of(records[-1]["timestamp"])
            self._first_ns = self._first_ns or ns_of(records[0]["timestamp"])

    def waiting(self, seconds: float) -> None:
        """The quota is used up: said the first time, and when a wait is long."""
        if self._said and seconds * 10**9 < _LONG_NS:
            return
        self._said = True
        self._context.say(
            f"Cloud Logging: the quota of 60 reads a minute is used up; waiting {seconds:.0f} s and going on. "
            f"{self._entries} entries so far, {self._rest()}. A log this big is read faster from its sink (gs://…)."
        )

    def _rest(self) -> str:
        """How long it will take, as if entries were spread evenly until now."""
        done, left = self._newest_ns - self._first_ns, time.time_ns() - self._newest_ns
        if done <= 0 or left < 0:
            return f"{ENTRIES_A_MINUTE} more a minute at the most"
        minutes = self._entries * left / done / ENTRIES_A_MINUTE
        return f"about {max(1, round(minutes))} min to go at {ENTRIES_A_MINUTE} entries a minute"


class LogReader:
    """Reads queries of one log."""

    def __init__(self, pages: PageReader, patient: Patient) -> None:
        self._pages = pages
        self._patient = patient

    def read(self, query: LogQuery) -> Iterator[list[Record]]:
        """The records of a query, oldest first, a list per page that has some."""
        last: list[Record] = []
        while True:
            try:
                for records in self._read_once(query, last):
                    last = records
                    yield records
                return
            except LostPlaceError:  # ask again from the newest entry on, without the ones that are known
                if last:
                    query = replace(query, since_ns=ns_of(last[-1]["timestamp"]))

    def _read_once(self, query: LogQuery, before: list[Record]) -> Iterator[list[Record]]:
        known = {(record["timestamp"], record["insertId"]) for record in before}
        for page in self._pages.pages(query):
            records = records_of(page.entries)
            if known:
                records = [one for one in records if (one["timestamp"], one["insertId"]) not in known]
            self._patient.read(records, page.ByteSize())
            if records:
                yield records


def ns_of(timestamp: str) -> int:
    """ns since 1970 UTC of a timestamp with nine digits."""
    seconds = round(datetime.fromisoformat(timestamp[:19] + "+00:00").timestamp())
    return seconds * 10**9 + int(timestamp[20:29])


_STARTS = ("user_scheduled", "job_started")
_SOON_NS = 600 * 10**9


class Beginning:
    """Looks for the start of the job among the oldest entries."""

    def __init__(self) -> None:
        self.oldest: Record | None = None
        self._start_ns: int | None = None

    def look(self, records: list[Record]) -> None:
        """Look at some of the entries, the oldest first."""
        first = records[0]
        if self.oldest is None or first["timestamp"] < self.oldest["timestamp"]:
            self.oldest = first
        if self._start_ns is None and ns_of(first["timestamp"]) - ns_of(self.oldest["timestamp"]) <= _SOON_NS:
            start = next((one for one in records if _is_start(one.get("jsonPayload", {}))), None)
            self._start_ns = ns_of(start["timestamp"]) if start else None

    def is_known(self) -> bool:
        """Whether a start of the job was written at about the time of the oldest entry."""
        if self.oldest is None or self._start_ns is None:
            return False
        return self._start_ns - ns_of(self.oldest["timestamp"]) <= _SOON_NS


def _is_start(payload: Record) -> bool:
    return "job_start_time" in payload or payload.get("event_type") in _STARTS


def report_cut(pages: PageReader, query: LogQuery, beginning: Beginning, context: ReadContext) -> None:
    """Report `lookback_truncated` where the log has, or may have had, older entries of the job."""
    if beginning.oldest is None or query.job_name is None:
        return
    where = (beginning.oldest["insertId"],)
    if query.since_ns is not None:
        if pages.any_entry(replace(query, since_ns=None, before_ns=query.since_ns)):
            message = (
                f"--lookback reaches back to {rfc3339(query.since_ns)[:19]}Z and {query.log_id} has older entries of "
                "the job: what was before is not counted; a longer --lookback, or none, reads it"
            )
            context.report(Diagnostic.of("lookback_truncated", message, 1, where))
    elif not beginning.is_known():
        message = (
            f"the oldest entry of the job in {query.log_id}, of {beginning.oldest['timestamp'][:19]}Z, is not its "
            "start: older ones may have expired (logs are kept for 30 days by default) and are not counted"
        )
        context.report(Diagnostic.of("lookback_truncated", message, 1, where))


SCHEME = "cloud-logging"


class CloudLoggingSource:
    """Reads `cloud-logging://PROJECT/LOG_ID`; an empty PROJECT is that of the credentials. With an empty LOG_ID the
    job's log is looked for under the names that libraries give it by convention."""

    def read(self, uri: str, context: ReadContext) -> Iterator[Batch]:
        """See `Source.read`. Entries of the job that the context wants, all entries of the log if it wants none."""
        project, log_id = _parse(uri, context)
        connection = connect()
        queries = _queries(connection, project, log_id, context)
        queries = [query for query in queries if _first_time(query, context)]
        return _read_all(connection, queries, context)


def _parse(uri: str, context: ReadContext) -> tuple[str, str]:
    project, _, log_id = uri.partition("://")[2].partition("/")
    wanted = context.wanted
    if not (log_id or wanted.log_name or wanted.job_name):
        raise UsageError(f"{uri}: which log? write cloud-logging://PROJECT/LOG_ID, or name the job with --job-name")
    return unquote(project), unquote(log_id)


def _queries(connection: Connection, project: str, log_id: str, context: ReadContext) -> list[LogQuery]:
    project = project or connection.project or ""
    if not project:
        hint = "write cloud-logging://PROJECT/LOG_ID, or set GOOGLE_CLOUD_PROJECT"
        raise SourceError(f"Cloud Logging: the credentials name no project; {hint}")
    wanted = context.wanted
    since = None if wanted.lookback_days is None else time.time_ns() - round(wanted.lookback_days * NS_PER_DAY)
    ids = log_ids(wanted.job_name, log_id, wanted.log_name)
    return [LogQuery(project, one, wanted.job_name, since, heartbeats=wanted.heartbeats) for one in ids]


def _first_time(query: LogQuery, context: ReadContext) -> bool:
    identity = (SCHEME, query.log_name, query.job_name)
    if identity in context.seen:
        return False
    context.seen.add(identity)
    return True


@dataclass
class _Count:
    entries: int = 0


def _read_all(connection: Connection, queries: list[LogQuery], context: ReadContext) -> Iterator[Batch]:
    count = _Count()
    try:
        for query in queries:
            yield from _read_one(connection, query, context, count)
    finally:
        connection.close()
    if not count.entries and queries:
        logs = " and ".join(query.log_id for query in queries)
        job = f" of job {queries[0].job_name}" if queries[0].job_name is not None else ""
        since = f" since {rfc3339(queries[0].since_ns)[:19]}Z (--lookback)" if queries[0].since_ns is not None else ""
        context.say(f"Cloud Logging, project {queries[0].project}: no entries{job} in {logs}{since}.")


def _read_one(connection: Connection, query: LogQuery, context: ReadContext, count: _Count) -> Iterator[Batch]:
    patient = Patient(context)
    pages = PageReader(connection.list_entries, patient.waiting, context.wait)
    beginning = Beginning()
    try:
        for records in read_cached(LogReader(pages, patient), query, context):
            count.entries += len(records)
            beginning.look(records)
            yield RecordBatch(f"{SCHEME}://{query.project}/{query.log_id}", records)
        if context.wanted.since_ns is None:
            report_cut(pages, query, beginning, context)
    finally:
        pages.close()


OVERLAP_NS = NS_PER_HOUR
CLOCK_MARGIN_NS = 600 * 10**9

Identity = tuple[str, str, str]


def read_cached(reader: LogReader, query: LogQuery, context: ReadContext) -> Iterator[list[Record]]:
    """The records of a query, each once, from the cache and the server as the context wants it."""
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
        context.say(f"The cache {reading.cache.path} cannot be used ({error.strerror}); reading without it.")
        yield from reader.read(query)


def _overlap_start(known: CacheCoverage) -> int:
    return max(0, min(known.newest_ns, known.fetched_ns) - OVERLAP_NS)


def _newer(query: LogQuery, known: CacheCoverage) -> LogQuery:
    return replace(query, since_ns=max(_overlap_start(known), query.since_ns or 0))


def _late(reader: LogReader, query: LogQuery, known: CacheCoverage) -> Iterator[list[Record]]:
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
        yield from self._stream(self._query, writer, CacheCoverage(self._query.since_ns, 0, now), set())

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

    def _older(self, known: CacheCoverage) -> Iterator[list[Record]]:
        """What was not asked for so far."""
        since = self._query.since_ns
        if known.start_ns is not None and (since is None or since < known.start_ns):
            yield from self._reader.read(replace(self._query, before_ns=known.start_ns))

    def _stream(
        self, query: LogQuery, writer: CacheWriter, coverage: CacheCoverage, known: set[Identity]
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
