"""Writes torchtitan's structured logs: a file of JSON lines a process, as its handler does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BEGIN = 1_780_272_000_000_000
"""us: 2026-06-01 00:00:00 UTC."""


@dataclass
class TracedRank:
    """One process of a rank; times are ms unless stated otherwise."""

    rank: int
    host: str = "node-a"
    begin_us: int = BEGIN
    resumed: int = 0
    pool: str = "training"
    now: int = 0
    lines: list[str] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.now = self.begin_us
        self.steps = self.resumed

    def record(self, name: str, value: float | None = None, *, event: bool = True, tags: Sequence[str] = ()) -> None:
        """Record one line, at the current time."""
        about: dict[str, object] = {
            "delta_ms": 0.1, "tid": 7, "rank": self.rank, "global_rank": self.rank, "local_rank": 0,
            "source": self.pool, "host_name": self.host, "pid": 7000 + self.rank,
        }  # fmt: skip
        if self.steps > self.resumed:
            about |= {"step": self.steps, "relative_step": self.steps - self.resumed}
        if tags:
            about["step_tags"] = list(tags)
        about |= {
            "time": self.now // 1_000_000, "time_ms": self.now // 1000, "time_us": self.now,
            "log_type": "event" if event else "instant", "log_type_name": name, "event_name": None,
        }  # fmt: skip
        about |= {} if value is None else {"value": value}
        about |= {"caller": "trainer.py:1:train", "log_level": "INFO", "seq_id": len(self.lines), "message": name}
        self.lines.append(json.dumps(about))

    def span(self, name: str, ms: float, tags: Sequence[str] = ()) -> None:
        """A span from now on."""
        self.record(f"{name}_start", tags=tags)
        self.now += round(ms * 1000)
        self.record(f"{name}_end", ms, tags=tags)

    def started(self) -> TracedRank:
        """Start after 4 s of initialization."""
        self.span("torch_distributed_init", 4000.0)
        self.record("training_start", event=False)
        return self

    def step(self, ms: float, phases: Mapping[str, float], tags: Sequence[str] = (), *, done: bool = True) -> None:
        """Record a step of that length, with these spans one after the other."""
        begin = self.now
        self.steps += 1
        self.record("step_start", tags=tags)
        for name, length in phases.items():
            self.span(name, length, tags)
        if done:
            self.now = begin + round(ms * 1000)
            self.record("step_end", ms, tags=tags)

    def write(self, folder: Path, number: int = 0) -> Path:
        """Its file, in the folder of the job's traces."""
        traces = folder / "structured_logs"
        traces.mkdir(parents=True, exist_ok=True)
        path = traces / f"{self.pool}.global_rank_{self.rank}.20260601-00000{number}-ABCDE{number}.jsonl"
        path.write_text("\n".join(self.lines) + "\n", "utf-8")
        return path


def slow_loader(ranks: int = 4, steps: int = 48) -> Iterator[TracedRank]:
    """Yield ranks of two hosts, where rank 1 fetches batches for 300 ms and others for 20; 10 s for the first step,
    then steps of 1 s, in the second half of 1.2 s, with a save of 4 s in the middle. Rank 3 is 200 ms longer in its
    passes there, and shorter by as much in its optimizer."""
    for rank in range(ranks):
        one = TracedRank(rank, "node-a" if rank < ranks // 2 else "node-b").started()
        one.step(10_000.0, {"fetching_batch": 20.0, "fwd_bwd": 9000.0, "optim": 150.0})
        for at in range(steps):
            late = at >= steps // 2
            data = 300.0 if rank == 1 else 20.0
            passes, optim = (980.0, 150.0) if late and rank == 3 else (780.0, 350.0 if late else 150.0)
            passes -= 280.0 if rank == 1 else 0.0
            spans = {"fetching_batch": data, "fwd_bwd": passes, "optim": optim}
            save = at == steps // 2 - 1
            spans |= {"checkpoint_save": 4000.0} if save else {}
            one.step((1200.0 if late else 1000.0) + (4000.0 if save else 0.0), spans)
        yield one
