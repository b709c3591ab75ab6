"""Clusters of dask workers: processes of this machine, or somebody else's."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import dask
from dask.utils import parse_bytes
from distributed import Client
from distributed.comm import CommClosedError

from goodput_cli import __version__
from goodput_cli.errors import GoodputError, UsageError
from goodput_cli.fleet.passes.dask_engine import Dask, is_gone
from goodput_cli.fleet.passes.engine import Workers
from goodput_cli.fleet.passes.local_cluster import local_cluster
from goodput_cli.fleet.passes.memory import LEAST, of_this_machine

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
_MOST_BYTES = 4 << 30
_PATIENCE_SECONDS = 60.0
"""How long the first worker of somebody's cluster may take to come: batch jobs and containers need a while."""


@contextlib.contextmanager
def open_dask(count: int, workers: Workers, store: Path, log: str | None = None) -> Iterator[Dask]:
    """Workers: those of a scheduler that is named, else `count` processes of this machine. log: the path of a file that
    all are to see; None where there is none.

    Raises UsageError where a cluster may not be used, GoodputError where it cannot be reached.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(_SETTINGS):
        if workers.scheduler is None:
            with local_cluster(count, _limit(count, workers.memory)) as engine:
                yield engine
            return
        with _somebodys_cluster(workers, [store] if log is None else [store, Path(log)]) as engine:
            yield engine


@contextlib.contextmanager
def _somebodys_cluster(workers: Workers, shared: Sequence[Path]) -> Iterator[Dask]:
    address = _address(workers.scheduler or "")
    if not address.startswith("tls://") and not workers.insecure_scheduler:
        raise UsageError(
            "--scheduler: whoever can speak to a scheduler can run code on its workers; name one with tls://, or say "
            "--insecure-scheduler"
        )
    try:
        client = Client(address, timeout=30)
    except (OSError, ValueError, TimeoutError) as error:
        raise GoodputError(f"the scheduler at {address} cannot be reached: {error}") from error
    except TypeError as error:  # what dask says of TLS without certificates
        raise GoodputError(
            f"the scheduler at {address} wants certificates; name them in dask's configuration (distributed.comm.tls)"
        ) from error
    try:
        _wait_for_a_worker(client)
        _shake_hands(client, *shared)
        limits = [one["memory_limit"] for one in client.scheduler_info(n_workers=-1)["workers"].values()]
        yield Dask(client, address, len(limits), min((one for one in limits if one), default=None))
    except (CommClosedError, ConnectionError) as error:  # any call may be the one that meets the closed connection
        raise is_gone(address) from error
    finally:
        client.close(timeout=2)


def _address(named: str) -> str:
    """Where a scheduler is, that is named by its address or by the file that it wrote. Raises UsageError."""
    if "://" in named:
        return named
    file = Path(named)
    if not file.is_file():
        raise UsageError(f"--scheduler {named}: is neither a file nor an address, which begins with tls://")
    try:
        return str(json.loads(file.read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--scheduler {named}: is no file that a dask scheduler wrote") from error


def _wait_for_a_worker(client: Client) -> None:
    """Raises UsageError where none comes; those that come later help as well."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
    except TimeoutError as error:
        raise UsageError(
            f"the scheduler has had no worker for {_PATIENCE_SECONDS:.0f} s; start some with `dask worker`"
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
            raise UsageError(f"the worker {worker} has {_words(answer)}, and here is {_words(own)}; install the same")
        if answer[0] != token:
            raise UsageError(f"the worker {worker} does not see {store}; --store must be a folder that all share")
        if not answer[1]:
            raise UsageError(f"the worker {worker} does not see {log}; logs must lie where all find them by one path")


def _introduce(path: str, log: str | None) -> tuple[str, ...]:
    """What a worker reads in the store, whether it sees a log, and what it runs."""
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
    seen = "" if log is not None and not Path(log).exists() else "yes"
    return (token, seen, f"{__version__} ({code_version()[:8]})", python, *versions)


def _words(answer: tuple[str, ...]) -> str:
    return "goodput {2}, Python {3}, numpy {4}, pyarrow {5}".format(*answer)


def _limit(count: int, memory: str | None) -> int:
    """What each of some workers of this machine may take (bytes): as a person says it, else its part of three quarters
    of the machine, at most 4 GiB. Raises UsageError for what is no size, or too little for any document."""
    if memory is None:
        return min(of_this_machine() * 3 // 4 // count, _MOST_BYTES)
    try:
        limit = int(parse_bytes(memory))
    except ValueError as error:
        raise UsageError(f"--memory {memory}: is no size; write one such as 2GiB or 500MB") from error
    if limit < LEAST:
        raise UsageError(f"--memory {memory}: a worker takes {LEAST / 1e6:.0f} MB before it reads anything")
    return limit
