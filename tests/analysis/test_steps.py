"""Step statistics (accounting §8): figures by hand, the slowest steps with their line, slow regimes and none."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from goodput_cli.analysis.steps.levels import changes_level
from goodput_cli.analysis.steps.regimes import pace_model
from goodput_cli.analysis.steps.sheet import StepReport, histogram, step_report
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData
from tests.support.answers import check_answer
from tests.support.story import BASE, Lines, account, end, loaded, saved, start, started, step, steps, story_lines

F64 = NDArray[np.float64]
Output = pytest.CaptureFixture[str]


def report(*events: Lines, slowest: int = 10, window: tuple[float, float] | None = None, **options: Any) -> StepReport:
    return step_report(account(*events, window=window, **options).analysis, slowest)


def steps_taking(seconds: Sequence[float] | F64, *, first: int = 0, at: float = 10) -> list[str]:
    """Step starts with these times between them."""
    begins = np.concatenate(([at], at + np.cumsum(seconds)))
    return [step(first + place, float(round(begin, 6))) for place, begin in enumerate(begins.tolist())]


# Statistics.


def test_statistics_by_hand() -> None:
    """Times 1, 1, 2, 2, 3, 9: median 2, MAD 1, so that the ideal leaves out 9: its limit is 5."""
    found = report(start(0), steps_taking([1, 1, 2, 2, 3, 9]))
    assert found.statistics.count == 6
    assert found.statistics.median_seconds == 2
    assert found.statistics.mean_seconds == 3
    assert found.statistics.ideal_seconds == pytest.approx(9 / 5)
    assert found.statistics.p90_seconds == pytest.approx(6)  # linear, halfway between 3 and 9
    assert found.max_deviation_seconds == pytest.approx(9 - 1.8)
    assert found.mean_deviation_seconds == pytest.approx((0.8 + 0.8 + 0.2 + 0.2 + 1.2 + 7.2) / 6)


def test_a_step_time_never_spans_attempts() -> None:
    found = report(start(0), steps(0, 3, at=10), start(100), steps(2, 3, at=110), end(140))
    assert found.statistics.count == 4
    assert found.statistics.mean_seconds == 10


def test_steps_that_are_not_logged_share_the_time() -> None:
    found = report(start(0), steps(0, 4, at=10, every=50, stride=10), end(180))
    assert found.statistics.mean_seconds == 5
    assert [slow.count for slow in found.slowest] == [10, 10, 10]


def test_the_slowest_steps_with_their_line() -> None:
    found = report(start(0), steps_taking([1, 7, 1, 9, 7, 1]), slowest=3)
    assert [(slow.step, slow.seconds, slow.where) for slow in found.slowest] == [
        (3, 9, "stdin:5"),
        (1, 7, "stdin:3"),
        (4, 7, "stdin:6"),
    ]
    assert found.slowest[0].time_ns == (BASE + 19) * 10**9
    assert report(start(0), steps_taking([1, 2]), slowest=0).slowest == ()


def test_a_window_looks_at_the_steps_inside() -> None:
    found = report(start(0), steps_taking([1, 1, 5, 5, 1, 1]), window=(12, 22))
    assert found.statistics.mean_seconds == 5


def test_checkpoint_log_reports_checkpoints_not_step_times() -> None:
    with pytest.raises(
        NotEnoughData,
        match=r"records checkpoints, not steps\. Between checkpoints, a step took 2 s \(median of 2, at most 3 s\)",
    ):
        report(started(0), loaded(0, 10), saved(10, 60), saved(20, 70), saved(30, 100))


def test_log_without_steps_is_reported() -> None:
    with pytest.raises(NotEnoughData, match=r"no step times: the log does not record steps$"):
        report(start(0), end(100))


def test_one_step_has_no_time() -> None:
    with pytest.raises(NotEnoughData, match="two recorded steps"):
        report(start(0), step(0, 10), end(20))


# The histogram.


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_a_histogram_counts_every_step_once(times: list[float]) -> None:
    bins = histogram(np.array(times))
    assert sum(part.count for part in bins) == len(times)
    assert (bins[0].low_seconds, bins[-1].high_seconds) == (min(times), max(times))
    assert all(left.high_seconds == right.low_seconds for left, right in pairwise(bins))
    assert len(bins) <= 24
    assert not any(left.count == right.count == 0 for left, right in pairwise(bins))


def test_a_wide_spread_is_shown_on_a_logarithmic_scale() -> None:
    wide = histogram(np.array([1.0, 1.1, 1.2, 100.0]))
    ratios = [part.high_seconds / part.low_seconds for part in wide if part.count]
    assert ratios == pytest.approx([100 ** (1 / 24)] * len(ratios))
    narrow = histogram(np.linspace(1, 3, 100))
    assert [part.high_seconds - part.low_seconds for part in narrow] == pytest.approx([2 / 12] * 12)


# Slow regimes.


def noisy(count: int, seed: int, jitter: float = 0.05) -> F64:
    """Step times around 1 s with jitter, one in twenty 2 to 50 times as long, every hundredth 10 times."""
    chance = np.random.default_rng(seed)
    times = np.exp(jitter * chance.standard_normal(count))
    odd = chance.random(count) < 0.05
    times[odd] *= chance.uniform(2, 50, int(odd.sum()))
    times[::100] *= 10
    return np.asarray(times)


@settings(deadline=None)
@given(st.integers(1, 20_000), st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.05, 0.1]))
def test_steady_job_with_outliers_has_no_slow_period(count: int, seed: int, jitter: float) -> None:
    times = noisy(count, seed, jitter)
    assert pace_model(times).kind == "level"
    parts = [times[at : at + 1000] for at in range(0, count, 1000)]
    assert changes_level(parts, count) == changes_level([times], count)


@settings(deadline=None)
@given(
    st.integers(400, 20_000), st.integers(0, 10**6), st.floats(1.2, 3), st.floats(0.2, 0.5), st.floats(0.7, 0.9),
    st.booleans(),
)  # fmt: skip
def test_a_level_that_moves_is_found_where_it_moved(
    count: int, seed: int, factor: float, begin: float, stop: float, comes_back: bool
) -> None:
    times, first, last = noisy(count, seed), int(begin * count), int(stop * count)
    last = last if comes_back else count
    for edge in (first, last):  # an outlier beside the move cannot be told from it
        times[edge - 8 : edge + 8] = 1
    times[first:last] *= factor
    found = pace_model(times).cuts
    assert found.tolist() == pytest.approx([first, last] if comes_back else [first], abs=5)
    assert changes_level(np.array_split(times, [7, first, count - 3]), count)


def test_a_slow_regime_by_hand() -> None:
    """Steps 200 to 299 take 1.5 s, the others 1 s; single ones take 30 s."""
    seconds = np.ones(500)
    seconds[200:300] = 1.5
    seconds[[20, 90, 210, 280, 400]] = 30
    (regime,) = report(start(0), steps_taking(seconds)).regimes
    assert (regime.first_step, regime.last_step, regime.steps) == (200, 299, 100)
    assert (regime.seconds, regime.usual_seconds, regime.factor) == (1.5, 1, 1.5)
    assert regime.lost_seconds == pytest.approx(50)
    assert regime.where == "stdin:202"
    assert not regime.ongoing
    assert regime.start_ns == (BASE + 10) * 10**9 + round(seconds[:200].sum() * 10**9)


def test_a_regime_that_lasts_to_the_end_is_still_going_on() -> None:
    seconds = np.concatenate((np.ones(300), np.full(200, 1.3)))
    (regime,) = report(start(0), steps_taking(seconds)).regimes
    assert regime.ongoing
    assert regime.first_step == 300
    assert regime.factor == pytest.approx(1.3)


def test_two_steps_up_are_two_regimes() -> None:
    seconds = np.concatenate((np.ones(200), np.full(200, 1.3), np.full(200, 2.0)))
    found = report(start(0), steps_taking(seconds)).regimes
    assert [regime.first_step for regime in found] == [200, 400]
    assert [regime.factor for regime in found] == pytest.approx([1.3, 2.0])


def test_a_level_that_falls_makes_what_was_before_slow() -> None:
    seconds = np.concatenate((np.full(200, 2.0), np.ones(300)))
    (regime,) = report(start(0), steps_taking(seconds)).regimes
    assert (regime.first_step, regime.last_step, regime.factor) == (0, 199, 2.0)


def test_a_short_fast_phase_does_not_make_the_job_slow() -> None:
    seconds = np.concatenate((np.ones(400), np.full(30, 0.5), np.ones(400)))
    assert report(start(0), steps_taking(seconds)).regimes == ()


def test_a_regime_may_begin_with_an_attempt() -> None:
    slow = steps_taking(np.full(200, 1.4), first=300, at=1000)
    (regime,) = report(start(0), steps_taking(np.ones(300)), start(900), slow, end(1300)).regimes
    assert (regime.first_step, regime.first_attempt, regime.last_attempt) == (300, 2, 2)


# The command.


@pytest.fixture
def log(folder: Path) -> Path:
    seconds = np.concatenate((np.ones(300), np.full(200, 1.3)))
    seconds[100] = 40
    path = folder / "run.jsonl"
    path.write_text("\n".join(story_lines(start(0), steps_taking(seconds))) + "\n", encoding="utf-8")
    return path


def test_json_is_as_the_schema_says(log: Path, capsys: Output) -> None:
    assert run(["steps", "run.jsonl", "-q", "--format", "json", "--slowest", "2"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    check_answer(value, "steps")
    assert value["steps"]["count"] == 500
    assert value["slowest"][0] | {"start": ""} == {
        "step": 100, "steps": 1, "attempt": 1, "start": "", "seconds": 40.0, "holds": None,
        "evidence": "run.jsonl:102",
    }  # fmt: skip
    cited = json.loads(log.read_text(encoding="utf-8").splitlines()[101])
    assert cited["step_count"] == 100
    assert [regime["from_step"] for regime in value["slow_regimes"]] == [300]
    assert len(value["slowest"]) == 2


def test_the_table_fits_and_shows_all_three(log: Path, capsys: Output) -> None:
    assert run(["steps", "run.jsonl", "-q"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "slow period: steps 300 to 499 took 1.30 x the usual 1.00 s" in " ".join(out.split())
    assert "Slow periods" in out
    assert "Histogram" in out
    assert "█" in out


def test_csv_contains_the_slowest_steps(log: Path, capsys: Output) -> None:
    assert run(["steps", "run.jsonl", "-q", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 10
    assert (rows[0]["step"], rows[0]["seconds"], rows[0]["evidence"]) == ("100", "40.0", "run.jsonl:102")


def test_markdown_has_a_heading_for_each_table(log: Path, capsys: Output) -> None:
    assert run(["steps", "run.jsonl", "-q", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# Step times of j", "## Slow periods", "## Histogram",
    ]  # fmt: skip


def test_a_checkpoint_log_exits_with_not_enough_data(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(story_lines(started(0), loaded(0, 10), saved(10, 60))) + "\n", encoding="utf-8")
    assert run(["steps", str(path), "-q"]) == 4
    assert "this log records checkpoints, not steps" in capsys.readouterr().err
