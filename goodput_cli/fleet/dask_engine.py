"""Tasks on dask.distributed: worker processes of this machine, or somebody else's cluster.

A worker that dies loses nothing: dask runs its tasks again, and a task done twice writes the same under the same name.
A task that kills its workers is cut into single items, which run one at a time, so that one of them alone is blamed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, Security, wait
from distributed.diagnostics.plugin import WorkerPlugin

from goodput_cli import __version__
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.engine import Workers
from goodput_cli.fleet.work import Failed

Item = TypeVar("Item")
Result = TypeVar("Result")
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.allowed-failures": 3,
    "distributed.comm.timeouts.connect": "30s",
    "distributed.worker.daemon": True,
}
_LOOK_SECONDS = 2.0
"""How often to look whether the scheduler is still there."""
_KILLED = "killed its worker (out of memory?)"
_MOST_BYTES = 4 << 30


class _LeavesCtrlCAlone(WorkerPlugin):  # type: ignore[misc]
    """Ctrl-C reaches every process of a terminal; the one that a person started decides."""

    name = "goodput-ctrl-c"

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - dask's signature
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class Dask:
    """Tasks on the workers of a client, a few at a time."""

    here = False

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | Failed]]:
        """See `Engine.run`. Raises GoodputError where the scheduler is gone."""
        window: dict[Future, list[Item]] = {}
        suspects: list[list[Item]] = []
        most = 4 * max(len(self._client.scheduler_info(n_workers=-1)["workers"]), 1) + 64
        try:
            while True:
                for batch in islice(batches, most - len(window)):
                    window[self._submit(task, batch)] = batch
                if not window:
                    break
                for future in self._done(window):
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
        for _ in iter(lambda: self._done({future: [item]}), [future]):
            pass
        result: Result | Failed = self._result(future)
        return result

    def _submit(self, task: Callable[[Sequence[Item]], Result], batch: list[Item]) -> Future:
        return self._client.submit(task, batch, pure=False, key=f"goodput-{uuid4().hex}")

    def _done(self, window: dict[Future, list[Item]]) -> list[Future]:
        """The futures that are finished, after a while perhaps none. Raises GoodputError: the scheduler is gone."""
        try:
            return list(wait(list(window), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            if self._client.status != "running":
                raise self._gone() from None
            return []
        except CancelledError as error:
            raise self._gone() from error

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
        return GoodputError(f"the scheduler at {self._address} is gone; run again with --store to go on")


@contextlib.contextmanager
def open_dask(count: int, workers: Workers, store: Path) -> Iterator[Dask]:
    """Workers: those of a scheduler that is named, else `count` processes of this machine.

    Raises UsageError where a cluster may not be used, GoodputError where it cannot be reached.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(_SETTINGS):
        if workers.scheduler is None:
            with _local_cluster(count, workers.memory) as engine:
                yield engine
            return
        with _somebodys_cluster(workers, store) as engine:
            yield engine


@contextlib.contextmanager
def _local_cluster(count: int, memory: str | None) -> Iterator[Dask]:
    """Processes of this machine, which speak on loopback, encrypted with a key that nobody else has: whoever can speak
    to a dask scheduler can run code."""
    with tempfile.TemporaryDirectory(prefix="goodput-") as folder:
        security = Security.temporary()
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="tls://127.0.0.1",
            protocol="tls",
            security=security,
            memory_limit=memory or _share_of_memory(count),
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        )
        client = Client(cluster, security=security)
        try:
            client.register_plugin(_LeavesCtrlCAlone())
            yield Dask(client, cluster.scheduler_address)
            client.close(timeout=2)
            cluster.close(timeout=5)
        except KeyboardInterrupt:
            _leave_quickly(client, cluster)
            raise
        except BaseException:
            _leave_quickly(client, cluster)
            raise


def _leave_quickly(client: Client, cluster: LocalCluster) -> None:
    """Close without waiting for tasks; a second Ctrl-C must not leave processes behind."""
    before = signal.getsignal(signal.SIGINT)
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    try:
        for close, seconds in ((client.close, 1), (cluster.close, 2)):
            with contextlib.suppress(Exception):
                close(timeout=seconds)
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _somebodys_cluster(workers: Workers, store: Path) -> Iterator[Dask]:
    address = workers.scheduler or ""
    secure = address.startswith("tls://")
    if not secure and not workers.insecure_scheduler:
        raise UsageError(
            "--scheduler: whoever can speak to a scheduler can run code on its workers; name one with tls://, or say "
            "--insecure-scheduler"
        )
    named = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = Client(**named, timeout=30)
    except (OSError, ValueError, TimeoutError) as error:
        raise GoodputError(f"the scheduler at {address} cannot be reached: {error}") from error
    try:
        _shake_hands(client, store)
        yield Dask(client, address)
    finally:
        client.close(timeout=2)


def _shake_hands(client: Client, store: Path) -> None:
    """Raises UsageError unless every worker has this code and sees the store."""
    token = uuid4().hex
    path = store / f"tmp-{token}"
    path.write_text(token)
    try:
        answers = client.run(_introduce, str(path))
    finally:
        path.unlink(missing_ok=True)
    if not answers:
        raise UsageError("the scheduler has no workers; start some with `dask worker`")
    own = _introduce(str(path))
    for worker, answer in sorted(answers.items()):
        if answer[1:] != own[1:]:
            raise UsageError(f"the worker {worker} has {_words(answer)}, and here is {_words(own)}; install the same")
        if answer[0] != token:
            raise UsageError(f"the worker {worker} does not see {store}; --store must be a folder that all share")


def _introduce(path: str) -> tuple[str, ...]:
    """What a worker reads in the store, and what it runs."""
    import sys

    import numpy as np
    import pyarrow as pa

    from goodput_cli.fleet.accounting import code_version

    try:
        token = Path(path).read_text()
    except OSError:
        token = ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = (module.__version__.partition(".")[0] for module in (np, pa))
    return (token, f"{__version__} ({code_version()[:8]})", python, *versions)


def _words(answer: tuple[str, ...]) -> str:
    return "goodput {1}, Python {2}, numpy {3}, pyarrow {4}".format(*answer)


def _share_of_memory(count: int) -> int:
    """A worker's part of three quarters of the machine, at most 4 GiB."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min(whole * 3 // 4 // count, _MOST_BYTES))
