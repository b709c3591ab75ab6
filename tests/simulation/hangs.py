"""Simulated hangs of jobs with tensor and data parallel groups, written as watchdog lines and as dumps.

Each rank enqueues the operations of its program, and its device executes them in order. An operation finishes when all
members of its group have reached the same one. The program knows who held the job up.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

FAULTS = ("absent", "stalled", "skipped", "wrong_size", "network", "dead_host", "busy")
LOSSES = ("none", "lines", "node")
"""Nothing is lost, 15 % of the lines or dumps are, or all but those of one node."""
_TIMEOUT_MS = 600_000
_STEPS = 30
_NEVER = 1 << 30
_NAMES = {
    "ALLREDUCE": "all_reduce", "_ALLGATHER_BASE": "_all_gather_base", "_REDUCE_SCATTER_BASE": "_reduce_scatter_base",
}  # fmt: skip


class Operation(NamedTuple):
    """An operation of a rank, with its position in the order of its group."""

    group: int
    name: str
    elements: int
    sequence: int


class Group(NamedTuple):
    """A process group."""

    guid: str
    description: str
    ranks: tuple[int, ...]


@dataclass
class _Rank:
    """State of a rank: how many operations it enqueued, and how many its device executed."""

    program: list[Operation]
    ahead: int
    stops_at: int = _NEVER
    """Operation before which its CPU stops."""
    stalls_at: int = _NEVER
    """Operation whose end its device does not report."""
    halts_at: int = _NEVER
    """Operation that its device does not execute: it takes part in a few more than it reports."""
    enqueued: int = 0
    executed: int = 0

    @property
    def finished(self) -> int:
        """Return how many operations its device reports as finished."""
        return min(self.executed, self.stalls_at)


@dataclass
class Hang:
    """A job that hangs."""

    fault: str
    loss: str
    blamed: frozenset[int]
    """Ranks that held the job up; empty if no rank did."""
    all_printed: bool
    """True if every process that lives prints, and no line is lost."""
    text: str
    dumps: dict[int, dict[str, Any]]
    """Dump by rank."""
    groups: Sequence[Group] = field(default_factory=list)


class _Simulation:
    """One job."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fault = FAULTS[seed % len(FAULTS)]
        self.loss = random.choice(LOSSES)
        self.size = random.choice((8, 8, 16, 16, 16, 32, 32, 64, 128, 512))
        self.tensor = random.choice([one for one in (1, 2, 4, 8) if 2 * one <= self.size])
        self.per_node = min(8, self.size // 2)
        self.groups = self._groups()
        self.before = random.randint(50, 90_000)
        self.ranks = [_Rank(self._program(rank), random.randint(1, 12)) for rank in range(self.size)]
        self.broken: tuple[int, int] | None = None
        """Group and sequence number that the network does not carry."""
        self.blamed = self._break()

    def _groups(self) -> list[Group]:
        """Return the default group, the tensor and the data parallel groups."""
        every, tensor = tuple(range(self.size)), self.tensor
        groups = [Group("0", "default_pg", every)]
        if tensor == 1:
            return groups
        parts = [every[begin : begin + tensor] for begin in range(0, self.size, tensor)]
        groups += [Group(str(at + 20), "TENSOR_MODEL_PARALLEL_GROUP", part) for at, part in enumerate(parts)]
        strided = [every[begin::tensor] for begin in range(tensor)]
        first = 20 + len(parts)
        return groups + [Group(str(at + first), "DATA_PARALLEL_GROUP", part) for at, part in enumerate(strided)]

    def _program(self, rank: int) -> list[Operation]:
        own = [at for at, group in enumerate(self.groups) if rank in group.ranks]
        next_of: defaultdict[int, int] = defaultdict(lambda: self.before)
        found = []

        def add(group: int, name: str, elements: int) -> None:
            next_of[group] += 1
            found.append(Operation(group, name, elements, next_of[group]))

        world, inner, outer = own[0], own[min(1, len(own) - 1)], own[-1]
        for _ in range(6):
            for layer in range(3):
                add(inner, "_ALLGATHER_BASE", 4096 * (layer + 1))
                add(inner, "_REDUCE_SCATTER_BASE", 8192 * (layer + 1))
            add(outer, "_REDUCE_SCATTER_BASE", 262_144)
            add(world, "ALLREDUCE", 1)
            add(outer, "_ALLGATHER_BASE", 65_536)
        return found

    def _break(self) -> frozenset[int]:
        """Break the job; return the ranks that hold it up."""
        random, last = self.random, len(self.ranks[0].program)
        rank, at = random.randrange(self.size), random.randrange(12, last - 14)
        one = self.ranks[rank]
        if self.fault == "absent":
            one.stops_at = at
        elif self.fault == "stalled":
            one.stalls_at, one.halts_at = at, at + random.randint(1, 6)
        elif self.fault == "busy":
            rank, self.ranks[0].stops_at = 0, at
        elif self.fault == "dead_host":
            node = rank // self.per_node
            dead = range(node * self.per_node, min((node + 1) * self.per_node, self.size))
            for member in dead:
                self.ranks[member].stops_at = at
            return frozenset(dead)
        elif self.fault == "network":
            self.broken = one.program[at].group, one.program[at].sequence
            return frozenset()
        elif self.fault == "wrong_size":
            one.program[at] = one.program[at]._replace(elements=one.program[at].elements * 3)
        else:
            skipped = one.program.pop(at)
            for place in range(at, len(one.program)):
                if one.program[place].group == skipped.group:
                    one.program[place] = one.program[place]._replace(sequence=one.program[place].sequence - 1)
        return frozenset({rank})

    def run(self) -> None:
        """Run until nothing moves."""
        moved = True
        while moved:
            moved = False
            at_front: defaultdict[Operation, int] = defaultdict(int)
            for one in self.ranks:
                limit = min(one.finished + one.ahead, one.stops_at, len(one.program))
                moved |= limit > one.enqueued
                one.enqueued = max(one.enqueued, limit)
                if one.executed < min(one.enqueued, one.halts_at):
                    at_front[one.program[one.executed]] += 1
            for one in self.ranks:
                operation = one.program[one.executed] if one.executed < min(one.enqueued, one.halts_at) else None
                if operation is None or (operation.group, operation.sequence) == self.broken:
                    continue
                if at_front[operation] == len(self.groups[operation.group].ranks):
                    one.executed += 1
                    moved = True

    def positions(self, rank: int, group: int) -> tuple[int, int]:
        """Return the sequence numbers that a rank enqueued and completed last in a group."""
        one = self.ranks[rank]
        numbers = [
            max((each.sequence for each in one.program[:count] if each.group == group), default=self.before)
            for count in (one.enqueued, one.finished)
        ]
        return numbers[0], numbers[1]

    def lines_of(self, rank: int) -> list[str]:
        """Return what a process prints when its watchdog times out, or when another one tells it to dump."""
        one, prefix = self.ranks[rank], f"[rank{rank}]:[E301 12:20:01."
        if one.finished >= one.enqueued:
            enqueued, completed = self.positions(rank, 0)
            return [
                f"{prefix}{rank:09d} ProcessGroupNCCL.cpp:1794] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a "
                "dump signal due to a collective timeout from this local rank and we will try our best to dump the "
                f"debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}."
            ]
        operation = one.program[one.finished]
        group, inside = self.groups[operation.group], self.groups[operation.group].ranks.index(rank)
        enqueued, completed = self.positions(rank, operation.group)
        sizes = f"NumelIn={operation.elements}, NumelOut={operation.elements}"
        head = f"[PG ID {operation.group} PG GUID {group.guid}({group.description}) Rank {inside}]"
        if self.random.random() < 0.5:
            status = (
                f"{head} Exception (either an error or timeout) detected by watchdog at work: {operation.sequence}, "
                f"last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}."
            )
        else:
            status = (
                f"{head}  failure detected by watchdog at work sequence id: {operation.sequence} PG status: last "
                f"enqueued work: {enqueued}, last completed work: {completed}"
            )
        return [
            f"{prefix}{rank:09d} ProcessGroupNCCL.cpp:632] [Rank {inside}] Watchdog caught collective operation "
            f"timeout: WorkNCCL(SeqNum={operation.sequence}, OpType={operation.name}, {sizes}, "
            f"Timeout(ms)={_TIMEOUT_MS}) ran for {_TIMEOUT_MS + rank % 90} milliseconds before timing out.",
            f"{prefix}{rank:09d} ProcessGroupNCCL.cpp:2271] {status}",
        ]

    def dump_of(self, rank: int) -> dict[str, Any]:
        """Return the flight recorder of a rank as its JSON has it."""
        one = self.ranks[rank]
        local = [at for at, group in enumerate(self.groups) if rank in group.ranks]
        entries = []
        for at, operation in enumerate(one.program[: one.enqueued]):
            group = self.groups[operation.group]
            done = at < one.finished
            entries.append({
                "record_id": at, "pg_id": local.index(operation.group),
                "process_group": [group.guid, group.description], "collective_seq_id": operation.sequence,
                "p2p_seq_id": 0, "op_id": at, "profiling_name": f"nccl:{_NAMES[operation.name]}",
                "time_created_ns": 0, "input_sizes": [[operation.elements]], "output_sizes": [[operation.elements]],
                "state": "completed" if done else "scheduled", "retired": done, "timeout_ms": _TIMEOUT_MS,
                "is_p2p": False,
            })  # fmt: skip
        status = {}
        for place, group_at in enumerate(local):
            enqueued, completed = self.positions(rank, group_at)
            status[str(place)] = {
                "last_enqueued_collective": str(enqueued), "last_started_collective": "-1",
                "last_completed_collective": str(completed),
            }  # fmt: skip
        config = {
            self.groups[at].guid: {
                "name": self.groups[at].guid, "desc": self.groups[at].description,
                "ranks": json.dumps(list(self.groups[at].ranks)),
            }
            for at in local
        }  # fmt: skip
        return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries}


