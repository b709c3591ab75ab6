"""Small logs of programs that contain the amount of work per step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 3, 1, 13, 25, tzinfo=UTC)


def timestamp(seconds: float, form: str = "%Y-%m-%d %H:%M:%S.%f") -> str:
    return f"{BEGIN + timedelta(seconds=seconds):{form}}"


def megatron(
    steps: int, seconds: float = 1.0, *, start_up: float = 0.0, every: int = 10, batch: int = 256, length: int = 4096,
    world: int | None = 8, tflops: float | None = 400.0, total: int = 10_000, first: int = 0, at: float = 0.0,
) -> list[str]:  # fmt: skip
    """Return the stdout of Megatron-LM, after this many seconds of start-up."""
    lines = ["------------------------ arguments ------------------------", f"  seq_length {'.' * 38} {length}"]
    lines += [] if world is None else [f"  world_size {'.' * 38} {world}"]
    lines.append("-------------------- end of arguments ---------------------")
    if start_up:
        lines.append(f"[before library-setup] datetime: {timestamp(at, '%Y-%m-%d %H:%M:%S')} ")
        lines.append(f"[after megatron is initialized] datetime: {timestamp(at, '%Y-%m-%d %H:%M:%S')} ")
    lines.append(f"[before the start of training step] datetime: {timestamp(at + start_up, '%Y-%m-%d %H:%M:%S')} ")
    rate = "" if tflops is None else f"throughput per GPU (TFLOP/s/GPU): {tflops} | "
    for step in range(first + every, first + steps + 1, every):
        now = at + start_up + (step - first) * seconds
        lines.append(
            f" [{timestamp(now)}] iteration {step:8d}/ {total:7d} | consumed samples: {step * batch} | elapsed time "
            f"per iteration (ms): {1000 * seconds} | {rate}global batch size: {batch:5d} | lm loss: 2.5E+00 |"
        )
    return lines


def torchtitan(*lines: tuple[float, str]) -> str:
    """Return the stdout of torchtitan: seconds, and the text printed then."""
    form = "%Y-%m-%d %H:%M:%S,%f"
    return "".join(f"[titan] {timestamp(at, form)[:-3]} - root - INFO - {text}\n" for at, text in lines)


def titan_step(step: int, tps: float, tflops: float | str = 393.22, mfu: str = "39.76%") -> str:
    return (
        f"step: {step:2d}  loss:  8.00000  grad_norm:  1.0000  memory: 39.00GiB(41.04%)  tps: {tps:,.0f}  "
        f"tflops: {tflops}  mfu: {mfu}"
    )


def recorded(steps: int, seconds: Callable[[int], float], **metrics: Callable[[int], object]) -> Iterator[str]:
    """Lines of the recorder, with metrics of each step."""
    now, of_job = BEGIN.timestamp(), {"job_name": "j"}
    yield json.dumps({**of_job, "job_start_time": now})
    for step in range(steps):
        yield json.dumps({**of_job, "step_count": step, "step_start_time": now})
        if metrics:
            values = {name: value(step) for name, value in metrics.items()}
            yield json.dumps({**of_job, "goodput_event": "metrics", "goodput_time": now, "step": step, **values})
        now += seconds(step)
