"""Simulated hangs of jobs with pipelines, as watchdog lines and as dumps: harder than `hangs`.

Stages send to each other, groups of experts overlap with data parallel ones, and reductions run next to later
operations. Watchdogs of some ranks time out too late to print, recorders keep few operations, and lines are lost.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random
from typing import Any, NamedTuple

FAULTS = (
    "absent", "stalled", "kernel", "skipped", "wrong_size", "network", "busy", "two_absent", "extra", "dead_host",
)  # fmt: skip
_NAMES = {
    "ALLREDUCE": "all_reduce", "_ALLGATHER_BASE": "_all_gather_base", "_REDUCE_SCATTER_BASE": "_reduce_scatter_base",
    "BROADCAST": "broadcast", "ALLTOALL_BASE": "all_to_all", "SEND": "send", "RECV": "recv",
}  # fmt: skip
_WORLD, _TENSOR, _DATA = "default_pg", "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP"
_EXPERT, _PIPELINE, _MODEL = "EXPERT_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "MODEL_PARALLEL_GROUP"
_PAIRS = ("SEND", "RECV")
_NEVER = 1 << 30
_MOST_ROUNDS = 20_000


class Operation(NamedTuple):
    """An operation of a rank."""

    group: int
    """-1 for the wait of a device for all operations before it."""
    name: str
    elements: int
    sequence: int
    pair: tuple[int, int, int] | None = None
    """Sender, receiver and number of a point-to-point operation."""
    blocks: bool = True
    """True if later operations begin after its end."""


class PipelineJob:
    """A job that hangs."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fault = FAULTS[seed % len(FAULTS)]
        self.tensor, self.data, self.stages = 1, 2, 1
        while not 4 <= self.tensor * self.data * self.stages <= 32 or self.size == 2:
            self.tensor, self.data, self.stages = (
                random.choice((1, 2, 4)), random.choice((2, 4, 8)), random.choice((1, 1, 2, 4)),
            )  # fmt: skip
        self.per_node = random.choice((4, 8)) if self.size > 8 else self.size // 2
        self.late = random.choice((0, 0, 3, 20))
        """Number of rounds after the first timeout within which others print; 0: all print."""
        self.loss = random.choice(("none", "none", "lines", "node"))
        self.buffer = random.choice((2000, 2000, 25))
        self.is_concurrent = random.random() < 0.6
        self.groups: list[tuple[str, tuple[int, ...]]] = []
        self.of: defaultdict[int, dict[str, int]] = defaultdict(dict)
        """Groups of each rank, by description."""
        self._add_groups()
        self.before = [random.randint(3, 90_000) for _ in self.groups]
        self.programs = [list(self._program(rank)) for rank in range(self.size)]
        self.ahead = [random.randint(1, 10) for _ in range(self.size)]
        self.stops: dict[int, int] = {}
        """Operation before which the CPU of a rank stops."""
        self.halts: dict[int, int] = {}
        """Operation that the device of a rank does not begin."""
        self.unreported: dict[int, int] = {}
        """Operation whose end a device does not report."""
        self.dead = frozenset[int]()
        self.broken: tuple[int, int] | None = None
        self.blamed = self._break()
        self.enqueued, self.finished = [0] * self.size, [0] * self.size
        """How many operations each rank enqueued, and finished without a gap."""
        self.enqueued_at: list[dict[int, int]] = [{} for _ in range(self.size)]
        """Round in which each operation was enqueued."""
        self.started: list[set[int]] = [set() for _ in range(self.size)]
        self.done: list[set[int]] = [set() for _ in range(self.size)]
        for now in range(_MOST_ROUNDS):
            if not self._moves(now):
                break
        node = random.randrange(max(self.size // self.per_node, 1))
        self.kept = {
            rank for rank in range(self.size)
            if rank not in self.dead and (rank // self.per_node == node if self.loss == "node"
                                          else self.loss == "none" or random.random() > 0.15)
        }  # fmt: skip

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return self.tensor * self.data * self.stages

    def _add_groups(self) -> None:
        def add(description: str, ranks: Any) -> None:
            self.groups.append((description, tuple(ranks)))
            for rank in ranks:
                self.of[rank][description] = len(self.groups) - 1

        inner, outer, stages = range(self.tensor), range(self.data), range(self.stages)
        at = {(s, d, t): (s * self.data + d) * self.tensor + t for s in stages for d in outer for t in inner}
        add(_WORLD, range(self.size))
        for stage in stages:
            for d in outer if self.tensor > 1 else ():
                add(_TENSOR, [at[stage, d, t] for t in inner])
            for t in inner:
                add(_DATA, [at[stage, d, t] for d in outer])
                for half in (outer[: self.data // 2], outer[self.data // 2 :]) if self.data >= 4 else ():
                    add(_EXPERT, [at[stage, d, t] for d in half])
        for d in outer if self.stages > 1 else ():
            for t in inner:
                add(_PIPELINE, [at[stage, d, t] for stage in stages])
            add(_MODEL, [at[stage, d, t] for stage in stages for t in inner])

    def _program(self, rank: int) -> Iterator[Operation]:
        stride = self.data * self.tensor
        numbers, sizes = defaultdict[object, Iterator[int]](lambda: count(1)), Random(self.size)

        def run(description: str, name: str, elements: int, *, blocks: bool = True) -> Iterator[Operation]:
            group = self.of[rank].get(description)
            if group is not None:
                yield Operation(group, name, elements, self.before[group] + next(numbers[group]), None, blocks)

        def pair(name: str, peer: int) -> Iterator[Operation]:
            ends = (rank, peer) if name == "SEND" else (peer, rank)
            if 0 <= peer < self.size:
                group = self.of[rank][_PIPELINE]
                number = 40 + next(numbers[group, "pairs"])
                yield Operation(group, name, 4096, number, (*ends, next(numbers[ends])), name == "RECV")

        for step in range(4):
            for _ in range(2):
                yield from pair("RECV", rank - stride)
                for layer in (1, 2):
                    yield from run(_TENSOR, "_ALLGATHER_BASE", 4096 * layer)
                    yield from run(_EXPERT, "ALLTOALL_BASE", 1000 + sizes.randint(0, 50) + rank)
                    yield from run(_TENSOR, "_REDUCE_SCATTER_BASE", 8192 * layer)
                yield from pair("SEND", rank + stride)
            for _ in range(2):
                yield from pair("RECV", rank + stride)
                yield from run(_TENSOR, "_ALLGATHER_BASE", 4096)
                yield from run(_TENSOR, "_ALLGATHER_BASE", 8192)
                yield from pair("SEND", rank - stride)
                yield from run(_DATA, "_REDUCE_SCATTER_BASE", 262_144, blocks=not self.is_concurrent)
            yield Operation(-1, "", 0, 0)
            yield from run(_MODEL, "ALLREDUCE", 1)
            yield from run(_WORLD, "ALLREDUCE", 1)
            yield from run(_DATA, "_ALLGATHER_BASE", 65_536)
            if step % 2:
                yield from run(_WORLD, "BROADCAST", 16)

    def _break(self) -> frozenset[int]:
        """Break the job; return the ranks that hold it up."""
        random, fault = self.random, self.fault
        rank = 0 if fault == "busy" else random.randrange(self.size)
        program = self.programs[rank]
        at = random.randrange(len(program) // 4, len(program) - 8)
        together = [place for place in range(at, len(program)) if program[place].name not in ("", *_PAIRS)]
        place = next((one for one in together if program[one].name != "ALLTOALL_BASE"), together[0])
        one = program[place]
        if fault in ("absent", "busy"):
            self.stops[rank] = at
        elif fault == "two_absent":
            other = random.choice([one for one in range(self.size) if one != rank])
            self.stops |= {rank: at, other: min(len(self.programs[other]) - 1, at + random.randint(-3, 3))}
            return frozenset({rank, other})
        elif fault == "dead_host":
            self.dead = frozenset(one for one in range(self.size) if one // self.per_node == rank // self.per_node)
            self.stops |= dict.fromkeys(self.dead, at)
            return self.dead
        elif fault == "kernel":
            self.halts[rank] = at
        elif fault == "stalled":
            self.unreported[rank], self.halts[rank] = at, at + random.randint(1, 5)
        elif fault == "network":
            self.broken = one.group, one.sequence
            return frozenset()
        elif fault == "wrong_size":
            program[place] = one._replace(elements=one.elements * 3)
        elif fault == "skipped":
            program.pop(place)
            self._renumber(program, place, one.group, -1)
        else:
            name = "BROADCAST" if one.name != "BROADCAST" else "ALLREDUCE"
            program.insert(place, one._replace(name=name, elements=7))
            self._renumber(program, place + 1, one.group, 1)
        return frozenset({rank})

    def _renumber(self, program: list[Operation], begin: int, group: int, change: int) -> None:
        for place in range(begin, len(program)):
            one = program[place]
            if one.group == group and one.pair is None:
                program[place] = one._replace(sequence=one.sequence + change)

    def _moves(self, now: int) -> bool:
        """Run until all devices wait for others once more; return False if nothing changed."""
        changes = [self._enqueue(rank, now) + self._start(rank) for rank in range(self.size)]
        running: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
        for rank, program in enumerate(self.programs):
            for at in self._pending(rank):
                one = program[at]
                key = one.pair or ((rank, at) if one.group < 0 else (one.group, "", one.sequence))
                if at in self.started[rank]:
                    running[key].append((rank, at))
        ended = [each for ranks in running.values() if self._may_finish(ranks) for each in ranks]
        for rank, at in ended:
            self.done[rank].add(at)
        for rank in range(self.size):
            while self.finished[rank] in self.done[rank]:
                self.finished[rank] += 1
        return any(changes) or bool(ended)

    def _enqueue(self, rank: int, now: int) -> int:
        """Return how many operations a rank enqueues: its CPU runs ahead of its device."""
        begin = self.enqueued[rank]
        limit = min(
            self.finished[rank] + self.ahead[rank], self.stops.get(rank, _NEVER), len(self.programs[rank])
        )  # fmt: skip
        self.enqueued_at[rank] |= dict.fromkeys(range(begin, limit), now)
        self.enqueued[rank] = max(begin, limit)
        return self.enqueued[rank] - begin

    def _start(self, rank: int) -> int:
        """Return how many operations a device begins."""
        started, halts = self.started[rank], self.halts.get(rank, _NEVER)
        before = len(started)
        for at in self._pending(rank):
            if at not in started and at < halts and self._may_start(rank, at):
                started.add(at)
        return len(started) - before

    def _pending(self, rank: int) -> list[int]:
        begin, done = self.finished[rank], self.done[rank]
        return [at for at in range(begin, self.enqueued[rank]) if at not in done]

    def _may_start(self, rank: int, at: int) -> bool:
        """Return True if nothing before it must end first."""
        program = self.programs[rank]
        one = program[at]
        return not any(
            one.group < 0 or other.blocks or (other.pair is None and one.pair is None and other.group == one.group)
            for other in (program[before] for before in self._pending(rank) if before < at)
        )

    def _may_finish(self, ranks: list[tuple[int, int]]) -> bool:
        operations = [self.programs[rank][at] for rank, at in ranks]
        one = operations[0]
        if one.pair is not None or one.group < 0:
            return len(ranks) == (1 if one.pair is None else 2)
        kinds = {(each.name, each.elements if each.name != "ALLTOALL_BASE" else 0) for each in operations}
        is_whole = len(ranks) == len(self.groups[one.group][1]) and len(kinds) == 1
        return is_whole and (one.group, one.sequence) != self.broken

    def _is_finished(self, rank: int, at: int) -> bool:
        return at in self.done[rank] and at < self.unreported.get(rank, _NEVER)

    def _numbers(self, rank: int, group: int) -> tuple[int, int]:
        """Return what a rank enqueued and completed last in a group. Point-to-point operations count, too."""
        enqueued = completed = self.before[group]
        for at, one in enumerate(self.programs[rank][: self.enqueued[rank]]):
            if one.group == group:
                enqueued, completed = one.sequence, one.sequence if self._is_finished(rank, at) else completed
        return enqueued, completed

    def text(self) -> str:
        """Return the log, with what the watchdogs print."""
        unfinished = [
            [
                at
                for at, one in enumerate(program[: self.enqueued[rank]])
                if one.name and not self._is_finished(rank, at)
            ]
            for rank, program in enumerate(self.programs)
        ]
        first = min((self.enqueued_at[rank][some[0]] for rank, some in enumerate(unfinished) if some), default=0)
        order = sorted(self.kept)
        self.random.shuffle(order)
        lines = [line for rank in order for line in self._lines(rank, unfinished[rank], first)]
        return "\n".join([*self._steps(), *lines]) + "\n"

    def _lines(self, rank: int, unfinished: list[int], first: int) -> Iterator[str]:
        """Yield what a process prints: each group has a watchdog, and the first one often ends the process."""
        prefix, program = f"[rank{rank}]:[E301 12:20:01.{rank:09d} ProcessGroupNCCL.cpp", self.programs[rank]
        waits: dict[int, int] = {}
        for at in unfinished:
            waits.setdefault(program[at].group, at)
        shown = [at for at in waits.values() if not self.late or self.enqueued_at[rank][at] <= first + self.late]
        shown = shown[:1] if self.random.random() < 0.7 else shown
        for at in shown:
            one = program[at]
            description, members = self.groups[one.group]
            inside, (enqueued, completed) = members.index(rank), self._numbers(rank, one.group)
            factor = len(members)
            out = one.elements * factor if "GATHER" in one.name else one.elements
            out = one.elements // factor if "SCATTER" in one.name else out
            yield (
                f"{prefix}:632] [Rank {inside}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum="
                f"{one.sequence}, OpType={one.name}, NumelIn={one.elements}, NumelOut={out}, Timeout(ms)=600000) ran "
                f"for {600_000 + rank % 90} milliseconds before timing out."
            )
            yield (
                f"{prefix}:2271] [PG ID {self._local(rank, one.group)} PG GUID {one.group}({description}) Rank {inside}"
                f"]  failure detected by watchdog at work sequence id: {one.sequence} PG status: last enqueued work: "
                f"{enqueued}, last completed work: {completed}"
            )
        if not shown and self.random.random() < 0.8:
            enqueued, completed = self._numbers(rank, 0)
            yield (
                f"{prefix}:1794] [PG ID 0 PG GUID 0({_WORLD}) Rank {rank}] Received a dump signal due to a collective "
                f"timeout from this local rank and we will try our best to dump the debug info. Last enqueued NCCL "
                f"work: {enqueued}, last completed NCCL work: {completed}."
            )

    def _local(self, rank: int, group: int) -> int:
        return sorted(self.of[rank].values()).index(group)

    def _steps(self) -> Iterator[str]:
        yield (
            f"using world size: {self.size}, data-parallel size: {self.data}, context-parallel size: 1, "
            f"tensor-model-parallel size: {self.tensor}, pipeline-model-parallel size: {self.stages}"
        )
        for step in range(1, 31):
            clock = f"12:{(step * 20) // 60:02d}:{(step * 20) % 60:02d}"
            yield (
                f" [2026-03-01 {clock}.000000] iteration {step:8d}/    1000 | consumed samples: {step * 256:12d} | "
                "elapsed time per iteration (ms): 20000.0 | global batch size:   256 | lm loss: 1.818812E+00 |"
            )
        if self.fault == "busy":
            yield "[rank0]: saving checkpoint at iteration      30 to /ckpt in torch_dist format"

    def log(self) -> str:
        """Return the log without lines of watchdogs."""
        return "\n".join(self._steps()) + "\n"

    def dumps(self) -> Mapping[int, dict[str, Any]]:
        """Return the flight recorder of each rank whose file is left."""
        return {rank: self._dump(rank) for rank in sorted(self.kept)}

    def _dump(self, rank: int) -> dict[str, Any]:
        own = sorted(self.of[rank].values())
        entries = []
        for at, one in enumerate(self.programs[rank][: self.enqueued[rank]]):
            if not one.name:
                continue
            done, is_pair = self._is_finished(rank, at), one.pair is not None
            ends = "" if one.pair is None else f" {one.pair[0]}->{one.pair[1]}"
            entries.append({
                "record_id": at, "pg_id": self._local(rank, one.group),
                "process_group": [str(one.group), self.groups[one.group][0]],
                "collective_seq_id": 0 if is_pair else one.sequence, "p2p_seq_id": one.sequence if is_pair else 0,
                "op_id": at, "profiling_name": f"nccl:{_NAMES[one.name]}{ends}", "time_created_ns": 0,
                "input_sizes": [[one.elements]], "output_sizes": [[one.elements]],
                "state": "completed" if done else "scheduled", "retired": done, "timeout_ms": 600_000,
                "is_p2p": is_pair,
            })  # fmt: skip
        status = {}
        for local, group in enumerate(own):
            enqueued, completed = self._numbers(rank, group)
            status[str(local)] = {"last_enqueued_collective": str(enqueued), "last_started_collective": "-1",
                                  "last_completed_collective": str(completed)}  # fmt: skip
        config = {
            str(group): {"name": str(group), "desc": self.groups[group][0],
                         "ranks": json.dumps(list(self.groups[group][1]))}
            for group in own
        }  # fmt: skip
        return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries[-self.buffer :]}
