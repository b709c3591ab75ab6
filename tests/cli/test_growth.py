"""Many elements of a kind in a log do not add work per element: ranks of a failure, pods, hosts, files, custom
types, jobs.

Work is counted, never time: the Python lines that run, and the elements of the arrays that functions make.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from goodput_cli.cli.main import run
from tests.support import many

PACKAGE = str(Path(many.__file__).parents[2] / "goodput_cli")
FEW = 40
COUNTS: dict[many.Written, int] = {
    many.bystanders: 20,
    many.nccl_ranks: 20,
    many.ray_actors: 20,
    many.kernel_logs: 20,
    many.pods_in_a_watch: 20,
    many.devices: 20,
    many.rank_logs: 20,
    many.allocations: 20,
    many.foreign_allocations: 20,
    many.jobs: 20,
    many.text_logs_of_jobs: 6,
    many.custom_types: 60,
}
"""Element counts for kinds that take many lines per element, or whose work does not grow from a few on."""
ANALYZE, FLEET = ("analyze", "--format", "json"), ("fleet", "--workers", "1", "--format", "json")


def work_of(arguments: list[str]) -> int:
    """Return the work of a command, in lines and elements."""
    work = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        nonlocal work
        if event == "call":
            return trace if frame.f_code.co_filename.startswith(PACKAGE) else None
        made = event == "return" and isinstance(argument, np.ndarray) and argument.ndim and argument.base is None
        work += len(argument) if made else 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run(arguments)
    finally:
        sys.settrace(before)
    return work


@pytest.mark.parametrize(
    ("written", "command"),
    [
        (many.failed_ranks, ANALYZE),
        (many.bystanders, ANALYZE),
        (many.nccl_ranks, ANALYZE),
        (many.ray_actors, ANALYZE),
        (many.kernel_logs, ANALYZE),
        (many.failed_pods, ANALYZE),
        (many.finished_pods, ANALYZE),
        (many.watched_pod, ANALYZE),
        (many.pods_in_a_watch, ANALYZE),
        (many.devices, ANALYZE),
        (many.custom_types, ANALYZE),
        (many.phase_names, ANALYZE),
        (many.attempts, ANALYZE),
        (many.rank_logs, ANALYZE),
        (many.allocations, ANALYZE),
        (many.foreign_allocations, FLEET),
        (many.agents, ANALYZE),
        (many.jobs, FLEET),
        (many.text_logs_of_jobs, FLEET),
    ],
    ids=lambda value: value.__name__ if callable(value) else value[0],
)
def test_work_is_linear_in_the_contents_of_a_log(
    written: many.Written, command: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Compare the growth from n to 2n and from 2n to 4n: it doubles, and constant work cancels out."""
    few = COUNTS.get(written, FEW)
    work: list[int] = []
    for count in (few, 2 * few, 4 * few):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        written(folder, count)
        arguments = [command[0], str(folder), *command[1:], "-q", "--timezone", "UTC"]
        if not work:
            run(arguments)  # imports modules and fills the caches
        work.append(work_of(arguments))
        assert "is a bug" not in capfd.readouterr().err
    one, two, four = work
    assert four - two <= 2**1.2 * (two - one)
