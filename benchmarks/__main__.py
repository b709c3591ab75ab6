"""`make bench` and `make bench-full`: prints a table of ratios with their targets."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks import dense_text
from benchmarks.measure import Result, compare
from benchmarks.row import GOODPUT, OURS, Row, against, analyze, peer, shown
from benchmarks.setup import (
    FOLDER,
    calm_log,
    checkpoint_log,
    dense_log,
    fleet,
    odd_log,
    peers_python,
    recorder_log,
    short_log,
)
from benchmarks.text_log import literals, stdout_log

WINDOWS = 10_000
_PARSERS = {"pyarrow": "read_json.py", "polars": "read_polars.py", "orjson loop": "loads_each.py"}
"""Peers that parse a log and do nothing with it."""
SMALL_LOG = Path("sample_logs/fsdp-2-attempts.jsonl")
SAMPLE_LOG = Path("sample_logs/llm-pretrain.jsonl")


def reading(python: str | None, lines: int, repeat: int) -> Iterator[Row]:
    """Yield rows of the whole command against only parsing the file; memory; malformed lines."""
    path, bad = recorder_log(lines), recorder_log(lines, bad_share=0.0001)
    commands = {OURS: analyze(path), "bad": analyze(bad)}
    if python:
        commands |= {name: peer(python, script, path) for name, script in _PARSERS.items()}
    found = compare(commands, repeat)
    ours, size = found[OURS], path.stat().st_size / (1 << 20)
    if python:
        theirs = found["pyarrow"]
        detail = against(f"{lines} lines", ours, theirs, "pyarrow")
        yield Row("time / pyarrow.json.read_json", detail, ours.seconds / theirs.seconds, 1.3)
        yield from _rows_against_parsers(found, f"{lines} lines")
    yield Row("0.01 % malformed / clean", shown(found["bad"]), found["bad"].seconds / ours.seconds, 1.15)
    if python:
        cpu = found["polars"].processor
        detail = against(f"{lines} lines", ours, found["polars"], "polars")
        yield Row("processor time / polars.read_ndjson", detail, ours.processor / cpu, 0.9)
    yield Row("peak memory / file", f"{ours.peak_mb:.0f} MB of {size:.0f} MB", ours.peak_mb / size, 1.6)


def dense(repeat: int) -> Iterator[Row]:
    """Yield rows of a log in which nearly each line is a step."""
    path = dense_log(5_000_000)
    found, file = compare({OURS: analyze(path)}, repeat)[OURS], path.stat().st_size / (1 << 20)
    yield Row("peak memory / file, no loads", f"{found.peak_mb:.0f} MB of {file:.0f} MB", found.peak_mb / file, 1.6)


def short_lines(python: str | None, repeat: int) -> Iterator[Row]:
    """Yield rows of short lines: memory per file size, time against the quickest parsers, and growth."""
    sizes = (1_000_000, 5_000_000, 10_000_000)
    paths = {size: short_log(size) for size in sizes}
    for size, path in paths.items():
        found, file = compare({OURS: analyze(path)}, 1)[OURS], path.stat().st_size / (1 << 20)
        detail = f"{size} short lines: {found.peak_mb:.0f} MB of {file:.0f} MB"
        yield Row("peak memory / file", detail, found.peak_mb / file, 1.6)
    yield from growth(sizes[1:], repeat, short_log)
    if python:
        path = paths[sizes[1]]
        peers = {name: peer(python, script, path) for name, script in _PARSERS.items()}
        yield from _rows_against_parsers(compare({OURS: analyze(path), **peers}, repeat), f"{sizes[1]} short lines")


def _rows_against_parsers(found: Mapping[str, Result], work: str) -> Iterator[Row]:
    name = min(("polars", "orjson loop"), key=lambda one: found[one].seconds)
    detail = against(work, found[OURS], found[name], name)
    ratio = found[OURS].seconds / found[name].seconds
    yield Row("time / the better of polars.read_ndjson and orjson.loads", detail, ratio, 2)


def reference_library(python: str, path: Path, what: str, target: float) -> Iterator[Row]:
    """Yield rows against ml-goodput-measurement."""
    found = compare({OURS: analyze(path), "library": peer(python, "reference_library.py", path)}, 1)
    ours, theirs = found[OURS], found["library"]
    detail = against(what, ours, theirs, "library")
    yield Row("reference library / time", detail, theirs.seconds / ours.seconds, target, more=True)
    yield Row("memory / reference library", detail, ours.peak_mb / theirs.peak_mb, 0.5)


def dict_calculator(python: str, lines: int, repeat: int) -> Iterator[Row]:
    """Yield rows against a dict per line, for checkpoint logs."""
    path = checkpoint_log(lines)
    found = compare({OURS: analyze(path), "dicts": peer(python, "dict_calculator.py", path)}, repeat)
    detail = against(f"{lines} lines", found[OURS], found["dicts"], "dict per line")
    yield Row("dict per line / time", detail, found["dicts"].seconds / found[OURS].seconds, 20, more=True)


def growth(sizes: tuple[int, ...], repeat: int, log: Callable[[int], Path] = recorder_log) -> Iterator[Row]:
    """Yield the exponent of growth between the sizes, without the start of the process."""
    start = compare({"start": [GOODPUT, "analyze", str(SMALL_LOG), "--format", "json"]}, repeat)
    base = start["start"].processor
    times = [compare({OURS: analyze(log(size))}, repeat)[OURS].processor - base for size in sizes]
    exponent = math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])
    detail = ", ".join(f"{size}: {seconds:.2f} s cpu" for size, seconds in zip(sizes, times, strict=True))
    yield Row("growth exponent", detail, exponent, 1.05)


def windows(lines: int, repeat: int) -> Iterator[Row]:
    """Yield rows of ten thousand rolling windows against one."""
    path = recorder_log(lines)
    answer = subprocess.run(analyze(path), capture_output=True, check=True).stdout
    every = math.ceil(json.loads(answer)["window"]["seconds"] / WINDOWS)
    rolling = [GOODPUT, "rolling", str(path), "--every", f"{every}s", "--window", f"{10 * every}s"]
    found = compare({OURS: analyze(path), "rolling": [*rolling, "--format", "json", "--no-progress"]}, repeat)
    detail = f"{lines} lines: analyze {shown(found[OURS])}, rolling {shown(found['rolling'])}"
    yield Row(f"rolling, {WINDOWS} windows / analyze", detail, found["rolling"].seconds / found[OURS].seconds, 1.2)


def insights(lines: int, repeat: int) -> Iterator[Row]:
    """Yield the additional time of a renderer's insights, in one process."""
    logs = [str(make(lines)) for make in (calm_log, recorder_log)]
    command = [sys.executable, str(Path(__file__).with_name("insights.py")), *logs]
    shares = []
    for _ in range(repeat):
        measured = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
        shares.append(max(tuple(map(float, line.split())) for line in measured))
    share, analysed, made = min(shares)
    yield Row("insights / analyze", f"{lines} lines: {made:.3f} s of {analysed:.2f} s", share, 0.05)


