"""Two views of one job: event files, output of the processes, and a recorder's log (docs/formats.md).

The job: 40 steps of 1 s, an event file per process with a scalar every 5 steps. The first process began at 0 s, saved
at step 20, and died in step 29; the second one was started at 50 s, continues from step 20 and ends at step 40.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.events.event_files import framed, scalar_event
from tests.text.support import analysed, codes
from tests.text.test_progress_bars import state

T0 = 1_772_359_200
ERROR = "RuntimeError: The size of tensor a (513) must match the size of tensor b (512)"
TRACEBACK = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n{ERROR}\n'
FIRST, SECOND = range(1, 29), range(21, 41)


def event_file(folder: Path, begin: int, steps: Iterable[int], first: int) -> None:
    """Write the event file of a process that began at a time (s after T0) and completed step `first` a second later."""
    folder.mkdir(parents=True)
    records = [scalar_event(T0 + begin + 1 + step - first, step, "train/loss", 1.0) for step in steps if step % 5 == 0]
    records.insert(0, Event(wall_time=T0 + begin, file_version="brain.Event:2").SerializeToString())
    (folder / f"events.out.tfevents.{T0 + begin}.host.{begin}.0").write_bytes(b"".join(map(framed, records)))


def bars(first: int, last: int, total: int = 40) -> str:
    """Return a bar from step `first` to step `last`, a step per second."""
    said = "\n{'loss': '4.3', 'grad_norm': '1.3', 'learning_rate': '5e-05', 'epoch': '0.1'}\n"
    drawn = "".join(
        state(done, total, done - first + 1) + " 1.00s/it]" + said * (done % 5 == 0) for done in range(first, last + 1)
    )
    return state(first - 1, total, 0) + f" ?it/s]{drawn}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files of Hugging Face's Trainer: event files, and the output in one file."""
    event_file(tmp_path / "job" / "runs" / "Mar01_10-00-00_host", 0, FIRST, 1)
    event_file(tmp_path / "job" / "runs" / "Mar01_10-00-50_host", 50, SECOND, 21)
    (tmp_path / "job" / "train.log").write_text(bars(1, 28) + TRACEBACK + bars(21, 40))
    return tmp_path / "job"


def rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, Any]]:
    """Return the job and its goodput (ns) from `analyze`, `jobs` and `fleet`."""
    analysis = analysed(folder)
    (listed,) = goodput_cli.jobs(str(folder)).jobs
    capsys.readouterr()
    assert run(["fleet", str(folder), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    return [
        (analysis.job.name, analysis.goodput.ns), (listed.name, listed.goodput_ns), (row["job"], row["goodput_ns"])
    ]  # fmt: skip


def test_event_files_and_output_are_one_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = analysed(folder)
    assert (analysis.job.attempts, analysis.job.disruptions, analysis.job.kept_steps) == (2, 1, 40)
    assert analysis.window.ns == 70 * 10**9
    assert "same_run_twice" in codes(analysis)
    assert not {"no_clock", "clock_begins_anew", "view_not_joined"} & codes(analysis)
    (disruption,) = analysis.disruptions
    why = analysis.timeline.causes.why[0]
    assert why.evidence is not None
    assert (why.code, why.evidence.source.rpartition("/")[2]) == ("python_error", "train.log")
    assert (disruption.last_step, disruption.steps_lost) == (28, 8)
    assert len({*rows(folder, capsys)}) == 1


@pytest.mark.parametrize("last", [28, 40])
def test_text_of_other_processes_is_not_joined_with_a_warning(folder: Path, last: int) -> None:
    (folder / "train.log").write_text(bars(1, last))
    os.utime(folder / "train.log", (T0, T0))
    analysis = analysed(folder)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 40)
    assert "view_not_joined" in codes(analysis)
    assert "not joined" in str(analysis)


def test_steps_of_text_with_times_count_before_those_of_event_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event_file(tmp_path / "tb", 0, range(1, 41), 1)
    stamp, line = (
        "[2026-03-01 10:00:{:02d}.000000+00:00]",
        " iteration {:8d}/ 40 | elapsed time per iteration (ms): 1000.0 |\n",
    )
    (tmp_path / "train.log").write_text("".join((stamp + line).format(1 + step, step) for step in range(1, 41)))
    analysis = analysed(tmp_path)
    assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_range) == ("train", 1, (1, 40))
    assert analysis.steps.count > 30
    assert len({*rows(tmp_path, capsys)}) == 1


def test_recorder_log_precedes_both_views_for_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[dict[str, Any]] = [{"job_name": "llm", "job_start_time": T0}]
    lines += [{"job_name": "llm", "step_count": n, "step_start_time": T0 + 1 + n} for n in range(40)]
    lines.append({"job_name": "llm", "job_end_time": T0 + 41})
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    alone = analysed(tmp_path / "run.jsonl")
    event_file(tmp_path / "runs", 0, range(1, 41), 1)
    both = analysed(tmp_path)
    assert (both.job.name, both.goodput, both.window) == ("llm", alone.goodput, alone.window)
    assert (both.job.attempts, both.job.kept_range) == (1, alone.job.kept_range)
    assert "same_run_twice" in codes(both)
