"""Small logs in the shapes of public ones, of known and invented programs: read correctly, with or without a drafted
mapping, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.check import draft_mapping
from goodput_cli.errors import NotEnoughData
from tests.text.support import analysed, codes, written

BEGIN = datetime(2025, 3, 4, 11, 55)
NS = 1_000_000_000


def at(second: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(form)


def every(count: int, seconds: float, line: Callable[[int, float], str]) -> str:
    """Return lines of records, from the 1st on, at equal distances in seconds."""
    return "".join(line(n, n * seconds) + "\n" for n in range(1, count + 1))


def read(tmp_path: Path, text: str, name: str = "train.log") -> Analysis:
    """Return the analysis, with a drafted mapping if no format reads the log."""
    log = tmp_path / name
    log.write_text(text, encoding="utf-8", newline="")
    try:
        return analysed(log, timezone="UTC")
    except NotEnoughData:
        draft = draft_mapping(str(log))
        assert not draft.refused, draft.refused
        own = tmp_path / "my.toml"
        own.write_text(draft.text, encoding="utf-8")
        return analysed(log, mapping=own, timezone="UTC")


def megatron(head: Callable[[int, float], str], each: str = "2000.0") -> str:
    """Return 40 records of ten steps of 2 s each."""
    return every(40, 20, lambda n, s: (
        f"{head(n, s)} iteration {10 * n:8d}/    5000 | consumed samples: {5120 * n:12d} | consumed tokens: "
        f"{20_971_520 * n:14d} | elapsed time per iteration (ms): {each} | learning rate: 1.5E-04 | gloabl batch size:"
        "   512 | lm loss: 3.1E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    ))  # fmt: skip


def fairseq(n: int, second: float) -> str:
    said = {"epoch": 1, "update": 0.02 * n, "loss": "8.5", "ppl": "33.1", "wps": "14185.4", "ups": "1.82",
            "num_updates": str(100 * n), "lr": "3e-05", "train_wall": "54", "wall": str(round(second) + 9)}  # fmt: skip
    return f"{at(second)} | INFO | train_inner | {json.dumps(said)}"


def epochs(lines: Callable[[int, int, float], str], behind: Callable[[int, float], str] | None = None) -> str:
    """Return three epochs of ten lines, fifty steps of 0.3 s apart, from 0."""
    made: list[str] = []
    for epoch in range(3):
        for step in range(0, 500, 50):
            made.append(lines(epoch, step, 150 * epoch + 0.3 * step))
        if behind is not None:
            made.append(behind(epoch, 150 * epoch + 149))
    return "\n".join(made) + "\n"


Truth = tuple[int, float]
"""Steps from the first record to the last, and the seconds between them."""
READ: dict[str, tuple[str, Truth]] = {
    "Megatron of BLOOM's fork": (megatron(lambda _, s: f" [{at(s)}]"), (390, 780)),
    "Megatron behind torchrun's prefix": (megatron(lambda _, s: f"[default0]: [{at(s)}]"), (390, 780)),
    "Megatron behind a logger": (
        megatron(lambda _, s: f"[Rank 0 | Local Rank 0] {at(s)},123 INFO [engine.py:48] =>  [..]"), (390, 780)
    ),
    "GPT-NeoX": (
        megatron(lambda _, s: f"{at(s)},420 [INFO] samples/sec: 256.1 |"), (390, 780)
    ),
    "fairseq's JSON with numbers in quotes": (every(20, 55, fairseq), (1900, 1045)),
    "seconds since 1970": (
        every(90, 2, lambda n, s: f"{1_741_078_800 + s:.3f} step {n} loss 2.{n}"), (89, 178)
    ),
    "milliseconds since 1970 in brackets": (
        every(90, 2, lambda n, s: f"[{1_741_078_800_000 + round(1000 * s)}] train step={n} loss=2.{n}"), (89, 178)
    ),
    "a clock of twelve hours over noon": (
        every(120, 5, lambda n, s: f"{at(s, '%m/%d/%Y %I:%M:%S %p')} step {n} loss 2"), (119, 595)
    ),
    "a logger of twelve hours over noon": (
        every(120, 5, lambda n, s: f"{at(s, '%Y-%m-%d %I:%M:%S %p')} - INFO - step {n} loss 2"), (119, 595)
    ),
    "epochs that are named where they end": (
        epochs(
            lambda e, i, s: f"[{at(s)} swin] (main.py 226): INFO Train: [{e}/300][{i}/500]\teta 0:10:00 lr 0.0001\t"
            "time 0.3000 (0.3100)\tdata time 0.0003 (0.002)\tloss 6.9 (6.9)\tmem 9000MB",
            lambda e, s: f"[{at(s)} swin] (main.py 235): INFO EPOCH {e} training takes 0:02:30",
        ),
        (1450, 435),
    ),
    "imagenet's example": (
        epochs(
            lambda e, i, s: f"{at(s)} Epoch: [{e}][ {i}/500]\tTime  0.301 ( 0.310)\tData  0.001 ( 0.010)\tLoss 6.9"
        ),
        (1450, 435),
    ),
    "MindFormers": (
        every(90, 1.5, lambda n, s: (
            f"{at(s)},{round(1000 * s) % 1000:03d} - mindformers - INFO - {{ Epoch:[  1/  2], step:[{n:5d}/ 5000], "
            f"loss: 2.1, per_step_time: {1500 + n % 2}ms, lr: 1e-05, loss_scale: 65536.0, global_norm: 1.1 }}"
        )),
        (89, 133.5),
    ),
    "Windows' line ends and colours": (
        every(90, 2, lambda n, s: f"\x1b[32m{at(s)}\x1b[0m INFO trainer: step={n} loss=2.1 step_time=2.0{n % 3}s\r"),
        (89, 178),
    ),
    "a byte-order mark": (
        "\ufeff" + every(90, 2, lambda n, s: f"{at(s)} INFO trainer: step={n} loss=2.1"), (89, 178)
    ),
    "a column that is the time since the start": (
        every(90, 10, lambda n, s: f"{at(s)} - INFO - Iter {20 * n} | wall {round(s)} s | tgs 12000"), (1780, 890)
    ),
    "absl of the Estimator": (
        every(20, 40, lambda n, s: (
            f"I{at(s, '%m%d %H:%M:%S')}.123456 140221457 basic_session_run_hooks.py:260] loss = 8.1, step = {100 * n} "
            "(40.0 sec)"
        )),
        (1900, 760),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_known_shapes_are_read(tmp_path: Path, name: str) -> None:
    text, (steps, seconds) = READ[name]
    analysis = read(tmp_path, text)
    window = (analysis.window.end_ns - analysis.window.start_ns) / NS
    first_record = seconds / steps * 110  # The steps before the first line may be known too.
    assert analysis.job.attempts == 1
    assert not analysis.disruptions
    assert steps <= analysis.job.kept_steps <= steps + 100
    assert seconds - 1 <= window <= seconds + first_record + 1
    assert analysis.goodput.percent > 90


def test_step_printed_by_two_programs_counts_once(tmp_path: Path) -> None:
    """GPT-NeoX: DeepSpeed and Megatron each print every record, here 40 of 10 steps of 2 s."""
    text = "".join(
        f"steps: {n} loss: 5.2150 iter time (s): 2.000 samples/sec: 512.000\n"
        f" samples/sec: 512.0 | iteration {n:8d}/  320000 | elapsed time per iteration (ms): 2000.0 | learning rate: "
        "6.000E-05 | lm_loss: 5.2E+00 | number of nan iterations:   0 |\n"
        for n in range(10, 401, 10)
    )
    analysis = read(tmp_path, text)
    assert analysis.window.ns == 800 * NS
    assert analysis.job.kept_range == (11, 400)
    assert analysis.goodput.percent > 95


def test_time_of_100_steps_is_not_taken_for_one(tmp_path: Path) -> None:
    """TensorFlow's Estimator, 20 lines, 40 s apart."""
    log = "INFO:tensorflow:loss = 9.1, step = 0\n"
    log += every(20, 40, lambda n, _: f"INFO:tensorflow:loss = 8.1, step = {100 * n} (40.0 sec)")
    analysis = analysed(written(tmp_path / "run", train_log=log))
    assert (analysis.window.end_ns - analysis.window.start_ns) / NS == 800
    assert analysis.reference is not None
    assert "no_clock" in codes(analysis)