def reports(lines: int, repeat: int) -> Iterator[Row]:
    """Yield rows of the HTML report of a small log and of a long one, from the start of the command to the file. The
    first run stores the chart library's file in the cache, which later ones use."""
    page = FOLDER / "report.html"
    logs = {"the sample log": (SAMPLE_LOG, 2.5), f"{lines} lines": (recorder_log(lines), 4.0)}
    commands = {
        name: [GOODPUT, "analyze", str(log), "-q", "--force", "-o", str(page)] for name, (log, _) in logs.items()
    }
    compare(commands, 1)
    found = compare({**commands, "json": analyze(recorder_log(lines))}, repeat)
    json_of_lines = found.pop("json")
    for name, result in found.items():
        target = logs[name][1]
        yield Row(f"report of {name} / {target} s", shown(result), result.seconds / target, 1)
    detail = f"{lines} lines: page {shown(result)}, JSON {shown(json_of_lines)}"
    yield Row("page / JSON, processor time", detail, result.processor / json_of_lines.processor, 1.6)


def text(megabytes: int, repeat: int) -> Iterator[Row]:
    """Yield rows of a stdout with one record in a thousand lines, against a search for the same literals."""
    log = stdout_log(megabytes)
    # with output to /dev/null, grep would stop at the first line
    search = ["sh", "-c", f"grep -cF -f {literals()} {log} | cat"]
    found = compare({OURS: analyze(log), "grep": search}, repeat)
    ours, theirs = found[OURS], found["grep"]
    detail = against(f"{megabytes} MiB", ours, theirs, "grep")
    yield Row("text / grep -cF, processor time", detail, ours.processor / theirs.processor, 1.2)


def monitoring(lines: int) -> Iterator[Row]:
    """Yield an update of a monitor on a log that grew by 100 lines, at an interval of a minute."""
    command = [sys.executable, str(Path(__file__).with_name("monitor.py")), str(recorder_log(lines))]
    measured = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    *updates, peak = map(float, measured)
    detail = f"{lines} lines: {min(updates):.2f} to {max(updates):.2f} s cpu an update, {peak:.0f} MB"
    yield Row("monitor, of a processor at 60 s", detail, max(updates) / 60, 0.05)


def memory(lines: int) -> Iterator[Row]:
    """Yield the memory for a month of a large run; the log is created, read once, and removed."""
    path = recorder_log(lines)
    found = compare({OURS: analyze(path)}, 1, limit=1800)[OURS]
    yield Row(f"peak memory of {lines} lines / 16 GiB", shown(found), found.peak_mb / (16 << 10), 1)
    path.unlink()


