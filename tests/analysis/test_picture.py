"""The data of charts: reduced, but without losing important values."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.accounting.columns import run_heads
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.picture import (
    Buckets,
    WindowPicture,
    bands,
    extremes,
    first_of_each,
    picture_of,
    tiled_windows,
    whole_curve,
)
from goodput_cli.analysis.steps.times import timed_steps
from goodput_cli.vocabulary.categories import CATEGORIES
from tests.accounting.test_properties import Lines, analyse, slowly
from tests.strategies import any_logs
from tests.support.logs import Recorder

ROOT = Path(__file__).parent.parent.parent
LOGS = [*sorted((ROOT / "sample_logs").glob("*.jsonl")), *sorted((ROOT / "tests" / "examples").glob("*.jsonl"))]
PRETRAIN = ROOT / "sample_logs" / "llm-pretrain.jsonl"
COUNTS = (1, 7, 100, 3000)


def ledger_of(analysis: Analysis) -> Counter[str]:
    """Return ns by category, including excluded time."""
    amounts = Counter({"excluded": analysis.window.excluded_ns})
    for row in (analysis.goodput, *analysis.badput):
        amounts[row.category] += row.ns
    return Counter({name: ns for name, ns in amounts.items() if ns})


def bands_of(picture: WindowPicture) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for code, ns in zip(picture.bands.category.tolist(), picture.bands.ns.tolist(), strict=True):
        amounts[CATEGORIES[code]] += ns
    return Counter({name: ns for name, ns in amounts.items() if ns})


def check(analysis: Analysis, count: int) -> None:
    """Check the properties of the chart data of every log, for any number of columns."""
    picture = picture_of(analysis, count)
    window = analysis.window
    assert bands_of(picture) == ledger_of(analysis)
    check_bands(picture)
    check_curve(analysis, picture, count)
    assert int(picture.disruptions.count.sum()) == len(analysis.disruptions)
    assert len(picture.disruptions) <= count
    steps = timed_steps(analysis.timeline, window.start_ns, window.end_ns)
    assert int(picture.step_times.count.sum()) == len(steps)
    if len(steps):
        assert picture.step_times.low.min() == steps.seconds.min()
        assert picture.step_times.high.max() == steps.seconds.max()
    at_the_end = float(picture.cumulative.percent[-1])
    assert at_the_end == pytest.approx(analysis.goodput_percent) or (
        analysis.goodput_unknown and at_the_end != at_the_end
    )


def check_bands(picture: WindowPicture) -> None:
    """Check that the intervals are contiguous, cover the window, and have their largest category."""
    shown = picture.bands
    heads = np.flatnonzero(run_heads(shown.start))
    start, end = shown.start[heads], shown.end[heads]
    assert start[0] == picture.start_ns
    assert end[-1] == picture.end_ns
    assert np.array_equal(start[1:], end[:-1])
    assert np.array_equal(np.add.reduceat(shown.ns, heads), end - start)
    assert int(shown.most.sum()) == len(heads)


def check_curve(analysis: Analysis, picture: WindowPicture, count: int) -> None:
    """Check that the downsampled curve has the extremes of the whole one, for kept and lost training."""
    window = analysis.window
    whole = whole_curve(analysis.timeline, window.start_ns, window.end_ns)
    curve = picture.curve
    assert len(curve) <= 16 * count + 16
    for lost in (False, True):
        all_of, some = whole.step[whole.lost == lost], curve.step[curve.lost == lost]
        assert len(all_of) == 0 or (all_of.min(), all_of.max()) == (some.min(), some.max())
    for line in np.unique(curve.line):
        assert np.all(np.diff(curve.time[curve.line == line]) >= 0)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_chart_data_has_the_time_of_the_ledger(log: Path, count: int) -> None:
    check(goodput_cli.analyze(log), count)


@pytest.mark.parametrize("count", COUNTS)
def test_chart_data_of_a_part_of_the_job_is_complete(count: int) -> None:
    check(goodput_cli.analyze(PRETRAIN, start="+100m", end="+333m", exclude=["+120m/+130m"]), count)
    check(goodput_cli.analyze(PRETRAIN, reference_step_time=8, start="+1h"), count)


@slowly
@given(any_logs(), st.sampled_from(COUNTS))
def test_a_picture_of_any_log(lines: Lines, count: int) -> None:
    analysis = analyse(lines)
    if analysis is not None:
        check(analysis, count)


def test_long_outages_are_exact_and_short_ones_visible() -> None:
    analysis = goodput_cli.analyze(PRETRAIN)
    picture = picture_of(analysis, 50)
    down = picture.bands.category == CATEGORIES.index("infrastructure_recovery_from_disruption")
    longest = max(analysis.disruptions, key=lambda row: row.downtime_ns)
    assert longest.downtime_ns < picture.bucket_ns
    assert picture.downsampled
    assert int(picture.bands.ns[down].sum()) == ledger_of(analysis)["infrastructure_recovery_from_disruption"]
    fine = picture_of(analysis, 3000)
    exact = (fine.bands.start <= longest.last_sign_of_life_ns) & (fine.bands.end >= longest.next_start_ns - 1)
    assert int((exact & (fine.bands.ns == fine.bands.end - fine.bands.start)).sum()) >= 1


def test_thousands_of_short_attempts_are_bundled(tmp_path: Path) -> None:
    log = Recorder()
    for attempt in range(2000):
        log.start(100 * attempt).steps(attempt % 7, attempt % 7 + 3, 100 * attempt + 10, 10)
    check(goodput_cli.analyze(log.write(tmp_path / "loop.jsonl")), 100)


def test_one_slow_step_among_many_is_visible() -> None:
    heads = np.zeros(10_000, dtype=bool)
    heads[::1000] = True
    values = np.ones(10_000)
    values[4321], values[8765] = 99.0, 0.25
    kept = extremes(heads, values)
    assert {0, 4321, 8765, 9999} <= set(kept.tolist())
    assert len(kept) <= 40


@given(st.lists(st.tuples(st.booleans(), st.floats(-10, 10)), max_size=60))
def test_the_extremes_of_every_run_are_kept(rows: list[tuple[bool, float]]) -> None:
    heads = np.array([place == 0 or head for place, (head, _) in enumerate(rows)], dtype=bool)
    values = np.array([value for _, value in rows])
    kept = extremes(heads, values)
    assert kept.tolist() == sorted(set(kept.tolist()))
    for run in np.split(np.arange(len(rows)), np.flatnonzero(heads)[1:]) if rows else []:
        of_run = [place for place in kept.tolist() if place in run]
        assert {int(run[0]), int(run[-1])} <= set(of_run)
        assert values[of_run].min() == values[run].min()
        assert values[of_run].max() == values[run].max()
        assert len(of_run) <= 4


@given(st.integers(0, 10**18), st.integers(1, 10**17), st.integers(1, 5000))
def test_buckets_cover_the_window(start: int, length: int, count: int) -> None:
    buckets = Buckets(start, start + length, count)
    edges = buckets.edges
    assert (edges[0], edges[-1]) == (start, start + length)
    assert len(edges) - 1 <= count
    assert buckets.of(edges[:-1]).tolist() == list(range(len(edges) - 1))
    assert int(buckets.of(np.array([start + length]))[0]) == len(edges) - 2


def test_first_of_each_has_positions_and_counts() -> None:
    first, count = first_of_each(np.array([3, 3, 5, 9, 9, 9]))
    assert (first.tolist(), count.tolist()) == ([0, 2, 3], [2, 1, 3])
    assert [len(part) for part in first_of_each(np.zeros(0, dtype=np.int64))] == [0, 0]


def test_requested_windows_are_drawn_or_a_round_tenth() -> None:
    asked = goodput_cli.analyze(PRETRAIN, window=["30m", "2h"], every="30m")
    assert [shares.window_ns for shares in picture_of(asked, 500).rolling] == [1800 * 10**9, 7200 * 10**9]
    assert tiled_windows(asked) is asked
    plain = replace(asked, rolling=None)
    assert [shares.window_ns for shares in picture_of(plain, 500).rolling] == [7200 * 10**9]
    tiles = tiled_windows(plain).rolling
    assert tiles is not None
    assert int(tiles.productive_ns.sum()) == plain.goodput.ns


def test_labels_are_named_if_an_interval_has_only_one() -> None:
    analysis = goodput_cli.analyze(PRETRAIN)
    window = analysis.window
    shown = bands(analysis.timeline, Buckets(window.start_ns, window.end_ns, 3000))
    labels = {analysis.table.labels[label] for label in shown.label[shown.label >= 0].tolist()}
    assert labels == {"EVAL_STEP"}
