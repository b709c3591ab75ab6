"""All formats: the figures are complete and agree, and log text is only text."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import (
    attempts_text,
    diagnostic_lines,
    kept_text,
    progress_text,
    threshold_lines,
    threshold_reason,
)
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, parse_threshold
from goodput_cli.analysis.results import CategoryTimes, Window
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page, format_names, format_of, load_renderer
from goodput_cli.report.csv import text_cell
from goodput_cli.report.markdown import escape
from goodput_cli.vocabulary.categories import CATEGORIES, title
from tests.support.answers import BASE, MINUTE, amount, check_answer, check_golden, hostile, primer, schema
from tests.support.answers import as_table as render_table


def render(name: str, analysis: Analysis, **page: Any) -> str:
    text = load_renderer(name)(analysis, Page(**page))
    assert isinstance(text, str)
    return text


def as_json(analysis: Analysis) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(render("json", analysis))
    check_answer(value, "analysis")
    return value


def failing() -> Analysis:
    total = 200 * MINUTE
    low = replace(primer(), goodput=amount("productive", total * 849_996 // 1_000_000, total), badput=CategoryTimes())
    expressions = [parse_fail_under("85"), parse_threshold("queued>1h"), parse_threshold("disruptions>3")]
    low = replace(low, not_recorded=("queued",))
    return replace(low, thresholds=evaluate(expressions, low))


@pytest.mark.parametrize(
    ("name", "analysis", "page"),
    [
        ("table-primer.txt", primer(), Page()),
        ("table-primer-ascii.txt", primer(), Page(unicode=False)),
        ("table-primer-wide.txt", primer(), Page(width=140)),
        ("table-primer-colour.txt", primer(), Page(colour=True)),
        ("table-hostile.txt", hostile(), Page()),
        ("table-failing.txt", failing(), Page()),
    ],
)
def test_tables_are_as_expected(name: str, analysis: Analysis, page: Page) -> None:
    check_golden(name, render_table(analysis, page))


@pytest.mark.parametrize(("name", "analysis"), [("primer", primer()), ("hostile", hostile()), ("failing", failing())])
def test_documents_are_as_expected(name: str, analysis: Analysis) -> None:
    check_golden(f"{name}.md", render("markdown", analysis))
    check_golden(f"{name}.csv", render("csv", analysis))
    check_golden(f"{name}.json", render("json", analysis))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140, 160])
@pytest.mark.parametrize("analysis", [primer(), hostile()])
def test_no_line_is_wider_than_the_page(width: int, analysis: Analysis) -> None:
    lines = render("table", analysis, width=width).splitlines()
    assert max(cell_len(line) for line in lines if "goodput " not in line) <= max(width, 40)  # A command is never cut.
    assert not any(line.endswith(" ") for line in lines)


def test_plain_table_is_ascii_without_escapes() -> None:
    text = render("table", primer(), unicode=False)
    assert text.isascii()
    assert "\x1b" not in text
    assert "\x1b" in render("table", primer(), colour=True)


def test_titles_of_categories_are_in_the_table() -> None:
    total = 1000 * MINUTE
    rows = tuple(amount(name, MINUTE, total) for name in CATEGORIES if name not in ("productive", "excluded"))
    text = render("table", primer(badput=rows))
    titles = [title(name) for name in CATEGORIES]
    assert all(name in text for name in titles if name != "excluded")
    assert len(set(titles)) == len(titles)
    assert max(map(len, titles)) <= 26


def test_table_shows_why_a_threshold_failed() -> None:
    text = render("table", failing())
    assert "84.9996 %" in text
    assert list(threshold_lines(failing().thresholds)) == [
        "threshold goodput<85: FAILED (84.9996 %, limit 85 %)",
        "threshold queued>1h: inconclusive (no data in the log)",
        "threshold disruptions>3: passed (1, limit 3)",
    ]
    assert len(list(threshold_lines(failing().thresholds, with_passes=False))) == 2


def test_fractional_counts_show_their_side_of_the_limit() -> None:
    analysis = primer(job=replace(primer().job, kept_steps=49.9999999))
    (judged,) = evaluate([parse_threshold("kept_steps<50")], analysis)
    assert threshold_reason(judged) == "49.9999999, limit 50"


def test_reference_from_the_log_shows_how_to_pin_it() -> None:
    for name in ("table", "markdown"):
        assert "--reference-step-time 2.5" in render(name, hostile())
        assert "auto" in render(name, hostile())
        assert "pin it" not in render(name, primer())


def test_numbers_are_never_shortened_on_a_narrow_page() -> None:
    narrow = render("table", primer(), width=60)
    assert "Effective Computation Time (hours)" in narrow
    wide = [cell.strip() for line in render("table", primer(), width=100).split("\n") for cell in line.split("  ")]
    figures = [cell for cell in wide if cell.replace(".", "").removesuffix(" %").isdigit()]
    assert figures
    assert all(figure in narrow for figure in figures)


def test_undetermined_loss_has_bounds() -> None:
    total = 200 * MINUTE
    rows = (
        amount("wasted_progress_from_disruption", 10 * MINUTE, total),
        amount("disruption_undetermined", MINUTE, total),
    )
    assert "between 10 min 00 s and 11 min 00 s" in render("table", primer(badput=rows))


def test_json_adds_up_and_has_every_key() -> None:
    value = as_json(hostile())
    window = value["window"]
    assert value["goodput"]["ns"] + sum(row["ns"] for row in value["badput"]) == window["ns"] - window["excluded_ns"]
    assert value["job"]["name"] == hostile().job.name
    assert max(len(row["label"] or "") for row in value["badput"]) == 10_000
    assert value["thresholds"] == []
    declared = schema()["$defs"]["analysis_answer"]
    always = (*declared["required"], "rules", "bounds", "hung_now", "capacity")  # Answers of 0.2.0 have none.
    assert list(value) == [key for key in declared["properties"] if key in always]


def test_json_agrees_with_its_contract() -> None:
    value = as_json(primer(thresholds=evaluate([parse_threshold("goodput<90")], primer())))
    assert value["thresholds"] == [
        {
            "expression": "goodput<90",
            "met": True,
            "value": 50.0,
            "limit": 90.0,
            "unit": "%",
            "fails": True,
            "verdict": "failed",
            "hint": None,
        }
    ]
    assert value["goodput"] == {
        "seconds": 6000.0, "ns": 6_000_000_000_000, "percent": 50.0, "at_least_percent": 50.0, "at_most_percent": 50.0,
    }  # fmt: skip
    assert value["job"]["kept_steps"] == 50
    assert isinstance(value["job"]["kept_steps"], int)
    assert value["reference"]["step_difference"] == 50
    assert value["at_risk"] == {"steps": None, "seconds": None}


def test_json_never_contains_nan() -> None:
    empty = primer(window=Window(BASE, BASE, 0), goodput=amount("productive", 0, 0), badput=CategoryTimes())
    assert as_json(empty)["goodput"]["percent"] is None
    for name in ("table", "markdown", "csv"):
        assert "nan" not in render(name, empty)


@given(st.text(max_size=60))
def test_any_label_is_only_text(label: str) -> None:
    total = 200 * MINUTE
    rows = (amount("custom_badput_events", 100 * MINUTE, total, label),)
    analysis = primer(badput=rows, diagnostics=(Diagnostic("x", "warning", label, 1, (label,)),))
    as_json(analysis)
    table = list(csv.reader(io.StringIO(render("csv", analysis))))
    assert [len(line) for line in table] == [5, 5, 5]
    assert not table[2][1].startswith(("=", "+", "-", "@", "\t", "\r"))
    for name in ("table", "markdown"):
        assert all(char.isprintable() or char in "\n\u3000\xa0" or char.isspace() for char in render(name, analysis))
        assert "\x1b" not in render(name, analysis)
    assert len(list(diagnostic_lines(analysis.diagnostics))) <= 2


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\\t=1"), ("  =1", "'  =1"),
     ("\rx", "'\\rx"), ("eval", "eval"), ("a=b", "a=b")],
)  # fmt: skip
def test_no_cell_is_a_formula(text: str, cell: str) -> None:
    assert text_cell(text) == cell


def test_markdown_shows_exactly_the_text() -> None:
    escaped = escape("a|b `c` <img src=x> [l](http://e.vil) *x* _y_ www.e.vil ~~z~~ \n# t")
    assert re.search(r"(?<!\\)[|`<>*_\[\]~#]", escaped.replace("&lt;", "").replace("&gt;", "")) is None
    assert "http://" not in escaped
    assert "www.e" not in escaped
    assert "\n" not in escaped


def test_diagnostics_are_as_expected() -> None:
    found = hostile().diagnostics
    check_golden("diagnostics.txt", "\n".join(diagnostic_lines(found)) + "\n")
    check_golden("diagnostics-verbose.txt", "\n".join(diagnostic_lines(found, every_place=True)) + "\n")


def test_formats_are_selected_by_name_and_suffix() -> None:
    assert format_names()[:4] == ["table", "json", "csv", "markdown"]
    endings = {"a.json": "json", "b.CSV": "csv", "c.md": "markdown", "d.markdown": "markdown", "e.txt": "table"}
    assert {path: format_of(path) for path in endings} == endings
    for path in ("report", "report.xlsx", "report.", ".json", "-"):
        with pytest.raises(UsageError, match="unknown file extension"):
            format_of(path)
    with pytest.raises(UsageError, match="unknown format"):
        load_renderer("yaml")


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (0, "0 steps"), (0.004, "less than 0.1 steps"), (0.25, "about 0.2 steps"), (1, "1 step"),
        (2.005, "about 2 steps"), (2.5, "2.5 steps"), (799.518, "about 800 steps"), (3401, "3401 steps"),
    ],
)  # fmt: skip
def test_partial_steps_are_rounded_for_people(kept: float, text: str) -> None:
    analysis = primer()
    job = replace(analysis.job, kept_steps=kept, kept_range=None, end_ns=analysis.window.end_ns + 1)
    assert kept_text(replace(analysis, job=job), " steps") == text


def test_part_of_a_job_shows_its_attempts_and_no_later_end() -> None:
    analysis = primer()
    part = replace(analysis, window=replace(analysis.window, end_ns=analysis.window.end_ns - 1))
    assert (attempts_text(analysis), attempts_text(part)) == ("2 attempts", "2 attempts in the whole job")
    assert "terminated" in progress_text(analysis)
    assert "terminated" not in progress_text(part)
