"""Runs of other sizes are compared by the time of their work, and more work per step is not slow."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import Comparison
from goodput_cli.analysis.compare.phrases import work_lines
from goodput_cli.cli.main import run
from tests.support.story import megatron, recorded, titan_step, torchtitan

Compared = Callable[..., Comparison]


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    def of_two(*sides: list[str]) -> Comparison:
        paths = []
        for name, lines in zip("ab", sides, strict=True):
            path = tmp_path / f"{name}.log"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            paths.append(path)
        return goodput_cli.compare(paths, timezone="UTC")

    return of_two


def check(comparison: Comparison, unit: str, percent: float, within: float = 1e-6) -> None:
    (pair,) = comparison.pairs
    assert pair.work is not None
    assert pair.work.unit == unit
    assert pair.work.percent == pytest.approx(percent, abs=within)


def test_larger_batch_is_faster_per_token(compared: Compared) -> None:
    """Batch 256 to 512, 1.0 to 1.9 s: +90 % a step, -5.0 % a sample, and faster."""
    found = compared(megatron(1000), megatron(1000, 1.9, batch=512))
    check(found, "token", -5.0)
    (pair,) = found.pairs
    assert pair.work is not None
    assert pair.work.is_clear
    assert pair.work.seconds / pair.work.baseline_seconds == pytest.approx(1.9)
    (said,) = work_lines(pair)
    assert "5.0 % less time per million tokens (906 ms, was 954 ms)" in said
    assert "256 and 512 samples per step, 1048576 and 2097152 tokens per step" in said


def test_without_tokens_a_sample_counts(compared: Compared) -> None:
    without = ([line for line in megatron(1000, 1.9 if batch == 512 else 1.0, batch=batch) if "seq_length" not in line]
               for batch in (256, 512))  # fmt: skip
    check(compared(*without), "sample", -5.0)


def test_time_is_per_accelerator_if_counts_differ(compared: Compared) -> None:
    """Half the accelerators, twice the time: as fast."""
    check(compared(megatron(1000), megatron(1000, 2.0, world=4)), "accelerators", 0.0)


def test_tokens_that_hardly_differ_are_the_same_work(compared: Compared) -> None:
    """Programs count tokens without padding."""
    usual = [*recorded(200, lambda _: 1.0, tokens_per_step=lambda step: 1000 + step % 5)]
    more = [*recorded(200, lambda _: 1.0, tokens_per_step=lambda step: 1003 + step % 5)]
    check(compared(usual, more), "step", 0.0, 0.5)


def test_amount_of_one_side_alone_is_shown(compared: Compared) -> None:
    found = compared([*recorded(200, lambda _: 1.0, tokens_per_step=lambda _: 5)], [*recorded(200, lambda _: 1.0)])
    names = {one.measure.name for one in found.pairs[0].changes}
    assert {"kept_tokens", "tokens_per_second"} <= names
    assert "effective_mfu" not in names


def slow(path: Path, lines: list[str]) -> bool:
    """Return True if an insight reports slow steps."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "slow_steps" in {one.code for one in goodput_cli.analyze(path, timezone="UTC").insights}


def test_half_the_accelerators_is_not_a_slow_period(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*megatron(600, every=1), *megatron(600, 2.0, every=1, first=600, at=600.0, world=4)]
    path = tmp_path / "train.log"
    assert not slow(path, lines)
    assert run(["steps", str(path), "-q"]) == 0
    shown = capsys.readouterr().out
    assert "no slow period" in shown
    assert "changed on purpose: accelerators 8 -> 4 from step" in shown


def test_steps_that_are_slower_by_themselves_are_slow(tmp_path: Path) -> None:
    lines = [*megatron(600, every=1), *megatron(600, 2.0, every=1, first=600, at=600.0)]
    assert slow(tmp_path / "train.log", lines)


@pytest.mark.parametrize(("tokens", "is_slow"), [(1.5, False), (1.2, True), (1.0, True)])
def test_more_tokens_per_step_are_more_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tokens: float, is_slow: bool
) -> None:
    """Steps of 1.5 x the time, with a multiple of the tokens, which vary from step to step."""

    def within(step: int) -> bool:
        return 300 <= step < 600

    lines = [*recorded(
        900, lambda step: 1.5 if within(step) else 1.0,
        tokens_per_step=lambda step: (tokens if within(step) else 1.0) * (1000 + step % 50),
    )]  # fmt: skip
    path = tmp_path / "log.jsonl"
    assert slow(path, lines) is is_slow
    assert run(["steps", str(path), "-q"]) == 0
    said = "more work per step: steps 300 to 599 took 1.50 x the usual time for 1.50 x the" in capsys.readouterr().out
    assert said is not is_slow


def titan(rate: Callable[[bool, float], float]) -> list[str]:
    """Steps of 1 s that vary by 2 %, from 301 on of 2 s, with a throughput by which it is and what it took."""
    lines, now = [(0.0, "Starting job: debug"), (0.5, "Training starts at step 1")], 1.0
    for step in range(1, 601):
        took = (2.0 if step > 300 else 1.0) * (1 + 0.02 * math.sin(7 * step))
        now += took
        lines.append((now, titan_step(step, rate(step > 300, took))))
    return torchtitan(*lines).splitlines()


@pytest.mark.parametrize(
    ("rate", "is_slow"),
    [
        (lambda later, took: 5000 * (1 + later) / took, False),
        (lambda later, took: 5000 * (1 + 2 * later) / took, False),
        (lambda _, took: 5000 / took, True),
        (lambda *_: 5000, True),
    ],
    ids=["twice the tokens", "three times the tokens", "the same tokens", "a number that nobody measured"],
)
def test_steps_at_one_throughput_are_more_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: Callable[[bool, float], float], is_slow: bool
) -> None:
    path = tmp_path / "train.log"
    assert slow(path, titan(rate)) is is_slow
    assert run(["steps", str(path), "-q"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ("took 2.00 x the usual time at the same throughput" in shown) is not is_slow
