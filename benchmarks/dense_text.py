"""Text logs in which nearly each line is a step, compared with a script that tries one regular expression per line."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.measure import Result, compare
from benchmarks.row import GOODPUT, OURS, Row, against, analyze
from benchmarks.setup import FOLDER, PEERS

_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_SAVE_EVERY = 1000
_OWN_MAPPING = """name = "own"
[[rule]]
event = "step"
line = "step {step:int} loss={_} {each:float} ms/step"
each = { unit = "ms" }
[[rule]]
event = "start"
once = true
line = "Starting training"
[[rule]]
event = "save"
line = "Saved checkpoint {_} ({took:float} s)"
"""


def megatron(drawn: random.Random) -> Iterator[str]:
    """Yield the lines of stdout of Megatron: a record per iteration, and a save every thousand."""
    now = _BEGIN
    yield "time to initialize megatron (seconds): 25.000\n"
    yield f"[after megatron is initialized] datetime: {now:%Y-%m-%d %H:%M:%S.%f} \n"
    yield f"[before the start of training step] datetime: {now:%Y-%m-%d %H:%M:%S.%f} \n"
    step = 0
    while True:
        step, took = step + 1, round(drawn.uniform(3900, 4100), 1)
        now += timedelta(milliseconds=took)
        yield (
            f" [{now:%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/ 1000000 | consumed samples: {512 * step:12d} | "
            f"elapsed time per iteration (ms): {took:.1f} | throughput per GPU (TFLOP/s/GPU): "
            f"{drawn.uniform(300, 420):.1f} | learning rate: 1.500000E-04 | global batch size:   512 | "
            f"lm loss: {9 / step**0.1:.6E} | loss scale: 1.0 | grad norm: {drawn.random():.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        if step % _SAVE_EVERY == 0:
            now += timedelta(seconds=30)
            yield f"saving checkpoint at iteration {step:7d} to /ckpt in torch_dist format\n"
            yield f"  successfully saved checkpoint from iteration {step:7d} to /ckpt [ t 1/8, p 1/1 ]\n"


def bars(drawn: random.Random) -> Iterator[str]:
    """Yield the states of a progress bar that is drawn about ten times per second, with losses of the Trainer."""
    total, step, elapsed = 5_000_000, 0, 0.0
    while True:
        minute, second = divmod(int(elapsed), 60)
        clock = f"{minute // 60}:{minute % 60:02d}:{second:02d}" if minute >= 60 else f"{minute:02d}:{second:02d}"
        yield f"\r{100 * step // total:3d}%|          | {step}/{total} [{clock}<99:00:00,  9.97it/s]"
        step, elapsed = step + 1, elapsed + drawn.uniform(0.08, 0.12)
        if step % _SAVE_EVERY == 0:
            yield f"\n{{'loss': {drawn.random():.4f}, 'learning_rate': 1.5e-05, 'epoch': {step / total:.2f}}}\n"


def own_loop(drawn: random.Random) -> Iterator[str]:
    """Yield the lines of a custom loop with the logger of Python."""
    now = _BEGIN
    yield f"{now:%Y-%m-%d %H:%M:%S},000 INFO __main__: Starting training: model=gpt2\n"
    step = 0
    while True:
        step, took = step + 1, drawn.uniform(240, 260)
        now += timedelta(milliseconds=took)
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        yield f"{stamp} INFO __main__: step {step} loss={3 * drawn.random():.4f} lr=1.0e-04 {took:.1f} ms/step\n"
        if step % _SAVE_EVERY == 0:
            now += timedelta(seconds=4)
            stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
            yield f"{stamp} INFO __main__: Saved checkpoint /ckpt/run-7/step_{step}.pt (4.0 s)\n"


def _log(name: str, lines: Callable[[random.Random], Iterator[str]], megabytes: int) -> Path:
    path = FOLDER / f"{name}-{megabytes}.log"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        part, size = path.with_suffix(".part"), 0
        with part.open("w", encoding="utf-8", newline="") as file:
            for line in lines(random.Random(7)):
                size += file.write(line)
                if size >= megabytes << 20:
                    break
            file.write("\n")
        part.rename(path)
    return path


def rows(megabytes: int, repeat: int) -> Iterator[Row]:
    """Yield rows of time, without the start of both processes, and of memory per byte of the log."""
    mapping = FOLDER / "own.toml"
    logs = {"megatron": megatron, "bars": bars, "own": own_loop}
    paths = {name: _log(name, lines, megabytes) for name, lines in logs.items()}
    mapping.write_text(_OWN_MAPPING, encoding="utf-8")
    small = _log("small", lambda drawn: iter([line for line, _ in zip(megatron(drawn), range(40), strict=False)]), 1)
    yield from _rows("Megatron", "megatron", paths["megatron"], small, (), (2.5, 3), repeat)
    yield from _rows("progress bars", "bars", paths["bars"], small, (), (2, 3), repeat)
    yield from _rows("own loop", "own", paths["own"], small, ("--mapping", str(mapping)), (2, 3), repeat)
    yield from _rows("own loop, inferred", "own", paths["own"], small, (), (3, 4), repeat)


def _rows(
    work: str, kind: str, path: Path, small: Path, options: Sequence[str], targets: tuple[float, float], repeat: int
) -> Iterator[Row]:
    script = [sys.executable, str(PEERS / "regex_per_line.py"), kind]
    commands = {
        OURS: [*analyze(path), *options],
        "script": [*script, str(path)],
        "start": [GOODPUT, "analyze", str(small), "--format", "json", "--no-progress", *options],
        "start of the script": [*script, str(small)],
    }
    found = compare(commands, repeat)
    ours, theirs = found[OURS], found["script"]
    size = path.stat().st_size / (1 << 20)
    detail = against(f"{size:.0f} MiB", ours, theirs, "script")
    ratio = _without_start(ours, found["start"]) / _without_start(theirs, found["start of the script"])
    yield Row(f"{work}: time / a regular expression per line", detail, ratio, targets[0])
    per_byte = (ours.peak_mb - found["start"].peak_mb) / size
    yield Row(f"{work}: memory per byte", detail, per_byte, targets[1])


def _without_start(found: Result, start: Result) -> float:
    return max(found.processor - start.processor, 0.01)
