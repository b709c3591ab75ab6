"""Worker processes of this machine: started, and gone without a trace however the work ends."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import dask
from distributed import Client, LocalCluster, Security
from distributed.diagnostics.plugin import WorkerPlugin

from goodput_cli.errors import GoodputError
from goodput_cli.fleet.passes.dask_engine import Dask

_PATIENCE_SECONDS = 60.0
"""How long a worker that died may take to be there again. A cluster of somebody else may have to wait for its
machines."""
_MOST_BYTES = 4 << 30
_STARTS = 3
_QUIET = "ignore::UserWarning:multiprocessing.resource_tracker"
"""What is cleared away after workers that were left in a hurry is nobody's warning."""


@contextlib.contextmanager
def local_cluster(count: int, memory: str | None) -> Iterator[Dask]:
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


def _share_of_memory(count: int) -> int:
    """A worker's part of three quarters of the machine, at most 4 GiB."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min(whole * 3 // 4 // count, _MOST_BYTES))
