"""Execution of tasks: in this process, or on the workers that `Engine` is given. The tasks and answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from goodput_cli.errors import UsageError, to_install
from goodput_cli.fleet.question import Workers

if TYPE_CHECKING:
    from goodput_cli.fleet.passes.work import FailedTask

_MOST_WORKERS = 8
_LEAST_SECONDS = 10.0
"""Shorter work is done in this process: starting workers takes two seconds."""
_SECONDS_A_DOCUMENT, _SECONDS_A_BYTE = 0.006, 1.3e-8

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runner of tasks. Results may arrive in any order."""

    @property
    def here(self) -> bool:
        """True if tasks run in this process, where bytes can be counted while they are read."""

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time."""

    @property
    def memory(self) -> int | None:
        """Memory of a task (bytes); None: all of the machine."""

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | FailedTask]]:
        """Each batch with what the task made of it, or why that could not be done."""


class InProcessEngine:
    """Runner of one task after the other, in order."""

    here = True
    workers = 1
    memory = None

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | FailedTask]]:
        """See `Engine.run`."""
        return ((batch, task(batch)) for batch in batches)


@contextmanager
def open_engine(
    workers: Workers, *, documents: int, size: int, store: Path, log: str | None = None
) -> Iterator[Engine]:
    """Open the requested engine; in this process if more do not pay off. documents, size (bytes): input. log: the path
    of one of them that is a file.

    Raises UsageError if several workers are requested and dask is not installed.
    """
    count = worker_count(workers, documents, size)
    if workers.scheduler is None and count == 1:
        yield InProcessEngine()
        return
    if not find_spec("distributed"):
        raise UsageError(
            "using several workers requires dask.distributed", tip=f"install it with {to_install('fleet')}"
        )
    from goodput_cli.fleet.passes.clusters import open_dask

    with open_dask(count, workers, store, log) as engine:
        yield engine


def worker_count(workers: Workers, documents: int, size: int) -> int:
    """Return the number of processes that do the work; 1 is this one. At most the processors that this one may use,
    also in a container."""
    if workers.workers is not None:
        return workers.workers
    if expected_seconds(documents, size) < _LEAST_SECONDS or not find_spec("distributed"):
        return 1
    from dask.system import CPU_COUNT

    return int(min(CPU_COUNT, _MOST_WORKERS))


def expected_seconds(documents: int, size: int) -> float:
    """Return the time for reading and accounting on one processor, by the cost model of docs/fleet.md."""
    return documents * _SECONDS_A_DOCUMENT + size * _SECONDS_A_BYTE
