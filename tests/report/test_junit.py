"""JUnit: one test case per threshold, and valid XML for any text."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.threshold import Threshold
from tests.support.answers import EVIL, all_verdicts, evil, hostile, junit, primer, render
from tests.support.documents import ROOT
from tests.support.story import account, end, start, steps

NIGHT = ROOT / "sample_logs" / "llm-pretrain.jsonl"


def outcome(case: Element) -> tuple[str, str, str]:
    (inside,) = list(case) or [Element("passed")]
    return case.attrib["name"], inside.tag, inside.get("message", "")


def test_each_threshold_is_a_test_case() -> None:
    suite = junit(all_verdicts())
    nothing = "no data in the log"
    assert [outcome(case) for case in suite.iter("testcase")] == [
        ("goodput<90", "failure", "50.00 %, limit 90 %"),
        ("disruptions>3", "passed", ""),
        ("queued>1h", "error", nothing),
        ("goodput<60 (only warns)", "passed", ""),
        ("goodput<10 (only warns)", "passed", ""),
        ("queued>5% (only warns)", "skipped", nothing),
    ]
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "1", "skipped": "1"}
    assert {case.attrib["classname"] for case in suite.iter("testcase")} == {"goodput.goodput-primer"}
    said = suite.findtext("system-out")
    assert said is not None
    assert "threshold goodput<60: warning (50.00 %, limit 60 %)" in said


def test_no_thresholds_give_one_passed_case_with_the_headline() -> None:
    (case,) = junit(primer()).iter("testcase")
    assert outcome(case) == ("goodput 50.00 %, 1 h 40 min of 3 h 20 min", "passed", "")


def test_failed_gate_reports_largest_loss_and_advice() -> None:
    night = goodput_cli.analyze(NIGHT, thresholds=["goodput<80", "queued>1h"])
    failed, unknown = junit(night).iter("testcase")
    numbers, lost, evals, _, worst, *_ = (failed.find("failure").text or "").splitlines()  # type: ignore[union-attr]
    assert numbers == "goodput<80: FAILED (70.43 %, limit 80 %)"
    assert lost.startswith("Lost 29.57 %, 3 h 18 min; 5 disruptions, 3401 steps kept")
    assert evals.startswith("- 6.53 %, 43 min 48 s: evaluation. goodput timeline")
    assert worst.startswith("- 4.39 %, 29 min 28 s: restored step 1400, although checkpoint 1600 was complete. Restore")
    assert worst.endswith(f": goodput timeline {NIGHT} --around disruption:4")
    assert "\n" not in (unknown.find("error").text or "")  # type: ignore[union-attr]


def test_failed_gate_without_insights_names_largest_losses() -> None:
    crash = [start(0), *steps(0, 7, at=10), end(75), start(100), *steps(4, 5, at=110), end(160)]
    analysis = replace(account(*crash).analysis, thresholds=(Threshold("goodput<90", True, True, 56.25, 90.0, "%"),))
    (case,) = junit(analysis).iter("testcase")
    _, lost, first, second, third, more = (case.find("failure").text or "").splitlines()  # type: ignore[union-attr]
    assert lost.startswith("Lost 43.75 %, 1 min 10 s; 1 disruption")
    assert [first, second, third] == [
        "- 15.62 %, 25.0 s: recovery",
        "- 15.62 %, 25.0 s: wasted progress",
        "- 12.50 %, 20.0 s: other",
    ]
    assert more == "For details: goodput disruptions -"


def test_failed_gate_reports_a_known_cause() -> None:
    folder = ROOT / "tests" / "causes" / "examples" / "02-killed-by-the-kernel"
    (case,) = junit(goodput_cli.analyze(folder, thresholds=["goodput<99"])).iter("testcase")
    (why,) = (line for line in (case.findtext("failure") or "").splitlines() if line.startswith("Disruption 1: "))
    assert "rank 10, node-02, host_oom: `Out of memory: Killed process 4242 (python)" in why
    assert f"({folder / 'dmesg-node-02.log'}:1). " in why


def test_cause_is_reported_without_a_gate() -> None:
    suite = junit(goodput_cli.analyze(ROOT / "tests" / "causes" / "examples" / "07-next-start-fails"))
    held = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert (held["cause.environment.disruptions"], held["cause.unknown.disruptions"]) == ("1", "1")
    (why,) = [line for line in (suite.findtext("system-out") or "").splitlines() if line.startswith("Disruption")]
    assert why.startswith("Disruption 2: environment: `ModuleNotFoundError: No module named 'apex'` (")
    nobody = junit(goodput_cli.analyze(ROOT / "tests" / "causes" / "examples" / "06-caught"))
    assert not [one for one in nobody.iter("property") if "cause" in one.attrib["name"]]
    assert "Disruption" not in (nobody.findtext("system-out") or "")


def test_properties_of_the_suite_have_the_figures() -> None:
    held = {one.attrib["name"]: one.attrib["value"] for one in junit(hostile()).iter("property")}
    assert held["goodput.seconds"] == "82561.123456788"
    assert held["badput.training_slowdown.seconds"] == "-1500"
    assert held["window.excluded_seconds"] == "60"
    assert held["not_recorded"] == "queued"
    seconds = [float(value) for name, value in held.items() if re.fullmatch(r"(goodput|badput\..*)\.seconds", name)]
    assert sum(seconds) == pytest.approx(float(held["window.seconds"]) - 60)


@pytest.mark.parametrize("text", EVIL)
def test_junit_of_any_analysis_is_valid_and_shows_it(text: str) -> None:
    suite = junit(evil(text))
    assert len(list(suite.iter("testcase"))) == 1
    assert suite.tag == "testsuite"
    written = render("junit", evil(text))
    assert all(char.isprintable() or char == "\n" for char in written)


@given(st.text(max_size=40))
def test_junit_of_any_text_is_well_formed(text: str) -> None:
    (suite,) = ElementTree.fromstring(render("junit", evil("x" + text)))
    assert [case.tag for case in suite] == ["properties", "testcase", "system-out", "system-err"]
