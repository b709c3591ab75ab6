"""Tasks on dask.distributed: worker processes of this machine, or an existing cluster.

A worker that dies loses nothing: dask runs its tasks again, and a task done twice writes the same under the same name.
A task that kills its workers is cut into single items, which run one at a time, so that one of them alone is blamed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import dask
from dask.utils import parse_bytes
from distributed import Client, Future, KilledWorker, LocalCluster, Security
from distributed.comm import CommClosedError
from distributed.core import Status

from goodput_cli import __version__
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.passes.read import LEAST, of_this_machine
from goodput_cli.fleet.passes.work import FailedTask
from goodput_cli.fleet.question import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOOK_SECONDS = 2.0
"""Interval for checking that the scheduler is still running."""
_KILLED = "killed its worker (out of memory?)"


@dataclass
class Dask:
    """Tasks on the workers of a client, a few at a time."""

    client: Client
    address: str
    workers: int
    memory: int | None
    """Memory of each worker; see `Engine`."""
    patience: float | None = None
    """Seconds without any worker process after which none is to be hoped for, and ten times that where processes start
    but none gets to work; None: wait for ever."""
    start_again: Callable[[], bool] = lambda: False
    """Starts workers that were lost while they started; returns True if any process is starting."""
    here: ClassVar[bool] = False
    _last_process: float = field(default_factory=time.monotonic)
    _last_worker: float = field(default_factory=time.monotonic)
    """Last time a process was starting or a worker was working."""
    _finished: SimpleQueue[Future] = field(default_factory=SimpleQueue)

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | FailedTask]]:
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
                    if isinstance(result, FailedTask):
                        suspects.append(batch)
                    else:
                        yield batch, result
        finally:
            for future in window:
                future.release()
        for item in (item for batch in suspects for item in batch):
            yield [item], self._run_alone(task, item)

    def _run_alone(self, task: Callable[[Sequence[Item]], Result], item: Item) -> Result | FailedTask:
        """A task of one item, with nothing else under way: if its worker dies, this item did it."""
        future = self._submit(task, [item])
        while future not in self._done():
            pass
        result: Result | FailedTask = self._result(future)
        return result

    def _submit(self, task: Callable[[Sequence[Item]], Result], batch: list[Item]) -> Future:
        future = self.client.submit(task, batch, pure=False, key=f"goodput-{uuid4().hex}")
        future.add_done_callback(self._finished.put)  # `distributed.wait` asks every future again, each time
        return future

    def _done(self) -> set[Future]:
        """Return the futures that finished since; may be empty. Raises GoodputError if the scheduler is gone."""
        try:
            done = {self._finished.get(timeout=_LOOK_SECONDS)}
            while not self._finished.empty():
                done.add(self._finished.get())
            return done
        except Empty:
            if self.client.status != "running":
                raise _gone(self.address) from None
            self._look_for_workers()
            return set()

    def _look_for_workers(self) -> None:
        """Raises GoodputError where there has been none for too long. A process that starts counts as one for long: on
        a machine that is busy with other things it takes a minute."""
        starts, now = self.start_again(), time.monotonic()
        works = self.patience is None or bool(self.client.scheduler_info(n_workers=-1)["workers"])
        self._last_process = now if starts or works else self._last_process
        self._last_worker = now if works else self._last_worker
        if self.patience is None:
            return
        if max(now - self._last_process, (now - self._last_worker) / _STARTS_LONGER) > self.patience:
            raise GoodputError("all worker processes have died and cannot be restarted", tip="use --workers 1")

    def _result(self, future: Future) -> Any:
        """Return the result of a task; `FailedTask` if it killed its workers. Other errors are raised."""
        try:
            return future.result()
        except (KilledWorker, MemoryError):
            return FailedTask(_KILLED)
        except CancelledError as error:
            raise _gone(self.address) from error
        finally:
            future.release()


def _gone(address: str) -> GoodputError:
    """Return the error for a lost scheduler."""
    return GoodputError(f"lost the connection to the scheduler at {address}", tip="run again with --store to continue")


_PATIENCE_SECONDS = 60.0
"""Time that a worker that died may take to return. An existing cluster may have to wait for its machines."""
_STARTS_LONGER = 10
"""Factor on that time for processes that are starting."""
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""As dask sets it, except for freed memory: it is not returned at once, because the next line needs it again. That
would cause ten times as many page faults."""
_QUIET = "ignore::UserWarning:multiprocessing.resource_tracker"
"""Warnings about resources of workers that were closed quickly do not concern the user."""


