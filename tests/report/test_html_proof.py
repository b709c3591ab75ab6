"""Numbers of the HTML report link to the rows that prove them, or to a command if the page does not contain the
rows."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.timeline.rows import SegmentRows, find_runs, folded, segment_rows
from goodput_cli.report.base import Page
from goodput_cli.report.html.analysis import render
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration
from tests.report.test_html_report import PRETRAIN, analysis_of, page_of, section
from tests.support.answers import read_page
from tests.support.logs import Recorder


def test_every_number_links_to_its_rows() -> None:
    analysis, page = analysis_of(PRETRAIN.name), page_of(PRETRAIN.name)
    behind = {row[0]: row[2:4] for row in section(page, "where").all("table")[0].rows()}
    for body_row in section(page, "where").all("table")[0].all("tbody")[0].all("tr")[1:]:
        time, seconds = (link.attributes["href"] or "" for link in body_row.all("a"))
        assert time == seconds
        assert page.by_id(time[1:]).all("tbody")
    assert len(behind) == len(analysis.badput) + 2
    targets = [
        [link.attributes["href"] for link in one.all("a")]
        for one in section(page, "cost-most").all("li")
        if "id" in one.attributes
    ]
    assert targets[:3] == [["#disruption-4"], ["#disruption-4"], ["#step-1503"]]
    assert page.by_id("step-1503").all("td")[-1].text == "1742"
    assert targets[5] == ["#slow-2201"]
    values = [row.all("a")[0].attributes["href"] for row in section(page, "thresholds").all("tbody")[0].all("tr")[:2]]
    assert values == ["#ledger-1", "#disruptions"]


def test_rows_of_a_category_add_up_and_name_their_lines() -> None:
    analysis, page = analysis_of(PRETRAIN.name), page_of(PRETRAIN.name)
    saves = next(row for row in analysis.badput if row.category == Category.SAVE.id)
    link = next(row.all("a")[0] for row in section(page, "where").all("tr") if "checkpoint save" in row.text)
    shown = page.by_id(str(link.attributes["href"])[1:]).rows()
    rows = folded(segment_rows(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns))
    own = rows.take(rows.category == Category.SAVE)
    assert int((own.end - own.start).sum()) == saves.ns
    assert [row[1] for row in shown] == [duration(ns) for ns in (own.end - own.start).tolist()]
    assert all(re.fullmatch(r"\d+(-\d+)?", row[-1]) for row in shown)


@pytest.mark.parametrize("part", [(0, 1), (0.3, 0.6)])
def test_runs_are_folded_segments(part: tuple[float, float]) -> None:
    timeline = analysis_of(PRETRAIN.name).timeline
    window = [timeline.start + int((timeline.end - timeline.start) * share) for share in part]
    runs, expected = find_runs(timeline, *window), folded(segment_rows(timeline, *window))
    assert len(expected) > 10
    for field in fields(SegmentRows):
        assert getattr(runs, field.name).tolist() == getattr(expected, field.name).tolist()


def test_rows_not_on_the_page_have_a_command(tmp_path: Path) -> None:
    log = Recorder()
    for life in range(120):
        log.start(1000 * life).steps(0, 9, 1000 * life + 10, 10)
    page = read_page(render(goodput_cli.analyze(log.end(121_000).write(tmp_path / "short.jsonl")), Page()))
    part = section(page, "disruptions")
    assert len(part.all("details")) == 101  # in a fold
    assert f"goodput timeline {tmp_path / 'short.jsonl'} --around disruption:101" in part.text
    assert page.by_id("disruption-row-119")
    behind = section(page, "where").text
    assert re.search(r"the longest rows. Not shown: \d+ shorter rows, .*--category wasted_progress", behind, re.DOTALL)