def small(repeat: int) -> Iterator[Row]:
    """Yield rows of minimal work, which is pure waiting time for users."""
    python = sys.executable
    commands = {
        "help": [GOODPUT, "--help"],
        "click": [python, "-c", "import click"],
        "log": analyze(SMALL_LOG),
        "pandas": [python, "-c", "import pandas, pyarrow, rich"],
    }
    found = compare(commands, repeat)
    helping, log = found["help"], found["log"]
    detail = against("--help", helping, found["click"], "import click")
    yield Row("--help / import click", detail, helping.seconds / found["click"].seconds, 1.5)
    detail = against("26 lines", log, found["pandas"], "import pandas, pyarrow, rich")
    yield Row("26 lines / import pandas, pyarrow, rich", detail, log.seconds / found["pandas"].seconds, 1.3)


def process(repeat: int) -> Iterator[Row]:
    """Yield the effect of each setting that the command makes in its process: with and without it."""
    program = "import sys; sys.argv[0] = 'goodput'; import goodput_cli.__main__ as main"
    collecting = "import contextlib, goodput_cli.arrays as gc; gc.garbage_collection_paused = contextlib.nullcontext"
    often = "import gc; gc.set_threshold = lambda *thresholds: None"
    for work, lines, log, without in (
        ("ending at once", "26 lines", SMALL_LOG, f"{program}; main._leave = sys.exit"),
        ("collecting seldom", "26 lines", SMALL_LOG, f"{often}; {program}"),
        ("pausing the collector", "2x10^5 lines of no known shape", odd_log(200_000), f"{collecting}; {program}"),
    ):
        programs = {"with": program, "without": without}
        options = analyze(log)[1:]
        found = compare(
            {name: [sys.executable, "-c", f"{text}; main.main()", *options] for name, text in programs.items()}, repeat
        )
        detail = f"{lines}: with {shown(found['with'])}, without {shown(found['without'])}"
        spent = [one.processor for one in found.values()]
        yield Row(f"without {work} / with", detail, spent[1] / spent[0], 1.03, more=True)


def fleets(jobs: int, repeat: int) -> Iterator[Row]:
    """Yield rows of a fleet on one processor and on two, and `goodput jobs` for comparison."""
    folder = fleet(jobs)
    command = [GOODPUT, "fleet", str(folder), "--accelerators", "8", "--format", "csv", "-q", "--workers"]
    listed = [GOODPUT, "jobs", str(folder), "--format", "csv", "-q"]
    found = compare({"one": [*command, "1"], "two": [*command, "2"], "jobs": listed}, repeat)
    one, two, listing = found["one"], found["two"], found["jobs"]
    work = f"{jobs} logs"
    detail = f"{work}: one process {shown(one)}, two workers {shown(two)}"
    yield Row("fleet, one process / two workers", detail, one.seconds / two.seconds, 1.5, more=True)
    yield Row("fleet / jobs, in the process", f"{work}: jobs {shown(listing)}", one.seconds / listing.seconds, 1.15)
    for name, result in (("jobs", listing), ("fleet", one)):
        each = 1000 * result.processor / jobs
        yield Row(f"{name}: a log / 6 ms of a processor", f"{work}: {each:.1f} ms", each / 6, 1)
    yield Row("peak memory of jobs / 150 MB", f"{work}: {listing.peak_mb:.0f} MB", listing.peak_mb / 150, 1)


def rows(full: bool) -> Iterator[Row]:
    """Yield all rows, the quick ones first."""
    python = peers_python()
    yield from small(15 if full else 7)
    yield from process(25 if full else 15)
    yield from growth((100_000, 1_000_000, 10_000_000) if full else (100_000, 1_000_000), 3)
    if python:
        yield from dict_calculator(python, 1_000_000 if full else 200_000, 3 if full else 1)
        yield from reference_library(python, calm_log(1_000_000), "10^6 lines, calm", 15)
        if full:
            yield from reference_library(python, calm_log(3_000_000), "3 x 10^6 lines, calm", 50)
            yield from reference_library(python, dense_log(200_000), "2 x 10^5 lines", 15)
    yield from windows(1_000_000, 5 if full else 3)
    yield from text(1024 if full else 256, 5 if full else 3)
    yield from dense_text.rows(100 if full else 25, 5 if full else 3)
    yield from insights(1_000_000, 5 if full else 3)
    yield from reports(1_000_000, 5 if full else 3)
    yield from monitoring(1_000_000)
    yield from fleets(2000 if full else 300, 3)
    yield from reading(python, 5_000_000, 5 if full else 3)
    yield from dense(3)
    yield from short_lines(python, 5 if full else 3)
    if full:
        yield from memory(100_000_000)


def main() -> None:
    """Print each row when it is ready."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="also the long ones: about half an hour, 12 GB of logs")
    options = parser.parse_args()
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} processors\n")
    print("| work | ratio | target | met | measured |\n| --- | --- | --- | --- | --- |")
    for row in rows(options.full):
        sign = ">=" if row.more else "<="
        met = "yes" if row.met else "no"
        print(f"| {row.work} | {row.value:.2f} | {sign} {row.target} | {met} | {row.detail} |", flush=True)


if __name__ == "__main__":
    main()
