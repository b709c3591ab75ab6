"""Logs of a job with a launcher agent on each node, of torchrun or NVRx, which one outage or several stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 9, 21, 14, 0, tzinfo=UTC)
STEP_SECONDS = 10
STARTUP_SECONDS = 38
OUTAGE_SECONDS = 72
"""From the death of the first process until the workers are started again."""
RENDEZVOUS_SECONDS = 30

_TORCHRUN = {
    "start": (("server.api: [INFO] [default] Starting worker group", 0),),
    "failure": (
        ("multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 3 (pid: 4711) of binary: /usr/bin/python3", 0),
        ("server.api: [INFO] [default] Worker group FAILED. 3/3 attempts left; will restart worker group", 5),
        ("server.api: [INFO] [default] Rendezvous'ing worker group", 40),
        ("server.api: [INFO] [default] Rendezvous complete for workers. Result:", 70),
    ),
}
_NVRX = {
    "start": (("worker_start_started", 0), ("worker_start_completed", 1)),
    "failure": (
        ("failure_detected", 0),
        ("worker_terminated", 5),
        ("rendezvous_started", 40),
        ("rendezvous_completed", 70),
    ),
}


@dataclass(frozen=True)
class AgentJob:
    """A job of several agents. apart: by how many seconds clocks differ. outages: after how many steps each comes."""

    nodes: int = 2
    launcher: str = "torchrun"
    apart: int = 0
    outages: Sequence[int] = (20,)
    last: int = 40

    def write(self, folder: Path, layout: str) -> None:
        """Write the log. layout: `files` (one per agent), `prefixes` (`srun -l`) or `merged`."""
        lines = sorted(self._lines(), key=lambda line: line[0])
        for _, node, text in lines:
            name = f"node-{node:02d}.log" if layout == "files" else "job.log"
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(f"{node}: {text}\n" if layout == "prefixes" else f"{text}\n")

    def _lines(self) -> list[tuple[float, int, str]]:
        """(real time, node, line)."""
        lines: list[tuple[float, int, str]] = []
        words = _TORCHRUN if self.launcher == "torchrun" else _NVRX
        now, step = 0.0, 0
        for cycle, stop in enumerate((*self.outages, self.last)):
            lines += self._from_agents(words["start"], now, cycle)
            now += STARTUP_SECONDS
            while step < stop:
                now, step = now + STEP_SECONDS, step + 1
                lines.append((now, 0, self._step(step, now)))
            now += 2
            if cycle < len(self.outages):
                lines += self._from_agents(words["failure"], now, cycle + 1)
                now += OUTAGE_SECONDS
        return lines

    def _from_agents(self, words: Sequence[tuple[str, int]], at: float, cycle: int) -> list[tuple[float, int, str]]:
        return [
            (at + after, node, self._agent(text, node, at + after, cycle))
            for text, after in words
            for node in range(self.nodes)
        ]

    def _agent(self, text: str, node: int, at: float, cycle: int) -> str:
        clock = self._clock(node, at)
        if self.launcher == "torchrun":
            return f"[{clock:%Y-%m-%d %H:%M:%S},000] torch.distributed.elastic.{_agent_module(text)}"
        host = f"node-{node:02d}"
        return (
            f"{clock:%Y-%m-%d %H:%M:%S},000 [INFO] [{host}] [workload:None(None) infra:{node}({node})] "
            f"profiling.py:93   - Cycle: {cycle} Event: {text} Node: {host}_4100_0 Rank: {node} "
            f"Time: {clock:%Y-%m-%d %H:%M:%S}.000 UTC"
        )

    def _step(self, number: int, at: float) -> str:
        return (
            f" [{self._clock(0, at):%Y-%m-%d %H:%M:%S}] iteration {number:8d}/{5000:8d} | consumed samples: "
            f"{64 * number:12d} | elapsed time per iteration (ms): {STEP_SECONDS * 1000}.0 | learning rate: 1.0E-04 | "
            "global batch size:    64 | lm loss: 2.0E+00 |"
        )

    def _clock(self, node: int, at: float) -> datetime:
        return START + timedelta(seconds=at + self.apart * node / max(self.nodes - 1, 1))


def _agent_module(text: str) -> str:
    return text if text.startswith("multiprocessing") else f"agent.{text}"
