"""Page through the answer to a query: fetch the next page while one is used, and try again what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Event
from typing import Any

from goodput_cli.sources.cloud_logging.faults import Fault, kind_of, sentence
from goodput_cli.sources.cloud_logging.query import LogQuery
from goodput_cli.sources.read_ahead import Workers
from goodput_cli.sources.retry import GaveUpError, Patience, TransientError, Wait, try_again

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
        self._requests: Workers[Any, Any] = Workers(
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
