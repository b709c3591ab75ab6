"""Evaluations with only an end line (docs/formats.md, Text) take the time that training did not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.text.support import analysed, seconds, written

BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
LINES = {
    "start": "Starting job: plum",
    "step": "step: {step:2d}  loss: 8.1  grad_norm: 1.2  tps: 5,815",
    "save": "Finished saving the checkpoint in 20.00 seconds.",
    "eval": "validate step: {step:2d}  loss: 7.9  memory: 39.00GiB(41.04%)  tps: 9,100",
    "done": "Training completed",
}


def titan(tmp_path: Path, lines: Iterable[tuple[float, str, int]]) -> dict[str, float]:
    """Return the seconds of a torchtitan log: (second, event, step)."""
    text = "".join(
        f"[titan] {BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S},000 - root - INFO - "
        f"{LINES[what].format(step=step)}\n"
        for at, what, step in lines
    )
    return seconds(analysed(written(tmp_path / "run", a_log=text), timezone="UTC"))


def steps(at: float, first: int, last: int, stride: int = 1) -> list[tuple[float, str, int]]:
    """Return steps of 2 s; the first record takes no time."""
    numbers = range(first, last + 1, stride)
    return [(at + 2 * (step - first), "step", step) for step in numbers]


def test_evaluation_takes_the_rest_of_the_time_between_records(tmp_path: Path) -> None:
    """Ten steps, 60 s of evaluation, ten more, and 60 s after the last one."""
    first, second = steps(12, 1, 10), steps(92, 11, 20)
    log = [(0, "start", 0), *first, (90, "eval", 10), *second, (170, "eval", 20), (171, "done", 0)]
    found = titan(tmp_path, log)
    assert (found["EVAL_STEP"], found["productive"]) == (120, 40)


def test_steps_after_the_last_record_are_not_evaluation(tmp_path: Path) -> None:
    """A record every fourth step; the evaluation is at step 10, two steps after the record of step 8."""
    log = [(0, "start", 0), *steps(10, 0, 8, 4), (90, "eval", 10), *steps(94, 12, 24, 4), (119, "done", 0)]
    assert titan(tmp_path, log)["EVAL_STEP"] == 90 - 26 - 2 * 2


def test_save_between_records_is_not_evaluation(tmp_path: Path) -> None:
    log = [(0, "start", 0), *steps(12, 1, 10), (50, "save", 10), (90, "eval", 10), *steps(92, 11, 20), (111, "done", 0)]
    found = titan(tmp_path, log)
    assert (found["EVAL_STEP"], found["unproductive_checkpoint_save_time"]) == (40, 20)


def test_evaluation_takes_nothing_if_the_usual_step_is_unknown(tmp_path: Path) -> None:
    log = [(0, "start", 0), *steps(12, 1, 3), (90, "eval", 3), *steps(92, 4, 4), (93, "done", 0)]
    assert "EVAL_STEP" not in titan(tmp_path, log)


def test_usual_step_is_known_if_saves_are_between_records(tmp_path: Path) -> None:
    """Records every ten steps, all but one after a save of 20 s; then 100 s of evaluation."""
    log: list[tuple[float, str, int]] = [(0, "start", 0), (20, "step", 10)]
    for number in range(2, 7):
        at = 20 + 40 * (number - 1) + 100 * (number > 4)
        log += [(at, "eval", 40)] * (number == 5) + [(at, "save", 0), (at + 20, "step", 10 * number)]
    assert titan(tmp_path, [*log, (log[-1][0] + 1, "done", 0)])["EVAL_STEP"] == 100


def test_bar_clock_beyond_float_range_is_ignored(tmp_path: Path) -> None:
    record = "{'loss': '1.12', 'grad_norm': '4.2', 'learning_rate': '2e-05', 'epoch': '0.58'}\n"
    bar = " 62%|██████▏   | {done}/60 [{elapsed}:22<00:22,  1.00it/s]"
    bars = "\r".join((bar.format(done=36, elapsed="00"), bar.format(done=37, elapsed="1" * 400)))
    path = written(tmp_path / "run", a_log=record + bars + "Traceback (most recent call last):\n")
    analysis = analysed(path)
    assert (analysis.job.kept_steps, analysis.goodput_percent) == (36, None)


def test_job_without_steps_counts_its_logged_starts(tmp_path: Path) -> None:
    error = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\nImportError: no flash\n'
    text = "".join(
        f"[titan] 2026-03-01 10:0{minute}:00,000 - root - INFO - Starting job: plum\n{error}"
        f"E0301 10:0{minute}:10.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
        "local_rank: 0 (pid: 9) of binary: python\n"
        for minute in range(4)
    )
    job = analysed(written(tmp_path / "run", a_log=text), timezone="UTC", year=2026).job
    assert (job.attempts, job.disruptions, job.ending) == (4, 3, "crashed")


@pytest.mark.parametrize(("minute", "attempts"), [(14, 2), (1, 1)])
def test_death_of_any_process_ends_an_old_start(tmp_path: Path, minute: int, attempts: int) -> None:
    """A Ray process dies while another one prints; a second start within a minute may be of the same launch."""
    actor = "(Actor pid=9755) "
    error = (
        f'{actor}Traceback (most recent call last):\n{actor}  File "/opt/a.py", line 3, in load\n'
        f"{actor}ValueError: Size mismatch between saved torch.Size([2, 4]) and current: torch.Size([3])\n"
    )
    starts = [f"[titan] 2026-03-01 10:{at:02d}:00,000 - root - INFO - Starting job: plum\n" for at in (0, minute)]
    step = f"[titan] 2026-03-01 10:{minute + 2:02d}:00,000 - root - INFO - step:  1  loss: 8.1  tps: 5,815\n"
    path = written(tmp_path / "run", a_log=f"{starts[0]}{error}{starts[1]}{step}")
    assert analysed(path, timezone="UTC", year=2026).job.attempts == attempts
