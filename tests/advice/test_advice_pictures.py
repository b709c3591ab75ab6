"""Advice as a picture, as JUnit and as OpenMetrics: the same figures as JSON has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from goodput_cli.cli.main import run
from tests.support.answers import junit_schema
from tests.support.documents import names_in_first_column, section

ROOT = Path(__file__).parents[2]
NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
EXAMPLES = ROOT / "tests" / "advice" / "examples"
ENDINGS = ("html", "svg", "png", "xml", "prom", "json")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that one run writes, with a gate that fails and one that cannot."""
    folder = tmp_path_factory.mktemp("advice")
    gates = ["--fail-if", "advice.gain>4pp", "--warn-if", "advice.stalls>1h"]
    files = [
        part for ending in ("html", "svg", "png", "xml", "prom", "json") for part in ("-o", f"{folder}/a.{ending}")
    ]
    assert run(["advise", NIGHT, "-q", *gates, *files]) == 3
    return folder


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def metrics(file: Path) -> dict[str, Metric]:
    return {one.name: one for one in text_string_to_metric_families(file.read_text())}  # type: ignore[no-untyped-call]


def answer(night: Path) -> Any:
    return json.loads((night / "a.json").read_text())


def test_the_picture_names_what_it_shows(night: Path) -> None:
    shown = texts((night / "a.svg").read_text())
    assert {"llm-pretrain-7b", "goodput, %", "recommended", "today (expected)", "today (this run)"} <= {*shown}
    assert {"chance", "Young", "Daly"} <= {*shown}
    assert any("SAVE EVERY 50 STEPS" in text for text in shown)
    assert any("7.9 min" in text for text in shown)  # 50 steps, in training time
    assert (night / "a.png").read_bytes().startswith(b"\x89PNG")


def test_page_contains_the_chart_and_its_description(night: Path) -> None:
    page = (night / "a.html").read_text()
    assert (page.count("<figure"), page.count("<svg xmlns=")) == (1, 2)  # the second for a phone
    assert "Recommended: 50 steps, with 72.26 %." in page
    assert "Goodput by checkpoint interval" in page


def test_every_dot_of_the_chart_is_a_curve_point(night: Path) -> None:
    curve = answer(night)["curve"]
    best = max(point["goodput_percent"] for point in curve)
    shown = [point for point in curve if point["goodput_percent"] >= best / 2]
    groups = ElementTree.fromstring((night / "a.svg").read_text()).iter(f"{SVG}g")
    symbols = [len(group) for group in groups if "mark-symbol" in (group.get("class") or "")]
    assert sum(point["replayed_percent"] is not None for point in shown) in symbols


def test_the_table_and_the_advice_agree(night: Path) -> None:
    """Equally good intervals are best by the deciding numbers, and every average is in its own range."""
    found = answer(night)
    low, high = found["interval"]["plateau_steps"]
    best = max(point["chosen_by_percent"] for point in found["curve"])
    good = [point["every_steps"] for point in found["curve"] if point["chosen_by_percent"] >= best - 0.1]
    assert (good[0], good[-1]) == (low, high)
    assert all(point["chosen_by_percent"] <= point["goodput_percent"] for point in found["curve"])
    for point in found["curve"]:
        assert point["ci95_percent"][0] <= point["goodput_percent"] <= point["ci95_percent"][1]


def test_missing_chart_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(EXAMPLES / "11-no-saves.jsonl")
    assert run(["advise", log, "-q", "-o", str(tmp_path / "x.svg")]) == 2
    assert "there is nothing to draw\ntip: run with --format table" in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()
    assert run(["advise", log, "-q", "-o", str(tmp_path / "x.html")]) == 0
    assert "<figure" not in (tmp_path / "x.html").read_text()


def test_junit_has_a_case_per_gate_and_every_figure(night: Path) -> None:
    text = (night / "a.xml").read_text()
    junit_schema().validate(text)
    (suite,) = ElementTree.fromstring(text)
    assert [case.get("name") for case in suite.iter("testcase")] == ["advice.gain>4pp", "advice.stalls>1h (only warns)"]
    assert [failure.get("message") for failure in suite.iter("failure")] == ["4.26 pp, limit 4 pp"]
    figures = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert figures["advice.verdict"] == "change"
    levers = answer(night)["levers"]
    assert all(float(figures[f"advice.lever_seconds.{one['name']}"] or "") == one["seconds"] for one in levers)


def test_metrics_are_those_of_json_and_of_the_documents(night: Path) -> None:
    said = answer(night)
    families = metrics(night / "a.prom")
    gain = {sample.labels["bound"]: sample.value for sample in families["goodput_advice_gain_points"].samples}
    low, high = said["interval"]["gain_ci95_points"]
    assert gain == {"best": said["interval"]["gain_points"], "low": low, "high": high}
    every = {sample.labels["bound"]: sample.value for sample in families["goodput_advice_interval_seconds"].samples}
    assert every["best"] == said["interval"]["every_seconds"]
    assert every["low"] < every["best"] < every["high"]
    verdicts = families["goodput_threshold_verdict"].samples
    assert [one.labels["expression"] for one in verdicts if one.value and one.labels["verdict"] == "failed"] == [
        "advice.gain>4pp"
    ]
    described = names_in_first_column(section(ROOT / "docs" / "advice.md", "Metrics"))
    assert {*described} == {name for name in families if name.startswith("goodput_advice_")}


def test_unknown_values_have_no_series(tmp_path: Path) -> None:
    assert run(["advise", str(EXAMPLES / "11-no-saves.jsonl"), "-q", "-o", str(tmp_path / "x.prom")]) == 0
    families = metrics(tmp_path / "x.prom").keys()
    assert not families & {"goodput_advice_gain_points", "goodput_advice_interval_seconds"}
    assert "goodput_advice_lever_seconds" in families
