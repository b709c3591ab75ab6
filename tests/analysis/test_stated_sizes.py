"""The size that a starting process logs is valid for the steps of its attempt (accounting §8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.analysis.steps.times import changes_of_size
from tests.support.story import BEGIN, megatron, titan_step, torchtitan

STEPS, AGAIN = 200, 600.0
"""Steps of each attempt, and when (s) the second one begins."""
Pace = Callable[[int], float]


def of_megatron(before: int, after: int, pace: Pace) -> Iterator[str]:
    """Yield stdout of two launches: their arguments have no timestamps."""
    yield from megatron(STEPS, pace(0), world=before, every=1)
    straggling = [step for step in range(STEPS, 2 * STEPS) if pace(step) > pace(STEPS)]
    first, at = STEPS, AGAIN
    for until in (straggling[0], straggling[-1] + 1, 2 * STEPS) if straggling else (2 * STEPS,):
        part = megatron(until - first, pace(first), world=after, first=first, at=at, every=1)
        yield from part if first == STEPS else part[5:]
        first, at = until, at + (until - first) * pace(first)


def of_recorder(before: int, after: int, pace: Pace) -> Iterator[str]:
    """Yield lines of the recorder: one `attempt` for each process, before its start."""
    now, of_job = BEGIN.timestamp(), {"job_name": "j"}
    for first, size in ((0, before), (STEPS, after)):
        now = BEGIN.timestamp() + (AGAIN if first else 0)
        begins = {"goodput_event": "attempt", "goodput_time": now, "rank": 0, "world_size": size}
        yield json.dumps({**of_job, **begins, "run_id": f"{first}"})
        yield json.dumps({**of_job, "job_start_time": now})
        for step in range(first, first + STEPS):
            now += pace(step)
            yield json.dumps({**of_job, "step_count": step, "step_start_time": now})


def of_slices(before: int, after: int, pace: Pace) -> Iterator[str]:
    """Yield lines of MaxText's recorder: the process continues with another number of slices."""
    now, of_job = BEGIN.timestamp(), {"job_name": "j"}
    yield json.dumps({**of_job, "job_start_time": now})
    for step in range(2 * STEPS):
        now += pace(step)
        yield json.dumps({**of_job, "step_count": step, "step_start_time": now})
        if step in (0, STEPS):
            counts = {"active_slices": after if step else before, "total_slices": after if step else before}
            yield json.dumps({**of_job, **counts, "elastic_slice_counts_timestamp": now + 0.001})


LOGS = {"megatron": of_megatron, "recorder": of_recorder, "slices": of_slices}


def analysed(path: Path, lines: Iterator[str] | list[str]) -> Analysis:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return goodput_cli.analyze(path, timezone="UTC")


def slow_steps(analysis: Analysis) -> list[str]:
    return [one.text for one in analysis.insights if one.code == "slow_steps"]


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4)])
def test_size_of_an_attempt_applies_from_its_first_step(tmp_path: Path, log: str, before: int, after: int) -> None:
    def pace(step: int) -> float:
        return 1.0 if (step < STEPS) == (before > after) else 2.0

    analysis = analysed(tmp_path / "run.log", LOGS[log](before, after, pace))
    words = "slices" if log == "slices" else "accelerators"
    first = STEPS + 1 if log == "megatron" else STEPS
    changes = changes_of_size(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)
    assert changes == [f"changed on purpose: {words} {before} -> {after} from step {first} on"]
    assert slow_steps(analysis) == []


@pytest.mark.parametrize("log", LOGS)
def test_slow_steps_of_the_new_size_are_slow(tmp_path: Path, log: str) -> None:
    def pace(step: int) -> float:
        return 1.0 if step < STEPS else 3.0 if 260 <= step < 320 else 2.0

    (text,) = slow_steps(analysed(tmp_path / "run.log", LOGS[log](4, 2, pace)))
    assert "took 1.50 x the usual 2.00 s" in text


def test_slow_steps_on_fewer_active_slices_ask_for_the_slices(tmp_path: Path) -> None:
    """The job still has four: the extra time of its steps is lost, without a fault of hosts or data."""
    lines = list(of_slices(4, 3, lambda step: 3.0 if step < STEPS else 4.0))
    analysis = analysed(tmp_path / "run.log", [one.replace('"total_slices": 3', '"total_slices": 4') for one in lines])
    (slow,) = [one for one in analysis.insights if one.code == "slow_steps"]
    assert slow.advice == "restore the missing slices: 3 of 4 were active"


