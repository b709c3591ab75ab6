"""Talking to other machines: what failed is tried again, and several requests are under way at once."""

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
    """How long to keep trying. Pauses are those of `record.queues.pause_after`."""

    first: float
    """The first pause, s."""
    longest: float
    """The longest pause, s; a server that asks for more gets no more."""
    tries: int
    """How often the same request may be made, those not counted that fail because of a quota."""
    altogether: float = math.inf
    """How long to pause for one request in all, s."""


class TransientError(Exception):
    """It may work the next time: too many requests, a server in trouble, a connection that broke."""

    def __init__(self, reason: str, pause: float | None = None, *, counts: bool = True) -> None:
        super().__init__(reason)
        self.pause = pause
        """Seconds that the server asks to wait, if it does."""
        self.counts = counts
        """Whether it is one of the tries that are allowed; waiting for a quota is not."""


class GaveUpError(Exception):
    """It failed too often in ways that might have passed; args: the reason, for people."""

    def __init__(self, reason: str, last: TransientError) -> None:
        super().__init__(reason)
        self.last = last
        """What it failed with in the end."""


def try_again(
    work: Callable[[], Result],
    patience: RetryPolicy,
    stop: Event,
    before_pause: Callable[[TransientError, float, str], object] | None = None,
) -> Result:
    """The result of `work`, called again after each TransientError.

    before_pause: called before the next try with the error, the seconds until then, and what to say of it. Raises
    GaveUpError when patience ends, or once `stop` is set.
    """
    failures, pauses, paused = 0, 0, 0.0
    while True:
        try:
            return work()
        except TransientError as error:
            failures += error.counts
            if failures >= patience.tries or paused >= patience.altogether:
                raise GaveUpError(f"all {failures} tries failed: {error}", error) from error
            pauses += 1
            pause = pause_after(pauses, patience.first, patience.longest)
            pause = min(max(pause, error.pause or 0.0), patience.longest)
            if before_pause is not None:
                which = f"try {failures + 1} of {patience.tries}"
                before_pause(error, pause, f"no answer; {which} in {max(round(pause), 1)} s")
            if stop.wait(pause):
                raise GaveUpError("stopped", error) from error
        paused += pause


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class RequestThreads(Generic[Item, Outcome]):
    """Threads that call `work` for one item after the other.

    They are daemons, unlike those of concurrent.futures: an interrupted command ends at once instead of waiting for
    the network. stop: once it is set, nothing more is begun.
    """

    def __init__(self, work: Callable[[Item], Outcome], count: int, stop: Event) -> None:
        self._work = work
        self._count = count
        self._stop = stop
        self._started = 0
        self._jobs: SimpleQueue[tuple[Item, Future[Outcome]] | None] = SimpleQueue()

    def start(self, item: Item) -> Future[Outcome]:
        """The result for an item, or its error, as soon as it is there."""
        if self._started < self._count:
            Thread(target=self._run, daemon=True, name="goodput-reader").start()
            self._started += 1
        from concurrent.futures import Future  # with logging behind it, for what few commands read

        future: Future[Outcome] = Future()
        self._jobs.put((item, future))
        return future

    def close(self) -> None:
        """End the threads after what they do now."""
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
            except BaseException as error:  # it is raised where the result is taken
                future.set_exception(error)
            del item, future, job  # a result that was taken must not live until the next one


def read_ahead(
    items: Iterable[Item], work: Callable[[Item], Outcome], stop: Event, workers: int, held: int
) -> Generator[Future[Outcome], None, None]:
    """Calls `work` for items in threads, at most `held` items ahead of who takes the results: a future per item.

    Closing the generator sets `stop` and ends the threads after what they do now.
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
