"""The HTML report: the numbers of JSON, one file that loads nothing, and log text that is only text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.phrases import threshold_limit, threshold_value, threshold_verdict
from goodput_cli.analysis.threshold import Threshold
from goodput_cli.cli.main import run
from goodput_cli.report.base import Page, format_of, is_binary, load_renderer
from goodput_cli.report.html import drawing_process
from goodput_cli.report.html.analysis import render
from goodput_cli.report.html.drawing_process import VERSION
from goodput_cli.report.html.page import library
from goodput_cli.vocabulary.categories import Category, ended_words, short_title, title
from goodput_cli.vocabulary.text import duration, percent, safe, seconds_text
from tests.support.answers import HOSTILE, json_of, read_page
from tests.support.answers import PageElement as Element
from tests.support.logs import Recorder

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "sample_logs"
PRETRAIN = SAMPLES / "llm-pretrain.jsonl"
THRESHOLDS = ("goodput<80", "disruptions>3", "queued>1h", "step_stall>10%")
HOSTILE_NAMES = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd|' /C calc'!A0", "{{7*7}}", "</script><!--",
    "\u202egnp.exe", "\x1b[31mred", "${alert(1)}", "javascript:alert(1)", "N" * 10_000, "\u2028line", HOSTILE,
)  # fmt: skip
Output = pytest.CaptureFixture[str]


@cache
def analysis_of(name: str) -> Analysis:
    question: dict[str, Any] = {"thresholds": THRESHOLDS, "window": ["30m"]} if name.startswith("llm") else {}
    return goodput_cli.analyze(SAMPLES / name, **question)


@cache
def page_of(name: str) -> Element:
    return read_page(render(analysis_of(name), Page()))


samples = pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.jsonl")))


def section(page: Element, name: str) -> Element:
    return next(one for one in page.all("section") if one.attributes.get("aria-labelledby") == name)


@samples
def test_every_category_agrees_with_json(name: str) -> None:
    value = json_of(analysis_of(name))
    rows = {row[0]: row[1:4] for row in section(page_of(name), "where").all("table")[0].rows()}
    for amount in (*value["badput"], {"category": "productive", "label": None} | value["goodput"]):
        name = short_title(amount["category"], amount["label"])
        assert rows.pop("goodput" if name == "productive" else name) == [
            percent(amount["percent"]),
            duration(amount["ns"]),
            f"{amount['seconds']:.1f}",
        ]
    whole = value["window"]["ns"]
    assert rows == {"wall clock": ["100.00 %", duration(whole), f"{whole / 1e9:.1f}"]}


@samples
def test_headline_agrees_with_json(name: str) -> None:
    value, page = json_of(analysis_of(name)), page_of(name)
    assert page.all("h1")[0].text == value["job"]["name"]
    share = percent(value["goodput"]["percent"])
    assert page.all("title")[0].text == f"Goodput of {value['job']['name']}: {share}"
    headline = page.all("section")[0]
    assert headline.text.startswith(share)
    facts = dict(headline.pairs())
    assert (facts["attempts"], facts["disruptions"]) == (
        str(value["job"]["attempts"]),
        str(value["job"]["disruptions"]),
    )


@samples
def test_every_disruption_agrees_with_json(name: str) -> None:
    value, part = json_of(analysis_of(name)), section(page_of(name), "disruptions")
    shown = part.all("details")
    assert len(shown) == len(value["disruptions"])
    for one, row in zip(shown, value["disruptions"], strict=True):
        facts = one.pairs()
        assert dict(facts)["last log activity"] in (row["last_sign_of_life"], row["evidence"]["last_sign_of_life"])
        known = {text for _, text in facts}
        exact = {value.attributes.get("title"): value.text for value in one.all("dd")}
        for key in ("wasted", "downtime", "undetermined", "queued", "restart", "lost", "regained_after"):
            seconds = row[f"{key}_seconds"]
            ns = None if seconds is None else round(seconds * 1e9)
            assert ns is None or exact[f"{seconds_text(ns)} s"] == duration(ns)
        assert {row["next_start"], row["next_up"], *row["died_between"]} <= known
        assert {place for place in row["evidence"].values() if place} <= known
        assert f"Disruption {row['number']}: attempt {row['attempt']}, {ended_words(row['ended'])}" in one.text


def test_thresholds_steps_and_windows_agree_with_json() -> None:
    analysis, page = analysis_of(PRETRAIN.name), page_of(PRETRAIN.name)
    value = json_of(analysis)
    wanted = [
        [one.expression, threshold_verdict(one), threshold_value(one), threshold_limit(one)]
        for one in analysis.thresholds
    ]
    assert section(page, "thresholds").all("table")[0].rows() == wanted
    steps = section(page, "step-time").text
    assert f"{value['steps']['count']} step times" in steps
    assert all(
        f"{name} {duration(round(value['steps'][f'{name}_seconds'] * 1e9))}" in steps
        for name in ("ideal", "mean", "median", "p90", "p99")
    )
    windows = section(page, "over-time").all("table")[0].rows()
    assert [row[1] for row in windows] == [percent(row["goodput_percent"]) for row in value["rolling"]]
    diagnostics = section(page, "diagnostics")
    assert [one.all("code")[0].text for one in diagnostics.all("article")] == [
        one["code"] for one in value["diagnostics"]
    ]
    assert dict(page.all("section")[0].pairs())["saves"].startswith(f"{value['saves']['count']} (")
    beside = dict(section(page, "where").pairs())
    assert beside["not recorded (unknown, not zero)"] == ", ".join(map(title, value["not_recorded"]))
    assert percent(100 * value["elastic"]["stepping_slice_efficiency"]) in beside["slices"]


def test_every_category_is_defined_as_in_the_rules() -> None:
    meanings = {category.id: category.row.meaning for category in Category}
    rules = (ROOT / "docs" / "accounting.md").read_text(encoding="utf-8")
    table = rules[rules.index("## 2. Categories") : rules.index("Not part of the ledger")]
    found = {}
    for names, meaning in re.findall(r"^\| (`.*?) \| (.*?) \|$", table, re.MULTILINE):
        found.update({name: meaning.replace("`", "") for name in re.findall(r"`(\w+)`", names)})
    assert found == meanings
    defined = dict(section(page_of(PRETRAIN.name), "definitions").pairs())
    assert {name: defined[title(name)] for name in meanings} == meanings


@samples
def test_page_is_self_contained_and_accessible(name: str) -> None:
    text, page = render(analysis_of(name), Page()), page_of(name)
    names = [element.name for element in page.every()]
    assert [names.count(one) for one in ("h1", "main", "nav", "header", "footer", "title")] == [1] * 6
    assert page.all("html")[0].attributes["lang"] == "en"
    for table in page.all("table"):
        assert table.all("caption")[0].text
        assert all(cell.attributes.get("scope") in ("col", "row") for cell in table.all("th"))
    identities = [one.attributes["id"] for one in page.every() if "id" in one.attributes]
    assert len(identities) == len(set(identities))
    for link in page.all("a"):
        target = link.attributes["href"] or ""
        assert target.startswith("#")
        assert target[1:] in identities
    levels = [int(one.name[1]) for one in page.every() if re.fullmatch("h[1-6]", one.name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    loads = [one for one in page.every() if {"src", "srcset", "action", "formaction", "ping"} & set(one.attributes)]
    assert loads == []
    policy = next(one for one in page.all("meta") if one.attributes.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy.attributes["content"])
    assert "unsafe-eval" not in text.split("</head>")[0]


def test_charts_are_drawn_and_described() -> None:
    figures = page_of(PRETRAIN.name).all("figure")
    assert [one.attributes["id"] for one in figures] == ["progress", "goodput-over-time", "step-times"]
    for figure in figures:
        still = figure.all("div")[0]
        assert still.attributes["role"] == "img"
        assert still.attributes["aria-label"] == figure.all("figcaption")[0].text
        assert [path for path in still.all("path") if path.attributes.get("class") != "background"]
    lanes = [one.text for one in figures[0].all("text")]
    assert {"wasted progress", "recovery", "saves completed", "kept training", "1", "4"} <= set(lanes)


def test_script_data_are_columns_of_equal_length() -> None:
    page = page_of(PRETRAIN.name)
    data = json.loads(page.by_id("data").text)
    assert set(data["charts"]) == {"progress", "goodput-over-time", "step-times"}
    assert all(len({len(column) for column in table.values()}) == 1 for table in data["tables"].values())
    assert data["tables"]["disruptions"]["number"] == [1, 2, 3, 4, 5]


def hostile_log(folder: Path, name: str) -> Path:
    """Write a job in which every text is `name`, with a disruption, a label and an invalid line."""
    log = Recorder().start(0).steps(0, 9, 10, 10).custom(205, 212, name).start(150).steps(6, 19, 160, 10).end(400)
    log.lines = [json.dumps(json.loads(line) | {"job_name": name}) for line in log.lines]
    log.lines.append("{" + name.replace("\n", " "))
    path = folder / f"{re.sub(r'[^<>=;(){}$ a-z]', '', name)[:40] or 'log'}.jsonl"
    return log.write(path)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name)[:20])
def test_hostile_names_are_text(name: str, harmless: Element, tmp_path: Path) -> None:
    hostile = read_page(written(hostile_log(tmp_path, name), name))
    for active in ("script", "style", "link", "meta", "section", "figure", "table", "tr", "svg"):
        assert len(hostile.all(active)) == len(harmless.all(active))
    cut = threshold_on(name) != f"custom:{name.upper()}>50%"  # The script then requests no missing row.
    assert len(hostile.all("a")) + cut == len(harmless.all("a"))
    assert names_in(hostile) <= names_in(harmless) | {"details", "summary", "class"}
    assert hostile.all("h1")[0].text == safe(name)
    labels = [row[0] for row in section(hostile, "where").all("table")[0].rows()]
    assert f"custom:{safe(name.upper())}" in labels
    assert safe(threshold_on(name)) in section(hostile, "thresholds").text


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Element:
    """Return the page of the same log with harmless names."""
    return read_page(written(hostile_log(tmp_path_factory.mktemp("harmless"), "harmless"), "harmless"))


def threshold_on(name: str) -> str:
    """Return a threshold, cut to the maximum length of expressions."""
    return f"custom:{name.upper()[:900]}>50%"


def written(log: Path, name: str) -> str:
    analysis = goodput_cli.analyze(log)
    threshold = Threshold(threshold_on(name), False, True, 60.0, 50.0, "s")
    page = render(replace(analysis, thresholds=(threshold,)), Page())
    assert not any(char in page for char in "\x1b\u202e\u2028\u200b")
    return page


def names_in(page: Element) -> set[str]:
    """Return the names of all elements and attributes."""
    return {name for element in page.every() for name in (element.name, *element.attributes)}


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_main_picture_is_a_complete_file(kind: str) -> None:
    assert format_of(f"picture.{kind}") == kind
    assert is_binary(kind) == (kind == "png")
    drawn = load_renderer(kind)(analysis_of(PRETRAIN.name), Page())
    if isinstance(drawn, bytes):
        assert drawn.startswith(b"\x89PNG\r\n")
    else:
        picture = read_page(drawn)
        assert "llm-pretrain-7b: goodput 70.43 %" in picture.text
        assert not picture.all("script")


def test_picture_shows_hostile_names_as_text(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>&\x1b"
    drawn = load_renderer("svg")(goodput_cli.analyze(hostile_log(tmp_path, name)), Page())
    assert isinstance(drawn, str)
    assert f"{safe(name)}: goodput" in read_page(drawn).text
    assert "<script" not in drawn


def test_million_steps_add_less_than_two_megabytes(tmp_path: Path) -> None:
    """The test counts a log with as many columns: 60 000 steps fill the same buckets as a million."""
    log = Recorder()
    at, number = 0.0, 0
    for attempt in range(600):
        log.start(at)
        for step in range(100):
            log.add(step_count=number + step, step_start_time=1_767_225_600 + at + 5 + step + (step % 13) / 10)
        log.custom(at + 110, at + 112, "EVAL")
        at, number = at + 130 + attempt % 7, number + 90
    page = render(goodput_cli.analyze(log.write(tmp_path / "long.jsonl")), Page())
    assert len(page.encode()) - len(library(VERSION).encode()) < 2_000_000


def test_same_log_gives_the_same_page() -> None:
    analysis = goodput_cli.analyze(SAMPLES / "primer-50-percent.jsonl")
    first = render(analysis, Page())
    drawing_process._drawn.cache_clear()  # type: ignore[attr-defined]  # see tests/conftest.py
    assert render(analysis, Page()) == first


def test_report_is_written_next_to_other_formats(tmp_path: Path, capsys: Output) -> None:
    targets = [tmp_path / f"report.{ending}" for ending in ("html", "svg", "png", "json")]
    outputs = [part for target in targets for part in ("-o", str(target))]
    assert run(["analyze", str(PRETRAIN), "-q", *outputs]) == 0
    assert capsys.readouterr().out == ""
    assert all(target.stat().st_size > 1000 for target in targets)
