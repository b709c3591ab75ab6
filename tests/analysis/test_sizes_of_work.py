"""Steps that take more samples take longer by design: no slow regime (docs/insights.md)."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.cli.main import run

BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def megatron(path: Path, size: Callable[[int], int], seconds: Callable[[int], float], stated: bool = True) -> str:
    """A log of 900 steps, with 3 % of noise. size, seconds: of a step."""
    dice, now, lines = random.Random(1), 10.0, []
    for step in range(1, 901):
        took = seconds(step) * dice.lognormvariate(0, 0.03)
        now += took
        batch = f" global batch size: {size(step):5d} |" if stated else ""
        lines.append(
            f" [{BEGIN + timedelta(seconds=now):%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/    2000 | elapsed time per "
            f"iteration (ms): {1000 * took:.1f} | learning rate: 1.0E-04 |{batch} lm loss: 2.0E+00 |\n"
        )
    path.write_text("".join(lines))
    return str(path)


def ramp(step: int) -> int:
    return 256 if step <= 300 else 512 if step <= 600 else 768


def codes(log: str) -> set[str]:
    return {one.code for one in goodput_cli.analyze(log, timezone="UTC").insights}


def test_a_batch_that_grows_is_by_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = megatron(tmp_path / "train.log", ramp, lambda step: ramp(step) / 128)
    assert "slow_steps" not in codes(log)
    assert run(["steps", log, "-q"]) == 0
    shown = capsys.readouterr().out
    assert "changed on purpose: global batch 256 -> 512 from step 301 on" in shown
    assert "no slow period" in shown


def test_a_slow_span_within_one_size_is_slow(tmp_path: Path) -> None:
    def seconds(step: int) -> float:
        return ramp(step) / 128 * (1.5 if 700 < step <= 800 else 1)

    log = megatron(tmp_path / "train.log", ramp, seconds)
    (slow,) = [one for one in goodput_cli.analyze(log, timezone="UTC").insights if one.code == "slow_steps"]
    assert slow.text.startswith("steps 701 to 800 took 1.5")
    assert slow.seconds == pytest.approx(100 * 3, rel=0.05)


def test_size_is_unknown_when_not_logged(tmp_path: Path) -> None:
    assert "slow_steps" in codes(megatron(tmp_path / "train.log", ramp, lambda step: ramp(step) / 128, stated=False))


def test_slowdown_in_small_stairs_is_a_drift(tmp_path: Path) -> None:
    """Twelve stairs of 75 steps, each 8 % slower than the one before: a line describes it as well."""
    log = megatron(tmp_path / "train.log", lambda _: 256, lambda step: 2 * 1.08 ** ((step - 1) // 75))
    (slow,) = [one for one in goodput_cli.analyze(log, timezone="UTC").insights if one.code == "drift"]
    lost = sum(75 * 2 * (1.08**stair - 1) for stair in range(12))
    assert slow.seconds == pytest.approx(lost, rel=0.2)


def test_stairs_are_one_insight(tmp_path: Path) -> None:
    """Four stairs of 225 steps: 2 s a step, then 1.1, 1.3 and 1.9 x that."""
    factors = (1.0, 1.1, 1.3, 1.9)
    log = megatron(tmp_path / "train.log", lambda _: 256, lambda step: 2 * factors[min((step - 1) // 225, 3)])
    (slow,) = [one for one in goodput_cli.analyze(log, timezone="UTC").insights if one.code == "slow_steps"]
    assert "became slower in 3 jumps, 1.10 to 1.89 x the usual 2.00 s" in slow.text
    assert slow.seconds == pytest.approx(225 * 2 * (0.1 + 0.3 + 0.9), rel=0.03)
