"""Rows of one process are found by an index, which answers what a look at each pair of rows would."""

from __future__ import annotations

import random

import pytest

from goodput_cli.accounting.attempts.processes import Processes
from goodput_cli.events.evidence import FailureEvidence


def same_process(one: FailureEvidence, other: FailureEvidence) -> bool:
    """By pid, where one names none by rank, and where the first names no rank by stream."""
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
def test_the_index_finds_what_pairs_show(seed: int) -> None:
    chance = random.Random(seed)
    rows = [row(chance, chance.randrange(1, 99)) for _ in range(chance.randrange(6))]
    processes = Processes(rows)
    for _ in range(20):
        one = row(chance, 50)
        assert processes.last_line(one) == max((other.line for other in rows if same_process(one, other)), default=None)