def refusals() -> Iterator[tuple[str, str, str]]:
    """Yield logs, and text that the refusal must contain."""
    yield (
        "tokens",
        every(60, 3, lambda n, s: f"{at(s)} | INFO | tokens seen: {4_194_304 * n} | loss: 2.1"),
        "tokens seen",
    )
    yield "samples", every(60, 3, lambda n, s: f"{at(s)} INFO samples={2048 * n} loss=0.3"), "samples"
    yield "parts of epochs", every(60, 3, lambda n, s: f"{at(s)} INFO epoch={n / 60:.3f} loss=0.3"), "epoch"
    yield (
        "a time that may be of one step or of all",
        every(60, 3, lambda n, _: f"tick: cost = 8.1, upd = {50 * n} (12.{n % 4} sec)"), 'of = "all"',
    )  # fmt: skip


REFUSALS = {name: (text, word) for name, text, word in refusals()}


@pytest.mark.parametrize("name", REFUSALS)
def test_ambiguous_shapes_are_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    text, word = REFUSALS[name]
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    (reason, *_) = draft_mapping(str(tmp_path / "train.log")).refused
    assert word in reason


def test_clock_set_back_in_autumn_is_reported(tmp_path: Path) -> None:
    """Local times of Berlin, read as UTC: one hour occurs twice."""
    hours = [f"2025-10-26 {2 if n < 90 else 1 + n // 60:02d}:{n % 60:02d}:00" for n in range(30, 240)]
    log = "".join(f"{stamp} INFO step {n}/1000 loss 2.1\n" for n, stamp in enumerate(hours, 1))
    assert "stamps_go_back" in codes(read(tmp_path, log))


