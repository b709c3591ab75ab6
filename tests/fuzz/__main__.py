"""Feed mutated inputs to goodput for some seconds, and report those that cause a fault.

Example: `python -m tests.fuzz --seconds 60 --seed 7`.

`fault_of` is the only definition of a fault. Inputs that cause one are kept in build/fuzz, with the result; the same
seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import pyarrow
from pyarrow import parquet

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.errors import GoodputError
from tests.fuzz.collector import Collector
from tests.fuzz.mutations import mutated, restructured
from tests.text.test_kubernetes import condition, megatron, over, pod, running, workload

ROOT = Path(__file__).parents[2]
PRIMER = ROOT / "sample_logs" / "primer-50-percent.jsonl"
KEPT = ROOT / "build" / "fuzz"
MOST_BYTES = 30_000
"""Maximum size of an input in bytes: small inputs show the same faults, and more of them can be tried."""
SECONDS = 20
"""Limit in seconds; a small input that takes longer is a hang."""
PLACES = ("sample_logs", "tests/examples", "tests/causes/examples", "tests/real", "tests/text/samples", "tests/advice")
NOT_LOGS = (".md", ".py", ".pyc", ".toml")
ENDS_WELL = frozenset((0, 1, 2, 3, 4, 5))
BUG = "This is a bug"


class HangError(BaseException):
    """An input took longer than `SECONDS`."""


def fault_of(question: Callable[[], object]) -> str | None:
    """Return the fault in goodput's answer; this is the only definition of a fault.

    An answer adds up to its window, to the nanosecond. Otherwise the result is a `GoodputError`, or a sentence and one
    of the documented exit codes. Any other exception, a message that reports a bug, a Python warning, and more than
    `SECONDS` are faults.
    """
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    faulthandler.dump_traceback_later(6 * SECONDS, exit=True)  # C code handles no signals
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            answer = question()
    except GoodputError:
        return None
    except (Exception, HangError):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    if BUG in said.getvalue():
        return said.getvalue()
    if isinstance(answer, goodput_cli.Analysis):
        counted = answer.goodput.ns + sum(row.ns for row in answer.badput)
        window = answer.window.ns - answer.window.excluded_ns
        return None if counted == window else f"the categories are {counted} ns, the window is {window} ns"
    return None if answer in ENDS_WELL else f"the exit code is {answer}"


class Fuzzing:
    """Seeds, and the functions called with their mutations, each with the kind of input that it accepts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        logs = [path for place in PLACES for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
        self.seeds: dict[str, list[tuple[str, bytes]]] = {
            "log": [(path.name, path.read_bytes()[:MOST_BYTES]) for path in logs if path.suffix not in NOT_LOGS],
            "mapping": _text_seeds((ROOT / "goodput_cli" / "events" / "mappings" / "shipped").glob("*.toml")),
            "settings": [("goodput.toml", SETTINGS), ("goodput.toml", MORE_SETTINGS)],
            "objects": [("objects.json", json.dumps(one, indent=at).encode()) for at, one in enumerate(OBJECTS)],
            "answer": [("answer", one) for one in ANSWERS],
            "allocations": [("sacct.txt", (ROOT / "tests" / "real" / "slurm" / "allocations.txt").read_bytes())],
            "labels": [("labels.csv", LABELS)],
            "saved": [],
            "manifest": [],
        }
        for ending in ("jsonl", "jsonl.gz", "parquet"):
            snapshot = folder / f"snapshot.{ending}"
            goodput_cli.fetch([str(PRIMER)], snapshot)
            self.seeds["log"].append((snapshot.name, snapshot.read_bytes()))
        self.seeds["log"] += _binary_seeds(folder)
        manifest = folder / "snapshot.jsonl.manifest"
        self.seeds["manifest"].append((manifest.name, manifest.read_bytes()))
        saved = folder / "saved.json"
        run(["analyze", str(PRIMER), "-q", "-o", str(saved)])
        self.seeds["saved"].append((saved.name, saved.read_bytes()))
        self.others = [data for _, data in self.seeds["log"]]
        self.collector = Collector()

    def questions(self, kind: str, path: Path) -> list[tuple[str, Callable[[], object]]]:
        """Return the functions called with an input, by name."""
        file, primer = str(path), str(PRIMER)
        if kind == "mapping":
            return [("--mapping", lambda: run(["analyze", str(self.folder / "text.log"), "--mapping", file, "-q"]))]
        if kind == "settings":
            return [
                (f"{command} --config", partial(run, [command, primer, "--config", file, "-q"]))
                for command in CONFIGURED
            ]
        if kind == "objects":
            log = str(self.folder / "pods.log")
            return [
                (f"{command} objects", partial(run, [command, log, file, "-q", "--timezone", "UTC"]))
                for command in ("analyze", "check", "jobs", "disruptions", "timeline")
            ]
        if kind == "answer":
            self.collector.answers(path.read_bytes())
            return [("otlp answers", lambda: self._published(primer))]
        if kind == "saved":
            return [("compare", lambda: run(["compare", primer, "--baseline", file, "-q"]))]
        if kind == "allocations":
            return [("--sacct", lambda: run(["fleet", primer, "--workers", "1", "--sacct", file, "-q"]))]
        if kind == "labels":
            return [("--labels", lambda: run(["fleet", primer, "--workers", "1", "--labels", file, "-q"]))]
        if kind == "manifest":
            return [("a snapshot", lambda: goodput_cli.analyze(str(self.folder / "snapshot.jsonl")))]
        return [
            ("analyze", lambda: goodput_cli.analyze(file)),
            ("check", lambda: run(["check", file])),
            ("check --suggest", lambda: run(["check", file, "--suggest"])),
            ("disruptions", lambda: run(["disruptions", file, "--format", "json"])),
            ("steps", lambda: run(["steps", file])),
            ("jobs", lambda: run(["jobs", file, "-q"])),
            ("advise", lambda: run(["advise", file, "-q"])),
            ("timeline", lambda: run(["timeline", file, "-q"])),
            ("fleet", lambda: run(["fleet", file, "-q", "--workers", "1"])),
            ("otlp", lambda: self._published(file)),
            ("beside another", lambda: run(["analyze", primer, file, "-q"])),
        ]

    def _published(self, file: str) -> int | str:
        """Return the exit code of a monitor that publishes to the collector; the complaint if it sent invalid JSON."""
        given = run(
            [
                "monitor",
                file,
                "--publish",
                f"otlp:{self.collector.url}",
                "--updates",
                "1",
                "-q",
                "--wait",
                "0",
                "--grace",
                "0",
            ]
        )
        return self.collector.complaint() or given

    def inputs(self, seed: int) -> Iterator[tuple[str, Path, str, Callable[[], object]]]:
        """Yield an endless series of inputs, each with a function: mostly logs, by `analyze`."""
        chance = random.Random(seed)
        (self.folder / "text.log").write_text("2026-01-01 00:00:00 step 1 loss 2.0\n" * 20)
        (self.folder / "pods.log").write_text(megatron((620, 1, 20), (1300, 15, 30)))
        while True:
            kind = chance.choices(tuple(KINDS), tuple(KINDS.values()))[0]
            name, data = chance.choice(self.seeds[kind])
            path = self.folder / (name if kind != "log" else f"input-{name}")
            path.write_bytes(_mutate_seed(chance, kind, data, self.others))
            if kind != "answer":
                self.collector.answers(ANSWERS[0])
            asked = self.questions(kind, path)
            weights = [12, *[1] * (len(asked) - 1)]
            question, ask = chance.choices(asked, weights)[0]
            yield kind, path, question, ask
            if kind != "manifest":
                path.unlink()


KINDS = {
    "log": 40,
    "mapping": 3,
    "settings": 4,
    "objects": 8,
    "answer": 2,
    "saved": 3,
    "manifest": 1,
    "allocations": 1,
    "labels": 1,
}
"""Kinds of seeds, and how often each is mutated."""
LABELS = b"""job,team,cluster,accelerators,price,weight
goodput-primer,search,west,8,2.5,1
other,ads,east,16,,
"""
SETTINGS = b"""format = "table"
reference-step-time = 8
exclude = ["2025-01-01T00:10:00Z/2025-01-01T00:20:00Z"]
fail-if = ["goodput<10", "disruptions>3"]
[rolling]
window = ["1h", "20m"]
[job."goodput-primer"]
stall-factor = 4.5
"""


MORE_SETTINGS = b"""accelerators = 256
price-per-hour = 4.2
timezone = "Europe/Berlin"
exclude-stopped = true
[advise]
window = "1h"
[fleet]
by = "week"
format = "json"
[monitor]
every = "30s"
publish = ["json:-"]
[timeline]
category = ["wasted"]
[job."*"]
reference-step-time = "auto"
async-saves = true
"""
CONFIGURED = ("analyze", "rolling", "timeline", "disruptions", "steps", "advise", "check", "jobs")
OBJECTS: tuple[dict[str, object], ...] = (
    {"apiVersion": "v1", "kind": "List", "items": [
        workload(0, condition("QuotaReserved", 420), condition("Admitted", 480)),
        pod(0, 481, 490, over(540, 1030, 137, "OOMKilled")),
        pod(1, 481, 500, over(545, 1060, 1), sidecar=running(546), reason="Evicted", message="low on memory"),
        pod(2, 1100, 1110, running(1200), over(545, 1060, 1), restarts=3),
        {"kind": "Job", "metadata": {"name": "llm-7b", "uid": "b", "creationTimestamp": "2025-03-04T09:00:00Z"},
         "status": {"conditions": [condition("Failed", 1500, reason="DeadlineExceeded")], "restarts": 2}},
        {"kind": "Event", "reason": "Evicted", "message": "The node was low on resource: memory.",
         "lastTimestamp": "2025-03-04T09:17:00Z", "involvedObject": {"kind": "Pod", "name": "llm-7b-workers-0-1-x"}},
    ]},
    pod(0, 481, 490, over(540, 1030, 1),
        conditions=[condition("DisruptionTarget", 1030, reason="PreemptionByScheduler"), condition("PodScheduled", 9)]),
    {"kind": "WorkloadList", "items": [workload(
        0, condition("Evicted", 900, reason="Preempted"), condition("Admitted", 480), condition("Requeued", 1000))]},
)  # fmt: skip
"""Output of `kubectl get … -o json` for a log."""
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"partialSuccess":{"rejectedDataPoints":"3"}}',
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 24\r\n\r\n" + b'{"code":3,"message":"x"}',
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
)
"""Answers of an OpenTelemetry collector."""


