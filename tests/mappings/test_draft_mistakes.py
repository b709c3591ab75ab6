"""Drafts do not mistake a clock, a part of a step, a timestamp or an epoch time for something else, and list their
assumptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goodput_cli.api.check import draft_mapping
from goodput_cli.cli.main import run
from tests.mappings.drafting import drafted, pytorch
from tests.text.support import analysed, codes, seconds, written


def rows(count: int, **columns: object) -> str:
    """Return JSON lines, each value made by a function of the row's number."""
    made = ({name: make(at) if callable(make) else make for name, make in columns.items()} for at in range(count))
    return "".join(json.dumps(row) + "\n" for row in made)


def test_column_that_never_falls_is_time_since_the_start(tmp_path: Path) -> None:
    """50 rows, the last at 607 s: ten minutes, not the sum of all clocks."""
    log = rows(50, update=lambda at: 5 * (at + 1), loss=2.1, elapsed=lambda at: 19.0 + 12 * at)
    analysis = drafted(tmp_path, log, "run.jsonl")
    assert sum(seconds(analysis).values()) == 607
    assert analysis.job.kept_steps == 250
    (said,) = [one.message for one in analysis.diagnostics if "never decreases" in one.message]
    assert "`elapsed` never decreases: it is read as time since the start" in said


def test_part_of_a_step_time_is_not_the_step_time(tmp_path: Path) -> None:
    log = rows(
        20, update=lambda at: 10 * (at + 1), data_time=lambda at: 0.1 + at % 3 / 50, time=lambda at: 0.4 + at % 2 / 5
    )
    draft = written_draft(tmp_path, log, "run.jsonl")
    assert "each = 'time'" in draft


def written_draft(tmp_path: Path, log: str, name: str = "train.log") -> str:
    (tmp_path / name).write_text(log, encoding="utf-8")
    return draft_mapping(str(tmp_path / name)).text


@pytest.mark.parametrize("first", [1_772_359_200, 1_772_359_200_123])
def test_epoch_time_is_not_a_step(tmp_path: Path, first: int) -> None:
    log = "".join(f"note {first + at} loss=0.{at}\n" for at in range(30))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    assert draft_mapping(str(tmp_path / "train.log")).refused
    assert run(["check", "--suggest", str(tmp_path / "train.log")]) == 5


def test_steps_that_took_longer_than_the_log_refuse_a_draft(tmp_path: Path) -> None:
    """30 steps of 60 s by their own numbers, but a minute by the timestamps of other lines."""
    log = pytorch(0, "config read")
    log += "".join(f"update {at} cost 0.{at} took {60 + at % 2} s\n" for at in range(1, 31)) + pytorch(
        60, "memory 12 GB"
    )
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    (reason,) = draft_mapping(str(tmp_path / "train.log")).refused
    assert "but the log covers only 60 s" in reason


