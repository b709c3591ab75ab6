"""What is asked of Cloud Logging, as text of its query language. A value from a person is a value, never language.

Page through the answer to a query: fetch the next page while one is used, and try again what failed.

What a failed request means: try again, or a sentence for a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from threading import Event
from typing import Any
from urllib.parse import quote, unquote

from goodput_cli.errors import GoodputError, SourceError
from goodput_cli.sources.remote import GaveUpError, Patience, RequestThreads, TransientError, Wait, try_again
from goodput_cli.vocabulary.text import iso_of_nine_digits

METRICS_LOG = "ml_diagnostics_metric"
"""The log whose entries name their job in the labels of the resource, not in the payload (formats D)."""

SYSTEM_METRICS = (
    "tpu_duty_cycle", "tpu_tensorcore_utilization", "hbm_utilization", "host_cpu_utilization",
    "host_memory_utilization",
)  # fmt: skip
"""Written by every host each 10 s, whether steps go on or not."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class LogQuery:
    """Entries of one log of a project. All times in ns since 1970 UTC; None: no bound.

    job_name: only entries of this job (Cloud Logging compares without regard to case; the analysis picks exactly).
    since_ns (included), before_ns (excluded): the entry's timestamp. received_ns: when Cloud Logging got it.
    """

    project: str
    log_id: str
    job_name: str | None = None
    since_ns: int | None = None
    before_ns: int | None = None
    received_ns: int | None = None
    heartbeats: bool = True
    """Whether system metrics are asked for, which are 99 in 100 entries of the log of metrics."""

    @property
    def log_name(self) -> str:
        """`projects/PROJECT/logs/LOG_ID`, the identifier escaped as Cloud Logging has it."""
        return f"projects/{self.project}/logs/{quote(self.log_id, safe='')}"

    def text(self) -> str:
        """The filter: clauses that all must hold."""
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
    """The clause for entries of a job. Runs of metrics are named by the job and what its start adds to it, or by a hash
    of which nobody knows the job."""
    if log_id != METRICS_LOG:
        return f"jsonPayload.job_name={quoted(job)}"
    field = "resource.labels.node_id"
    name = re.sub(r"[^a-z0-9]+", "-", job.lower()).strip("-")
    patterns = [f"{field}={quoted(job)}", f'{field}=~"^[0-9a-f]{{64}}$"']
    if name:
        patterns.insert(1, f'{field}=~"^{name}(-|$)"')
    return f"({' OR '.join(patterns)})"


def quoted(value: str) -> str:
    """A string of the query language that means exactly `value`."""
    return '"' + "".join(_ESCAPES.get(one) or _plain(one) for one in value) + '"'


def _plain(character: str) -> str:
    """A character as it is, or escaped where it is a control character or half of a pair."""
    return character if character.isprintable() or ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def rfc3339(ns: int) -> str:
    """An instant as filters and entries of Cloud Logging hold it, of 1970 at the earliest; such texts sort as the
    instants do."""
    return iso_of_nine_digits(max(ns, 0))


def log_ids(job_name: str | None, log_id: str, log_name: str | None) -> tuple[str, ...]:
    """The logs to look in: the one that is named, or both that the libraries write a job to by convention."""
    named = log_name or log_id
    if named:
        return (_identifier(named),)
    return (f"{job_name}-goodput", f"goodput_{job_name}")


def _identifier(name: str) -> str:
    """The log's identifier, also where the whole `projects/P/logs/ID` was given."""
    _, separator, identifier = name.partition("/logs/")
    return unquote(identifier) if separator else name


class Fault(Enum):
    """What to do about a failed request."""

    QUOTA = "wait: too many reads"
    PASSING = "try again"
    LOST_PLACE = "the page token is not known any more"
    FINAL = "give up"


class RefusedError(SourceError):
    """The server does not take the query."""


_BY_CODE = {
    "RESOURCE_EXHAUSTED": Fault.QUOTA,
    "UNAVAILABLE": Fault.PASSING,
    "DEADLINE_EXCEEDED": Fault.PASSING,
    "INTERNAL": Fault.PASSING,
    "ABORTED": Fault.PASSING,
    "UNKNOWN": Fault.PASSING,
    "DATA_LOSS": Fault.PASSING,
    "CANCELLED": Fault.PASSING,
}
_API_OFF = ("SERVICE_DISABLED", "has not been used", "is disabled")


