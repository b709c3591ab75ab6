"""Failure messages of many programs (`failures.toml`, `threads.toml`), and ordinary messages (`ordinary.toml`): each
is put into the log of a small job, and the reported cause is compared with an engineer's.

`python -m tests.causes.wordings failures` counts the named, missed and wrong causes.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption

HERE = Path(__file__).parent
Verdict = Literal["named", "general", "missed", "wrong"]
"""named: the engineer's cause; general: the type of an exception or a signal, although the line has more; missed: no
cause; wrong: another cause."""
GENERAL = ("python_error", "native_crash")
MISSED = ("unknown", "killed", "collective_timeout")


@dataclass(frozen=True)
class Wording:
    """A failure message and its expected cause."""

    name: str
    text: str
    cause: tuple[str, ...] = ()
    """Accepted causes, the best one first."""
    at: str = "end"
    """`start`: in an attempt without steps."""
    host_log: str = ""
    """Name of the host's file that contains the message; an empty string for the job's log."""
    rank: int | None = None
    host: str | None = None
    """Source of the message."""


def wordings(kind: str) -> list[Wording]:
    """Return the wordings of a file."""
    declared = tomllib.loads((HERE / f"{kind}.toml").read_text("utf-8"))
    rows = declared.get("failure") or declared.get("ordinary") or []
    return [
        Wording(row["name"], row["text"].strip("\n"), tuple(row.get("cause", ())), row.get("at", "end"),
                row.get("host_log", ""), row.get("rank"), row.get("host")) for row in rows
    ]  # fmt: skip


def attempt_lines(minute: int, first: int) -> Iterator[str]:
    """Return the start lines of a process on node-03 at a minute after 10:00, and fifteen records of ten steps. The
    last record comes ten minutes and 45 s later."""
    yield "time to initialize megatron (seconds): 20.000"
    yield f"[after megatron is initialized] datetime: 2026-03-01 10:{minute:02d}:20.000000 "
    yield "node-03:812:812 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>"
    for record in range(15):
        seconds = minute * 60 + 80 + 40 * record + 5 * (record == 14)
        yield (
            f" [2026-03-01 {10 + seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.000000] iteration "
            f"{first + 10 * record:8d}/    1000 | elapsed time per iteration (ms): 4000.0 | loss scale: 1.0 |"
        )


def lines_of(one: Wording) -> list[str]:
    """Return the log of a job that contains this message."""
    said = [] if one.host_log else one.text.split("\n")
    if one.at == "start":
        begun = list(attempt_lines(16, 10))[:3]
        return [*attempt_lines(0, 10), *begun, *said, *attempt_lines(30, 160)]
    return [*attempt_lines(0, 10), *said, *attempt_lines(30, 160)]


def judged(one: Wording, folder: Path) -> Disruption:
    """Return the disruption after the message."""
    (folder / "train.log").write_text("\n".join(lines_of(one)) + "\n")
    if one.host_log:
        (folder / one.host_log).write_text(one.text + "\n")
    return goodput_cli.analyze(str(folder), job_name="job").disruptions[-1]


def agent(rank: int) -> tuple[str, ...]:
    """Return the lines of a node's agent that saw a rank exit with 1."""
    return (
        f"E0301 10:10:51.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
        f"local_rank: {rank} (pid: {812 + rank}) of binary: /usr/bin/python",
        "Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "============================================================",
        "train.py FAILED",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-03-01_10:10:51",
        "  host      : node-03",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : 1 (pid: {812 + rank})",
        "============================================================",
    )


def verdict(one: Wording, found: Disruption) -> Verdict:
    """Return the comparison of the reported cause with the engineer's."""
    code = found.cause or "unknown"
    if code in one.cause:
        return "named"
    if code in MISSED:
        return "missed"
    return "general" if code in GENERAL else "wrong"


def main(kind: str) -> None:
    """Print the reported cause of each wording."""
    counts: Counter[str] = Counter()
    for one in wordings(kind):
        with tempfile.TemporaryDirectory() as folder:
            found = judged(one, Path(folder))
        said = verdict(one, found)
        counts[said] += 1
        if said != "named":
            print(f"{said:8} {one.name}: {found.cause} {found.cause_certainty or ''} (not {one.cause[0]})")
    print(", ".join(f"{counts[key]} {key}" for key in ("named", "general", "missed", "wrong")))


OTHER_END = (
    "[rank5]: Traceback (most recent call last):",
    '[rank5]:   File "/opt/train.py", line 8, in save',
    "[rank5]: OSError: [Errno 28] No space left on device: '/ckpt/step_150'",
)
"""The final failure of a job that logged ordinary messages before."""


def disruption_among(one: Wording, where: str, folder: Path) -> Disruption:
    """Return the disruption of a job with ordinary messages: `middle`, between two steps; `end`, after the last one;
    `other`, before it dies of a full disk."""
    said = [] if one.host_log else one.text.split("\n")
    first = list(attempt_lines(0, 10))
    if where == "middle":
        lines = [*first[:-2], *said, *first[-2:]]
    else:
        lines = [*first, *said, *(OTHER_END if where == "other" else ())]
    (folder / "train.log").write_text("\n".join([*lines, *attempt_lines(30, 160)]) + "\n")
    if one.host_log:
        (folder / one.host_log).write_text(one.text + "\n")
    return goodput_cli.analyze(str(folder), job_name="job").disruptions[-1]
