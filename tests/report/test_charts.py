"""Charts are Vega-Lite: every specification is as the schema of that version says, and words of a log stay words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
import vl_convert
from altair.vegalite.v6.schema.core import load_schema

import goodput_cli
from goodput_cli.analysis.picture import NUMBERED, WORST, MetricLine, Picture, picture_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.cli.main import run
from goodput_cli.report.html.charts import goodput_chart, main_chart, metric_chart, step_time_chart
from goodput_cli.report.html.columns import DISRUPTIONS, ChartColumns, _labels, _worst_labels, chart_columns
from goodput_cli.report.html.drawing import GRID, Spec, drawn, field, finished, marks, shortened, texts
from goodput_cli.report.html.drawing_process import VERSION
from goodput_cli.report.html.still import still
from tests.support.accounts import account
from tests.support.story import end, start, steps

ROOT = Path(__file__).parent.parent.parent
NIGHT, AGAIN, CHECKPOINTS = (
    str(ROOT / "sample_logs" / f"{name}.jsonl") for name in ("llm-pretrain", "llm-pretrain-r2", "primer-50-percent")
)
KINDS = (
    "a night", "three steps", "many disruptions", "two months", "40 s", "saves", "goodput", "step times",
    "even step times", "metrics",
)  # fmt: skip
"""Charts of an analysis, which its page draws itself."""
COMMANDS = {  # and how many drawings: pages without scripts have each twice, once for a phone, but for runs of fleets
    "compare": (["compare", NIGHT, AGAIN], 2),
    "advise": (["advise", NIGHT], 2),
    "fleet": (["fleet", NIGHT, AGAIN, "--workers", "1", "--accelerators", "8", "--by", "week"], 9),
}


@cache
def vega_lite() -> Any:
    return jsonschema.Draft7Validator(load_schema())


@pytest.mark.parametrize("command", COMMANDS)
def test_charts_are_as_the_schema_of_vega_lite_says(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []

    def draw(spec: str, vl_version: str, allowed_base_urls: list[str]) -> str:
        made.append(json.loads(spec))
        assert (vl_version, allowed_base_urls) == (VERSION, [])
        return "<svg></svg>"

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", draw)
    words, charts = COMMANDS[command]
    assert run([*words, "-q", "-o", str(tmp_path / "page.html")]) == 0
    assert len(made) == charts
    for spec in made:
        vega_lite().validate({**spec, "datasets": {name: [] for name in spec["datasets"]}})


@pytest.mark.parametrize("kind", KINDS)
def test_charts_that_scripts_draw_are_as_the_schema_says(kind: str) -> None:
    vega_lite().validate(stills()[kind][0])


def test_the_version_is_one_that_the_drawing_library_has() -> None:
    assert VERSION in vl_convert.get_vegalite_versions()


@pytest.mark.parametrize("word", ["a'] + alert(1) + ['", "\\", "\u2028", "\U0001f600", "custom:EVAL_STEP"])
def test_words_stay_words_in_expressions(word: str) -> None:
    inside = texts([word]).removeprefix("['").removesuffix("']")
    assert "'" not in inside
    assert json.loads(f'"{inside}"') == word


def test_numbers_of_disruptions_stay_inside_the_picture() -> None:
    """One that would run out of it on a phone joins the one before."""
    assert _labels([0.1, 0.9, 0.93, 0.99], [1, 2, 3, 4], [1, 2, 3, 4]) == ["1", "2", "3", "4"]
    assert _labels([0.1, 0.9, 0.93, 0.99], [1, 2, 3, 4], [1, 2, 3, 4], larger=4.5) == ["1\N{EN DASH}4", "", "", ""]


def crashes(count: int) -> Analysis:
    """A job that lost a step after every tenth, and five after the one before each seventh time."""
    lines, now, step = [], 0, 0
    for number in range(count + 1):
        lines.append(start(now))
        lines += steps(step, 10, at=now + 10)
        now, step = now + 10 + 9 * 10 + 5 + 60, step + 9 - (5 if number % 7 == 6 else 1)
    return account(*lines, end(now)).analysis


def test_of_many_disruptions_those_that_cost_most_are_numbered() -> None:
    """All of them are in a lane of their own: a line a disruption would hide the picture."""
    analysis = crashes(67)
    columns = chart_columns(picture_of(analysis, 600))
    table = columns.tables["disruptions"]
    worst = sorted(analysis.disruptions, key=lambda one: -one.lost_ns)[:WORST]
    assert [number for number, is_worst in zip(table["number"], table["worst"], strict=True) if is_worst] == sorted(
        one.number for one in worst
    )
    assert {text for text in table["text"] if text} <= {str(one.number) for one in worst}
    assert len([text for text in table["few"] if text]) <= len([text for text in table["text"] if text])
    assert len(table["t"]) == 67
    assert columns.lanes[-1] == DISRUPTIONS
    spec = json.dumps(main_chart(columns))
    assert "datum.worst == 1" in spec


def test_few_disruptions_are_numbered_all() -> None:
    columns = chart_columns(picture_of(crashes(NUMBERED), 600))
    assert "worst" not in columns.tables["disruptions"]
    assert DISRUPTIONS not in columns.lanes
    assert "datum.worst" not in json.dumps(main_chart(columns))


def test_of_two_numbers_that_would_run_into_each_other_the_worse_stays() -> None:
    assert _worst_labels([0.5, 0.501, 0.9, 0.999], [7, 8, 9, 10], [3, 1, 0, 2], 1.0) == ["", "8", "", ""]


HOSTILE_NAME = 'a fill="#123456" stroke="#8a8a8a" opacity="1" <path fill="red"/>'


def looks(svg: str) -> list[dict[str, str]]:
    """Of every mark: its tag, where it is, and its look with what it has of the groups around it."""
    return list(_looks(ElementTree.fromstring(svg), {}))


def _looks(element: ElementTree.Element, around: Mapping[str, str]) -> Iterator[dict[str, str]]:
    own = {name: value for name, value in element.attrib.items() if (name, value) != ("opacity", "1")}
    given = {**around, **{name: own[name] for name in own if name.startswith(("stroke", "fill", "font"))}}
    tag = element.tag.rpartition("}")[2]
    if tag in ("path", "line", "text") and own.get("d", "line") not in ("", "M0,0h0v0h0Z"):
        yield {**given, **own, "tag": tag, "text": element.text or ""}
    for inner in element:
        yield from _looks(inner, given)


def test_a_drawing_in_fewer_bytes_looks_the_same() -> None:
    rows = [{"name": name, "n": n} for n, name in enumerate((HOSTILE_NAME, "b", "c", "d"), 1)]
    colour = field("name", "N", scale={"domain": [row["name"] for row in rows], "range": ["#123456", "#8a8a8a"]})
    chart = marks(rows, "bar", {}, x=field("n"), y=field("name", "N", axis={"labelLimit": 900}), color=colour)
    svg = drawn(finished(chart), None, "#ffffff")
    assert len(shortened(svg)) < 0.8 * len(svg)
    assert looks(shortened(svg)) == looks(svg)
    assert HOSTILE_NAME in {look["text"] for look in looks(shortened(svg))}


def with_metrics() -> Picture:
    """The night, with a utilisation that falls and a throughput that stays."""
    picture = picture_of(goodput_cli.analyze(NIGHT), 600)
    time = np.linspace(picture.start_ns, picture.end_ns, 50).astype(np.int64)
    lines = (MetricLine("mfu", time, np.linspace(41, 39.5, 50)), MetricLine("throughput", time, np.full(50, 1250.0)))
    return replace(picture, metrics=lines)


@cache
def stills() -> dict[str, tuple[Spec, ChartColumns]]:
    """Every kind of chart, of long and short jobs: its specification and its columns."""
    night = goodput_cli.analyze(NIGHT)
    moment = goodput_cli.analyze(NIGHT, start="2026-01-12T21:00:00Z", end="2026-01-12T21:00:40Z")
    many, slow = chart_columns(picture_of(crashes(67), 600)), [(3.6e6, 7.2e6, "1.33 x")]
    first, metrics = chart_columns(picture_of(night, 600)), chart_columns(with_metrics())
    days = chart_columns(picture_of(account(start(0), *steps(0, 60, at=10, every=9e4), end(5.5e6)).analysis, 600))
    seconds = chart_columns(picture_of(moment, 600))
    saves = chart_columns(picture_of(goodput_cli.analyze(CHECKPOINTS), 600))
    three = chart_columns(picture_of(account(start(0), *steps(0, 4, at=10), end(60)).analysis, 600))
    charts = {
        "a night": first,
        "three steps": three,
        "many disruptions": many,
        "two months": days,
        "40 s": seconds,
        "saves": saves,
    }
    return {
        **{name: (main_chart(columns), columns) for name, columns in charts.items()},
        "goodput": (goodput_chart(first, ["2h"]), first),
        "step times": (step_time_chart(first, 8.0, slow), first),
        "even step times": (step_time_chart(days, 9e4, []), days),
        "metrics": (metric_chart(metrics, slow), metrics),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_a_page_is_what_vega_draws(kind: str) -> None:
    """The same words at the same places, and the same corners in each colour, to a dot of axes and a fifth of one else.
    Names of a legend follow each other as wide as letters are thought to be."""
    spec, columns = stills()[kind]
    ours, vegas = Drawn(still(spec, columns, "chart")), Drawn(drawn(spec, columns, ""))
    assert ours.size == pytest.approx(vegas.size, abs=4)
    assert ours.legend == vegas.legend
    assert [text for text, *_ in ours.words] == [text for text, *_ in vegas.words]
    assert [place for _, *place in ours.words] == [pytest.approx(place, abs=1) for _, *place in vegas.words]
    assert ours.corners.keys() == vegas.corners.keys()
    for (colour, is_area), corners in ours.corners.items():
        most = 1.1 if colour == GRID else 0.2
        assert farthest(corners, vegas.corners[colour, is_area]) < most
        assert is_area or farthest(vegas.corners[colour, is_area], corners) < most  # Vega's go back point by point


def farthest(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> float:
    """How far the loneliest of some places is from the nearest of others, in x or y."""
    places, near = np.array(some), np.array(others)
    return max(float(np.abs(near - place).max(axis=1).min()) for place in places)


class Drawn:
    """What can be seen of a drawing. words: with their places; legend: words of it; corners: by colour, and whether
    they are of a chart's shaded areas."""

    def __init__(self, svg: str) -> None:
        self.words: list[tuple[str, float, float]] = []
        self.legend: set[str] = set()
        self.corners: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        root = ElementTree.fromstring(svg)
        self.size = [float(root.attrib[name]) for name in ("width", "height")]
        self._read(root, (0.0, 0.0), {"class": ""})
        self.words.sort()

    def _read(self, element: ElementTree.Element, origin: tuple[float, float], around: Mapping[str, str]) -> None:
        look = {**around, **element.attrib, "class": f"{around['class']} {element.get('class', '')}"}
        moved = re.match(r"translate\(([^,]+),([^)]+)\)", element.get("transform", ""))
        x, y = origin if moved is None else (origin[0] + float(moved[1]), origin[1] + float(moved[2]))
        tag = element.tag.rpartition("}")[2]
        if tag in ("defs", "clipPath") or element.get("class") in ("background", "foreground"):
            return
        if tag == "text" and "legend" in look["class"]:
            self.legend.add(element.text or "")
        elif tag == "text":
            place = (x + float(element.get("x", 0)), y + float(element.get("y", 0)))
            self.words.append((element.text or "", *place))
        elif tag in ("path", "line") and "legend" not in look["class"] and look.get("opacity") != "0":
            filled = look.get("fill", "none") != "none"
            ends = corners(element.get("d") or f"M0,0L{element.get('x2')},{element.get('y2')}")
            colour = (look["fill" if filled else "stroke"], filled and look.get("opacity") == "0.16")
            self.corners.setdefault(colour, []).extend((x + right, y + down) for right, down in ends)
        for inner in element:
            self._read(inner, (x, y), look)


def corners(path: str) -> Iterator[tuple[float, float]]:
    """The corners of a path, in dots."""
    x = y = 0.0
    begin = (x, y)
    for command, text in re.findall(r"([A-Za-z])([^A-Za-df-z]*)", path):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]
        across, down = (numbers * 2)[:2] if numbers else begin
        x = {"V": x, "v": x, "h": x + across}.get(command, across)
        y = {"H": y, "h": y, "v": y + down}.get(command, down)
        begin = (x, y) if command == "M" else begin
        yield x, y