@contextlib.contextmanager
def local_cluster(count: int, memory: int) -> Iterator[Dask]:
    """Start processes of this machine, which start while the first tasks are handed out. memory: of each (bytes).

    They communicate over loopback, encrypted with a private key: everyone who can connect to a dask scheduler can run
    code.
    """
    with (
        tempfile.TemporaryDirectory(prefix="goodput-") as folder,
        dask.config.set({"temporary-directory": folder, "distributed.nanny.pre-spawn-environ": _ENVIRONMENT}),
    ):
        strangers = set(multiprocessing.active_children())
        started: list[Any] = []
        try:
            security = Security.temporary()
            with _delayed_ctrl_c():
                started.append(_cluster(memory, folder, security))
            cluster = started[0]
            started.append(Client(cluster, security=security))
            cluster.scale(count)
            yield Dask(
                started[1],
                cluster.scheduler_address,
                count,
                memory,
                patience=_PATIENCE_SECONDS,
                start_again=lambda: _start_again(cluster, count),
            )
        finally:
            _leave(started, strangers)


@contextlib.contextmanager
def _delayed_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal, and the one that a person started decides. Threads that are started
    here, and the processes that they start, have it blocked for good; this thread has it again afterwards."""
    sys.warnoptions.append(_QUIET)
    try:
        resource_tracker.ensure_running()  # else multiprocessing does, and unblocks the signal
    finally:
        sys.warnoptions.remove(_QUIET)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cluster(memory: int, folder: str, security: Security) -> LocalCluster:
    """A scheduler in a thread of this process, without workers yet."""
    return LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # no dashboard is served, but the port is taken: any will do
        host="tls://127.0.0.1",
        protocol="tls",
        security=security,
        memory_limit=memory,
        silence_logs=logging.CRITICAL,
        local_directory=folder,
        env={"TMPDIR": folder},
    )


def _start_again(cluster: LocalCluster, count: int) -> bool:
    """A worker that was lost while it started is started once more; later, dask does that itself. Whether any process
    is there, be it that it only starts."""
    lost = [name for name, one in list(cluster.workers.items()) if one.status in (Status.failed, Status.closed)]
    for name in lost:
        cluster.workers.pop(name, None)
    if lost:
        cluster.scale(count)
    return any(one.is_alive() for one in list(cluster.workers.values()))


def _leave(started: list[Any], strangers: set[Any]) -> None:
    """Close all started processes at once: no worker has needed results. A second Ctrl-C must not leave processes
    running. strangers: processes that were not started here."""
    logging.disable(logging.CRITICAL)
    with _ctrl_c_ignored():
        for cluster in started[:1]:
            for nanny in list(cluster.workers.values()):
                nanny.auto_restart = False
        for process in set(multiprocessing.active_children()) - strangers:
            process.kill()
        for one in reversed(started):
            with contextlib.suppress(Exception):
                one.close(timeout=0.5)
        for process in set(multiprocessing.active_children()) - strangers:
            process.kill()
            process.join(1)
    logging.disable(logging.NOTSET)


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread, so signals are handled elsewhere
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",  # as it is, watching an idle cluster takes a tenth of a processor
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.scheduler.allowed-failures": 1,  # then a task is cut into its items, which are tried alone
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "30s",
    "distributed.worker.daemon": True,
}
_LOGGERS = ("distributed", "distributed.client")
"""Loggers with their own level in dask: about a lost scheduler they log a traceback, and goodput a sentence."""
_MOST_BYTES = 4 << 30
_FIRST_WORKER_SECONDS = 60.0
"""Time for the first worker of an existing cluster to appear: batch jobs and containers need a while."""


@contextlib.contextmanager
def open_dask(count: int, workers: Workers, store: Path, log: str | None = None) -> Iterator[Dask]:
    """Workers: those of a scheduler that is named, else `count` processes of this machine. log: the path of a file that
    all are to see; None where there is none.

    Raises UsageError where a cluster may not be used, GoodputError where it cannot be reached.
    """
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set(_SETTINGS):
        if workers.scheduler is None:
            with local_cluster(count, _limit(count, workers.memory)) as engine:
                yield engine
            return
        with _existing_cluster(workers, [store] if log is None else [store, Path(log)]) as engine:
            yield engine


@contextlib.contextmanager
def _existing_cluster(workers: Workers, shared: Sequence[Path]) -> Iterator[Dask]:
    address = _address(workers.scheduler or "")
    if not address.startswith("tls://") and not workers.insecure_scheduler:
        raise UsageError(
            "--scheduler: anyone who can connect to a scheduler can run code on its workers",
            tip="use a tls:// address, or pass --insecure-scheduler",
        )
    try:
        client = Client(address, timeout=30)
    except (OSError, ValueError, TimeoutError) as error:
        raise GoodputError(f"the scheduler at {address} cannot be reached: {error}") from error
    except TypeError as error:  # dask's error for TLS without certificates
        raise GoodputError(
            f"the scheduler at {address} requires certificates",
            tip="set them in dask's configuration (distributed.comm.tls)",
        ) from error
    try:
        _wait_for_a_worker(client)
        _shake_hands(client, *shared)
        limits = [one["memory_limit"] for one in client.scheduler_info(n_workers=-1)["workers"].values()]
        yield Dask(client, address, len(limits), min((one for one in limits if one), default=None))
    except (CommClosedError, ConnectionError) as error:  # any call may be the one that meets the closed connection
        raise _gone(address) from error
    finally:
        client.close(timeout=2)


def _address(named: str) -> str:
    """Return the address of a scheduler that is named by its address or by the file that it wrote. Raises
    UsageError."""
    if "://" in named:
        return named
    file = Path(named)
    if not file.is_file():
        raise UsageError(f"--scheduler {named}: not a file and not an address (tls://HOST:PORT)")
    try:
        return str(json.loads(file.read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"--scheduler {named}: not a scheduler file written by dask") from error


def _wait_for_a_worker(client: Client) -> None:
    """Raises UsageError where none comes; those that come later help as well."""
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
    except TimeoutError as error:
        raise UsageError(
            f"no worker connected to the scheduler within {_FIRST_WORKER_SECONDS:.0f} s",
            tip="start one with `dask worker`",
        ) from error


def _shake_hands(client: Client, store: Path, log: Path | None = None) -> None:
    """Raises UsageError unless every worker has this code and sees the store and the log."""
    token = uuid4().hex
    path = store / f"tmp-{token}"
    path.write_text(token)
    try:
        answers = client.run(_introduce, str(path), None if log is None else str(log))
    finally:
        path.unlink(missing_ok=True)
    own = _introduce(str(path), None)
    for worker, answer in sorted(answers.items()):
        if answer[2:] != own[2:]:
            raise UsageError(
                f"the worker {worker} has {_words(answer)}, but this machine has {_words(own)}",
                tip="install the same versions",
            )
        if answer[0] != token:
            raise UsageError(
                f"the worker {worker} cannot read {store}; --store must be a folder that all workers share"
            )
        if not answer[1]:
            raise UsageError(
                f"the worker {worker} cannot read {log}", tip="logs must have the same path on all workers"
            )


def _introduce(path: str, log: str | None) -> tuple[str, ...]:
    """Check a worker: return what it reads in the store, whether it sees a log, and its versions."""
    import sys

    import numpy as np
    import pyarrow as pa

    from goodput_cli.fleet.results import code_version

    try:
        token = Path(path).read_text()
    except OSError:
        token = ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = (module.__version__.partition(".")[0] for module in (np, pa))
    seen = "" if log is not None and not Path(log).exists() else "yes"
    return (token, seen, f"{__version__} ({code_version()[:8]})", python, *versions)


def _words(answer: tuple[str, ...]) -> str:
    return "goodput {2}, Python {3}, numpy {4}, pyarrow {5}".format(*answer)


def _limit(count: int, memory: str | None) -> int:
    """Return the memory limit of each worker of this machine (bytes): as given, otherwise its part of three quarters of
    the machine, at most 4 GiB. Raises UsageError for an invalid size, or one too small for any document."""
    if memory is None:
        return min(of_this_machine() * 3 // 4 // count, _MOST_BYTES)
    try:
        limit = int(parse_bytes(memory))
    except ValueError as error:
        raise UsageError(f"--memory {memory}: not a size", tip="use a value such as 2GiB or 500MB") from error
    if limit < LEAST:
        raise UsageError(
            f"--memory {memory}: too small", cause=f"a worker needs {LEAST / 1e6:.0f} MB before it reads anything"
        )
    return limit