def kind_of(error: Any, with_token: bool) -> Fault:
    """What to do about a gRPC error; with_token: of a request that went on from a page token."""
    code = error.code().name
    if code == "INVALID_ARGUMENT" and with_token:
        return Fault.LOST_PLACE
    return _BY_CODE.get(code, Fault.FINAL)


def sentence(error: Any, query: LogQuery) -> GoodputError:
    """A gRPC error that stays, as the error that a person sees."""
    code, details = error.code().name, str(error.details() or "")
    where = f"Cloud Logging, project {query.project}"
    if code == "PERMISSION_DENIED" and any(mark in details for mark in _API_OFF):
        command = f"gcloud services enable logging.googleapis.com --project {query.project}"
        return SourceError(f"{where}: the Cloud Logging API is off; switch it on with `{command}`")
    if code == "PERMISSION_DENIED":
        return SourceError(f"{where}: no permission to read log entries; ask for the role roles/logging.viewer")
    if code == "UNAUTHENTICATED":
        hint = "run `gcloud auth application-default login`"
        return SourceError(f"{where}: the credentials are not accepted; {hint}")
    if code == "NOT_FOUND":
        return SourceError(f"{where}: there is no such project or log; check cloud-logging://PROJECT/LOG_ID")
    if code == "INVALID_ARGUMENT":
        return RefusedError(f"{where}: the project or log name is not accepted: {_short(details)}")
    if code == "RESOURCE_EXHAUSTED":
        hint = "try again later, or read the log's sink in a bucket (gs://…)"
        return SourceError(f"{where}: the read quota stays used up (60 reads a minute); {hint}")
    return SourceError(f"{where}: gave up after several tries: {code}: {_short(details)}; what was read is kept")


def _short(details: str) -> str:
    return details if len(details) <= 300 else details[:300] + "…"


PAGE_SIZE = 1000
"""The most that the API gives."""


PATIENCE = Patience(first=1.0, longest=32.0, tries=6, altogether=600.0)
DEADLINE = 60.0
"""Seconds that one request may take."""


class LostPlaceError(Exception):
    """The server does not know the page token any more: ask again from the newest entry on."""


class PageReader:
    """Reads pages through gRPC's callable for ListLogEntries.

    waiting: called with the seconds of each wait for the quota, for the person who waits. trying: with each wait for a
    server that does not answer.
    """

    def __init__(self, list_entries: Any, waiting: Callable[[float], None], trying: Callable[[Wait], None]) -> None:
        self._stop = Event()
        # one thread: a blocking call in it is cheaper than gRPC's own futures
        self._requests: RequestThreads[Any, Any] = RequestThreads(
            lambda request: list_entries(request, timeout=DEADLINE), 1, self._stop
        )
        self._waiting, self._trying = waiting, trying

    def pages(self, query: LogQuery, size: int = PAGE_SIZE) -> Iterator[Any]:
        """The pages, oldest entries first: messages of ListLogEntriesResponse.

        Raises SourceError where it gives up, LostPlaceError where the token has expired.
        """
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

    def close(self) -> None:
        """Nothing more will be asked."""
        self._requests.close()

    def any_entry(self, query: LogQuery) -> bool:
        """Whether the query finds anything."""
        return any(len(page.entries) > 0 for page in self.pages(query, size=1))

    def _result(self, call: Future[Any], request: Any, query: LogQuery) -> Any:
        """The page; asks again for the same one as long as there is hope."""
        calls = [call]

        def page() -> Any:
            return _answer(calls.pop() if calls else self._requests.start(request), request, query)

        try:
            return try_again(page, PATIENCE, self._stop, self._before_pause)
        except GaveUpError as error:
            raise sentence(error.last.__cause__, query) from error

    def _before_pause(self, error: TransientError, wait: Wait) -> None:
        if error.counts:
            self._trying(wait)
        else:
            self._waiting(wait.seconds)


def _answer(call: Future[Any], request: Any, query: LogQuery) -> Any:
    """The answer to a request. Raises TransientError where it may work the next time."""
    import grpc

    try:
        return call.result()
    except grpc.RpcError as error:
        fault = kind_of(error, bool(request.page_token))
        if fault is Fault.LOST_PLACE:
            raise LostPlaceError from error
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
