"""Small logs in the words of public training programs, whose drafts were once wrong, with known results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from tests.mappings.drafting import at, pytorch

EPOCHS, STEPS, EACH, EVAL = 5, 100, 0.8, 24.0
"""Five epochs of a hundred steps, with an evaluation after each."""
LENGTH = EPOCHS * (STEPS * EACH + EVAL)
TRAINED = 100 * EPOCHS * STEPS * EACH / LENGTH
"""Percent of the time from the first step's begin to the end of the last evaluation."""


def second(epoch: int, step: int) -> float:
    """Return the second at which a step of an epoch is completed, both from 0."""
    return epoch * (STEPS * EACH + EVAL) + (step + 1) * EACH


def epochs(
    begin: Callable[[int, float], str], step: Callable[[int, int, float], str], end: Callable[[int, float], str],
    every: int = 10,
) -> str:  # fmt: skip
    """Return lines for the begin of each epoch, each tenth step, and the end of its evaluation."""
    said = ""
    for epoch in range(EPOCHS):
        said += begin(epoch, second(epoch, -1))
        said += "".join(step(epoch, n, second(epoch, n)) for n in range(every - 1, STEPS, every))
        said += end(epoch, second(epoch, STEPS - 1) + EVAL)
    return said


def timestamp(seconds: float) -> str:
    return f"{at(seconds, '%Y-%m-%d,%H:%M:%S')} | INFO | "


def bar(n: int, seconds: float, total: int = STEPS) -> str:
    done, took = n + 1, round(seconds)
    drawn = f"{100 * done // total:3d}%|{'#' * (10 * done // total):<10}| {done}/{total}"
    return f"\rloss: 1.2 ||: {drawn} [{took // 60:02d}:{took % 60:02d}<00:09, {done / seconds:.2f}it/s]"


def logs() -> Iterator[tuple[str, str, float]]:
    """Yield a name, a log, and its percentage."""
    yield "epochs that start and evaluations that finish", epochs(
        lambda e, s: f"{timestamp(s)}Start epoch {e}\n",
        lambda e, n, s: f"{timestamp(s)}Train Epoch: {e} [{(n + 1) * 1024:>6}/{STEPS * 1024} ({n + 1}%)] Loss: 3.1\n",
        lambda e, s: f"{timestamp(s)}Finished zero-shot imagenet.\n{timestamp(s)}Eval Epoch: {e + 1} top1: 0.3\n",
    ), TRAINED  # fmt: skip
    yield "bars of validations in the words of those of training", epochs(
        lambda e, s: f"{at(s, '%Y-%m-%d %H:%M:%S')} - INFO - Epoch {e}/{EPOCHS - 1}\n",
        lambda _, n, __: bar(n, (n + 1) * EACH),
        lambda _, s: f"\n{at(s - EVAL, '%Y-%m-%d %H:%M:%S')} - INFO - Validating\n{bar(49, EVAL, 50)[1:]}\n",
    ), 100 * EPOCHS * STEPS * EACH / (LENGTH - EVAL)  # fmt: skip
    yield "an epoch whose number stands before the word of the next", epochs(
        lambda *_: "",
        lambda e, n, s: f"{at(s, '%Y-%m-%dT%H:%M:%S')}Z epoch: {e + 1} step: {n + 1}, loss is 2.1\n",
        lambda *_: "",
        every=1,
    ), 100 * (EPOCHS * STEPS - 1) * EACH / (LENGTH - EVAL)  # fmt: skip


LOGS = {name: (log, percent) for name, log, percent in logs()}


def answered(tmp_path: Path, log: str) -> Analysis:
    (tmp_path / "train.log").write_text(log, encoding="utf-8", newline="")
    analysis = goodput_cli.analyze(str(tmp_path / "train.log"), timezone="UTC")
    assert analysis.inferred_rules is not None
    return analysis


@pytest.mark.parametrize("name", LOGS)
def test_five_epochs_of_one_process(tmp_path: Path, name: str) -> None:
    log, percent = LOGS[name]
    analysis = answered(tmp_path, log)
    assert analysis.job.attempts == 1
    assert analysis.goodput_percent == pytest.approx(percent, abs=2)


