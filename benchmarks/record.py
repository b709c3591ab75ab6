"""`python -m benchmarks.record`: cost of recording for a training program, compared with ml-goodput-measurement 0.2.3
in a separate environment. Prints a table with targets; ratios of one machine, never judged by a test."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.setup import peers_python

ROOT = Path(__file__).parent.parent
COST = Path(__file__).with_name("record_cost.py")
DEAD = """
import os, sys, time
sys.path.insert(0, os.environ["RECORD_ROOT"])
from goodput_cli.record.writer import Writer
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
class Dead:
    def write(self, line):
        raise OSError
writer = Writer("j", Dead(), warn=lambda _: None)
writer.write(writer.lines.step(0, 0), 2, 0)
writer.flush(1)
before, spent = resident(), []
lines = [writer.lines.step(step, step) for step in range(9000)]
before = resident()
for line in lines:
    begin = time.perf_counter_ns()
    writer.write(line, 2, 0)
    spent.append(time.perf_counter_ns() - begin)
for step in range(300_000):
    writer.write(writer.lines.step(step, step), 2, 0)
print(resident() - before, sorted(spent)[len(spent) // 2] / 1000)
os._exit(0)
"""


def measured(which: str, python: str, back_to_back: int, paced: int) -> dict[str, Any]:
    """Return the output of `record_cost.py`."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        command = [python, str(COST), which, folder, str(back_to_back), str(paced)]
        environment = {**os.environ, "RECORD_ROOT": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def rows(back_to_back: int, paced: int) -> Iterator[tuple[str, float, str, str]]:
    """Yield (label, value, target, the original's value)."""
    mine = measured("ours", sys.executable, back_to_back, paced)
    python = peers_python()
    theirs = measured("original", python, back_to_back, paced) if python else None

    def other(*keys: str) -> str:
        value: Any = theirs
        for key in keys:
            value = value and value[key]
        return "not measured" if value is None else f"{value:,.1f}"

    targets = {("back_to_back", "p50"): 5, ("back_to_back", "p99"): 25, ("paced", "p50"): 150, ("paced", "p99"): 500}
    for (how, name), target in targets.items():
        what = {"back_to_back": "a step line back to back", "paced": "a step line, 100 a second"}[how]
        yield f"{what}, {name} (µs)", mine[how][name], f"<= {target}", other(how, name)
    yield "lines a second, one process", mine["lines_per_second"], ">= 100000", other("lines_per_second")
    each = "lines_per_processor_second"
    yield "lines a second of processor time", mine[each], ">= 100000", other(each)
    yield "import (ms of processor time)", mine["import_ms"], "<= 40", other("import_ms")
    yield "import (MB)", mine["import_mb"], "<= 5", other("import_mb")
    yield "modules", mine["modules"], "", other("modules")
    yield "threads", mine["threads"], "<= 0", other("threads")
    environment = {**os.environ, "RECORD_ROOT": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", DEAD], capture_output=True, text=True, check=True, env=environment)
    memory, call = map(float, done.stdout.split())
    yield "memory with a dead sink, 300 000 lines (MB)", memory, "<= 12", "without a bound"
    yield "one line more to a queued sink, p50 (µs)", call, "<= 1", ""


def main() -> None:
    """Print each row when it is ready."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="lines back to back (default: %(default)s)")
    parser.add_argument("--paced", type=int, default=1000, help="lines at 100 a second (default: %(default)s)")
    options = parser.parse_args()
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} processors")
    print(f"load {os.getloadavg()[0]:.1f}\n\n| cost | recorder | target | met | ml-goodput-measurement 0.2.3 |")
    print("| --- | --- | --- | --- | --- |")
    for what, value, target, other in rows(options.steps, options.paced):
        print(f"| {what} | {value:,.1f} | {target} | {_met(value, target)} | {other} |", flush=True)


def _met(value: float, target: str) -> str:
    if not target:
        return ""
    sign, limit = target.split()
    return "yes" if (value <= float(limit) if sign == "<=" else value >= float(limit)) else "no"


if __name__ == "__main__":
    main()
