"""Many small jobs at once, their results in order, with a bound on how many are held."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from itertools import islice
from queue import SimpleQueue
from threading import Event, Thread
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Jobs: TypeAlias = "SimpleQueue[tuple[Item, Future[Result]] | None]"


def read_ahead(
    items: Iterable[Item], work: Callable[[Item], Result], stop: Event, workers: int, held: int
) -> Generator[Future[Result], None, None]:
    """Calls `work` for items in threads, at most `held` items ahead of who takes the results: a future per item.

    Closing the generator sets `stop` and ends the threads after what they do now. They are daemons: an interrupted
    command ends at once instead of waiting for the network.
    """
    source = iter(items)
    jobs: Jobs[Item, Result] = SimpleQueue()
    waiting: deque[Future[Result]] = deque()
    started = 0
    try:
        for item in islice(source, held):
            waiting.append(_submit(jobs, item))
            if started < workers:
                Thread(target=_run, args=(jobs, work, stop), daemon=True, name="goodput-reader").start()
                started += 1
        while waiting:
            yield waiting.popleft()
            waiting.extend(_submit(jobs, item) for item in islice(source, 1))
    finally:
        stop.set()
        for _ in range(started):
            jobs.put(None)


def _submit(jobs: Jobs[Item, Result], item: Item) -> Future[Result]:
    future: Future[Result] = Future()
    jobs.put((item, future))
    return future


def _run(jobs: Jobs[Item, Result], work: Callable[[Item], Result], stop: Event) -> None:
    while (job := jobs.get()) is not None:
        item, future = job
        if stop.is_set():
            continue
        try:
            future.set_result(work(item))
        except BaseException as error:  # it is raised where the result is taken
            future.set_exception(error)
        del future, job  # a result that was taken must not live until the next one
