"""Small logs of many kinds, and what is read from them: recorder logs, samples of devices, traces of torchtitan, and
`.wandb` files.
"""

from __future__ import annotations

import importlib
import json
import random
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goodput_cli.analysis.check import CheckFinding, CheckReport
from goodput_cli.analysis.jobs import check_log
from goodput_cli.analysis.question import make_question
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import NO_STEP, Edge, EventLog, EventTable, Kind
from goodput_cli.sources.base import Progress
from tests.support.story import end, prep, save, saved, start, started, steps, story_lines, terminated

T0 = 1_767_225_600
"""2026-01-01T00:00:00 UTC, in epoch seconds."""
SECOND = 1_000_000_000


def log_file(folder: Path, *lines: Any, name: str = "run.jsonl") -> str:
    """Write lines (objects as JSON, text and bytes as they are) and return the path."""
    path = folder / name
    path.write_bytes(b"".join(_as_bytes(line) + b"\n" for line in lines))
    return str(path)


def read_lines(folder: Path, *lines: Any, **options: Any) -> EventLog:
    """Read the lines as one file."""
    return read_events([log_file(folder, *lines)], **options)


def zstd(content: bytes) -> bytes:
    """The content as one frame of zstd."""
    module = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    packed: bytes = module.compress(content)
    return packed


