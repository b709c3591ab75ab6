"""The index of rows of one process gives the same result as a comparison of each pair of rows."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import pytest

from goodput_cli.accounting.attempts.failure_cause import find_cause
from goodput_cli.accounting.attempts.processes import AttemptEvidence, Processes
from goodput_cli.events.evidence import FailureEvidence


def same_process(one: FailureEvidence, other: FailureEvidence) -> bool:
    """Return True if both rows are of one process: by pid, by rank if a pid is missing, by stream if the first rank
    is missing."""
    if one.pid is not None and other.pid is not None:
        return one.pid == other.pid
    if one.rank is not None:
        return one.rank == other.rank or any(one.rank == rank for rank, _ in other.ranks)
    return (one.source, one.stream) == (other.source, other.stream)


def row(chance: random.Random, line: int) -> FailureEvidence:
    pid, rank = chance.choice([None, None, 1, 2, 3]), chance.choice([None, 0, 1, 2])
    ranks = tuple((chance.randrange(4), line) for _ in range(chance.randrange(3)))
    return FailureEvidence(
        "python_error", "root", "", "exception", "process", chance.choice("ab"), line, None, None, pid=pid, rank=rank,
        stream=chance.choice(["", "[rank0]: "]), ranks=ranks,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(50))
def test_index_agrees_with_pairs(seed: int) -> None:
    chance = random.Random(seed)
    rows = [row(chance, chance.randrange(1, 99)) for _ in range(chance.randrange(6))]
    processes = Processes(rows)
    for _ in range(20):
        one = row(chance, 50)
        assert processes.last_line(one) == max((other.line for other in rows if same_process(one, other)), default=None)


def lines_run(ranks: int) -> int:
    """Return the number of Python lines that judge `ranks` ranks. Half of them only logged an exception."""
    rows = [
        FailureEvidence(
            "python_error", "root", f"RuntimeError: boom {rank}", "exception", "process", "train.log", rank + 1, None,
            None, rank=rank, stream=f"[rank{rank}]: ", unhandled=rank % 2 == 0, ranks=((rank, rank + 1),),
        )
        for rank in range(ranks)
    ]  # fmt: skip
    lines = 0

    def count(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        find_cause(AttemptEvidence(0, 1, 1, "train.log", 0, 10**9, 10**10, True), rows)
    finally:
        sys.settrace(before)
    return lines


def test_work_for_raising_ranks_is_linear() -> None:
    _, one, two, four = (lines_run(ranks) for ranks in (100, 100, 200, 400))  # The first call fills the caches.
    assert four - two <= 2**1.2 * (two - one)
