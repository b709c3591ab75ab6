"""A very large fleet: `python -m benchmarks.large_fleet 10000 6700` is 10^4 jobs and 10^8 lines, because the mean log
has 1.5 times the median of lines. It writes 9 GB of logs, which are kept."""

from __future__ import annotations

import argparse
import os

from benchmarks.measure import run_once
from benchmarks.row import GOODPUT
from benchmarks.setup import fleet

_LIMIT = 12 * 3600.0


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_fleet", description=__doc__)
    parser.add_argument("jobs", type=int)
    parser.add_argument("median", type=int, help="lines of a log")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    options = parser.parse_args()
    folder = fleet(options.jobs, options.median)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{options.jobs} logs, {size / 1e9:.2f} GB in {folder}", flush=True)
    for workers in options.workers:
        command = [GOODPUT, "fleet", str(folder), "--accelerators", "8", "--format", "csv", "-q"]
        run = run_once([*command, "--workers", str(workers)], _LIMIT)
        words = run if isinstance(run, str) else f"{run.seconds:.1f} s, {run.processor:.1f} s cpu, {run.peak_mb:.0f} MB"
        print(f"{workers} workers: {words}", flush=True)


if __name__ == "__main__":
    main()