def _as_bytes(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def step(number: Any, seconds: Any, job: Any = "j") -> dict[str, Any]:
    """A recorder's step line, `seconds` after T0."""
    return {"job_name": job, "step_count": number, "step_start_time": T0 + seconds}


def envelope(payload: Any, **more: Any) -> dict[str, Any]:
    """A Cloud Logging entry."""
    entry = {
        "insertId": "id1",
        "jsonPayload": payload,
        "logName": "projects/p/logs/goodput_run",
        "resource": {"type": "global", "labels": {"project_id": "p"}},
        "severity": "INFO",
        "timestamp": "2026-01-01T00:00:09.5Z",
    }
    return {**entry, **more}


def rows(log: EventLog) -> list[tuple[str, str, float, float]]:
    """(kind, edge, start, end) of each row, seconds after T0."""
    table = log.table
    return [
        (Kind(table.kind[at]).name, Edge(table.edge[at]).name, _after(table.time[at]), _after(table.end[at]))
        for at in range(len(table))
    ]


def _after(ns: Any) -> float:
    return (int(ns) - T0 * SECOND) / SECOND


def recorded_steps_of(table: EventTable) -> list[int | None]:
    """The step of each row."""
    return [None if value == NO_STEP else value for value in table.step.tolist()]


def lines(table: EventTable) -> list[int]:
    """The line of each row."""
    return list(table.line.tolist())


def found(log: EventLog, code: str) -> list[Diagnostic]:
    """The diagnostics of a code."""
    return [one for one in log.diagnostics if one.code == code]


def where(log: EventLog, code: str) -> list[str]:
    """The line numbers (as text) that the diagnostics of a code name."""
    return [place.rpartition(":")[2] for one in found(log, code) for place in one.where]


def codes(log: EventLog) -> set[str]:
    """The codes of all diagnostics."""
    return {one.code for one in log.diagnostics}


class MessageRecorder(Progress):
    """Recorder of messages."""

    def __init__(self) -> None:
        self.bytes = self.lines = self.expected = 0
        self.finished = False
        self.waits: list[str] = []

    def advance(self, count: int, /) -> None:
        self.bytes += count

    def expect(self, count: int, /) -> None:
        self.expected += count

    def wait(self, what: str, /) -> None:
        self.waits.append(what)

    def add_lines(self, count: int, /) -> None:
        self.lines += count

    def finish(self) -> None:
        self.finished = True


# --- Recorder logs for the tests of the question commands.

EPOCH = 1_767_225_600  # 2026-01-01T00:00:00Z
NS = 10**9


class Recorder:
    """A log in the making; times in seconds after `EPOCH`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, **fact: Any) -> Recorder:
        self.lines.append(json.dumps({"job_name": "job", **fact}))
        return self

    def start(self, time: float) -> Recorder:
        return self.add(job_start_time=EPOCH + time)

    def steps(self, first: int, last: int, start: float, every: float) -> Recorder:
        for number in range(first, last + 1):
            self.add(step_count=number, step_start_time=EPOCH + start + every * (number - first))
        return self

    def end(self, time: float) -> Recorder:
        return self.add(job_end_time=EPOCH + time)

    def slices(self, time: float, active: int, total: int, available: int) -> Recorder:
        return self.add(
            elastic_slice_counts_timestamp=EPOCH + time,
            active_slices=active,
            total_slices=total,
            available_slices=available,
        )

    def custom(self, start: float, end: float, label: str) -> Recorder:
        self.add(custom_badput_event_start_time=EPOCH + start, custom_badput_event_type=label)
        return self.add(custom_badput_event_end_time=EPOCH + end, custom_badput_event_type=label)

    def write(self, path: Path) -> Path:
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path


def outage() -> Recorder:
    """Record steps 0 to 9 of 10 s from second 100 on, an outage to second 1000, steps 6 to 19 from 1010 on, an end at
    1150.

    Steps 6 to 9 of the first attempt are repeated.
    """
    log = Recorder().start(90).steps(0, 9, 100, 10)
    return log.start(1000).steps(6, 19, 1010, 10).end(1150)


# --- Shared helpers of the tests of `goodput check`.

FINE = story_lines(start(0.1), prep(0.5, 5.5), steps(0, 6, at=10.25), save(62.5, 2), steps(6, 6, at=70.25), end(130.5))


def written(*events: Any, name: str = "run.jsonl") -> str:
    """A file with the lines of a story, in the current folder."""
    Path(name).write_text("".join(f"{line}\n" for line in flat(events)), encoding="utf-8")
    return name


def flat(events: Any) -> list[str]:
    """The lines of stories within stories."""
    return [events] if isinstance(events, str) else [line for part in events for line in flat(part)]


def checked(*events: Any, more: tuple[str, ...] = (), job_name: str | None = None, **question: Any) -> CheckReport:
    """Return the check of a story; `more` are further files."""
    log = read_events([written(*events), *more])
    return check_log(log, make_question(**question), job_name=job_name)


def found_codes(report: CheckReport) -> set[str]:
    return {found.code for found in report.findings}


def the(report: CheckReport, code: str) -> CheckFinding:
    """The only finding of a code."""
    (found,) = [found for found in report.findings if found.code == code]
    return found


def lines_of(found: CheckFinding) -> list[int]:
    return sorted(int(place.rpartition(":")[2]) for place in found.where)


def renamed(lines: list[str], job: str) -> list[str]:
    return [json.dumps(json.loads(line) | {"job_name": job}) for line in lines]


def hosts(shift: float, *, count: int = 4) -> list[str]:
    """Ranks 0 and 1 start, save and end together; the clock of rank 1 is `shift` seconds off."""
    lines = [started(0.5, 0), started(0.5 + shift, 1)]
    for number in range(1, count + 1):
        lines += [saved(100 * number, 60 * number, 0), saved(100 * number, 60 * number + shift, 1)]
    return [*lines, terminated(60 * count + 20, 0), terminated(60 * count + 20 + shift, 1)]


# --- Generated jobs whose devices are known second by second.


@dataclass
class DeviceJob:
    """A job of steps of 1 s that may hang once, and what its devices did."""

    seed: int = 0
    hosts: int = 4
    per_host: int = 4
    steps: int = 600
    hung_at: int | None = None
    """The step that hangs."""
    hung_seconds: int = 240
    stood: frozenset[tuple[int, int]] = frozenset()
    """(host, device) that are idle in the hang, while others spin."""
    idle: frozenset[tuple[int, int]] = frozenset()
    """Devices that never do anything."""
    throttled: frozenset[tuple[int, int]] = frozenset()
    """Devices that work at half their power."""
    spins: bool = True
    """True if waiting devices spin; otherwise they are at 30 to 70 %."""
    missing: float = 0.05
    """Share of samples that are missing."""
    apart: float = 5.0
    """Seconds by which clocks of hosts are off at most."""
    every: float = 5.0
    watts: float = 400.0
    joules: float = field(default=0.0, init=False)
    """Energy of all devices, from the first step to the last."""

    def write(self, folder: Path) -> Path:
        """Write the log and the files next to it; return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        rng, self.joules = random.Random(self.seed), 0.0
        lines = [{"job_name": "j", "job_start_time": T0}]
        at = 0.0
        hang = (-1.0, -1.0)
        for step in range(self.steps):
            lines.append({"job_name": "j", "step_count": step, "step_start_time": T0 + at})
            if step == self.hung_at:
                hang = (at, at + self.hung_seconds)
                at += self.hung_seconds
            at += 1
        lines.append({"job_name": "j", "job_end_time": T0 + at})
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for host in range(self.hosts):
            self._host(folder, host, at, hang, rng)
        return folder

    def _host(self, folder: Path, host: int, length: float, hang: tuple[float, float], rng: random.Random) -> None:
        off = rng.uniform(-self.apart, self.apart) / 2
        rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
        number = int(length / self.every) + 1
        for device in range(self.per_host):
            self.joules += self._watts(host, device) * length
        for at in range(number):
            second = at * self.every + rng.uniform(0, 0.2)
            for device in range(self.per_host):
                if rng.random() < self.missing:
                    continue
                busy = self._busy(host, device, second, hang, rng)
                stamp = datetime.fromtimestamp(T0 + second + off, UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
                watts = self._watts(host, device) + rng.uniform(-5, 5)
                rows.append(f"{stamp}, {device}, {busy} %, 60000 MiB, 80000 MiB, {watts:.2f} W")
        (folder / f"nvidia-smi-node-{'abcdefghijkl'[host]}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def _watts(self, host: int, device: int) -> float:
        return self.watts / 2 if (host, device) in self.throttled else self.watts

    def _busy(self, host: int, device: int, second: float, hang: tuple[float, float], rng: random.Random) -> int:
        if (host, device) in self.idle:
            return rng.randint(0, 2)
        if hang[0] <= second < hang[1]:
            if (host, device) in self.stood:
                return 0
            return 100 if self.spins else rng.randint(30, 70)
        return rng.randint(85, 100)


# --- Writes torchtitan's structured logs.

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


# --- Writer of wandb files.

_BLOCK = 1 << 15


def run_record(run_id: str, start: float, name: str = "", host: str = "node0") -> bytes:
    parts = _text(1, run_id) + _text(3, "project") + _text(13, host) + _bytes(17, _timestamp_bytes(start))
    return _record(17, parts + (_text(8, name) if name else b""))


def row(timestamp: float, runtime: float | None = None, **values: Any) -> bytes:
    """Return a row of the history; `__` in a name stands for a slash."""
    values = {name.replace("__", "/"): value for name, value in values.items()}
    values["_timestamp"] = timestamp
    if runtime is not None:
        values["_runtime"] = runtime
    items = (_bytes(1, _text(2, key) + _text(16, json.dumps(value))) for key, value in values.items())
    return _record(2, b"".join(items))


def printed(time: float, text: str) -> bytes:
    return _record(13, _bytes(2, _timestamp_bytes(time)) + _text(3, text))


def stats(time: float) -> bytes:
    return _record(7, _bytes(2, _timestamp_bytes(time)))


def exit_record(code: int, runtime: int) -> bytes:
    return _record(18, (_varint(1 << 3) + _varint(code) if code else b"") + _varint(2 << 3) + _varint(runtime))


def run_file(*records: bytes) -> bytes:
    """The bytes of a file of these records."""
    data = b":W&B\xe1\xbe\x00"
    for record in records:
        rest, first = record, True
        while rest or first:
            left = _BLOCK - len(data) % _BLOCK
            if left < 7:
                data += bytes(left)
                left = _BLOCK
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if not rest else 2) if first else (3 if rest else 4)
            check = zlib.crc32(bytes([kind]) + piece)
            data += struct.pack("<IHB", check, len(piece), kind) + piece
            first = False
    return data


def run_folder(
    root: Path, stamp: str, run_id: str, data: bytes, internal: str = "", local: str = "", output: str = ""
) -> Path:
    """A folder of a run below `root/wandb`, with its two logs and its output where they are given."""
    folder = root / "wandb" / f"run-{stamp}-{run_id}"
    (folder / "logs").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / f"run-{run_id}.wandb").write_bytes(data)
    (folder / "files" / "wandb-summary.json").write_text('{\n "_step": 3\n}\n')
    for name, text in (("logs/debug-internal.log", internal), ("logs/debug.log", local), ("files/output.log", output)):
        if text:
            (folder / name).write_text(text)
    return folder


def _record(number: int, message: bytes) -> bytes:
    return _varint(1 << 3) + _varint(7) + _bytes(number, message)


def _timestamp_bytes(time: float) -> bytes:
    ns = round(time * 10**6) * 1000
    return _varint(1 << 3) + _varint(ns // NS) + _varint(2 << 3) + _varint(ns % NS)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while True:
        value, low = value >> 7, value & 127
        parts.append(low | (128 if value else 0))
        if not value:
            return bytes(parts)
