"""Step breakdowns: phases and work, added up by each rank."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.record import Recorder
from goodput_cli.record.clock import NS
from goodput_cli.record.step_times import MOST_NAMES, NAME_CHARACTERS
from tests.record.record_programs import events, lines, run, start, word


class Clock:
    """A clock that moves on command."""

    def __init__(self) -> None:
        self.ns = 1_768_249_800 * NS

    def __call__(self) -> int:
        return self.ns

    def pass_seconds(self, seconds: float) -> None:
        self.ns += round(seconds * NS)


Pass = Callable[[float], None]


class Job:
    """A recorder of one rank, its clock, and its messages to the user."""

    def __init__(self, rank: int = 0, to: Any = "log.jsonl", **more: Any) -> None:
        clock, self.said = Clock(), list[str]()
        self.wait = clock.pass_seconds
        self.recorder = Recorder("j", to, rank=rank, heartbeat=0, clock=clock, warn=self.said.append, **more)

    def phases(self, path: str = "log.jsonl") -> list[dict[str, Any]]:
        """Return the lines of phases, without the keys of their origin."""
        self.recorder.close()
        found = [line for line in lines(Path(path)) if word(line) == "phases"] if Path(path).exists() else []
        left_out = ("job_name", "goodput_event", "goodput_time", "run_id", "host", "first_step")
        return [{key: value for key, value in line.items() if key not in left_out} for line in found]


def test_first_step_is_a_separate_record(tmp_path: Path) -> None:
    job = Job()
    with job.recorder.run():
        for step in range(5):
            with job.recorder.step(step):
                with job.recorder.step_phase("data"):
                    job.wait(0.25)
                job.wait(0.5 if step else 10)
    first = {"step": 0, "steps": 1, "rank": 0, "step_seconds": 10.25, "phase_data": 0.25}
    rest = {"step": 4, "steps": 4, "rank": 0, "step_seconds": 3.0, "phase_data": 1.0}
    assert job.phases() == [first, rest]
    line = next(line for line in lines(Path("log.jsonl")) if word(line) == "phases")
    assert line["first_step"] == 0
    assert line["goodput_time"] == 1_768_249_810.25
    assert line["host"] == os.uname().nodename


@pytest.mark.parametrize(("seconds", "sizes"), [(0.1, [1, 100, 100]), (1.0, [1, 25, 25]), (10, [1, 5]), (90, [1, 1])])
def test_record_has_at_most_100_steps_and_a_minute(tmp_path: Path, seconds: float, sizes: list[int]) -> None:
    job = Job()
    for step in range(202):
        with job.recorder.step(step), job.recorder.step_phase("train"):
            job.wait(seconds)
    assert [line["steps"] for line in job.phases()][: len(sizes)] == sizes


def test_records_of_all_ranks_end_at_the_same_steps(tmp_path: Path) -> None:
    ends = []
    for rank, seconds in enumerate((0.599, 0.601)):
        job = Job(rank)
        for step in range(202):
            with job.recorder.step(step), job.recorder.step_phase("train"):
                job.wait(seconds)
        (path,) = Path().glob("log.*r1.jsonl") if rank else [Path("log.jsonl")]
        ends.append({line["step"] for line in job.phases(str(path))})
    assert ends[0] - {201} == {0, 100, 200}
    assert ends[0] < ends[1]


def test_time_with_a_category_is_not_step_time(tmp_path: Path) -> None:
    job = Job()
    recorder = job.recorder
    for step in range(3):
        with recorder.step(step), recorder.step_phase("optimizer"):
            job.wait(1)
            with recorder.checkpoint_save(step):
                job.wait(4)
        with recorder.phase("eval"):
            job.wait(7)
            with recorder.data_loading():
                job.wait(1)
        job.wait(0.5)
    # the last one: the end of its step is not recorded
    assert [line["step_seconds"] for line in job.phases()] == [1.5, 1.5, 1]
    assert [line["phase_optimizer"] for line in job.phases()] == [1, 1, 1]
    assert "phase_data" not in job.phases()[0]


def test_loading_is_claimed_and_is_the_data_phase(tmp_path: Path) -> None:
    job = Job()
    for step in range(3):
        with job.recorder.step(step):
            with job.recorder.data_loading():
                job.wait(0.25)
            with job.recorder.step_phase("data"), job.recorder.data_loading():
                job.wait(0.5)
        with job.recorder.data_loading():
            job.wait(1)
    assert [(line["phase_data"], line["step_seconds"]) for line in job.phases()] == [(1.75, 1.75), (3.5, 3.5)]
    assert sum("data_loading_start_time" in line for line in lines(Path("log.jsonl"))) == 9


def test_no_line_is_written_without_a_phase(tmp_path: Path) -> None:
    for rank in (0, 1):
        job = Job(rank)
        with job.recorder.run():
            for step in job.recorder.steps(range(300)):
                with job.recorder.data_loading():
                    job.wait(step)
    assert [path.name for path in Path().iterdir()] == ["log.jsonl"]
    assert "phases" not in events(Path("log.jsonl"))


def test_nested_phase_counts_once(tmp_path: Path) -> None:
    job = Job()
    phase = job.recorder.step_phase
    for _ in job.recorder.steps(range(3)):
        with phase("forward_backward"):
            job.wait(0.5)
            with phase("data"):
                job.wait(0.25)
                with phase("gc"):
                    job.wait(0.125)
            with phase("forward_backward"):
                job.wait(1)
    first, rest = job.phases()
    assert {key: value for key, value in first.items() if key.startswith("phase_")} == {
        "phase_forward_backward": 1.875,
        "phase_forward_backward/data": 0.375,
    }
    assert rest["phase_forward_backward"] == 3.75


def test_work_of_the_job_is_recorded_by_rank_0(tmp_path: Path) -> None:
    for rank in (0, 1):
        job = Job(rank)
        recorder = job.recorder
        for step in recorder.steps(range(3)):
            job.wait(1)
            recorder.work(tokens=1000, samples=2)
            recorder.work(tokens=500, flops=1e15)
            recorder.work(tokens=float("nan"), samples="x", flops=-step)
        if not rank:
            assert [[line[key] for key in ("tokens", "samples", "flops")] for line in job.phases()] == [
                [1500, 2, 1e15],
                [3000, 4, 2e15],
            ]
            assert len(job.said) == 3
    (other,) = Path().glob("log.*.r1.jsonl")
    assert all("tokens" not in line for line in lines(other))


def test_each_rank_has_a_file_next_to_rank_0(tmp_path: Path) -> None:
    for to, pattern in (("runs/a.jsonl", "runs/a.*.r2.jsonl"), (None, "goodput-logs/j.*.r2.jsonl"), ("x/", "x/*.r2.*")):
        job = Job(2, to)
        with job.recorder.run():
            for step in range(3):
                with job.recorder.step(step), job.recorder.step_phase("data"):
                    job.wait(1)
        (path,) = Path().glob(pattern)
        assert events(path) == ["phases", "phases"]
        assert [line["rank"] for line in lines(path)] == [2, 2]


def test_phase_outside_of_a_step_is_reported_once(tmp_path: Path) -> None:
    job = Job()
    recorder = job.recorder
    with recorder.step_phase("data"):
        job.wait(1)
    for step in range(2):
        with recorder.step(step):
            job.wait(1)
        with recorder.step_phase("data"):
            job.wait(1)
    recorder.work(tokens=1)
    assert job.said == ["a phase outside a step is not recorded: use step_phase within a step"]
    assert [line.get("phase_data") for line in job.phases()] == [None, None]


def test_work_of_other_threads_overlaps_steps(tmp_path: Path) -> None:
    job = Job()
    recorder = job.recorder

    def elsewhere() -> None:
        for _ in range(200):
            with recorder.step_phase("data"), recorder.data_loading():
                job.wait(0.001)

    for step in range(3):
        with recorder.step(step):
            threads = [threading.Thread(target=elsewhere) for _ in range(8)]
            for thread in threads:
                thread.start()
            with recorder.step_phase("train"):
                for thread in threads:
                    thread.join()
    first, rest = job.phases()
    assert "phase_data" not in first
    assert rest["steps"] == 2
    assert job.said == ["a phase in a thread other than the steps' thread overlaps them and is not recorded"]


def test_step_with_an_exception_is_not_done(tmp_path: Path) -> None:
    job = Job()

    def train() -> None:
        for step in range(4):
            with job.recorder.step(step), job.recorder.step_phase("train"):
                job.wait(1)
                if step == 3:
                    raise ValueError("x")

    with pytest.raises(ValueError, match="x"), job.recorder.run():
        train()
    assert [(line["step"], line["phase_train"]) for line in job.phases()] == [(0, 1), (2, 2)]
    assert "crashed" in events(Path("log.jsonl"))


def test_names_are_short_and_printable(tmp_path: Path) -> None:
    job = Job()
    names: list[Any] = ["a/b", "x" * 200, "\x1b[31m", "", None, *(f"n{at}" for at in range(100))]
    for step in job.recorder.steps(range(2)):
        for name in names:
            with job.recorder.step_phase(name):
                job.wait(step + 1)
    for line in job.phases():
        keys = [key.removeprefix("phase_") for key in line if key.startswith("phase_")]
        assert len(keys) == MOST_NAMES
        assert all(key.isprintable() and 0 < len(key) <= NAME_CHARACTERS and "/" not in key for key in keys)
    assert len(job.said) == 1


def test_new_attempt_starts_from_zero(tmp_path: Path) -> None:
    job = Job(1)
    for first in (0, 50):
        with job.recorder.run():
            for step in range(first, first + 3):
                with job.recorder.step(step), job.recorder.step_phase("train"):
                    job.wait(1)
    found = [line for path in sorted(Path().glob("log.*")) for line in lines(path)]
    assert sorted((line["first_step"], line["step"], line["steps"]) for line in found) == [
        (0, 0, 1), (0, 2, 2), (50, 50, 1), (50, 52, 2),
    ]  # fmt: skip
    assert len({line["run_id"] for line in found}) == 2
    job.recorder.disable()
    with job.recorder.step(9), job.recorder.step_phase("train"):
        job.recorder.work(tokens=1)
    assert len(list(Path().glob("log.*"))) == 2


def test_no_argument_raises_into_the_program(tmp_path: Path) -> None:
    job = Job()
    for step in ("x", None, 3):
        with job.recorder.step(step, at="never"), job.recorder.step_phase("train", at=-1, until=float("nan")):
            job.wait(1)
        with job.recorder.step_phase(object(), at=2e9, until=1e9):  # type: ignore[arg-type]
            pass
    with job.recorder.step(4, at=0), job.recorder.step_phase("train", until=0):
        job.recorder.work(tokens=object(), samples=1e400, flops=1e308)
    job.recorder.work(flops=1e308)
    assert all(line["step_seconds"] >= 0 and line.get("phase_train", 0) >= 0 for line in job.phases())


PROGRAM = """
from goodput_cli.record import Recorder
recorder = Recorder("j", "logs/run.jsonl", heartbeat=0)
for step in range(3):
    with recorder.step(step), recorder.step_phase("train"):
        time.sleep(0.001)
exec(sys.argv[1])
"""


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("raise KeyError", 1), ("sys.exit(3)", 3)])
def test_end_of_the_process_loses_nothing(tmp_path: Path, rank: int, end: str, code: int) -> None:
    process = start(tmp_path, PROGRAM, end, packages=False, RANK=str(rank), WORLD_SIZE="2")
    process.communicate(timeout=120)
    assert process.returncode == code
    (path,) = (tmp_path / "logs").iterdir()
    assert [line["steps"] for line in lines(path) if word(line) == "phases"] == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("rank", [0, 1])
def test_fork_writes_no_steps_of_its_parent(tmp_path: Path, rank: int) -> None:
    program = (
        PROGRAM
        + """
if os.fork() == 0:
    for step in range(3, 500):
        with recorder.step(step), recorder.step_phase("child"):
            pass
    recorder.close()
    sys.exit(0)
os.wait()
"""
    )
    run(tmp_path, program, "pass", packages=False, RANK=str(rank), WORLD_SIZE="2")
    (path,) = (tmp_path / "logs").iterdir()
    found = [line for line in lines(path) if word(line) == "phases"]
    assert [line["steps"] for line in found] == [1, 2]
    assert all("phase_child" not in line for line in found)
