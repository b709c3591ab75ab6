"""Tasks on dask.distributed: worker processes of this machine, or somebody else's cluster.

A worker that dies loses nothing: dask runs its tasks again, and a task done twice writes the same under the same name.
A task that kills its workers is cut into single items, which run one at a time, so that one of them alone is blamed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, Security, wait
from distributed.comm import CommClosedError
from distributed.diagnostics.plugin import WorkerPlugin

from goodput_cli import __version__
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.passes.engine import Workers
from goodput_cli.fleet.passes.work import Failed

Item = TypeVar("Item")
Result = TypeVar("Result")
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.allowed-failures": 1,  # then a task is cut into its items, which are tried alone
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "30s",
    "distributed.worker.daemon": True,
}
_LOOK_SECONDS = 2.0
"""How often to look whether the scheduler is still there."""
_PATIENCE_SECONDS = 60.0
"""How long a worker of this machine that died may take to be there again. A cluster of somebody else may have to wait
for its machines."""
_KILLED = "killed its worker (out of memory?)"
_MOST_BYTES = 4 << 30
_STARTS = 3
_QUIET = "ignore::UserWarning:multiprocessing.resource_tracker"
"""What is cleared away after workers that were left in a hurry is nobody's warning."""


class Dask:
    """Tasks on the workers of a client, a few at a time."""

    here = False

    def __init__(self, client: Client, address: str, patience: float | None = None) -> None:
        """patience: seconds without any worker after which none is to be hoped for; None: wait for ever."""
        self._client = client
        self.address = address
        self._patience = patience
        self._alone_since: float | None = None

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
            self._look_for_workers()
            return []
        except CancelledError as error:
            raise self._gone() from error

    def _look_for_workers(self) -> None:
        """Raises GoodputError where there has been none for too long."""
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
        return _is_gone(self.address)


def _is_gone(address: str) -> GoodputError:
    return GoodputError(f"the scheduler at {address} is gone; run again with --store to go on")


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
        started: list[Any] = []
        try:
            with _ctrl_c_ignored(), dask.config.set({"temporary-directory": folder}):
                started += _started(count, memory, folder, security)
            client, cluster = started
            yield Dask(client, cluster.scheduler_address, _PATIENCE_SECONDS)
            client.close(timeout=2)
            cluster.close(timeout=5)
        except BaseException:
            _leave_quickly(started)
            raise


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal, and the one that a person started decides: what is started in between
    ignores it for good (a blocked signal would do, but multiprocessing unblocks it)."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread, where signals are nobody's business
        yield
        return
    sys.warnoptions.append(_QUIET)
    try:
        yield
    finally:
        sys.warnoptions.remove(_QUIET)
        signal.signal(signal.SIGINT, before)


class _IgnoresCtrlC(WorkerPlugin):  # type: ignore[misc]
    """The same for workers that are started later, in the place of one that died."""

    name = "goodput-ctrl-c"

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - dask's signature
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _started(count: int, memory: str | None, folder: str, security: Security) -> tuple[Client, LocalCluster]:
    """A client and its cluster. A worker that is lost while it starts costs a second start; GoodputError after some."""
    for _ in range(_STARTS):
        try:
            cluster = _cluster(count, memory, folder, security)
        except RuntimeError as error:
            reason = error
            continue
        client = Client(cluster, security=security)
        with contextlib.suppress(OSError):  # a worker that was lost just now; the next one in its place has it
            client.register_plugin(_IgnoresCtrlC())
        return client, cluster
    raise GoodputError(f"no workers could be started ({reason}); --workers 1 does without")


def _cluster(count: int, memory: str | None, folder: str, security: Security) -> LocalCluster:
    return LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # no dashboard is served, but the port is taken: any will do
        host="tls://127.0.0.1",
        protocol="tls",
        security=security,
        memory_limit=memory or _share_of_memory(count),
        silence_logs=logging.CRITICAL,
        local_directory=folder,
    )


def _leave_quickly(started: Sequence[Any]) -> None:
    """Close what was started without waiting for tasks; a second Ctrl-C must not leave processes behind."""
    logging.disable(logging.CRITICAL)
    with _ctrl_c_ignored():
        for one, seconds in zip(started, (1, 2), strict=False):
            with contextlib.suppress(Exception):
                one.close(timeout=seconds)


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
    except (CommClosedError, ConnectionError) as error:  # any call may be the one that meets the closed connection
        raise _is_gone(address) from error
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

    from goodput_cli.fleet.passes.accounting import code_version

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