def hang(seed: int) -> Hang:
    """Simulate one job."""
    one = _Simulation(seed)
    one.run()
    random, dead = one.random, one.blamed if one.fault == "dead_host" else frozenset()
    node = random.randrange(max(one.size // one.per_node, 1))

    def is_kept(rank: int) -> bool:
        if one.loss == "node":
            return rank // one.per_node == node
        return one.loss == "none" or random.random() >= 0.15

    alive = [rank for rank in range(one.size) if rank not in dead]
    random.shuffle(alive)
    printed = [line for rank in alive for line in one.lines_of(rank) if is_kept(rank)]
    dumps = {rank: one.dump_of(rank) for rank in sorted(alive) if is_kept(rank)}
    return Hang(
        one.fault, one.loss, one.blamed, one.loss == "none" and not dead, _log(one, printed), dumps, one.groups
    )  # fmt: skip


def healthy_job(seed: int) -> Hang:
    """Simulate a job that runs: its ranks are one operation apart when NCCL is asked, and have none pending when their
    recorders are dumped."""
    one = _Simulation(len(FAULTS) * seed + FAULTS.index("absent"))
    stop = max(rank.stops_at for rank in one.ranks if rank.stops_at < _NEVER)
    for rank in one.ranks:
        rank.stops_at = stop
    one.run()
    for rank in one.ranks:
        rank.enqueued = rank.executed
    late = one.random.sample(range(one.size), max(one.size // 4, 1))
    rows = [f"{one.size - len(late)} ranks have launched up to operation {one.before}"]
    if len(late) == 1:
        rows.append(
            f"Rank {late[0]} has launched up to operation {one.before - 1} -- GPU 0 managed by process 9 on node a"
        )
    else:
        rows.append(f"{len(late)} ranks have launched up to operation {one.before - 1}")
        rows += [f"Rank {rank} -- GPU 0 managed by process {rank} on node a" for rank in sorted(late)]
    printed = ["#0-0 (27a079b828ff1a75) MISMATCH", *(f"  {row}" for row in rows)]
    dumps = {rank: one.dump_of(rank) for rank in range(one.size)}
    return Hang("none", "none", frozenset(), True, _log(one, printed), dumps, one.groups)


def _log(one: _Simulation, printed: Sequence[str]) -> str:
    """Return the log of the job: its steps, and what its processes print at the end."""
    lines = [
        f"using world size: {one.size}, data-parallel size: {one.size // one.tensor}, context-parallel size: 1, "
        f"tensor-model-parallel size: {one.tensor}, pipeline-model-parallel size: 1",
        "[before the start of training step] datetime: 2026-03-01 12:00:00 ",
    ]
    for step in range(1, _STEPS + 1):
        clock = f"12:{(step * 20) // 60:02d}:{(step * 20) % 60:02d}"
        lines.append(
            f" [2026-03-01 {clock}.000000] iteration {step:8d}/    1000 | consumed samples: {step * 256:12d} | elapsed "
            "time per iteration (ms): 20000.0 | learning rate: 1.0E-05 | global batch size:   256 | lm loss: "
            "1.818812E+00 | loss scale: 1.0 | grad norm: 1.300 | number of skipped iterations:   0 | number of nan "
            "iterations:   0 |"
        )
    if one.fault == "busy":
        lines.append("[rank0]: saving checkpoint at iteration      30 to /ckpt in torch_dist format")
    return "\n".join([*lines, *printed]) + "\n"