def test_time_of_an_epoch_is_not_that_of_its_evaluation(tmp_path: Path) -> None:
    log = epochs(
        lambda *_: "",
        lambda e, n, _: f"| epoch {e + 1:3d} | {n + 1:5d}/{STEPS:5d} batches | ms/batch {1000 * EACH:.2f} | loss 5.1\n",
        lambda e, _: f"| end of epoch {e + 1:3d} | time: {STEPS * EACH + EVAL:5.2f}s | valid loss  4.12 |\n",
    )
    analysis = answered(tmp_path, log)
    assert analysis.job.attempts == 1
    assert analysis.at_most_percent == pytest.approx(100, abs=2)


def test_epochs_of_a_bar_without_a_rank_are_counted_once(tmp_path: Path) -> None:
    """Each rank logs the epoch, but the bar has no rank."""
    log = epochs(
        lambda e, s: "".join(f"[rank{rank}]: {at(s, '%H:%M:%S')} Epoch {e}/{EPOCHS - 1}\n" for rank in (0, 1)),
        lambda _, n, __: bar(n, (n + 1) * EACH),
        lambda _, s: f"\n[rank0]: {at(s, '%H:%M:%S')} saw it all\n",
    )
    analysis = answered(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.last_step) == (1, EPOCHS * STEPS)
    assert analysis.goodput.seconds == pytest.approx(EPOCHS * STEPS * EACH, rel=0.02)


def test_mean_rate_of_a_bar_is_not_a_step_time(tmp_path: Path) -> None:
    """The first of 200 steps took 16 s, which the bar's mean includes; timestamps show the time of the others."""
    log, took = "", 15.2
    for n in range(200):
        took += EACH
        rate = f"{(n + 1) / took:5.2f}it/s" if n + 1 > took else f"{took / (n + 1):5.2f}s/it"
        log += f"{at(took, '%Y-%m-%dT%H:%M:%S')}.{round(took * 1000) % 1000:03d}Z {n + 1}|Loss: 2.1| {rate}\n"
    analysis = answered(tmp_path, log)
    assert analysis.goodput.ns / 1e9 == pytest.approx(200 * EACH, abs=2)


def test_time_before_a_logged_training_start_is_start_up(tmp_path: Path) -> None:
    log = f"{timestamp(0)}Using 8 devices\n{timestamp(60)}Start training\n"
    log += "".join(f"{timestamp(60 + 10 * n)}iter: {n} loss: 2.1\n" for n in range(1, 31))
    analysis = answered(tmp_path, log)
    assert analysis.window.counted_ns == 360 * 10**9


def test_lines_far_from_known_events_give_a_warning(tmp_path: Path) -> None:
    """An hour of unrelated lines before 200 s of steps."""
    lines = [(60.0 * n, f"shard {n} of the table has {n * n} rows") for n in range(60)]
    lines += [(3600.0, "Starting training"), *((3600.0 + 10 * n, f"step {n} loss 2.1") for n in range(1, 21))]
    analysis = answered(tmp_path, "".join(pytorch(second, text) for second, text in lines))
    assert analysis.inferred_rules is not None
    assert analysis.inferred_rules.doubts == (
        "1 h 00 min of output is outside the measured window (before the first or after the last event)",
    )


def test_varying_step_times_give_a_warning(tmp_path: Path) -> None:
    """Every third step took two and a half times as long; the excess is not training, and a warning reports it."""
    log, took = "", 20.0
    for n in range(1, 121):
        took += 25.0 if n % 3 == 0 else 10.0
        log += f"[INFO] Step: {12000 * n}. Time Elapsed: {took + n / 1000:.3f} s. Mean Reward: 1.2\n"
    analysis = answered(tmp_path, log)
    assert analysis.inferred_rules is not None
    assert any("between steps is unexplained" in one for one in analysis.inferred_rules.doubts)
