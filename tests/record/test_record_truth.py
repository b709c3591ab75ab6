"""The program's own measurements, compared with the analysis of its recording."""

from __future__ import annotations

from pathlib import Path

import goodput_cli
from tests.record.record_programs import run

WORK = """
import time
real, ahead = time.time_ns, 0
time.time_ns = lambda: real() + ahead  # as the machine's clock, which nobody may set in a test
from goodput_cli.record import Recorder
recorder = Recorder("j", "run.jsonl", heartbeat=0)
worked = loaded = 0
def spend(seconds):
    begin = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - begin
"""
SET_FORWARD = """
with recorder.run():
    for number in range(40):
        with recorder.step(number):
            spend(0.05)
        if number == 20:
            ahead = 600 * 10**9
"""
LOADS = """
with recorder.run():
    for number in range(20):
        with recorder.data_loading():
            loaded += spend(0.05)
        with recorder.step(number):
            worked += spend(0.02)
            with recorder.data_loading():
                worked += spend(0.005)
print(100 * worked / (worked + loaded))
"""
FULL_DISK = """
import resource
def train(numbers):
    global worked
    for number in numbers:
        with recorder.step(number):
            worked += spend(0.03)
begin = time.perf_counter()
with recorder.run():
    train(range(20))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("run.jsonl"), hard))
    train(range(20, 30))
    with recorder.checkpoint_save(29):
        spend(0.6)
    train(range(30, 40))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    train(range(40, 60))
print(100 * worked / (time.perf_counter() - begin))
"""


def test_clock_set_forward_claims_nothing(tmp_path: Path) -> None:
    """The clock is set by ten minutes, in a job of seconds."""
    run(tmp_path, WORK + SET_FORWARD)
    analysis = goodput_cli.analyze(tmp_path / "run.jsonl")
    elapsed_ns = 100 * analysis.goodput.ns / analysis.goodput.percent
    assert elapsed_ns < 60 * 10**9  # ten minutes would be visible on the busiest machine
    assert 600 * 10**9 <= analysis.window.excluded_ns < 660 * 10**9
    assert "clock_step" in {one.code for one in analysis.diagnostics}


def test_loads_between_steps_delay_training(tmp_path: Path) -> None:
    out, _ = run(tmp_path, WORK + LOADS)
    analysis = goodput_cli.analyze(tmp_path / "run.jsonl")
    assert abs(analysis.goodput.percent - float(out)) < 5
    (beside,) = analysis.overlapped
    assert 0.1 <= beside.ns / 1e9 < 1


def test_lines_lost_by_a_full_disk_are_not_training(tmp_path: Path) -> None:
    """Twenty steps and a save are lost: that time is unknown, and goodput counts only known time."""
    out, said = run(tmp_path, WORK + FULL_DISK)
    analysis = goodput_cli.analyze(tmp_path / "run.jsonl")
    lost = next(row.ns for row in analysis.badput if row.category == "other")
    assert lost / 1e9 > 0.6 + 18 * 0.03
    assert analysis.goodput.percent <= float(out)
    assert "recorder_dropped" in {one.code for one in analysis.diagnostics}
    assert "counted in the log" in said
