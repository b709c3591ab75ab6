"""JUnit: a test case per threshold, valid whatever text stands in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.analyses import hostile, primer
from tests.support.gates import EVIL, all_verdicts, evil, junit, render


def outcome(case: Element) -> tuple[str, str, str]:
    (inside,) = list(case) or [Element("passed")]
    return case.attrib["name"], inside.tag, inside.get("message", "")


def test_a_test_case_per_threshold() -> None:
    suite = junit(all_verdicts())
    nothing = "the log holds nothing to judge it by"
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


def test_without_thresholds_one_test_case_passes_with_the_headline() -> None:
    (case,) = junit(primer()).iter("testcase")
    assert outcome(case) == ("goodput 50.00 %, 1 h 40 min of 3 h 20 min", "passed", "")


def test_the_properties_of_the_suite_hold_the_figures() -> None:
    held = {one.attrib["name"]: one.attrib["value"] for one in junit(hostile()).iter("property")}
    assert held["goodput.seconds"] == "82561.123456788"
    assert held["badput.training_slowdown.seconds"] == "-1500"
    assert held["window.excluded_seconds"] == "60"
    assert held["not_recorded"] == "queued"
    seconds = [float(value) for name, value in held.items() if re.fullmatch(r"(goodput|badput\..*)\.seconds", name)]
    assert sum(seconds) == pytest.approx(float(held["window.seconds"]) - 60)


@pytest.mark.parametrize("text", EVIL)
def test_junit_of_anything_is_valid_and_shows_it(text: str) -> None:
    suite = junit(evil(text))
    assert len(list(suite.iter("testcase"))) == 1
    assert suite.tag == "testsuite"
    written = render("junit", evil(text))
    assert all(char.isprintable() or char == "\n" for char in written)


@given(st.text(max_size=40))
def test_junit_of_any_text_is_well_formed(text: str) -> None:
    (suite,) = ElementTree.fromstring(render("junit", evil("x" + text)))
    assert [case.tag for case in suite] == ["properties", "testcase", "system-out", "system-err"]
