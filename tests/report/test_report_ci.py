"""Formats for CI and monitoring: JUnit, OpenMetrics, and the Markdown of a step summary."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

import goodput_cli
from goodput_cli.analysis.goodput.thresholds import evaluate, parse_fail_under, parse_threshold
from goodput_cli.analysis.results import Analysis, AtRisk, Elastic, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page, format_of, load_renderer, load_sheet_renderer
from tests.support.analyses import BASE, HOSTILE, MINUTE, amount, hostile, primer
from tests.support.golden_files import check_golden

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"
MEGABYTE = 1_000_000
EVIL = [
    "<script>alert(1)</script>", "]]>", "=cmd|'/C calc'!A0", "[red]x[/red]", "\x1b[31m", "\u202egnp.exe", "a\nb\r\nc",
    "\ud800", "\x00", "\ufffe", '"}\n# EOF\nevil 1', "\\", "</details></testsuite>", "```\n# x", "&amp;", "|",
    "L" * 10_000,
]  # fmt: skip


def render(name: str, analysis: Analysis) -> str:
    text = load_renderer(name)(analysis, Page())
    assert isinstance(text, str)
    return text


def gated(*fail_if: str, warn_if: tuple[str, ...] = (), analysis: Analysis | None = None) -> Analysis:
    analysis = analysis or primer(not_recorded=("queued", "training_prep"))
    asked = [*map(parse_threshold, fail_if), *(parse_threshold(text, fails=False) for text in warn_if)]
    return replace(analysis, thresholds=evaluate(asked, analysis))


def all_verdicts() -> Analysis:
    return gated("goodput<90", "disruptions>3", "queued>1h", warn_if=("goodput<60", "goodput<10", "queued>5%"))


def evil(text: str) -> Analysis:
    """The text wherever a log or a person can put it."""
    total = 200 * MINUTE
    rows = (amount("custom_badput_events", 100 * MINUTE, total, text), amount("other", MINUTE, total, text + "2"))
    job = replace(primer().job, name=text)
    found = (Diagnostic("x", "warning", text, 1, (text,)),)
    asked = evaluate([parse_threshold(f"custom:x{text}x>5", fails=True)], primer())
    return primer(job=job, badput=rows, diagnostics=found, thresholds=asked)


@pytest.mark.parametrize(
    ("name", "analysis"), [("primer", primer()), ("hostile", hostile()), ("verdicts", all_verdicts())]
)
def test_documents_as_people_see_them(name: str, analysis: Analysis) -> None:
    check_golden(f"{name}.xml", render("junit", analysis))
    check_golden(f"{name}.prom", render("openmetrics", analysis))


def test_the_summary_of_a_gate_as_people_see_it() -> None:
    analysis = goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl", thresholds=["goodput<80", "queued>1h"], window="2h")
    text = render("markdown", analysis).replace(str(SAMPLES.parent).replace("_", "\\_"), "…")
    check_golden("summary.md", text)


@cache
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")


def junit(analysis: Analysis) -> Element:
    """The suite of a valid document."""
    text = render("junit", analysis)
    schema().validate(text)
    (suite,) = ElementTree.fromstring(text)
    return suite


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


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str, parse: Any) -> Samples:
    """(name, labels) -> value of every sample; no series twice."""
    found = [
        ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
        for family in parse(text)
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def metrics(analysis: Analysis) -> Samples:
    """The samples, which both formats must read in the same way: the collector of the node exporter reads the older."""
    text = render("openmetrics", analysis)
    assert text.endswith("\n# EOF\n")
    read = samples(text, parse_openmetrics)
    assert read == samples(text, parse_text)
    return read


def sample(found: Samples, name: str, **labels: str) -> float:
    """The value of the one series with these labels."""
    (value,) = [
        value for (known, pairs), value in found.items() if known == name and labels.items() <= dict(pairs).items()
    ]
    return value


def test_metrics_hold_the_figures() -> None:
    found = metrics(hostile())
    assert sample(found, "goodput_ratio") == pytest.approx(hostile().goodput_percent / 100)
    assert sample(found, "goodput_category_seconds", category="productive") == 82561.123456788
    assert sample(found, "goodput_category_seconds", label="=HYPERLINK(1)") == 4000
    assert sample(found, "goodput_window_start_timestamp_seconds") == BASE / 1e9
    assert sample(found, "goodput_excluded_seconds") == 60
    assert sample(found, "goodput_step_time_seconds", statistic="p99") == 12
    assert sample(found, "goodput_at_risk_seconds") == 30
    seconds = [value for (name, _), value in found.items() if name == "goodput_category_seconds"]
    assert sum(seconds) == pytest.approx(sample(found, "goodput_window_seconds"))


def test_what_is_not_recorded_has_no_series_and_what_is_zero_has_one() -> None:
    found = metrics(primer(not_recorded=("queued",)))
    categories = {dict(pairs).get("category") for name, pairs in found if name == "goodput_category_seconds"}
    assert "queued" not in categories
    assert "excluded" not in categories
    assert sample(found, "goodput_category_seconds", category="step_stall") == 0
    names = {name for name, _ in found}
    assert not names & {"goodput_at_risk_seconds", "goodput_mtbf_seconds", "goodput_stepping_slices_ratio"}


def test_every_figure_has_its_metric() -> None:
    analysis = goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl")
    found = metrics(replace(analysis, at_risk=AtRisk(2.5, 10**9), elastic=Elastic(0.5, 0.75, 0, 30.0)))
    assert sample(found, "goodput_at_risk_steps") == 2.5
    assert sample(found, "goodput_available_slices_ratio") == 0.75
    assert sample(found, "goodput_mean_downtime_seconds") == pytest.approx(215.3677206)
    assert sample(found, "goodput_disruptions") == 5


def test_thresholds_as_metrics() -> None:
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
def test_metrics_of_anything_can_be_read(text: str) -> None:
    found = metrics(evil(text))
    assert {name for name, _ in found} == {name for name, _ in metrics(evil("x"))}
    assert all(char.isprintable() or char == "\n" for char in render("openmetrics", evil(text)))


@given(st.text(max_size=40))
def test_metrics_of_any_text_can_be_read(text: str) -> None:
    metrics(evil("x" + text))


def test_series_that_look_the_same_are_one() -> None:
    total = 200 * MINUTE
    rows = tuple(amount("custom_badput_events", MINUTE, total, label) for label in ("A\n", "A\\n"))
    twice = gated("goodput<90", "goodput<90", analysis=primer(badput=rows))
    assert sample(metrics(twice), "goodput_category_seconds", label="A\\n") == 120


def test_an_empty_window_has_no_ratio() -> None:
    empty = primer(window=Window(BASE, BASE, 0), goodput=amount("productive", 0, 0), badput=())
    assert "goodput_ratio" not in {name for name, _ in metrics(empty)}
    junit(empty)


class Tags(HTMLParser):
    """What acts in a page: its tags, and whether every folded part ends."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.folds = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.folds += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.folds -= tag == "details"


