"""Where tasks run: in this process, or wherever `Engine` is told. The same tasks, the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from goodput_cli.fleet.work import Failed

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs tasks. What they give may come in any order."""

    @property
    def here(self) -> bool:
        """Whether tasks run in this process, where what is read can be counted while it is read."""

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | Failed]]:
        """Each batch with what the task made of it, or why that could not be done."""

    def close(self) -> None:
        """Let go of what it holds."""


class InProcess:
    """One task after the other, in order."""

    here = True

    def run(
        self, task: Callable[[Sequence[Item]], Result], batches: Iterator[list[Item]]
    ) -> Iterator[tuple[list[Item], Result | Failed]]:
        """See `Engine.run`."""
        return ((batch, task(batch)) for batch in batches)

    def close(self) -> None:
        """There is nothing to let go of."""
