"""Fleets to try `goodput fleet` on: folders of small logs, whole ones and odd ones; and the command as a separate
process, observed from outside.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from goodput_cli.cli.main import run
from loggen.scenario import Scenario
from loggen.write import log_bytes
from tests.support.story import Line, end, start, steps, story_lines

HOUR = 3600
FLEET_START = datetime(2026, 1, 5, tzinfo=UTC)


def of_job(lines: Sequence[Line], name: str, later: float = 0) -> list[Line]:
    """Lines of a recorder as those of another job, some seconds later."""
    moved = [json.loads(line) | {"job_name": name} for line in lines]
    return [
        json.dumps({key: value + later if key.endswith("_time") else value for key, value in one.items()})
        for one in moved
    ]


def put(path: Path, lines: Sequence[Line]) -> Path:
    """Write a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def job_bytes(seed: int, name: str, lines: int = 120) -> bytes:
    """A realistic log; equal arguments give equal bytes."""
    begin = FLEET_START + timedelta(hours=7 * seed % 900)
    scenario = Scenario(seed=seed, lines=lines, job_name=name, start=begin, disruption_every=60, save_every=30)
    return log_bytes(scenario)[0]


def make_fleet(folder: Path, jobs: int) -> None:
    """Ordinary jobs, and one of each odd kind: a job in three documents of three folders, a document of 20 jobs, one
    that is there twice, one cut off, one with a single event, a name used for three runs, one of random bytes."""
    for seed in range(jobs):
        _write(folder / f"job-{seed:04d}.jsonl", job_bytes(seed, f"job-{seed:04d}"))
    split = job_bytes(1001, "split").splitlines(keepends=True)
    for part in range(3):
        _write(folder / f"part-{part}" / "split.jsonl", b"".join(split[part::3]))
    _write(folder / "many.jsonl", b"".join(job_bytes(2000 + number, f"many-{number}", 40) for number in range(20)))
    for name in ("twin.jsonl", "twin-again.jsonl"):
        _write(folder / name, job_bytes(1002, "twin"))
    _write(folder / "cut.jsonl.gz", gzip.compress(job_bytes(1003, "cut", 4000), mtime=0)[:-2000])
    _write(folder / "single.jsonl", json.dumps({"job_name": "single", "job_start_time": 1.77e9}).encode() + b"\n")
    again = [job_bytes(seed, "again", 60) for seed in (10, 60, 110)]
    _write(folder / "again.jsonl", b"".join(again))
    _write(folder / "noise.jsonl", random.Random(1).randbytes(3000))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def fleet(*arguments: str, code: int = 0, out: Path = Path("fleet.out.json"), quiet: bool = True) -> Any:
    """Return the JSON answer of `goodput fleet`, in this process unless the arguments select another."""
    where = () if any(one in ("--workers", "--scheduler") for one in arguments) else ("--workers", "1")
    more = ("-q",) if quiet else ()
    assert run(["fleet", *arguments, *where, *more, "-o", str(out), "--force"]) == code
    return json.loads(out.read_text())


def training(name: str, hours: float, productive: float, at: float = 0) -> list[str]:
    """Return a job of this many hours, with a part kept as training in steps of a minute; the rest is before it."""
    count = round(productive * 60)
    first = (hours - productive) * HOUR
    lines = story_lines(start(0), steps(0, count + 1, at=first, every=60), end(hours * HOUR))
    return of_job(lines, name, at)


def text_of(*rows: str) -> str:
    """Lines of a table."""
    return "".join(f"{row}\n" for row in rows)


# --- `goodput fleet` as a separate process.

PATIENCE = 120.0


def command(folder: Path, name: str, *more: str) -> list[str]:
    outputs = [argument for ending in ("json", "csv", "txt") for argument in ("-o", f"{name}.{ending}")]
    return [
        sys.executable, "-m", "goodput_cli", "fleet", "logs", "--labels", "labels.csv", "--by", "team", "-q", "--force",
        *outputs, *more,
    ]  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    """Its own folder for temporary files, which is to be empty afterwards."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    paths = [str(Path(__file__).parent.parent.parent), str(folder / "plugins")]
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(paths)}


def start_fleet(folder: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(folder, name, *more), cwd=folder, env=environment(folder), stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def read(folder: Path, name: str) -> dict[str, bytes]:
    return {ending: (folder / f"{name}.{ending}").read_bytes() for ending in ("json", "csv", "txt")}


def answers(folder: Path, name: str, *more: str, silent: bool = True) -> dict[str, bytes]:
    """Return the written files. silent: nothing is printed. The library that started a worker may report
    its end later."""
    process = start_fleet(folder, name, *more)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said.decode(errors="replace")
    assert not (silent and said), said.decode(errors="replace")
    return read(folder, name)


def workers_of(process: subprocess.Popen[bytes], least: int, *, working: bool = False) -> list[psutil.Process]:
    """Return the worker processes, when there are at least this many; working: that have already worked."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        children = [one for one in psutil.Process(process.pid).children(recursive=True) if _is_worker(one, working)]
        if len(children) >= least:
            return children
        time.sleep(0.05)
    return []


def _is_worker(process: psutil.Process, working: bool) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline()) and (not working or process.memory_info().rss > 60 << 20)
    except psutil.Error:
        return False


def remains_of_session(folder: Path, group: int) -> list[str]:
    """Processes of a session, and temporary files."""
    processes = []
    for one in psutil.process_iter():
        try:
            if os.getsid(one.pid) == group and one.status() != psutil.STATUS_ZOMBIE:
                processes.append(" ".join(one.cmdline()))
        except (psutil.Error, OSError):
            continue
    return [*processes, *(str(path) for path in (folder / "temporary").iterdir())]


def resident(process: psutil.Process) -> int:
    """Bytes of memory, shared ones too; 0 for a process that is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
