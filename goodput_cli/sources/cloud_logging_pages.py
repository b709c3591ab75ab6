"""Queries of Cloud Logging, and the records in its responses.

A query is text of its language; a user's value is always quoted. The response is read page by page. A failed request is
retried or becomes an error message.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from threading import Event
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.sources.base import ReadContext, Record
from goodput_cli.sources.google_credentials import Connection
from goodput_cli.sources.remote import RequestThreads, RetriesExhaustedError, RetryPolicy, TransientError, try_again
from goodput_cli.vocabulary.text import iso_of_nine_digits
from goodput_cli.vocabulary.when import NS_PER_SECOND

METRICS_LOG = "ml_diagnostics_metric"
"""The log whose entries name their job in the labels of the resource, not in the payload (format D)."""

SYSTEM_METRICS = (
    "tpu_duty_cycle", "tpu_tensorcore_utilization", "hbm_utilization", "host_cpu_utilization",
    "host_memory_utilization", "gpu_duty_cycle", "gpu_utilization", "gpu_tensorcore_utilization", "vram_utilization",
)  # fmt: skip
"""Entries that every host writes each 10 s, even without steps."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class LogQuery:
    """Query for entries of one log of a project. All times in ns since 1970 UTC; None: no bound.

    job_name: only entries of this job (Cloud Logging ignores case; the analysis selects exactly). since_ns (included),
    before_ns (excluded): the entry's timestamp. received_ns: the receive time at Cloud Logging.
    """

    project: str
    log_id: str
    job_name: str | None = None
    since_ns: int | None = None
    before_ns: int | None = None
    received_ns: int | None = None
    heartbeats: bool = True
    """True to include system metrics, which are 99 of 100 entries of the log of metrics."""

    @property
    def log_name(self) -> str:
        """Return `projects/PROJECT/logs/LOG_ID`, with the identifier escaped as in Cloud Logging."""
        return f"projects/{self.project}/logs/{quote(self.log_id, safe='')}"

    def text(self) -> str:
        """Return the filter: clauses that must all be true."""
        clauses = [f"logName={quoted(self.log_name)}"]
        if self.job_name is not None:
            clauses.append(_of_job(self.log_id, self.job_name))
        if not self.heartbeats and self.log_id == METRICS_LOG:
            names = " OR ".join(map(quoted, SYSTEM_METRICS))
            clauses.append(f"NOT resource.labels.namespace=({names})")
        if self.since_ns is not None:
            clauses.append(f'timestamp>="{rfc3339(self.since_ns)}"')
        if self.before_ns is not None:
            clauses.append(f'timestamp<"{rfc3339(self.before_ns)}"')
        if self.received_ns is not None:
            clauses.append(f'receiveTimestamp>="{rfc3339(self.received_ns)}"')
        return " AND ".join(clauses)


def _of_job(log_id: str, job: str) -> str:
    """Return the clause for entries of a job. Runs of metrics have the name of the job and a suffix of its start, or a
    hash that does not contain the job."""
    if log_id != METRICS_LOG:
        return f"jsonPayload.job_name={quoted(job)}"
    field = "resource.labels.node_id"
    name = re.sub(r"[^a-z0-9]+", "-", job.lower()).strip("-")
    patterns = [f"{field}={quoted(job)}", f'{field}=~"^[0-9a-f]{{64}}$"']
    if name:
        patterns.insert(1, f'{field}=~"^{name}(-|$)"')
    return f"({' OR '.join(patterns)})"


def quoted(value: str) -> str:
    """Return a string literal of the query language for exactly `value`."""
    return '"' + "".join(_ESCAPES.get(one) or _plain(one) for one in value) + '"'


def _plain(character: str) -> str:
    """Return a character, escaped if it is a control character or half of a pair."""
    return character if character.isprintable() or ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def rfc3339(ns: int) -> str:
    """Return a time as in filters and entries of Cloud Logging, 1970 at the earliest; such texts sort like the
    times."""
    return iso_of_nine_digits(max(ns, 0))


def ns_of(timestamp: str) -> int:
    """Return ns since 1970 UTC of a timestamp with nine digits."""
    seconds = round(datetime.fromisoformat(timestamp[:19] + "+00:00").timestamp())
    return seconds * 10**9 + int(timestamp[20:29])