def test_samples_in_brackets_taken_as_steps_are_reported(tmp_path: Path) -> None:
    log = epochs(lambda e, i, s: f"{at(s)} Train Epoch: {e + 1} [{64 * i}/32000 ({i // 5}%)]\tLoss: 0.3")
    said = [one.message for one in read(tmp_path, log).diagnostics if one.code == "drafted_mapping"]
    assert any("does not count samples" in one for one in said)


def test_number_of_evaluations_is_not_a_step(tmp_path: Path) -> None:
    log = every(60, 3, lambda n, s: f"{at(s)} - INFO - ***** Running evaluation: batch_idx = {n} *****")
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    (reason, *_) = draft_mapping(str(tmp_path / "train.log")).refused
    assert "evaluation batch idx" in reason


def test_saves_do_not_count_the_steps(tmp_path: Path) -> None:
    """Save lines follow the step lines and contain rising numbers too."""
    log = epochs(
        lambda e, i, s: f"{at(s)} - INFO - epoch: {e}, batch_id: {i}, AUC:0.91, loss:0.1, avg_batch_cost: 0.30000 sec",
        lambda e, s: f"{at(s)} - INFO - Already save model in output_model_sign/{e}",
    )
    analysis = read(tmp_path, log)
    assert analysis.job.kept_steps == 1450


def test_full_count_that_starts_again_is_next_epoch(tmp_path: Path) -> None:
    """No line numbers the five epochs: as restarts, four of five would be lost."""
    log = "".join(f"{at(3 * (50 * e + n))} | iter {n:2d}/50 | loss 0.{n}\n" for e in range(5) for n in range(1, 51))
    analysis = read(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.last_step) == (1, 250)
    assert analysis.goodput_percent == pytest.approx(100, abs=1)


def test_falling_step_is_a_restart(tmp_path: Path) -> None:
    log = every(60, 3, lambda n, s: f"{at(s)} INFO step {n}/1000 loss 2.1")
    log += every(60, 3, lambda n, s: f"{at(s + 400)} INFO step {n + 40}/1000 loss 2.1")
    analysis = read(tmp_path, log)
    assert analysis.job.attempts == 2
    assert len(analysis.disruptions) == 1


def test_late_epoch_in_a_long_log_is_not_a_restart(tmp_path: Path) -> None:
    """Two epochs of 1500 lines each: the second is not a restart."""
    log = "".join(
        f"INFO:__main__:Epoch {e} | Step {10 * n:4d}/15000 | Loss: 8.9 | Time: 0.5{n % 3}s\n"
        for e in range(2)
        for n in range(1500)
    )
    analysis = read(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 29_990)
