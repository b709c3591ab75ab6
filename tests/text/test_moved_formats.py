"""Lines of newer and older releases of programs, and marks next to gaps (docs/formats.md, Text)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from goodput_cli.analysis.goodput.analysis import Analysis
from tests.text.support import analysed, seconds
from tests.text.test_folders import at

SHIPPED = Path("goodput_cli/events/mappings/shipped")


def titan(second: int, text: str) -> str:
    return f"[titan] {at(second)},000 - root - INFO - {text}\n"


def titan_step(second: int, step: int) -> str:
    return titan(second, f"step: {step}  loss:  8.1  memory: 39.00GiB(41.04%)  tps: 5,815  mfu: 2.85%")


def deepspeed(second: int, text: str) -> str:
    return f"[{at(second)},000] [INFO] [logging.py:96:log_dist] [Rank 0] {text}\n"


def deepspeed_step(second: int, step: int) -> str:
    return deepspeed(second, f"step={step}, skipped=0, lr=[0.1], mom=[1]")


def maxtext(second: int, text: str) -> str:
    return f"I{at(second)[5:7]}{at(second)[8:10]} {at(second)[11:]}.000000 1 x.py:1] {text}\n"


def of_text(folder: Path, *lines: str) -> Analysis:
    (folder / "train.log").write_text("".join(lines))
    return analysed(folder / "train.log")


def test_torchtitan_last_step_save_is_save_time(tmp_path: Path) -> None:
    steps = [titan_step(10 + 4 * step, step) for step in range(1, 21)]
    last = [titan(185, "Last step checkpoint completed in 95.00s"), titan(186, "Training completed")]
    analysis = of_text(tmp_path, titan(0, "Starting job: Llama"), *steps, *last)
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == 95


def test_nemo_steps_without_a_timer_are_between_timestamps(tmp_path: Path) -> None:
    """Three saves, 10 steps of 10 s apart; the first step also took 40 s of start-up."""
    lines = [f"[NeMo I {at(0)} x:1] Experiments will be logged at /c\n"]
    for step in range(30):
        lines.append(f"Training epoch 0, iteration {step}/99 | lr: 1 | global_step: {step} | reduced_train_loss: 1.2\n")
        if step % 10 == 9:
            second = 40 + 10 * (step + 1)
            lines.append(f"[NeMo I {at(second)} x:1] Scheduled async checkpoint save for /c/epoch=0-step={step}.ckpt\n")
    times = seconds(of_text(tmp_path, *lines))
    assert times == {"productive": 300, "program_startup": 40}


def test_orbax_blocking_part_is_save_time(tmp_path: Path) -> None:
    lines, second = [maxtext(0, "System Information: Jax Version: 0.8.1")], 10
    for step in range(20):
        second += 3
        lines.append(maxtext(second, f"completed step: {step}, seconds: 3.000, loss: 2.1"))
        if step % 5 == 4:
            second += 12
            lines.append(maxtext(second, "[process=0] [async] Finished blocking save in 12.00 seconds. "
                                         f"Continuing save @ gs://b/c/{step}."))  # fmt: skip
    analysis = of_text(tmp_path, *lines)
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == 4 * 12
    assert not {"hang", "slow_steps"} & {one.code for one in analysis.insights}


def test_maxtext_elastic_attempt_is_one_start(tmp_path: Path) -> None:
    def steps(begin: int, first: int) -> list[str]:
        line = "completed step: {}, seconds: 3.000, live slice count: 4, TFLOP/s/device: 151.0, Tokens/s/device: 4312.1"
        return [maxtext(begin + 3 * n, line.format(first + n) + ", loss: 2.1") for n in range(1, 6)]

    start = "Creating checkpoint manager with ocdbt=True"
    lines = [maxtext(0, start), *steps(10, 0), maxtext(60, "Elastic attempt 2"), maxtext(65, start), *steps(70, 3)]
    analysis = of_text(tmp_path, *lines)
    assert (analysis.job.attempts, analysis.job.disruptions) == (2, 1)
    assert {metric.name for metric in analysis.table.metrics} >= {"tflops"}


def test_deepspeed_chat_evaluation_takes_its_gap(tmp_path: Path) -> None:
    """Its lines have no time: it takes the time beyond usual steps."""
    before = [deepspeed_step(10 * n, 10 * n) for n in range(1, 6)]
    after = [deepspeed_step(40 + 10 * n, 10 * n) for n in range(6, 10)]
    analysis = of_text(tmp_path, *before, "***** Evaluating perplexity, Epoch 1/2 *****\n", *after)
    assert seconds(analysis)["EVAL_STEP"] == 40


def save_marks(folder: Path, gaps: dict[int, int]) -> Analysis:
    """Return 40 steps of 3 s with a mark of a save without a duration after every tenth. gaps: additional seconds after
    steps."""
    lines, second = [maxtext(0, "System Information: Jax Version: 0.8.1")], 10
    for step in range(40):
        second += 3
        lines.append(maxtext(second, f"completed step: {step}, seconds: 3.000, loss: 2.1"))
        if step % 10 == 9:
            lines.append(maxtext(second, f"Started an asynchronous checkpoint save for step {step}"))
        second += gaps.get(step, 0)
    return of_text(folder, *lines)


def test_save_mark_takes_the_gap_after_it(tmp_path: Path) -> None:
    analysis = save_marks(tmp_path, {9: 30, 19: 30, 29: 30})
    assert seconds(analysis)["unproductive_checkpoint_save_time"] == 90
    assert not {"hang", "slow_steps"} & {one.code for one in analysis.insights}


def test_a_gap_far_longer_than_other_marks_is_a_hang(tmp_path: Path) -> None:
    found = {one.code: one for one in save_marks(tmp_path, {9: 2, 19: 900, 29: 2}).insights}
    assert found["hang"].seconds == pytest.approx(900, abs=5)


def test_older_megatron_timers_are_phases(tmp_path: Path) -> None:
    lines = []
    for n in range(1, 31):
        lines.append(
            f"[{at(10 * n)}] iteration {n:8d}/ 1000 | elapsed time per iteration (ms): 10000.0 | loss: 1.0 |\n"
        )
        lines.append(" time (ms) | forward-compute: 3000.0 | backward-compute: 5000.0 | optimizer: 1000.0\n")
    analysis = of_text(tmp_path, *lines)
    names = {name.phase for one in analysis.table.inside for name in one.names}
    assert {"forward", "backward", "optimizer"} <= names


NUMBER = r"(?:[eE][+-]?\d+)?"


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_numbers_of_shipped_rules_may_have_an_exponent(path: Path) -> None:
    for rule in tomllib.loads(path.read_text())["rule"]:
        for pattern in (rule.get("regex", ""), rule.get("phase_pattern", "")):
            plain = pattern.replace(r"(?P<time>[\d.]+)", "")
            assert r"[\d.]+)" not in plain.replace(f"[\\d.]+{NUMBER})", ""), pattern