def test_work_and_allocated_time_use_the_attempt_size(tmp_path: Path) -> None:
    """16 accelerators from 0 to 600 s, down from 200 s on; 8 from 600 to 800 s. 400 TFLOP/s each in steps of 1 s."""
    analysis = analysed(tmp_path / "run.log", of_megatron(16, 8, lambda _: 1.0))
    assert analysis.work is not None
    assert analysis.work.tflop == pytest.approx(200 * 400 * 16 + 200 * 400 * 8)
    assert analysis.work.accelerators == pytest.approx((600 * 16 + 200 * 8) / 800)


def test_world_of_one_record_is_not_of_the_next_attempt(tmp_path: Path) -> None:
    """`using world size` has the time of its first iteration, which is the only one of the second attempt."""
    lines: list[str] = []
    for first, steps, size in ((0, 50, 16), (50, 10, 8), (60, 50, 4)):
        lines += [f"using world size: {size}, data-parallel size: 1 "]
        lines += megatron(steps, world=None, first=first, at=10.0 * first, start_up=20.0)[3:]
    analysis = analysed(tmp_path / "run.log", lines)
    assert analysis.work is not None
    assert analysis.work.tflop == pytest.approx(400 * (50 * 16 + 10 * 8 + 50 * 4))


def test_accelerators_by_rate_are_of_each_attempt(tmp_path: Path) -> None:
    """torchtitan states tokens per step and a rate per device: 8 devices of 1 s steps, then 4 of 2 s steps."""
    sizes = (
        "Trainer is initialized with local batch size 1, global batch size 64, sequence length 8192, total steps 500"
    )
    lines: list[tuple[float, str]] = []
    for first, each in ((0, 1.0), (100, 2.0)):
        begin = 10.0 * first
        lines += [(begin, "Starting job: x"), (begin, sizes), (begin, f"Training starts at step {first + 1}")]
        for k in range(1, 11):
            pace = 1 + k % 3 / 200
            begin += 10 * each * pace
            lines.append((begin, titan_step(first + 10 * k, 65536 / pace, f"{400 / pace}")))
    path = tmp_path / "train.log"
    path.write_text(torchtitan(*lines))
    analysis = goodput_cli.analyze(path, timezone="UTC")
    assert analysis.work is not None
    assert analysis.work.tflop == pytest.approx(100 * 400 * (1 * 8 + 2 * 4), rel=1e-3)
    assert analysis.work.accelerators == pytest.approx((1000 * 8 + 200 * 4) / 1200, rel=1e-2)
    assert slow_steps(analysis) == []


@pytest.mark.parametrize(
    ("sizes", "missing"),
    [
        ({0: 4, 1: 4, 2: 4}, (3,)),
        ({0: 4, 1: 4, 2: 4, 3: 4}, ()),
        ({0: 4, 2: 4}, (1, 3)),
        ({0: 4}, ()),
    ],
    ids=["last", "none", "two", "rank 0 alone"],
)  # fmt: skip
def test_ranks_are_missing_up_to_the_world_size(
    tmp_path: Path, sizes: dict[int, int], missing: tuple[int, ...]
) -> None:
    now = BEGIN.timestamp()
    lines = []
    for rank, size in sizes.items():
        who = {"job_name": "j", "goodput_time": now, "run_id": "a", "rank": rank}
        lines.append({**who, "goodput_event": "attempt", "world_size": size, "host": "n", "pid": 1})
        lines += [{"job_name": "j", "job_start_time": now}] if rank == 0 else []
        for step in range(30):
            ends = {**who, "goodput_time": now + step + 1, "goodput_event": "phases", "step": step, "steps": 1}
            lines += [{"job_name": "j", "step_count": step, "step_start_time": now + step}] if rank == 0 else []
            lines.append({**ends, "first_step": 0, "phase_data": 0.1, "step_seconds": 1.0})
    analysis = analysed(tmp_path / "run.jsonl", [json.dumps(one) for one in lines])
    assert [one.missing_ranks for one in analysis.step_phases] == [missing]
