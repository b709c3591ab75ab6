"""The writing process, and timestamps that never go back."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import goodput_cli
from goodput_cli.record import Recorder
from goodput_cli.record.clock import NS, Clock, microseconds
from goodput_cli.record.names import find_accelerators, find_rank
from tests.record.record_programs import events, lines, start, word

LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS"),
}
PROGRAM = """
from goodput_cli.record import Recorder
recorder = Recorder("j", "logs/", heartbeat=0, ranks=sys.argv[1])
with recorder.run():
    while sys.argv[1] == "all" and len(os.listdir("logs")) < 4:
        time.sleep(0.005)  # as a collective does: no step before all are there
    for step in recorder.steps(range(5)):
        with recorder.data_loading(): pass
    with recorder.checkpoint_save(4): pass
"""


def four(folder: Path, launcher: str, ranks: str) -> list[Path]:
    """Return the logs of four processes."""
    rank, size = LAUNCHERS[launcher]
    places = [{rank: str(at), size: "4"} for at in range(4)]
    group = [start(folder, PROGRAM, ranks, packages=False, **place) for place in places]
    for process in group:
        assert process.communicate(timeout=120)[1] == ""
    return sorted((folder / "logs").iterdir(), key=lambda path: path.name.split(".")[-2])


def test_only_rank_0_of_four_writes(tmp_path: Path) -> None:
    (path,) = four(tmp_path, "srun", "first")
    assert [lines(path)[0][key] for key in ("rank", "world_size")] == [0, 4]
    assert events(path).count("step 4") == 1


def test_all_ranks_write_heartbeats_and_one_writes_steps(tmp_path: Path) -> None:
    first, *others = four(tmp_path, "torchrun", "all")
    assert events(first)[:3] == ["attempt", "job_start_time", "step 0"]
    assert [events(path) for path in others] == [["attempt", "started"]] * 3
    assert [lines(path)[1]["rank"] for path in others] == [1, 2, 3]
    analysis = goodput_cli.analyze(str(tmp_path / "logs"))
    assert "multi_host_duplicates" not in {diagnostic.code for diagnostic in analysis.diagnostics}
    assert analysis.job.attempts == 1


class NotYet:
    """JAX before its initialization: a query of the rank would initialize the backend."""

    ready = False
    distributed = SimpleNamespace(is_initialized=lambda: NotYet.ready)

    @staticmethod
    def process_index() -> int:
        assert NotYet.ready, "it initialises the backend"
        return 3

    @staticmethod
    def process_count() -> int:
        return 8

    @staticmethod
    def device_count() -> int:
        return 32


def test_jax_is_not_queried_before_initialization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", NotYet)
    monkeypatch.setattr(NotYet, "ready", False)
    assert (find_rank(), find_accelerators()) == ((0, None), None)
    monkeypatch.setattr(NotYet, "ready", True)
    assert (find_rank(), find_accelerators()) == ((3, 8), 32)


def test_first_available_rank_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PROCESS_ID", "9")
    assert find_rank()[0] == 9
    monkeypatch.setenv("PMI_RANK", "8")
    assert find_rank()[0] == 8
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "6")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "7")
    assert find_rank() == (6, 7)
    monkeypatch.setenv("SLURM_PROCID", "5")
    assert find_rank()[0] == 5
    monkeypatch.setenv("RANK", "2")
    assert find_rank()[0] == 2
    torch = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 7, get_world_size=lambda: 9
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    assert find_rank() == (7, 9)
    monkeypatch.setenv("GOODPUT_RECORDER_RANK", "1")
    assert find_rank() == (1, 9)
    assert find_rank(4, 6) == (4, 6)


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.elapsed = 0
        self.set = 1_768_249_800 * NS

    def pass_seconds(self, seconds: float) -> None:
        self.elapsed += round(seconds * NS)

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.set + self.elapsed, elapsed=lambda: self.elapsed)


def test_timestamps_do_not_go_back_when_the_clock_is_set(tmp_path: Path) -> None:
    machine = Machine()
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0, clock=machine.clock())
    with recorder.run():
        for step, hours in enumerate([0, 0, -1, 0, 0, 1, 0, 0, 1, 0]):
            machine.pass_seconds(10)
            machine.set += hours * 3600 * NS
            recorder.begin_step(step)
        machine.pass_seconds(10)
    found = lines(tmp_path / "log.jsonl")
    assert [line["seconds"] for line in found if word(line) == "clock_step"] == [-3600, 3600, 3600]
    stamps = [line["step_start_time"] - 1_768_249_800 for line in found if "step_count" in line]
    assert stamps == [10, 20, 30, 40, 50, 60, 70, 80, 3690, 3700]
    analysis = goodput_cli.analyze(str(tmp_path / "log.jsonl"))
    assert (analysis.job.last_step, analysis.job.attempts) == (9, 1)
    assert (analysis.segments["ns"] > 0).all()


def test_suspended_machine_moves_timestamps_forward(tmp_path: Path) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set += 7200 * NS
    assert clock() == (1_768_249_800 + 7200) * NS
    assert (clock.stepped, clock.take_step(), clock.stepped) == (True, 7200 * NS, False)


def test_times_from_callers_are_parsed() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert microseconds(datetime.datetime(1970, 1, 1, 2, 0, 1, 5, tzinfo=zone)) == 1_000_005
    naive = datetime.datetime(2026, 1, 12, 20, 30, 0, 123_456)
    assert microseconds(naive) == round(naive.timestamp() * 10**6)
    assert microseconds(1_768_249_800) == 1_768_249_800_000_000
    assert microseconds(1_768_249_800.123456) == 1_768_249_800_123_456
    nothing: list[Any] = ["x", None, True, float("nan"), float("inf"), -1, datetime.date(2026, 1, 1)]
    assert [microseconds(given) for given in nothing] == [None] * len(nothing)
