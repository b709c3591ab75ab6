"""Inferred rules for lines of unknown programs: settings, padded numbers, times on other lines, unnumbered batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from tests.text.support import codes

_BEGIN = datetime(2026, 3, 1, 10)


def at(second: float, text: str) -> str:
    return f"{_BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S},000 - INFO - {text}"


def analyzed(tmp_path: Path, lines: Sequence[str]) -> Analysis:
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return goodput_cli.analyze(log)


def seconds(analysis: Analysis) -> dict[str, float]:
    return {row.label or row.category: row.seconds for row in analysis.badput}


def test_constant_in_lines_of_epochs_is_not_a_step(tmp_path: Path) -> None:
    """Three trials of 8 epochs with other sizes of a batch: the last one is a run of 8 epochs."""
    lines = [
        at(900 * trial + 100 * epoch, f"Config: {{'batch_size': {size}, 'lr': 0.1}}, Epoch {epoch}/8, Loss: 1.{epoch}")
        for trial, size in enumerate((128, 32, 64))
        for epoch in range(1, 9)
    ]
    analysis = analyzed(tmp_path, lines)
    assert analysis.job.kept_range == (2, 8)
    assert analysis.window.counted_ns == 700 * 10**9
    assert "earlier_runs" in codes(analysis)


def test_number_of_epochs_in_settings_is_not_an_epoch(tmp_path: Path) -> None:
    lines: list[str] = []
    for begin, epochs in ((0, 1), (1000, 3), (2000, 2)):
        lines += [at(begin, "Loading settings"), at(begin + 1, f"  num_train_epochs: {epochs}")]
        lines += [at(begin + 2, "Model has 12 layers")]
        lines += [at(begin + 10 + 2 * step, f"Step {step}, Loss: 1.{step}") for step in range(1, 101)]
    analysis = analyzed(tmp_path, lines)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (3, 100)


def test_number_filled_up_with_blanks_is_read_in_each_epoch(tmp_path: Path) -> None:
    lines = [
        at(60 * epoch + step, f"Epoch: [{epoch:2}/30] Iter [{step:4}/50] loss 1.{step}")
        for epoch in range(8, 14)
        for step in range(10, 51, 10)
    ]
    analysis = analyzed(tmp_path, lines)
    assert analysis.job.kept_range == (361, 650)


def test_record_without_a_time_is_at_the_next_line(tmp_path: Path) -> None:
    """Each of 8 epochs takes 1000 s; lines of a translation with a time follow it within 10 s."""
    lines: list[str] = []
    for epoch in range(1, 9):
        lines += [f"EPOCH {epoch} COMPLETED", at(1000 * epoch, "Filling up shuffle buffer"), "TRANSLATION: hello"]
        lines += [at(1000 * epoch + 5, "Shuffle buffer filled")]
    analysis = analyzed(tmp_path, lines)
    assert analysis.job.kept_steps == 7
    assert analysis.goodput.seconds == pytest.approx(7000, abs=40)


def test_times_at_the_ends_of_lines_place_a_bar(tmp_path: Path) -> None:
    bar = "\r".join(
        f"Training progress: {n:3d}%|##| {n}/100 [{n * 2 // 60:02d}:{n * 2 % 60:02d}<01:00, 2.00s/it, Loss=0.{loss}]"
        for n in range(1, 101)
        for loss in (n, n + 1)
    )
    lines = ["Writing to out/", "Output folder: out/ [12/01 08:52:22]", "Reading scene [12/01 08:52:30]", bar, ""]
    lines += ["[ITER 100] Evaluating test: L1 0.03 [12/01 08:56:00]", "Training complete. [12/01 08:56:20]"]
    analysis = analyzed(tmp_path, lines)
    assert analysis.window.counted_ns == 238 * 10**9
    assert analysis.job.kept_steps == 100


def test_save_behind_another_line_takes_the_time_since_it(tmp_path: Path) -> None:
    """An evaluation of 40 s ends with scores that no rule reads; the save behind it takes 2 s."""
    lines: list[str] = []
    for epoch in range(8):
        begin = 92 * epoch
        lines += [
            at(begin + step, f"[batch {step}/50, epoch {epoch + 1}/8]: loss 1.{step}") for step in range(10, 51, 10)
        ]
        lines += [at(begin + 90, "Scores: 0.9"), at(begin + 92, "model has been saved to best.ckpt!")]
    analysis = analyzed(tmp_path, lines)
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == pytest.approx(14, abs=3)
    assert seconds(analysis)["other"] > 250


def test_epochs_count_where_batches_have_no_number(tmp_path: Path) -> None:
    lines: list[str] = []
    for epoch in range(1, 11):
        begin = 130 * epoch
        lines += [at(begin, f"##### Epoch {epoch} #####")]
        lines += [at(begin + 2 * batch, f"Epoch {epoch} - Batch loss: 1.{batch}") for batch in range(1, 51)]
        lines += [at(begin + 100, f"Epoch {epoch} - Average Train Loss: 1.2")]
        lines += [at(begin + 129, f"Epoch {epoch} - Validation BLEU: 60.{epoch}")]
    analysis = analyzed(tmp_path, lines)
    assert analysis.job.kept_range == (2, 10)
    assert seconds(analysis)["EVAL_STEP"] == pytest.approx(9 * 29, abs=10)
    assert analysis.goodput.seconds == pytest.approx(9 * 101, abs=10)


def test_start_is_the_first_line_although_it_is_one_word(tmp_path: Path) -> None:
    """The second process resumes 4000 s later at step 41: the silence is downtime, and settings come first."""
    lines: list[str] = []
    for begin, first, last in ((0, 1, 40), (4400, 41, 100)):
        lines += [
            at(begin, "Namespace(lr=0.1)"),
            at(begin + 1, "Loading dataset"),
            at(begin + 3, "model params: 11.2M"),
        ]
        lines += [at(begin + 4, f"Resumed from checkpoint ckpt/step_{first - 1}.pt")] if first > 1 else []
        for step in range(first, last + 1):
            second = begin + 5 + 10 * (step - first + 1)
            lines += [at(second, f"step {step}/100 loss 0.{step}")]
            lines += [at(second, f"Saved checkpoint ckpt/step_{step}.pt")] if step % 20 == 0 else []
    analysis = analyzed(tmp_path, lines)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 100)
    assert seconds(analysis)["infrastructure_recovery_from_disruption"] == pytest.approx(3995, abs=5)


def test_epochs_that_begin_again_are_attempts(tmp_path: Path) -> None:
    """Four processes die within three epochs of ten, and the fifth does all of them."""
    lines: list[str] = []
    begin = 0
    for epochs in (2, 3, 1, 2, 10):
        lines += [at(begin + 100 * epoch, f"Epoch {epoch}/10 - loss: 1.{epoch}") for epoch in range(1, epochs + 1)]
        begin += 100 * epochs + 600
    analysis = analyzed(tmp_path, lines)
    assert (analysis.job.attempts, analysis.job.kept_range) == (5, (2, 10))