def log_ids(job_name: str | None, log_id: str, log_name: str | None) -> tuple[str, ...]:
    """Return the logs to read: the given one, or both to which the libraries write a job by convention."""
    named = log_name or log_id
    if not named:
        return (f"{job_name}-goodput", f"goodput_{job_name}")
    _, separator, identifier = named.partition("/logs/")  # accepts the full `projects/P/logs/ID`, too
    return (unquote(identifier) if separator else named,)


class Fault(Enum):
    """Reaction to a failed request."""

    QUOTA = "wait: too many reads"
    PASSING = "try again"
    LOST_PLACE = "the page token is not known any more"
    FINAL = "give up"


class QueryRefusedError(SourceError):
    """Raised if the server rejects the query."""


_BY_CODE = {
    "RESOURCE_EXHAUSTED": Fault.QUOTA,
    **dict.fromkeys(
        ("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "UNKNOWN", "DATA_LOSS", "CANCELLED"), Fault.PASSING
    ),
}
_SENTENCES = {
    "PERMISSION_DENIED": "no permission to read log entries; ask for the role roles/logging.viewer",
    "UNAUTHENTICATED": "the credentials are not accepted; run `gcloud auth application-default login`",
    "NOT_FOUND": "no such project or log; check cloud-logging://PROJECT/LOG_ID",
    "RESOURCE_EXHAUSTED": "the read quota is exhausted (60 reads per minute); "
    "try again later, or read the log's sink in a bucket (gs://…)",
}
_API_OFF = ("SERVICE_DISABLED", "has not been used", "is disabled")


def kind_of(error: Any, with_token: bool) -> Fault:
    """Return the reaction to a gRPC error; with_token: True for a request that continued from a page token."""
    code = error.code().name
    if code == "INVALID_ARGUMENT" and with_token:
        return Fault.LOST_PLACE
    return _BY_CODE.get(code, Fault.FINAL)


def sentence(error: Any, query: LogQuery) -> GoodputError:
    """Return the error message for a permanent gRPC error."""
    code, details = error.code().name, str(error.details() or "")
    where = f"Cloud Logging, project {query.project}"
    if code == "PERMISSION_DENIED" and any(mark in details for mark in _API_OFF):
        command = f"gcloud services enable logging.googleapis.com --project {query.project}"
        return SourceError(f"{where}: the Cloud Logging API is disabled", tip=f"enable it with `{command}`")
    if code in _SENTENCES:
        return SourceError(f"{where}: {_SENTENCES[code]}")
    if code == "INVALID_ARGUMENT":
        return QueryRefusedError(f"{where}: the project or log name is not accepted: {_short(details)}")
    return SourceError(f"{where}: all retries failed: {code}: {_short(details)}; the entries read so far are kept")


def _short(details: str) -> str:
    return details if len(details) <= 300 else details[:300] + "…"


def records_of(entries: Sequence[Any]) -> list[Record]:
    """Return the records of google.logging.v2.LogEntry messages: `insertId`, `logName`, `timestamp` (nine digits, UTC),
    `resource` and the payload."""
    resources: dict[bytes, Record] = {}  # mostly one, shared by all entries
    times = [entry.timestamp for entry in entries]
    seconds = np.datetime_as_string(np.array([time.seconds for time in times], dtype="datetime64[s]")).tolist()
    stamps = [f"{text}.{time.nanos:09d}Z" for text, time in zip(seconds, times, strict=True)]
    return [_record(*pair, resources) for pair in zip(entries, stamps, strict=True)]


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


def _object(struct: Any) -> Record:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value)
    if kind == "list_value":
        return [_value(one) for one in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


PAGE_SIZE = 1000
"""Maximum page size of the API."""
PATIENCE = RetryPolicy(first=1.0, longest=32.0, tries=6, altogether=600.0)
DEADLINE = 60.0
"""Time limit of one request in seconds."""
ENTRIES_A_MINUTE = 60_000
"""Limit of the quota: 60 reads of 1000 entries per minute and project."""
_LONG_NS = 10 * 10**9


class _PageTokenExpiredError(Exception):
    """Raised if the server does not know the page token any more."""


class LogReader:
    """Reader of query results, page by page: the next page is fetched while one is used, and failed requests are
    retried. The user gets status messages."""

    def __init__(self, connection: Connection, context: ReadContext) -> None:
        self._stop = Event()
        # one thread, because a blocking call in it is cheaper than gRPC's own futures
        self._requests: RequestThreads[Any, Any] = RequestThreads(
            lambda request: connection.list_entries(request, timeout=DEADLINE), 1, self._stop
        )
        self._context = context
        self._entries = self._first_ns = self._newest_ns = 0
        self._said_quota = False

    def read(self, query: LogQuery) -> Iterator[list[Record]]:
        """Yield the records of a query, oldest first, one list per non-empty page. Raises SourceError after the
        retries."""
        last: list[Record] = []
        while True:
            known = {(record["timestamp"], record["insertId"]) for record in last}
            try:
                for page in self._pages(query, PAGE_SIZE):
                    records = records_of(page.entries)
                    if known:
                        records = [one for one in records if (one["timestamp"], one["insertId"]) not in known]
                    self._context.advance(page.ByteSize())
                    if records:
                        self._entries += len(records)
                        self._newest_ns = ns_of(records[-1]["timestamp"])
                        self._first_ns = self._first_ns or ns_of(records[0]["timestamp"])
                        last = records
                        yield records
                return
            except _PageTokenExpiredError:  # query again from the newest entry on, without the known ones
                if last:
                    query = replace(query, since_ns=ns_of(last[-1]["timestamp"]))

    def any_entry(self, query: LogQuery) -> bool:
        """Return True if the query has a result."""
        return any(len(page.entries) > 0 for page in self._pages(query, size=1))

    def close(self) -> None:
        """Close the connection: no more queries follow."""
        self._requests.close()

    def _pages(self, query: LogQuery, size: int) -> Iterator[Any]:
        """Yield the pages, oldest entries first: messages of ListLogEntriesResponse. Raises SourceError after the
        retries, _PageTokenExpiredError for an expired token."""
        request = _request(query, size)
        call = self._requests.start(request)
        while True:
            page = self._result(call, request, query)
            token = page.next_page_token
            if token:
                request = _request(query, size, token)
                call = self._requests.start(request)
            yield page
            if not token:
                return

    def _result(self, call: Future[Any], request: Any, query: LogQuery) -> Any:
        """Return the page, with retries."""
        calls = [call]

        def page() -> Any:
            return _answer(calls.pop() if calls else self._requests.start(request), request, query)

        try:
            return try_again(page, PATIENCE, self._stop, self._report_pause)
        except RetriesExhaustedError as error:
            raise sentence(error.last.__cause__, query) from error

    def _report_pause(self, error: TransientError, seconds: float, sentence: str) -> None:
        """Report why reading pauses; for a used-up quota only the first time, and for a long wait."""
        if error.counts:
            self._context.wait(sentence)
        elif not self._said_quota or seconds * NS_PER_SECOND >= _LONG_NS:
            self._said_quota = True
            self._context.say(
                f"Cloud Logging: the quota of 60 reads per minute is exhausted; waiting {seconds:.0f} s. "
                f"{self._entries} entries so far, {self._rest()}. A large log is read faster from its sink (gs://…)."
            )

    def _rest(self) -> str:
        """Return the estimated remaining time, as if entries were spread evenly until now."""
        done, left = self._newest_ns - self._first_ns, time.time_ns() - self._newest_ns
        if done <= 0 or left < 0:
            return f"at most {ENTRIES_A_MINUTE} more per minute"
        minutes = self._entries * left / done / ENTRIES_A_MINUTE
        return f"about {max(1, round(minutes))} min left at {ENTRIES_A_MINUTE} entries per minute"


def _answer(call: Future[Any], request: Any, query: LogQuery) -> Any:
    """Return the response to a request. Raises TransientError if a retry may succeed."""
    import grpc

    try:
        return call.result()
    except grpc.RpcError as error:
        fault = kind_of(error, bool(request.page_token))
        if fault is Fault.LOST_PLACE:
            raise _PageTokenExpiredError from error
        if fault is Fault.FINAL:
            raise sentence(error, query) from error
        raise TransientError(str(error), counts=fault is Fault.PASSING) from error


def _request(query: LogQuery, size: int, token: str = "") -> Any:
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    return ListLogEntriesRequest(
        resource_names=[f"projects/{query.project}"],
        filter=query.text(),
        order_by="timestamp asc",
        page_size=size,
        page_token=token,
    )
