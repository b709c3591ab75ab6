"""Formats for CI, and the Markdown of a step summary, which can contain hostile text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import goodput_cli
from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, parse_threshold
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.report.base import format_of, load_sheet_renderer
from tests.support.answers import (
    EVIL,
    HOSTILE,
    MINUTE,
    SAMPLES,
    all_verdicts,
    amount,
    check_golden,
    evil,
    hostile,
    primer,
    render,
)

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("name", "analysis"), [("primer", primer()), ("hostile", hostile()), ("verdicts", all_verdicts())]
)
def test_documents_are_as_expected(name: str, analysis: Analysis) -> None:
    check_golden(f"{name}.xml", render("junit", analysis))
    check_golden(f"{name}.prom", render("openmetrics", analysis))


def test_summary_of_a_gate_is_as_expected() -> None:
    analysis = goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl", thresholds=["goodput<80", "queued>1h"], window="2h")
    text = render("markdown", analysis).replace(str(SAMPLES.parent).replace("_", "\\_"), "…")
    text = text.replace(str(SAMPLES.parent), "…")
    check_golden("summary.md", text)


@pytest.mark.parametrize(
    ("threshold", "title"),
    [
        ("goodput<80", "FAILED: Goodput of llm-pretrain-7b: 70.43 % (goodput&lt;80: limit 80 %)"),
        ("queued>1h", "INCONCLUSIVE: Goodput of llm-pretrain-7b: 70.43 % (queued&gt;1h: no data in the log)"),
        ("goodput<70", "Goodput of llm-pretrain-7b: 70.43 % (1 threshold passed)"),
    ],
)
def test_title_has_the_result_of_the_gate(threshold: str, title: str) -> None:
    analysis = goodput_cli.analyze(SAMPLES / "llm-pretrain.jsonl", thresholds=[threshold])
    assert render("markdown", analysis).startswith(f"# {title}\n")


class Tags(HTMLParser):
    """The tags of a page that can run code, and the balance of its folded parts."""

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
    """Return the document as GitHub's Markdown renders it."""
    seen = Tags()
    seen.feed(MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(document))
    assert seen.folds == 0
    assert seen.tags <= OURS
    return seen


@pytest.mark.parametrize("text", EVIL)
def test_summary_contains_no_active_elements(text: str) -> None:
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
def test_summary_is_under_a_megabyte_and_lists_omissions(char: str) -> None:
    """The analysis has far more of everything than fits, in characters that need the most space."""
    text = char * 1000
    rows = tuple(amount("custom_badput_events", MINUTE, 10**9 * MINUTE, f"{i}{text}") for i in range(2000))
    found = [Diagnostic("x", "warning", f"{i}{text}", 9, (text, text, text)) for i in range(200)]
    analysis = primer(
        job=replace(primer().job, name=text),
        badput=rows,
        diagnostics=(*found, Diagnostic("last", "error", "the worst", 1, ())),
        thresholds=evaluate([parse_threshold(f"custom:{i}{text[:900]}<1") for i in range(200)], primer()),
    )
    document = render("markdown", analysis)
    assert 90_000 < len(document.encode()) < MEGABYTE
    assert "Shown: the 100 largest of 2001 rows; `--format json` lists all." in document
    assert "100 more thresholds" in document
    assert "151 more diagnostics" in document
    assert "| 1901 more (sum) |  | 31 h 41 min |  |" in document
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
    assert "29 later disruptions not shown; `--format json` lists all." in text
    page_of(text)


def test_suffix_selects_the_format() -> None:
    endings = {"a.xml": "junit", "b.junit.xml": "junit", "c.prom": "openmetrics", "d.om": "openmetrics"}
    assert {path: format_of(path) for path in endings} == endings


@pytest.mark.parametrize("name", ["junit", "openmetrics"])
def test_other_commands_reject_summary_formats(name: str) -> None:
    with pytest.raises(
        UsageError, match=f"the format '{name}' is not available for this command; use one of table, json"
    ):
        load_sheet_renderer(name)


def test_hostile_text_stays_legible() -> None:
    assert "\\x1b[31mred" in render("junit", hostile())
    assert "\\\\x1b[31mred" in render("openmetrics", hostile())
    assert "\x1b" in HOSTILE
    assert parse_fail_under("85").limit == 85