OURS = set("h1 p strong pre code table thead tbody tr th td ul li details summary".split())


def page_of(document: str) -> Tags:
    """The document as a reader of GitHub's Markdown sees it."""
    seen = Tags()
    seen.feed(MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(document))
    assert seen.folds == 0
    assert seen.tags <= OURS
    return seen


@pytest.mark.parametrize("text", EVIL)
def test_nothing_acts_in_a_summary(text: str) -> None:
    seen = page_of(render("markdown", evil(text)))
    assert {"details", "summary", "table", "h1"} <= seen.tags


@given(st.text(max_size=40))
def test_no_text_acts_in_a_summary(text: str) -> None:
    page_of(render("markdown", evil("x" + text)))


def test_summaries_can_be_appended() -> None:
    one = render("markdown", evil("x"))
    document = MarkdownIt("gfm-like", {"linkify": False}).render(one + one)
    assert document.count("<h1>") == 2


@pytest.mark.parametrize("char", ["&", "\U0001f4a9", "\U000e0001"], ids=["entity", "wide", "unseen"])
def test_a_summary_is_under_a_megabyte_and_says_what_it_leaves_out(char: str) -> None:
    """Far more of everything than a page can hold, in characters that need the most room."""
    text = char * 1000
    rows = tuple(amount("custom_badput_events", MINUTE, 10**9 * MINUTE, f"{i}{text}") for i in range(2000))
    found = [Diagnostic("x", "warning", f"{i}{text}", 9, (text, text, text)) for i in range(200)]
    analysis = primer(
        job=replace(primer().job, name=text),
        badput=rows,
        diagnostics=(*found, Diagnostic("last", "error", "the worst", 1, ())),
        thresholds=evaluate([parse_threshold(f"custom:{i}{text}<1") for i in range(200)], primer()),
    )
    document = render("markdown", analysis)
    assert 90_000 < len(document.encode()) < MEGABYTE
    assert "Of 2001 rows the 100 largest are shown: the whole list is in the JSON (`--format json`)." in document
    assert "100 more thresholds" in document
    assert "151 more diagnostics" in document
    assert "| 1901 more, together |  | 114060 | 31 h 41 min |  |" in document
    assert "the worst" in document


def test_many_disruptions_are_cut_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "x.jsonl"
    lines = [
        f'{{"job_name": "x", "{what}": {at}.0{more}}}'
        for i in range(130)
        for what, at, more in (
            ("job_start_time", 100 * i, ""),
            ("step_start_time", 100 * i + 10, f', "step_count": {i}'),
            ("step_start_time", 100 * i + 20, f', "step_count": {i + 1}'),
        )
    ]
    log.write_text("\n".join(lines))
    text = render("markdown", goodput_cli.analyze(log))
    assert "<details><summary>129 disruptions</summary>" in text
    assert "29 more disruptions, later ones: the whole list is in the JSON" in text
    page_of(text)


def test_endings() -> None:
    endings = {"a.xml": "junit", "b.junit.xml": "junit", "c.prom": "openmetrics", "d.om": "openmetrics"}
    assert {path: format_of(path) for path in endings} == endings


@pytest.mark.parametrize("name", ["junit", "openmetrics"])
def test_other_commands_say_that_they_do_not_write_them(name: str) -> None:
    with pytest.raises(UsageError, match=f"the format '{name}' is for analyze"):
        load_sheet_renderer(name)


def test_hostile_text_stays_legible() -> None:
    assert "\\x1b[31mred" in render("junit", hostile())
    assert "\\\\x1b[31mred" in render("openmetrics", hostile())
    assert "\x1b" in HOSTILE
    assert parse_fail_under("85").limit == 85
