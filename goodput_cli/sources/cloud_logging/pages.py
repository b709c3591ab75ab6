"""The pages of a query, one after the other, whatever happens on the way: the next one is fetched while one is used."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from goodput_cli.sources.cloud_logging.ahead import Caller
from goodput_cli.sources.cloud_logging.faults import Fault, kind_of, sentence
from goodput_cli.sources.cloud_logging.query import LogQuery

PAGE_SIZE = 1000
"""The most that the API gives."""


@dataclass(frozen=True)
class Patience:
    """How long to keep trying. Seconds; waits double from `first` to `longest`, each shortened by up to half.

    quota: how long to wait altogether for one page while the quota is used up. tries: how often one page may fail in
    other ways. deadline: of one request.
    """

    first: float = 1.0
    longest: float = 32.0
    quota: float = 600.0
    tries: int = 6
    deadline: float = 60.0


PATIENCE = Patience()


class LostPlaceError(Exception):
    """The server does not know the page token any more: ask again from the newest entry on."""


class PageReader:
    """Reads pages through gRPC's callable for ListLogEntries.

    waiting: called with the seconds of each wait for the quota, for the person who waits.
    """

    def __init__(
        self,
        list_entries: Any,
        waiting: Callable[[float], None],
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._caller = Caller(list_entries)
        self._waiting = waiting
        self._patience = patience or PATIENCE
        self._sleep = sleep

    def pages(self, query: LogQuery, size: int = PAGE_SIZE) -> Iterator[Any]:
        """The pages, oldest entries first: messages with `entries` as bytes.

        Raises SourceError where it gives up, LostPlaceError where the token has expired.
        """
        request = _request(query, size)
        call = self._start(request)
        while True:
            page = self._result(call, request, query)
            token = page.next_page_token
            if token:
                request = _request(query, size, token)
                call = self._start(request)
            yield page
            if not token:
                return

    def close(self) -> None:
        """Nothing more will be asked."""
        self._caller.close()

    def any_entry(self, query: LogQuery) -> bool:
        """Whether the query finds anything."""
        return any(len(page.entries) > 0 for page in self.pages(query, size=1))

    def _start(self, request: Any) -> Any:
        return self._caller.start(request, self._patience.deadline)

    def _result(self, call: Any, request: Any, query: LogQuery) -> Any:
        """The page; asks again for the same one as long as there is hope."""
        import grpc

        failures, wait, waited = 0, self._patience.first, 0.0
        while True:
            try:
                return call.result()
            except grpc.RpcError as error:
                fault = kind_of(error, bool(request.page_token))
                if fault is Fault.LOST_PLACE:
                    raise LostPlaceError from error
                failures += fault is Fault.PASSING
                if fault is Fault.FINAL or failures >= self._patience.tries or waited >= self._patience.quota:
                    raise sentence(error, query) from error
            pause = wait * random.uniform(0.5, 1.0)
            if fault is Fault.QUOTA:
                self._waiting(pause)
            self._sleep(pause)
            waited += pause
            wait = min(2 * wait, self._patience.longest)
            call = self._start(request)


def _request(query: LogQuery, size: int, token: str = "") -> Any:
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    return ListLogEntriesRequest(
        resource_names=[f"projects/{query.project}"],
        filter=query.text(),
        order_by="timestamp asc",
        page_size=size,
        page_token=token,
    )
