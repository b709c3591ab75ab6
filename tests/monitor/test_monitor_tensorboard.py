"""TensorBoard: its own reader finds the same data as for the original."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ml_goodput_measurement.src import monitoring as original
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

import goodput_cli
from goodput_cli.sources.blocks import MONITOR_STATE
from tests.monitor.monitors import Job, ended, monitor, started
from tests.support.commands import until
from tests.support.logs import EPOCH, Recorder

Points = dict[str, list[tuple[int, float]]]


def read(folder: Path) -> tuple[Points, dict[str, str]]:
    """Return (step, value) of each tag, and the display names."""
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    points = {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in tags}
    return points, {tag: _name(accumulator, tag) for tag in tags}


def _name(accumulator: Any, tag: str) -> str:
    try:
        return str(accumulator.SummaryMetadata(tag).display_name)
    except KeyError:
        return ""


@pytest.fixture
def log(folder: Path) -> Path:
    """Write a log with a custom event and a save."""
    log = Recorder().start(0).steps(0, 9, 20, 10)
    log.add(custom_badput_event_type="eval step!", custom_badput_event_start_time=EPOCH + 115)
    log.add(custom_badput_event_type="eval step!", custom_badput_event_end_time=EPOCH + 118)
    log.steps(10, 12, 120, 10).end(160)
    path = folder / "run.jsonl"
    path.write_text("".join(f"{line}\n" for line in log.lines), encoding="utf-8")
    return path


def test_scalars_equal_those_of_the_original(log: Path, folder: Path) -> None:
    assert monitor(log, "--publish", "tensorboard:tb", "--window", "1m") == 0
    mine, names = read(folder / "tb" / "goodput")
    analysis = goodput_cli.analyze(log)
    types = original.BadputType
    badput: dict[Any, Any] = dict.fromkeys(types, 0.0)
    badput |= {getattr(types, time.category.upper()): time.percent for time in analysis.badput if time.label is None}
    badput[types.CUSTOM_BADPUT_EVENTS] = {time.label: time.percent for time in analysis.badput if time.label}
    step = analysis.job.last_step
    assert step == 12
    with SummaryWriter("theirs") as writer:
        original._upload_goodput_metrics_to_tensorboard(writer, analysis.goodput_percent, badput, step, True)
        original._write_step_deviation_to_tensorboard(writer, dict.fromkeys(range(12), 0.5))
    theirs, their_names = read(folder / "theirs")
    shared = {tag for tag in theirs if tag in mine}
    missing = {tag.removeprefix("badput/") for tag in theirs if tag not in mine}
    assert missing <= {*analysis.not_recorded, "data_loading_async"}
    assert "goodput/goodput" in shared
    values = sorted(shared - {"step_deviation"})  # both have float32
    assert [mine[tag] for tag in values] == [theirs[tag] for tag in values]
    assert [step for step, _ in mine["step_deviation"]] == [step for step, _ in theirs["step_deviation"]]
    assert {tag: names[tag] for tag in shared} == {tag: their_names[tag] for tag in shared}
    ours = {"goodput_by_time/goodput", "goodput_window/60"}
    assert {tag for tag in mine if tag not in theirs and "badput" not in tag} == ours
    assert mine["goodput_by_time/goodput"][0][0] == 160
    assert "badput/custom_badput_events/eval_step_" in shared
    assert "badput_window/60/custom_badput_events/eval_step_" in mine


OTHERS = """
import sys
from goodput_cli.cli.main import run
assert run(["monitor", "run.jsonl", "--publish", "tensorboard:tb"]) == 0
print([name for name in sys.modules if name.startswith(("tensorb", "torch"))])
"""


def test_event_files_need_no_other_package(log: Path, folder: Path) -> None:
    """tensorboardX imports torch if it is installed: 265 MB next to a job."""
    done = subprocess.run([sys.executable, "-c", OTHERS], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", done.stderr
    assert "goodput/goodput" in read(folder / "tb" / "goodput")[0]


def test_parts_can_be_left_out(log: Path, folder: Path) -> None:
    assert monitor(log, "--publish", "tensorboard:tb?badput=no&step_deviation=no") == 0
    assert [*read(folder / "tb" / "goodput")[0]] == ["goodput/goodput", "goodput_by_time/goodput"]


def test_restarted_monitor_repeats_no_step(folder: Path) -> None:
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 50)
    state = folder / "tb" / "goodput" / MONITOR_STATE
    target = ["run.jsonl", "--publish", "tensorboard:tb", "--interval", "0.1"]
    with started(*target, cwd=folder) as process:
        until(lambda: state.exists() and json.loads(state.read_bytes())["step"] == 49)
        process.kill()
    kept = json.loads(state.read_bytes())
    state.write_text(json.dumps({**kept, "step": 20}), encoding="utf-8")  # killed before it could save its state
    job.steps(51, 60)
    job.end()
    assert monitor(*target, "--settle", "0") == 0
    numbers = [step for step, _ in read(folder / "tb" / "goodput")[0]["step_deviation"]]
    assert sorted(numbers) == [*range(60)]


def test_second_monitor_of_a_folder_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log.parent / "tb" / "goodput").mkdir(parents=True)
    held = os.open(log.parent / "tb" / "goodput" / ".goodput-monitor.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert monitor(log, "--publish", "tensorboard:tb") == 1
    assert "another monitor writes to this folder\ntip: stop it or use another folder" in capsys.readouterr().err
    os.close(held)
    assert monitor(log, "--publish", "tensorboard:tb") == 0


def test_log_without_job_start_gives_no_totals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = Recorder().start(200).steps(100, 110, 220, 10).end(340)
    (folder / "run.jsonl").write_text("".join(f"{line}\n" for line in later.lines), encoding="utf-8")
    earlier = Recorder().start(0).steps(0, 105, 20, 1)
    (folder / "earlier.jsonl").write_text("".join(f"{line}\n" for line in earlier.lines), encoding="utf-8")
    targets = ["--publish", "tensorboard:tb", "--publish", "prom:m.prom", "--whole-job", "--window", "1m"]
    assert monitor("run.jsonl", *targets) == 0
    assert "earlier_attempts_missing" in capsys.readouterr().err
    assert "goodput_ratio" not in Path("m.prom").read_text()
    assert {tag.partition("/")[0] for tag in read(folder / "tb" / "goodput")[0]} == {
        *("goodput_window", "badput_window", "step_deviation")
    }
    assert monitor("run.jsonl", *targets, "--history", "earlier.jsonl") == 0
    assert 'goodput_attempts{job_name="job"} 2' in Path("m.prom").read_text()


@pytest.mark.parametrize(
    "state", ['{"step": "x", "file": 7}', '{"step": 1e999}', "[" * 200_000], ids=("x", "inf", "deep")
)
def test_broken_state_file_is_ignored(folder: Path, state: str) -> None:
    (folder / "tb/goodput").mkdir(parents=True)
    (folder / "tb/goodput/.goodput-monitor.json").write_text(state, encoding="utf-8")
    assert monitor(ended(folder / "run.jsonl"), "--publish", "tensorboard:tb", "-q") == 0
