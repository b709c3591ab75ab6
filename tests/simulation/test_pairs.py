"""Two runs of one program, one of them slower in some tests: results of `compare` for noise of 5 %."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.compare.phrases import threshold_lines, verdict, work_lines
from goodput_cli.analysis.compare.work import is_rare
from goodput_cli.api.compare import compare
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from tests.simulation.job import Job
from tests.support.answers import as_json


def run_of(folder: Path, seed: int, *, slower: float = 1.0, steps: int = 1500, crashes: int = 0) -> str:
    """Write a run to a file and return its path."""
    job = Job(seed, usual=8.0 * slower, noise=0.05)
    job.start()
    for _ in range(crashes):
        job.steps(steps // (crashes + 1), saves=100)
        job.now += 600
        job.start()
    job.steps(steps - job.step_number, saves=100)
    job.end()
    path = folder / f"{seed}-{slower}.jsonl"
    path.write_text("".join(job.text))
    return str(path)


def test_equal_runs_have_no_clear_difference(tmp_path: Path) -> None:
    """At least 19 of 20 pairs."""
    runs = [run_of(tmp_path, seed) for seed in range(11)]
    clear = [pair.work.is_clear for pair in compare(runs).pairs if pair.work]
    clear += [pair.work.is_clear for pair in compare(runs, baseline=runs[5]).pairs if pair.work]
    assert len(clear) == 20
    assert sum(clear) <= 1


def test_steps_3_percent_slower_are_always_reported(tmp_path: Path) -> None:
    before = run_of(tmp_path, 1)
    for seed in range(10):
        (pair,) = compare([before, run_of(tmp_path, 100 + seed, slower=1.03)]).pairs
        assert pair.work is not None
        assert pair.work.is_clear
        (line,) = work_lines(pair)
        assert re.match(r"\d\.\d % more time for the same 1500 steps \(", line)
        assert "longer" in line


def test_lost_time_is_named_if_it_makes_the_difference(tmp_path: Path) -> None:
    (pair,) = compare([run_of(tmp_path, 1), run_of(tmp_path, 2, crashes=3)]).pairs
    (line,) = work_lines(pair)
    assert "recovery +1.20 s per step" in line


def test_gate_on_work_passes_within_noise(tmp_path: Path) -> None:
    before, after = run_of(tmp_path, 1), run_of(tmp_path, 2)
    gates = ["work_time:+0s", "steps.median:+0s", "work_time:-0s", "steps.median:-0s"]
    comparison = compare([before, after], changes=gates)
    by_name = {one.expression.partition(":")[0]: one for one in comparison.thresholds if one.met}
    assert set(by_name) == {"steps.median"}
    assert any(line.endswith("within noise)") for line in threshold_lines(comparison))
    slower = compare([before, run_of(tmp_path, 3, slower=1.05)], changes=["work_time:+3%"])
    assert slower.thresholds[0].verdict == "failed"


def test_runs_of_different_length_are_compared_per_step(tmp_path: Path) -> None:
    (pair,) = compare([run_of(tmp_path, 1), run_of(tmp_path, 2, slower=1.1, steps=600)]).pairs
    assert pair.work is not None
    assert pair.work.percent == pytest.approx(10, abs=1)


def test_counts_of_two_runs_are_rarely_judged() -> None:
    assert not any(is_rare(*counts, (1, 1)) for counts in ((1, 5), (0, 5), (2, 8)))
    assert is_rare(0, 6, (1, 1))


def test_shorter_run_is_compared_by_common_kept_steps(tmp_path: Path) -> None:
    """One-time costs weigh the same on both sides: 500 steps and 40 s of start-up each."""
    (pair,) = compare([run_of(tmp_path, 1), run_of(tmp_path, 2, steps=500)]).pairs
    assert pair.work is not None
    assert (pair.work.shared_steps, pair.work.is_clear) == (500, False)
    assert (pair.work.baseline.steps, pair.work.side.steps) == (500, 500)


def test_crashed_run_counts_up_to_its_last_kept_step(tmp_path: Path) -> None:
    """It crashed 20 min after its last kept step; this time is not part of the work."""
    job = Job(2, noise=0.05)
    job.start()
    job.steps(450, saves=100)
    job.now += 1200
    job.crash("RuntimeError: boom")
    path = tmp_path / "crashed.jsonl"
    path.write_text("".join(job.text))
    (pair,) = compare([run_of(tmp_path, 1), str(path)]).pairs
    assert pair.work is not None
    assert pair.work.crashed_at == (None, 449)
    assert not pair.work.is_clear
    assert any("crashed: compared up to its last kept step, 449" in line for line in work_lines(pair))


def test_higher_goodput_of_slower_steps_is_not_gain(tmp_path: Path) -> None:
    (pair,) = compare([run_of(tmp_path, 1), run_of(tmp_path, 2, slower=1.5)]).pairs
    assert pair.points > 0
    assert verdict(pair).startswith("goodput does not show this (")
    assert verdict(pair).endswith("it is a share of time, and steps are slower")


def test_saved_baseline_has_the_same_steps(tmp_path: Path) -> None:
    before, after = run_of(tmp_path, 1), run_of(tmp_path, 2, slower=1.1, steps=600)
    saved = tmp_path / "before.json"
    saved.write_text(as_json(goodput_cli.analyze(before), Page()))
    (of_saved,), (of_log,) = compare([str(saved), after]).pairs, compare([before, after]).pairs
    assert of_saved.work is not None
    assert of_log.work is not None
    assert of_saved.work.shared_steps == of_log.work.shared_steps == 600
    assert of_saved.work.percent == pytest.approx(of_log.work.percent, abs=0.2)


def with_metrics(path: str, **numbers: float) -> str:
    """Add metrics to the first step of a log."""
    text = Path(path).read_text()
    began = next(json.loads(line)["step_start_time"] for line in text.splitlines() if "step_start_time" in line)
    line = {"job_name": "sim", "goodput_event": "metrics", "goodput_time": began, "step": 0, **numbers}
    other = Path(path).with_suffix(f".{'-'.join(f'{one:g}' for one in numbers.values())}.jsonl")
    other.write_text(text + json.dumps(line) + "\n")
    return str(other)


def test_jobs_of_another_size_are_not_comparable(tmp_path: Path) -> None:
    runs = run_of(tmp_path, 1), run_of(tmp_path, 2)
    sized = [with_metrics(path, accelerators=many) for path, many in zip(runs, (8, 16), strict=True)]
    comparison = compare(sized, changes=["work_time:+1%"])
    (line,) = work_lines(comparison.pairs[0])
    assert line.startswith("not the same work (8 and 16 accelerators): ")
    assert comparison.thresholds[0].met is None


def test_samples_per_step_are_compared_per_accelerator(tmp_path: Path) -> None:
    """Twice the accelerators and twice the batch at the same pace: equal time per sample and accelerator."""
    runs = run_of(tmp_path, 1), run_of(tmp_path, 2)
    sizes = ({"accelerators": 8, "global_batch_size": 256}, {"accelerators": 16, "global_batch_size": 512})
    (pair,) = compare([with_metrics(path, **size) for path, size in zip(runs, sizes, strict=True)]).pairs
    assert pair.work is not None
    assert (pair.work.unit, pair.work.is_clear) == ("accelerators", False)
    assert pair.work.costs[0] == pytest.approx(pair.work.baseline_seconds * 8 / 256)


def test_three_baselines_show_the_usual_difference(tmp_path: Path) -> None:
    """Runs that differ by 3 %: one more of them is no difference, though 2 % and the range of two runs would suggest
    it."""
    nights = [run_of(tmp_path, seed, slower=pace) for seed, pace in enumerate((0.97, 1.0, 1.03))]
    (usual,) = compare([run_of(tmp_path, 7, slower=1.04)], baseline=nights).pairs
    (slow,) = compare([run_of(tmp_path, 8, slower=1.3)], baseline=nights).pairs
    assert usual.work is not None
    assert slow.work is not None
    assert (usual.work.is_clear, slow.work.is_clear) == (False, True)
    assert "3 baselines" in next(work_lines(slow))


def test_baseline_step_time_is_the_reference_of_all_runs(tmp_path: Path) -> None:
    """Steps that take a tenth longer lose that part of goodput, which no line showed before."""
    before, after = run_of(tmp_path, 1), run_of(tmp_path, 2, slower=1.1)
    comparison = compare([before, after], reference_step_time="baseline")
    assert comparison.baseline.summary.reference_seconds == comparison.pairs[0].side.summary.reference_seconds
    assert comparison.pairs[0].points < -6
    with pytest.raises(UsageError, match="only `goodput compare` has a baseline"):
        goodput_cli.analyze(before, reference_step_time="baseline")
