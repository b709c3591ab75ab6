"""Fleets to try `goodput fleet` on: folders of small logs, whole ones and odd ones."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