def _mutate_seed(chance: random.Random, kind: str, data: bytes, others: list[bytes]) -> bytes:
    """Return a mutated seed. Kubernetes objects change mostly by their values."""
    if kind == "objects" and chance.random() < 0.8:
        return json.dumps(restructured(chance, json.loads(data))).encode()
    return mutated(chance, data, others)


def _binary_seeds(folder: Path) -> list[tuple[str, bytes]]:
    """Return seeds that are not text: a database and tables of trackers, a Zstandard frame."""
    database, table, packed = folder / "mlflow.db", folder / "history.parquet", folder / "packed.jsonl.zst"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript((ROOT / "tests" / "real" / "mlflow-3.17" / "mlflow.sql").read_text())
    stamps = [1767225600.0 + 7 * step for step in range(60)]
    steps = list(range(60))
    rows = pyarrow.table({"_timestamp": stamps, "_step": steps, "_runtime": [7.0 * step for step in steps]})
    parquet.write_table(rows, table)
    commas = "_timestamp,_step,_runtime\n" + "".join(f"{at},{step},{7 * step}\n" for step, at in enumerate(stamps))
    packed.write_bytes(pyarrow.compress(PRIMER.read_bytes(), "zstd", asbytes=True))
    files = [(path.name, path.read_bytes()) for path in (database, table, packed)]
    return [*files, ("history.csv", commas.encode())]


def _text_seeds(paths: Iterator[Path]) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(paths)]


def main() -> int:
    """Return exit code 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=10**9, help="at most so many")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _raise_hang)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)
    found: Counter[str] = Counter()
    tried = 0
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        for kind, path, question, ask in Fuzzing(Path(folder)).inputs(options.seed):
            if time.monotonic() > end or tried >= options.inputs:
                break
            tried += 1
            fault = fault_of(ask)
            if fault is not None:
                found[fault.strip().splitlines()[-1][:150]] += 1
                _keep(path, f"{kind}: {question}, seed {options.seed}, input {tried}\n{fault}", len(found))
    print(f"{tried} inputs, {found.total()} faults of {len(found)} kinds")
    for fault, count in found.most_common():
        print(f"{count:6d}  {fault}")
    if found:
        print(f"the inputs are in {KEPT}")
    return int(bool(found))


def _keep(path: Path, story: str, number: int) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    place = KEPT / f"{number:03d}-{path.name}"
    if not place.exists():
        shutil.copy(path, place)
        place.with_name(f"{place.name}.fault").write_text(story, encoding="utf-8", errors="backslashreplace")


def _raise_hang(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


if __name__ == "__main__":
    sys.exit(main())
