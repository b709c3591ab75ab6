"""Requests to other machines, with retries and parallel requests."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from goodput_cli.record.queues import pause_after

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retries. Pauses are those of `record.queues.pause_after`."""

    first: float
    """The first pause, s."""
    longest: float
    """The longest pause, s, also if a server asks for more."""
    tries: int
    """Maximum number of attempts of one request, except those that fail because of a quota."""
    altogether: float = math.inf
    """Maximum sum of all pauses of one request, s."""


class TransientError(Exception):
    """Raised if a retry may succeed: too many requests, a server in trouble, a broken connection."""

    def __init__(self, reason: str, pause: float | None = None, *, counts: bool = True) -> None:
        super().__init__(reason)
        self.pause = pause
        """Seconds that the server asks to wait; None if it does not."""
        self.counts = counts
        """True if it counts as an attempt; waiting for a quota does not."""


class RetriesExhaustedError(Exception):
    """Raised when all retries failed; args: the reason, for people."""

    def __init__(self, reason: str, last: TransientError) -> None:
        super().__init__(reason)
        self.last = last
        """The last error."""


def try_again(
    work: Callable[[], Result],
    patience: RetryPolicy,
    stop: Event,
    before_pause: Callable[[TransientError, float, str], object] | None = None,
) -> Result:
    """Return the result of `work`, called again after each TransientError.

    before_pause: called before the next attempt with the error, the seconds until then, and a message. Raises
    RetriesExhaustedError when the limits of `patience` are reached, or once `stop` is set.
    """
    failures, pauses, paused = 0, 0, 0.0
    while True:
        try:
            return work()
        except TransientError as error:
            failures += error.counts
            if failures >= patience.tries or paused >= patience.altogether:
                raise RetriesExhaustedError(f"all {failures} tries failed: {error}", error) from error
            pauses += 1
            pause = pause_after(pauses, patience.first, patience.longest)
            pause = min(max(pause, error.pause or 0.0), patience.longest)
            if before_pause is not None:
                which = f"try {failures + 1} of {patience.tries}"
                before_pause(error, pause, f"no answer; {which} in {max(round(pause), 1)} s")
            if stop.wait(pause):
                raise RetriesExhaustedError("stopped", error) from error
        paused += pause


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class RequestThreads(Generic[Item, Outcome]):
    """Threads that call `work` for one item after the other.

    They are daemons, unlike those of concurrent.futures: an interrupted command ends at once instead of waiting for the
    network. stop: once it is set, no new work begins.
    """

    def __init__(self, work: Callable[[Item], Outcome], count: int, stop: Event) -> None:
        self._work = work
        self._count = count
        self._stop = stop
        self._started = 0
        self._jobs: SimpleQueue[tuple[Item, Future[Outcome]] | None] = SimpleQueue()

    def start(self, item: Item) -> Future[Outcome]:
        """Return a future of the result for an item."""
        if self._started < self._count:
            Thread(target=self._run, daemon=True, name="goodput-reader").start()
            self._started += 1
        from concurrent.futures import Future  # imported late: it imports logging, and few commands need it

        future: Future[Outcome] = Future()
        self._jobs.put((item, future))
        return future

    def close(self) -> None:
        """End the threads after their current work."""
        self._stop.set()
        for _ in range(self._started):
            self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            item, future = job
            if self._stop.is_set():
                continue
            try:
                future.set_result(self._work(item))
            except BaseException as error:  # it is raised where the result is used
                future.set_exception(error)
            del item, future, job  # free the result before the next one arrives


def read_ahead(
    items: Iterable[Item], work: Callable[[Item], Outcome], stop: Event, workers: int, held: int
) -> Generator[Future[Outcome], None, None]:
    """Yield a future per item, calling `work` in threads, at most `held` items ahead of the consumer.

    Closing the generator sets `stop` and ends the threads after their current work.
    """
    source = iter(items)
    threads = RequestThreads(work, workers, stop)
    try:
        waiting = deque(threads.start(item) for item in islice(source, held))
        while waiting:
            yield waiting.popleft()
            waiting.extend(threads.start(item) for item in islice(source, 1))
    finally:
        threads.close()