def test_steps_without_any_time_refuse_a_draft(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {at} loss 0.{at}\n" for at in range(1, 31)), encoding="utf-8")
    (reason,) = draft_mapping(str(tmp_path / "train.log")).refused
    assert reason.startswith("no step rule could be inferred: no line has a timestamp")


def test_draft_that_cannot_analyze_its_log_is_refused(tmp_path: Path) -> None:
    """A bar that never counted a second."""
    bars = "".join(f"[Fold 0]: {n}%|███| {n}/100 [00:00<00:00, 1.2it/s, Throughput=12 TFLOPS]\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(bars, encoding="utf-8")
    draft = draft_mapping(str(tmp_path / "train.log"))
    assert "with this rule, the log cannot be analyzed" in draft.refused[0]
    assert "[[rule]] event" in draft.refused[0]
    assert not any(line.startswith(("[[", "assumed")) for line in draft.text.splitlines())
    assert run(["check", "--suggest", str(tmp_path / "train.log")]) == 5


def test_two_digit_years_are_not_days(tmp_path: Path) -> None:
    """Rich writes month, day and year: `03/04/26` is in 2026, not in 2003."""
    log = "".join(f"[03/04/26 10:{n:02d}:00] INFO step {n} loss 0.5\n" for n in range(1, 40))
    assert drafted(tmp_path, log).job.start_ns // 10**9 == 1_772_618_460


@pytest.mark.parametrize(
    "before", ["I0304 10:{minutes:02d}:{seconds:02d}.123456 140234 writer.py:48]", "[10:{minutes:02d}:{seconds:02d}]"]
)
def test_steps_per_second_are_not_seconds(tmp_path: Path, before: str) -> None:
    """100 steps in 20 s between two lines, by either kind of timestamp: not 100 steps of 5 s each."""
    log = ""
    for n in range(30):
        stamp = before.format(minutes=n // 3, seconds=n % 3 * 20)
        log += f"{stamp} [{100 * n}] loss={3 - n / 50:.2f}, steps_per_sec=5.0\n"
    analysis = drafted(tmp_path, log)
    assert analysis.job.kept_steps == 2900
    assert analysis.goodput.ns == pytest.approx(580e9, rel=0.002)


def test_launches_that_died_before_a_step_are_attempts(tmp_path: Path) -> None:
    """5 launches 100 s apart; the first and the last trained steps."""
    log = ""
    for launch in range(5):
        log += pytorch(100 * launch, f"launch with Namespace(lr={launch})") + pytorch(
            100 * launch + 5, "model on 8 GPUs"
        )
        if launch in (0, 4):
            log += "".join(pytorch(100 * launch + 10 + at, f"step {at} loss 0.5") for at in range(1, 21))
        else:
            log += "Traceback (most recent call last):\nValueError: no such file\n"
    analysis = drafted(tmp_path, log)
    assert analysis.job.attempts == 5
    assert "drafted_mapping" in codes(analysis)


def test_checked_assumption_is_not_reported_again(tmp_path: Path) -> None:
    log = "".join(pytorch(at, f"step {at} loss 0.5") for at in range(1, 21))
    draft = written_draft(tmp_path, log)
    head, _, rest = draft.partition("assumed = [")
    (tmp_path / "own.toml").write_text(head + rest.partition("]\n")[2], encoding="utf-8")
    analysis = analysed(tmp_path / "train.log", mapping=tmp_path / "own.toml")
    assert "drafted_mapping" not in codes(analysis)
    assert "drafted_mapping" in codes(drafted(tmp_path, log))


def test_time_of_every_tenth_step_is_of_one_step(tmp_path: Path) -> None:
    """nanoGPT: 250 ms per step; iterations 250 and 500 include an evaluation of 19.75 s, the first one compiles."""
    log = "tokens per iteration will be: 491,520\n"
    for at in range(0, 600, 10):
        time = 20_000.0 if at % 250 == 0 else 250.0
        log += f"step {at}: train loss 4.2, val loss 4.2\n" if at % 250 == 0 else ""
        log += f"iter {at}: loss 3.2, time {time:.2f}ms, mfu 17.20%\n"
    found = seconds(analysed(written(tmp_path / "run", a_log=log)))
    assert found == {"productive": 147.75, "EVAL_STEP": 39.5, "program_startup": 19.75}


PROGRAMS: dict[str, tuple[Callable[[int], str], tuple[int, float]]] = {
    "a clock in minutes": (
        lambda n: f"step {n:05d}/900 ({n / 9:.2f}%) | loss: 9.1 | dt: {480 + n % 3}.00ms | tok/sec: 1,091,000 | "
        f"total time: {n * 0.481 / 60:.2f}m\n",
        (60, 28.8),
    ),
    "ranges of batches in epochs": (
        lambda n: f"[node1] 2026-03-01 10:{n:02d}:00,123 (trainer:732) INFO: {1 + n // 20}epoch:train:"
        f"{n % 20 * 100 + 1}-{n % 20 * 100 + 100}batch: iter_time=0.010, loss=99.1, train_time=0.600\n",
        (5900, 3540),
    ),
    "a tick beside a global number": (
        lambda n: f"2026-03-01 10:{n:02d}:00 | INFO | train_inner | epoch 001:  {n * 100 + 100:5d} / 9000 loss=9.1, "
        f"ups=1.7, num_updates={n * 100 + 100}, lr=1e-4, wall={n * 60 + 30}\n",
        (5900, 3540),
    ),
}  # fmt: skip
"""Invented programs: a line of each by its number, and the steps and seconds of 60 of them."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_unknown_programs_are_read(tmp_path: Path, name: str) -> None:
    line, (steps, length) = PROGRAMS[name]
    analysis = drafted(tmp_path, "".join(line(n) for n in range(60)))
    assert analysis.job.kept_steps == steps
    assert sum(seconds(analysis).values()) == pytest.approx(length, rel=0.03)  # Hundredths of minutes.


REFUSED: dict[str, Callable[[int], str]] = {
    "a metric whose name has a digit": lambda n: f"2026-03-01 10:{n:02d}:00 | epoch 1 | acc-5 {40 + n} | loss 0.{n}\n",
    "a duration that grows": lambda n: f"step {n} loss 2.{n} took {0.5 + n / 100:.2f}s\n",
    "samples": lambda n: f"2026-03-01 10:{n:02d}:00 Train Epoch: 0 [{n * 9_000_000}/900000000 ({n}%)] Loss: 8.3\n",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_log_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.log").write_text("".join(REFUSED[name](n) for n in range(60)), encoding="utf-8")
    assert draft_mapping(str(tmp_path / "train.log")).refused


@pytest.mark.parametrize("records", [1, 2])
def test_few_records_are_reported(tmp_path: Path, records: int) -> None:
    log = "[2026-03-01 10:00:00,000] [INFO] [launch.py:145:main] nnodes=1, num_local_procs=8, node_rank=0\n"
    for n in range(1, records + 1):
        log += f"[2026-03-01 10:0{n}:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}0, skipped=0, lr=[1]\n"
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC")
    assert "few_records" in codes(analysis)
    assert not analysis.disruptions


def test_number_beyond_float_range_is_not_a_step_time(tmp_path: Path) -> None:
    lines = (pytorch(12.0 * at, f"update {at + 1}, time: {'7' * 390} s, loss 2.1") for at in range(40))
    assert drafted(tmp_path, "\n".join(lines) + "\n").job.kept_range == (2, 40)


def test_bar_of_mean_average_precision_is_of_an_evaluation(tmp_path: Path) -> None:
    """A log of `yolo val` contains no training, although its bar has no word for an evaluation."""
    name = "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): "
    states = (f"\r{name}{n:3d}%|{'#' * (n // 10):<10}| {n}/100 [00:{n // 2:02d}<00:50,  2.00it/s]" for n in range(101))
    (tmp_path / "train.log").write_text("".join(states) + "\n", encoding="utf-8", newline="")
    (reason,) = draft_mapping(str(tmp_path / "train.log")).refused
    assert "count an evaluation" in reason


def test_settings_as_json_before_a_log_are_not_its_format(tmp_path: Path) -> None:
    lines = ["{", '  "num_epochs": 1,', '  "Model": {', '    "hidden_size": 768', "  }", "}", ""]
    lines += [
        f"2026-03-01 10:{n // 6:02d}:{10 * (n % 6):02d} INFO step: {10 * n}/120, loss: 4.{60 - n}" for n in range(1, 13)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert not draft_mapping(str(tmp_path / "train.log")).refused
