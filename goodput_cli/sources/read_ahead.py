"""Work done in threads before its result is needed, so that the network is never waited for twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from itertools import islice
from queue import SimpleQueue
from threading import Event, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(Generic[Item, Result]):
    """Threads that call `work` for one item after the other.

    They are daemons, unlike those of concurrent.futures: an interrupted command ends at once instead of waiting for
    the network. stop: once it is set, nothing more is begun.
    """

    def __init__(self, work: Callable[[Item], Result], count: int, stop: Event) -> None:
        self._work = work
        self._count = count
        self._stop = stop
        self._started = 0
        self._jobs: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()

    def start(self, item: Item) -> Future[Result]:
        """The result for an item, or its error, as soon as it is there."""
        if self._started < self._count:
            Thread(target=self._run, daemon=True, name="goodput-reader").start()
            self._started += 1
        future: Future[Result] = Future()
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
    items: Iterable[Item], work: Callable[[Item], Result], stop: Event, workers: int, held: int
) -> Generator[Future[Result], None, None]:
    """Calls `work` for items in threads, at most `held` items ahead of who takes the results: a future per item.

    Closing the generator sets `stop` and ends the threads after what they do now.
    """
    source = iter(items)
    threads = Workers(work, workers, stop)
    try:
        waiting = deque(threads.start(item) for item in islice(source, held))
        while waiting:
            yield waiting.popleft()
            waiting.extend(threads.start(item) for item in islice(source, 1))
    finally:
        threads.close()
