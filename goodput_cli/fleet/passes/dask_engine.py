"""Tasks on dask.distributed: worker processes of this machine, or somebody else's cluster.

A worker that dies loses nothing: dask runs its tasks again, and a task done twice writes the same under the same name.
A task that kills its workers is cut into single items, which run one at a time, so that one of them alone is blamed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from uuid import uuid4

from distributed import Client, Future, KilledWorker

from goodput_cli.errors import GoodputError
from goodput_cli.fleet.passes.work import Failed

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOOK_SECONDS = 2.0
"""How often to look whether the scheduler is still there."""
_KILLED = "killed its worker (out of memory?)"


class Dask:
    """Tasks on the workers of a client, a few at a time."""

    here = False

    def __init__(
        self,
        client: Client,
        address: str,
        workers: int,
        memory: int | None,
        patience: float | None = None,
        start_again: Callable[[], None] = lambda: None,
    ) -> None:
        """workers, memory: see `Engine`. patience: seconds without any worker after which none is to be hoped for;
        None: wait for ever. start_again: starts workers that were lost while they started."""
        self._client = client
        self.address = address
        self.workers = workers
        self.memory = memory
        self._patience = patience
        self._start_again = start_again
        self._alone_since: float | None = None
        self._finished: SimpleQueue[Future] = SimpleQueue()

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | Failed]]:
        """See `Engine.run`. Raises GoodputError where the scheduler is gone."""
        window: dict[Future, list[Item]] = {}
        suspects: list[list[Item]] = []
        most = 4 * self.workers + 64
        try:
            while True:
                for batch in islice(batches, most - len(window)):
                    window[self._submit(task, batch)] = batch
                if not window:
                    break
                for future in self._done().intersection(window):
                    batch = window.pop(future)
                    result = self._result(future)
                    if isinstance(result, Failed):
                        suspects.append(batch)
                    else:
                        yield batch, result
        finally:
            for future in window:
                future.release()
        for item in (item for batch in suspects for item in batch):
            yield [item], self._alone(task, item)

    def close(self) -> None:
        """Say goodbye; the cluster is closed by who opened it."""
        self._client.close(timeout=2)

    def _alone(self, task: Callable[[Sequence[Item]], Result], item: Item) -> Result | Failed:
        """A task of one item, with nothing else under way: if its worker dies, this item did it."""
        future = self._submit(task, [item])
        while future not in self._done():
            pass
        result: Result | Failed = self._result(future)
        return result

    def _submit(self, task: Callable[[Sequence[Item]], Result], batch: list[Item]) -> Future:
        future = self._client.submit(task, batch, pure=False, key=f"goodput-{uuid4().hex}")
        future.add_done_callback(self._finished.put)  # `distributed.wait` asks every future again, each time
        return future

    def _done(self) -> set[Future]:
        """What has finished since, after a while perhaps nothing. Raises GoodputError: the scheduler is gone."""
        try:
            done = {self._finished.get(timeout=_LOOK_SECONDS)}
            while not self._finished.empty():
                done.add(self._finished.get())
            return done
        except Empty:
            if self._client.status != "running":
                raise self._gone() from None
            self._look_for_workers()
            return set()

    def _look_for_workers(self) -> None:
        """Raises GoodputError where there has been none for too long."""
        self._start_again()
        if self._patience is None or self._client.scheduler_info(n_workers=-1)["workers"]:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > self._patience:
            raise GoodputError("no worker process is left, and none starts again; --workers 1 does without")

    def _result(self, future: Future) -> Any:
        """What a task gave; `Failed` where it killed its workers. Other errors are raised."""
        try:
            return future.result()
        except (KilledWorker, MemoryError):
            return Failed(_KILLED)
        except CancelledError as error:
            raise self._gone() from error
        finally:
            future.release()

    def _gone(self) -> GoodputError:
        return is_gone(self.address)


def is_gone(address: str) -> GoodputError:
    """What to say where a scheduler is gone."""
    return GoodputError(f"the scheduler at {address} is gone; run again with --store to go on")
