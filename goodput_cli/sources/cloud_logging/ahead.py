"""Requests made in a thread of their own, so that a page is on its way while the one before is used."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any


class Caller:
    """Makes one request after the other. A blocking call there is cheaper than gRPC's own futures.

    The thread is a daemon: an interrupted command ends at once instead of waiting for an answer.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._jobs: SimpleQueue[tuple[Any, float, Future[Any]] | None] = SimpleQueue()
        self._started = False

    def start(self, request: Any, timeout: float) -> Future[Any]:
        """The answer to a request, or its error, as soon as it is there. timeout: s."""
        if not self._started:
            Thread(target=self._run, daemon=True, name="goodput-cloud-logging").start()
            self._started = True
        future: Future[Any] = Future()
        self._jobs.put((request, timeout, future))
        return future

    def close(self) -> None:
        """End the thread after what it does now."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            request, timeout, future = job
            try:
                future.set_result(self._call(request, timeout=timeout))
            except BaseException as error:  # it is raised where the answer is taken
                future.set_exception(error)
            del request, future, job  # an answer that was taken must not live until the next one
