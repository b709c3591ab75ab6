"""Text logs in which nearly each line is a step, compared with a script that tries one regular expression per line."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.measure import Result, compare
from benchmarks.row import GOODPUT, OURS, Row, against, analyze
from benchmarks.setup import FOLDER, PEERS
from benchmarks.text_log import literals

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


def wide_bars(drawn: random.Random) -> Iterator[str]:
    """Yield the states of a bar of 80 columns whose fill grows, each on a line of its own, as a pipe receives them."""
    total, step, elapsed = 600_000, 0, 0.0
    while True:
        minute, second = divmod(int(elapsed) % 360_000, 60)
        clock = f"{minute // 60}:{minute % 60:02d}:{second:02d}" if minute >= 60 else f"{minute:02d}:{second:02d}"
        fill = ("█" * (28 * step // total)).ljust(28)
        yield f"Training: {100 * step // total:3d}%|{fill}| {step}/{total} [{clock}<9:00:00,  9.97it/s]\n"
        step, elapsed = min(step + 1, total), elapsed + drawn.uniform(0.08, 0.12)


def numbers(drawn: random.Random) -> Iterator[str]:
    """Yield the lines of a loop that prints ten numbers without a fixed length per step."""
    now = _BEGIN
    yield f"{now:%Y-%m-%d %H:%M:%S},000 INFO __main__: Starting training: model=gpt2\n"
    step = 0
    while True:
        step, now = step + 1, now + timedelta(milliseconds=drawn.uniform(240, 260))
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        values = " ".join(f"m{each}={drawn.randrange(10 ** drawn.randrange(1, 10))}" for each in range(10))
        yield f"{stamp} INFO __main__: step {step} {values}\n"


def words(drawn: random.Random) -> Iterator[str]:
    """Yield lines of random words with a time, one step in a thousand lines."""
    now, letters = _BEGIN, "abcdefghijklmnopqrstuvwxyz"
    number = 0
    while True:
        number, now = number + 1, now + timedelta(milliseconds=10)
        if number % _SAVE_EVERY == 0:
            step = number // _SAVE_EVERY
            text = f"iteration {step:8d}/ 1000000 | elapsed time per iteration (ms): 9990.0 |"
            yield f" [{now:%Y-%m-%d %H:%M:%S}] {text}\n"
        else:
            yield f"{now:%Y-%m-%d %H:%M:%S} {' '.join(''.join(drawn.choices(letters, k=6)) for _ in range(10))}\n"


def torchtitan(drawn: random.Random) -> Iterator[str]:
    """Yield a structured log of torchtitan's rank 0: five spans and three values per step."""
    now, number = 1_772_323_200_000_000, 0

    def record(name: str, step: int, value: float | None = None) -> str:
        nonlocal number
        number += 1
        fields: dict[str, object] = {
            "rank": 0, "global_rank": 0, "local_rank": 0, "source": "training", "host_name": "node-a", "pid": 4100,
            "step": step, "relative_step": step, "step_tags": [], "time": now // 1_000_000, "time_ms": now // 1000,
            "time_us": now, "log_type": "instant" if value is None else "event", "log_type_name": name,
            "event_name": None,
        }  # fmt: skip
        fields |= {} if value is None else {"value": value}
        fields |= {"caller": "trainer.py:1:train", "log_level": "INFO", "seq_id": number, "message": name}
        return json.dumps(fields) + "\n"

    step = 0
    while True:
        step, began = step + 1, now
        yield record("step_start", step)
        for name in ("fetching_batch", "fwd_bwd", "optim"):
            taken = drawn.uniform(100, 900)
            yield record(f"{name}_start", step)
            now += round(taken * 1000)
            yield record(f"{name}_end", step, taken)
        yield record("step_end", step, (now - began) / 1000)


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


def records(drawn: random.Random) -> Iterator[str]:
    """Yield the JSON lines of a custom loop, with a save every thousand steps and a line of text every hundred."""
    now, step = _BEGIN.timestamp(), 0
    while True:
        step, now = step + 1, now + drawn.uniform(0.24, 0.26)
        values = {"loss": round(3 * drawn.random(), 4), "lr": 1e-4, "grad_norm": round(drawn.random(), 3)}
        yield json.dumps({"ts": round(now, 3), "step": step, **values}) + "\n"
        if step % 100 == 0:
            yield f"collected {drawn.randrange(1000)} objects\n"
        if step % _SAVE_EVERY == 0:
            now += 4
            yield json.dumps({"ts": round(now, 3), "event": "checkpoint_saved", "step": step, "seconds": 4.0}) + "\n"


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
    logs = {
        "megatron": megatron,
        "bars": bars,
        "own": own_loop,
        "wide_bars": wide_bars,
        "numbers": numbers,
        "torchtitan": torchtitan,
        "records": records,
        "words": words,
    }
    paths = {name: _log(name, lines, megabytes) for name, lines in logs.items()}
    mapping.write_text(_OWN_MAPPING, encoding="utf-8")
    small = _log("small", lambda drawn: iter([line for line, _ in zip(megatron(drawn), range(40), strict=False)]), 1)
    yield from _rows("Megatron", "megatron", paths["megatron"], small, (), (2.5, 3), repeat)
    yield from _rows("progress bars", "bars", paths["bars"], small, (), (2, 3), repeat)
    yield from _rows("own loop", "own", paths["own"], small, ("--mapping", str(mapping)), (2, 3), repeat)
    yield from _rows("own loop, inferred", "own", paths["own"], small, (), (3, 4), repeat)
    yield from _rows("bars of 80 columns", "bars", paths["wide_bars"], small, (), (3, 3), repeat)
    yield from _rows("random numbers", "numbers", paths["numbers"], small, (), (4, 4), repeat)
    yield from _rows("torchtitan", "torchtitan", paths["torchtitan"], small, (), (2, 4), repeat)
    yield from _rows("own loop in JSON lines, inferred", "records", paths["records"], small, (), (3, 4), repeat)
    yield _words(paths["words"], small, repeat)


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


def _words(path: Path, small: Path, repeat: int) -> Row:
    """Return the row of a log without records in most lines, compared with a search for the literals of all rules."""
    commands = {
        OURS: analyze(path),
        # with output to /dev/null, grep would stop at the first line
        "grep": ["sh", "-c", f"grep -cF -f {literals()} {path} | cat"],
        "start": analyze(small),
    }
    found = compare(commands, repeat)
    detail = against(f"{path.stat().st_size / (1 << 20):.0f} MiB", found[OURS], found["grep"], "grep")
    ratio = _without_start(found[OURS], found["start"]) / found["grep"].processor
    return Row("random words: time / grep for the literals", detail, ratio, 1.5)


def _without_start(found: Result, start: Result) -> float:
    return max(found.processor - start.processor, 0.01)
