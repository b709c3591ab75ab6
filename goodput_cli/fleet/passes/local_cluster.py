"""Worker processes of this machine: started, and gone without a trace however the work ends."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

import dask
from distributed import Client, LocalCluster, Security
from distributed.core import Status

from goodput_cli.fleet.passes.dask_engine import Dask

_PATIENCE_SECONDS = 60.0
"""How long a worker that died may take to be there again. A cluster of somebody else may have to wait for its
machines."""
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""As dask has it, but for memory that is freed: it is not given back at once, to be asked for again by the next line.
That were ten times as many page faults."""
_QUIET = "ignore::UserWarning:multiprocessing.resource_tracker"
"""What is cleared away after workers that were left in a hurry is nobody's warning."""


@contextlib.contextmanager
def local_cluster(count: int, memory: int) -> Iterator[Dask]:
    """Processes of this machine, which start while the first tasks are handed out. memory: of each (bytes).

    They speak on loopback, encrypted with a key that nobody else has: whoever can speak to a dask scheduler can run
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
            with _ctrl_c_held_back():
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
def _ctrl_c_held_back() -> Iterator[None]:
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


def _start_again(cluster: LocalCluster, count: int) -> None:
    """A worker that was lost while it started is started once more; later, dask does that itself."""
    lost = [name for name, one in list(cluster.workers.items()) if one.status in (Status.failed, Status.closed)]
    for name in lost:
        cluster.workers.pop(name, None)
    if lost:
        cluster.scale(count)


def _leave(started: list[Any], strangers: set[Any]) -> None:
    """Close what was started, at once: no worker holds anything that is still wanted. A second Ctrl-C must not leave
    processes behind. strangers: processes that are not ours."""
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
    except ValueError:  # not in the main thread, where signals are nobody's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
