"""Slice efficiency (accounting §9), calculated by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.results import SliceEfficiency
from goodput_cli.cli.main import run
from tests.support.logs import NS, Recorder


def elastic_log() -> Recorder:
    """Return a log of 100 s: 20 s without a count, 40 s with 4/4, then 2/4 active and 3/4 available."""
    log = Recorder().start(0).steps(0, 8, 10, 10)
    return log.slices(20, 4, 4, 4).slices(60, 2, 4, 3).end(100)


def analysis_of(tmp_path: Path, log: Recorder, **question: object) -> Analysis:
    return goodput_cli.analyze(log.write(tmp_path / "run.jsonl"), **question)  # type: ignore[arg-type]


def test_efficiency_is_the_time_weighted_mean_of_known_time(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, elastic_log())
    assert analysis.elastic.stepping == pytest.approx((40 * 1 + 40 * 0.5) / 80)
    assert analysis.elastic.available == pytest.approx((40 * 1 + 40 * 0.75) / 80)
    assert analysis.elastic.unknown_ns == 20 * NS
    assert analysis.elastic.goodput_percent == pytest.approx(analysis.goodput.percent * 0.75)


def test_state_at_the_left_edge_is_the_record_before(tmp_path: Path) -> None:
    elastic = analysis_of(tmp_path, elastic_log(), start="+50s", end="+70s").elastic
    assert (elastic.stepping, elastic.available, elastic.unknown_ns) == (0.75, 0.875, 0)


def test_window_before_the_first_record_is_unknown(tmp_path: Path) -> None:
    elastic = analysis_of(tmp_path, elastic_log(), end="+15s").elastic
    assert elastic == SliceEfficiency(None, None, 15 * NS, None)


def test_unknown_time_is_exact_over_a_year(tmp_path: Path) -> None:
    """Floats cannot represent nanoseconds in a window of several months."""
    log = Recorder().start(0).slices(0.1, 2, 2, 2).steps(0, 3, 10, 10)
    elastic = analysis_of(tmp_path, log, as_of="2027-01-01T00:00:00Z").elastic
    assert elastic.unknown_ns == NS // 10


def test_log_without_counts_has_no_efficiency(tmp_path: Path) -> None:
    log = Recorder().start(0).steps(0, 8, 10, 10).end(100)
    assert analysis_of(tmp_path, log).elastic == SliceEfficiency(None, None, None, None)


def test_time_without_slices_is_unknown(tmp_path: Path) -> None:
    log = Recorder().start(0).slices(0, 0, 0, 0).slices(50, 1, 2, 2).steps(0, 8, 10, 10).end(100)
    elastic = analysis_of(tmp_path, log).elastic
    assert (elastic.stepping, elastic.available, elastic.unknown_ns) == (0.5, 1.0, 50 * NS)


def test_efficiency_is_known_per_window(tmp_path: Path) -> None:
    rolling = analysis_of(tmp_path, elastic_log(), window="10s", every="20s").rolling
    assert rolling is not None
    assert [row.stepping for row in rolling.rows()] == [None, 1.0, 1.0, 0.5, 0.5]


def test_only_counts_known_at_the_time_are_used(tmp_path: Path) -> None:
    assert analysis_of(tmp_path, elastic_log(), as_of="+50s").elastic.stepping == 1.0


def test_goodput_times_stepping_is_next_to_goodput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = elastic_log().write(tmp_path / "run.jsonl")
    for name in ("table", "markdown"):
        assert run(["analyze", str(path), "-q", "--format", name]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert "75.00 % stepping, 87.50 % available, goodput x stepping" in words
        assert "20.0 s without a slice count" in words
