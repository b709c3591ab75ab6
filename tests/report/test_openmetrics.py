"""OpenMetrics: every figure has its metric, and an independent parser reads it for any text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.results import AtRisk, SliceEfficiency, Window
from tests.support.answers import (
    BASE,
    EVIL,
    MINUTE,
    SAMPLES,
    all_verdicts,
    amount,
    evil,
    gated,
    hostile,
    junit,
    primer,
    render,
)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str, parse: Any) -> Samples:
    """Return the value of every sample by (name, labels), and check that no series occurs twice."""
    found = [
        ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
        for family in parse(text)
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def metrics(analysis: Analysis) -> Samples:
    """Return the samples and check that both formats give the same. The collector of the node exporter reads the
    older format."""
    text = render("openmetrics", analysis)
    assert text.endswith("\n# EOF\n")
    read = samples(text, parse_openmetrics)
    assert read == samples(text, parse_text)
    return read


def sample(found: Samples, name: str, **labels: str) -> float:
    """Return the value of the only series with these labels."""
    (value,) = [
        value for (known, pairs), value in found.items() if known == name and labels.items() <= dict(pairs).items()
    ]
    return value


def test_metrics_contain_the_figures() -> None:
    found = metrics(hostile())
    assert sample(found, "goodput_ratio") == pytest.approx(hostile().goodput.percent / 100)
    assert sample(found, "goodput_category_seconds", category="productive") == 82561.123456788
    assert sample(found, "goodput_category_seconds", label="=HYPERLINK(1)") == 4000
    assert sample(found, "goodput_window_start_timestamp_seconds") == BASE / 1e9
    assert sample(found, "goodput_excluded_seconds") == 60
    assert sample(found, "goodput_step_time_seconds", statistic="p99") == 12
    assert sample(found, "goodput_at_risk_seconds") == 30
    seconds = [value for (name, _), value in found.items() if name == "goodput_category_seconds"]
    assert sum(seconds) == pytest.approx(sample(found, "goodput_window_seconds"))


def test_unrecorded_value_has_no_series_and_zero_has_one() -> None:
    found = metrics(primer(not_recorded=("queued",)))
    categories = {dict(pairs).get("category") for name, pairs in found if name == "goodput_category_seconds"}
    assert "queued" not in categories
    assert "excluded" not in categories
    assert sample(found, "goodput_category_seconds", category="step_stall") == 0
    names = {name for name, _ in found}
    assert not names & {"goodput_at_risk_seconds", "goodput_mtbf_seconds", "goodput_stepping_slices_ratio"}


def test_every_figure_has_its_metric() -> None:
    analysis = goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl")
    found = metrics(replace(analysis, at_risk=AtRisk(2.5, 10**9), elastic=SliceEfficiency(0.5, 0.75, 0, 30.0)))
    assert sample(found, "goodput_at_risk_steps") == 2.5
    assert sample(found, "goodput_available_slices_ratio") == 0.75
    assert sample(found, "goodput_mean_downtime_seconds") == pytest.approx(215.3677206)
    assert sample(found, "goodput_disruptions") == 5


def test_thresholds_are_metrics() -> None:
    found = metrics(all_verdicts())
    verdicts = [
        (labels["expression"], labels["action"], labels["verdict"])
        for name, pairs in found
        if (labels := dict(pairs)) and name == "goodput_threshold_verdict" and found[name, pairs] == 1
    ]
    assert verdicts == [
        ("goodput<90", "fail", "failed"),
        ("disruptions>3", "fail", "passed"),
        ("queued>1h", "fail", "not_recorded"),
        ("goodput<60", "warn", "warning"),
        ("goodput<10", "warn", "passed"),
        ("queued>5%", "warn", "not_recorded"),
    ]
    assert sample(found, "goodput_threshold_value", expression="goodput<90") == 50
    assert sample(found, "goodput_threshold_limit", expression="queued>1h", unit="s") == 3600


@pytest.mark.parametrize("text", EVIL)
def test_metrics_of_any_analysis_can_be_parsed(text: str) -> None:
    found = metrics(evil(text))
    assert {name for name, _ in found} == {name for name, _ in metrics(evil("x"))}
    assert all(char.isprintable() or char == "\n" for char in render("openmetrics", evil(text)))


@given(st.text(max_size=40))
def test_metrics_of_any_text_can_be_read(text: str) -> None:
    metrics(evil("x" + text))


def test_series_with_the_same_visible_name_are_merged() -> None:
    total = 200 * MINUTE
    rows = tuple(amount("custom_badput_events", MINUTE, total, label) for label in ("A\n", "A\\n"))
    twice = gated("goodput<90", "goodput<90", analysis=primer(badput=rows))
    assert sample(metrics(twice), "goodput_category_seconds", label="A\\n") == 120


def test_empty_window_has_no_ratio() -> None:
    empty = primer(window=Window(BASE, BASE, 0), goodput=amount("productive", 0, 0), badput=())
    assert "goodput_ratio" not in {name for name, _ in metrics(empty)}
    junit(empty)
