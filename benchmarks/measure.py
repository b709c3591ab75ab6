"""Measurements of whole processes, from start to exit: wall time, processor time and peak memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

_KB_PER_UNIT = 1024 if sys.platform == "darwin" else 1  # ru_maxrss is in bytes there
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Environment of measured processes. Images of Python set the removed variable, and then each start compiles every
module again: 0.2 s that an ordinary installation does not have."""


@dataclass(frozen=True)
class Run:
    """One run of a process. seconds: wall time. processor: user and system time. peak_mb: peak resident memory.
    stopped: True if it was stopped at the limit: it would have taken at least that."""

    seconds: float
    processor: float
    peak_mb: float
    stopped: bool = False


@dataclass(frozen=True)
class Result:
    """Medians of the runs of one command; `failed` is the reason if there are none."""

    seconds: float
    processor: float
    peak_mb: float
    runs: int
    failed: str = ""
    stopped: bool = False


def run_once(command: Sequence[str], limit: float) -> Run | str:
    """Run a command once, stopped after `limit` seconds; return a sentence if it failed."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stderr is not None
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            break
        if time.perf_counter() - begin > limit:
            process.kill()
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = -9
            process.stderr.close()
            return _run(limit, usage, stopped=True)
        time.sleep(0.002)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    said = process.stderr.read().decode(errors="replace").strip()
    process.stderr.close()
    if process.returncode:
        return f"exit {process.returncode}: {said[-200:]}"
    return _run(seconds, usage)


def _run(seconds: float, usage: resource.struct_rusage, *, stopped: bool = False) -> Run:
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _KB_PER_UNIT / 1024, stopped)


def compare(commands: Mapping[str, Sequence[str]], repeat: int, limit: float = 600) -> dict[str, Result]:
    """Run the commands in turn (A B A B …), so that a busy machine is busy for all, and return medians.

    The first round warms caches and does not count, if there are several. A command that had to be stopped is not run
    again.
    """
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    failed: dict[str, str] = {}
    stopped: dict[str, Run] = {}
    for number in range(repeat + (repeat > 1)):
        for name, command in commands.items():
            if name in failed or name in stopped:
                continue
            run = run_once(command, limit)
            if isinstance(run, str):
                failed[name] = run
            elif run.stopped:
                stopped[name] = run
            elif number or repeat == 1:
                runs[name].append(run)
    return {
        name: _result([stopped[name]] if name in stopped else runs[name], failed.get(name, "")) for name in commands
    }


def _result(runs: Sequence[Run], failed: str) -> Result:
    if failed or not runs:
        nan = float("nan")
        return Result(nan, nan, nan, 0, failed or "no run")
    return Result(
        median(run.seconds for run in runs),
        median(run.processor for run in runs),
        median(run.peak_mb for run in runs),
        len(runs),
        stopped=any(run.stopped for run in runs),
    )
