"""First use of the library in a session: the display of an analysis, frames, and events as a source."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import goodput_cli
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render as html
from tests.support.answers import as_json
from tests.support.documents import ROOT
from tests.support.story import custom, end, start, step

NIGHT = ROOT / "sample_logs" / "llm-pretrain.jsonl"
NEXT = ROOT / "sample_logs" / "llm-pretrain-r2.jsonl"
ANALYSIS = goodput_cli.analyze(NIGHT)
RECORDS = [json.loads(line) for line in NIGHT.read_text().splitlines()]


def test_analysis_is_shown_in_a_few_lines() -> None:
    lines = repr(ANALYSIS).splitlines()
    assert lines[0] == "<Analysis of llm-pretrain-7b: goodput 70.43 %, 7 h 53 min of 11 h 11 min"
    assert "restored step 1400" in lines[3]
    assert len(lines) <= 9
    assert max(map(len, lines)) < 160


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.append(tag)


def test_notebook_shows_the_summary() -> None:
    cell = ANALYSIS._repr_html_()
    assert {*Tags(cell).tags} <= {"div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
    for words in ("goodput 70.43 %", "step 1503 hung for 25 min 08 s", "<td>wasted progress</td>"):
        assert words in cell


def test_notebook_runs_no_text_of_a_log() -> None:
    label = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    log = "\n".join([start(0), *(step(n, 10 * n) for n in range(200)), *custom(label, 200, 900), end(2000)])
    cell = goodput_cli.analyze("-", stdin=io.BytesIO(log.encode()))._repr_html_()
    assert "script" not in Tags(cell).tags
    assert "&lt;SCRIPT&gt;" in cell


def test_frames_have_rows_and_types() -> None:
    categories = ANALYSIS.to_frame()
    assert categories.ns.sum() == ANALYSIS.window.counted_ns
    assert categories.iloc[0].category == "productive"
    assert list(ANALYSIS.to_frame("insights").code)[:3] == ["unknown_saves", "older_checkpoint", "hang"]
    disruptions = ANALYSIS.disruptions.to_frame()
    assert list(disruptions.ended) == ["silent", "terminated", "silent", "silent", "slice_down"]
    assert list(disruptions.wasted_seconds) == [row.wasted_ns / 1e9 for row in ANALYSIS.disruptions]
    assert pd.isna(disruptions.last_step[2])
    assert str(disruptions.last_sign_of_life.dtype).startswith("datetime64[ns, UTC")
    assert len(ANALYSIS.to_frame("segments")) == len(ANALYSIS.segments)
    with pytest.raises(UsageError, match="use one of categories, insights"):
        ANALYSIS.to_frame("categorie")  # type: ignore[arg-type]


def test_no_disruptions_are_a_frame_with_columns() -> None:
    calm = goodput_cli.analyze(NIGHT, end="+1h").disruptions.to_frame()
    assert len(calm) == 0
    assert "wasted_seconds" in calm.columns


def test_dict_and_page_agree_with_the_command() -> None:
    assert ANALYSIS.to_dict() == json.loads(str(as_json(ANALYSIS, Page())))
    assert ANALYSIS.to_html() == html(ANALYSIS, Page())


def amounts(analysis: goodput_cli.Analysis) -> list[tuple[str, int]]:
    return [(row.name, row.ns) for row in (analysis.goodput, *analysis.badput)]


ANSWERS: list[tuple[str, Callable[[], Any], str, int]] = [
    (
        "Comparison",
        lambda: goodput_cli.compare(str(NIGHT), str(NEXT)),
        "llm-pretrain-7b-r2: inconclusive: 2.3 % less time per kept step",
        51,
    ),
    ("CheckReport", lambda: goodput_cli.check(NIGHT), "2 warnings, 3 infos", 5),
    ("Advice", lambda: goodput_cli.advise(NIGHT), "SAVE EVERY 50 STEPS", 11),
    ("JobList", lambda: goodput_cli.jobs([NIGHT, NEXT]), "2 jobs", 2),
    ("FleetReport", lambda: goodput_cli.fleet_report([NIGHT, NEXT]), "2 of 2 runs analyzed", 2),
]


@pytest.mark.parametrize(("name", "ask", "words", "rows"), ANSWERS, ids=[one[0] for one in ANSWERS])
def test_every_answer_has_a_display(name: str, ask: Callable[[], Any], words: str, rows: int) -> None:
    answer = ask()
    lines = repr(answer).splitlines()
    assert lines[0] == f"<{name}:"
    assert words in repr(answer)
    assert len(lines) <= 18
    assert max(map(len, lines)) <= 101
    assert words in answer._repr_html_()
    assert len(answer.to_frame()) == rows
    if name != "Advice":
        assert answer.to_dict()["schema_version"] == 2


def test_answer_runs_no_text_of_a_log() -> None:
    shown = goodput_cli.jobs([{"job_name": "<script>\x1b[31m", "job_start_time": 1.7e9}])  # type: ignore[list-item]
    assert "<script>" not in shown._repr_html_()
    assert "\x1b" not in repr(shown)


def test_contents_of_an_analysis_are_a_line_each() -> None:
    analysis = goodput_cli.analyze(NIGHT, window="2h")
    assert repr(analysis.table) == "<4333 events in columns; Analysis.events is a DataFrame of them>"
    assert repr(analysis.timeline).startswith("<4333 events in 6 attempts; ")
    assert repr(analysis.rolling) == "<6 windows; .to_frame() has one row per window>"
    assert analysis.rolling is not None
    assert analysis.rolling.to_frame().goodput_percent.round(2).tolist()[:2] == [89.01, 67.17]
    assert analysis == analysis
    assert analysis != ANALYSIS
    assert len({analysis, ANALYSIS}) == 2


def test_list_of_dicts_is_a_source() -> None:
    told = goodput_cli.analyze(RECORDS)
    assert amounts(told) == amounts(ANALYSIS)
    assert told.insights[2].evidence == ("records:1742",)
    assert told.insights[2].command_line().startswith("goodput timeline LOG ")


def test_data_frame_is_a_source() -> None:
    assert amounts(goodput_cli.analyze(pd.DataFrame(RECORDS))) == amounts(ANALYSIS)


def test_timestamps_of_a_frame_are_read() -> None:
    """Timestamps, and numbers that became floats because of a gap."""
    primer = ROOT / "sample_logs" / "primer-50-percent.jsonl"
    frame = pd.DataFrame([json.loads(line) for line in primer.read_text().splitlines()])
    frame["timestamp"] = pd.to_datetime(frame.timestamp)
    told = goodput_cli.analyze(frame, reference_step_time=120)
    assert told.goodput_percent == 50


def test_records_and_files_are_merged(tmp_path: Path) -> None:
    rest = tmp_path / "rest.jsonl"
    rest.write_text("".join(json.dumps(record) + "\n" for record in RECORDS[2000:]))
    assert amounts(goodput_cli.analyze([rest, RECORDS[:2000]])) == amounts(ANALYSIS)


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        (5, "sources cannot be int; pass a log file"),
        (None, "sources cannot be NoneType"),
        (b"run.jsonl", "sources cannot be bytes"),
        ([NIGHT, 5], "a source cannot be int"),
        ({"job_name": "x"}, "sources cannot be dict"),
        (io.StringIO("{}"), "sources cannot be StringIO; pass a log file"),
        ([{"job_name": object()}], "record 1 is not an event"),
    ],
)
def test_wrong_types_are_one_sentence(sources: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        goodput_cli.analyze(sources)


def test_mistyped_argument_is_suggested() -> None:
    with pytest.raises(TypeError, match="unknown argument: reference_step; did you mean reference_step_time"):
        goodput_cli.analyze(NIGHT, reference_step=8)  # type: ignore[call-arg]


def test_one_threshold_need_not_be_a_list() -> None:
    assert goodput_cli.analyze(NIGHT, thresholds="goodput<90").thresholds[0].met


def test_badput_is_a_table_and_a_disruption_is_a_line() -> None:
    analysis = goodput_cli.analyze(NIGHT)
    lines = str(analysis.badput).splitlines()
    assert lines[0] == "wasted_progress_from_disruption           1 h 46 min  15.87 %"
    assert len(lines) == len(analysis.badput)
    assert len({*map(len, lines)}) == 1
    shown = repr(analysis.disruptions[1])
    assert shown == "<Disruption 2: terminated after step 1290, lost 14 min 27 s, cause unknown>"
