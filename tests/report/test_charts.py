"""Charts are Vega-Lite: each specification agrees with the schema of its version, and log text stays text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import vl_convert
from altair.vegalite.v6.schema.core import load_schema

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.picture import NUMBERED, WORST, picture_of
from goodput_cli.cli.main import run
from goodput_cli.report.html import drawing_process
from goodput_cli.report.html.charts import main_chart
from goodput_cli.report.html.columns import DISRUPTIONS, _labels, _worst_labels, chart_columns
from goodput_cli.report.html.drawing import drawn, field, finished, marks, shortened, texts
from goodput_cli.report.html.drawing_process import VERSION
from tests.support.story import account, end, start, steps

ROOT = Path(__file__).parent.parent.parent
NIGHT, AGAIN, CHECKPOINTS = (
    str(ROOT / "sample_logs" / f"{name}.jsonl") for name in ("llm-pretrain", "llm-pretrain-r2", "primer-50-percent")
)
COMMANDS = {  # With the number of drawings: pages have each twice, except for runs of fleets.
    "analyze": (["analyze", NIGHT, "--window", "1h"], 3),
    "checkpoints": (["analyze", CHECKPOINTS], 2),
    "compare": (["compare", NIGHT, AGAIN], 2),
    "advise": (["advise", NIGHT], 2),
    "fleet": (
        ["fleet", NIGHT, AGAIN, "--workers", "1", "--accelerators", "8", "--by", "week", "--from", "2026-01-01"],
        9,
    ),
}


@cache
def vega_lite() -> Any:
    return jsonschema.Draft7Validator(load_schema())


@pytest.mark.parametrize("command", COMMANDS)
def test_charts_agree_with_the_schema_of_vega_lite(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []

    def draw(spec: str, vl_version: str, allowed_base_urls: list[str]) -> str:
        made.append(json.loads(spec))
        assert (vl_version, allowed_base_urls) == (VERSION, [])
        return "<svg></svg>"

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", draw)
    monkeypatch.setattr(drawing_process, "_drawn", vars(drawing_process)["_drawn"].__wrapped__)
    words, charts = COMMANDS[command]
    assert run([*words, "-q", "-o", str(tmp_path / "page.html")]) == 0
    assert len(made) == charts
    for spec in made:
        vega_lite().validate({**spec, "datasets": {name: [] for name in spec["datasets"]}})


def test_drawing_library_supports_the_version() -> None:
    assert VERSION in vl_convert.get_vegalite_versions()


@pytest.mark.parametrize("word", ["a'] + alert(1) + ['", "\\", "\u2028", "\U0001f600", "custom:EVAL_STEP"])
def test_log_text_stays_text_in_expressions(word: str) -> None:
    inside = texts([word]).removeprefix("['").removesuffix("']")
    assert "'" not in inside
    assert json.loads(f'"{inside}"') == word


def test_disruption_numbers_stay_inside_the_picture() -> None:
    """A number that would leave the picture on a phone joins the previous one."""
    assert _labels([0.1, 0.9, 0.93, 0.99], [1, 2, 3, 4], [1, 2, 3, 4]) == ["1", "2", "3", "4"]
    assert _labels([0.1, 0.9, 0.93, 0.99], [1, 2, 3, 4], [1, 2, 3, 4], larger=4.5) == ["1\N{EN DASH}4", "", "", ""]


def analyze_crashes(count: int) -> Analysis:
    """Analyze a job that lost a step after every tenth step, and five after the one before each seventh time."""
    lines, now, step = [], 0, 0
    for number in range(count + 1):
        lines.append(start(now))
        lines += steps(step, 10, at=now + 10)
        now, step = now + 10 + 9 * 10 + 5 + 60, step + 9 - (5 if number % 7 == 6 else 1)
    return account(*lines, end(now)).analysis


def test_costliest_of_many_disruptions_are_numbered() -> None:
    """All disruptions are in a separate lane: one line per disruption would hide the picture."""
    analysis = analyze_crashes(67)
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


def test_all_of_few_disruptions_are_numbered() -> None:
    columns = chart_columns(picture_of(analyze_crashes(NUMBERED), 600))
    assert "worst" not in columns.tables["disruptions"]
    assert DISRUPTIONS not in columns.lanes
    assert "datum.worst" not in json.dumps(main_chart(columns))


def test_costlier_of_two_overlapping_numbers_is_kept() -> None:
    assert _worst_labels([0.5, 0.501, 0.9, 0.999], [7, 8, 9, 10], [3, 1, 0, 2], 1.0) == ["", "8", "", ""]


HOSTILE_NAME = 'a fill="#123456" stroke="#8a8a8a" opacity="1" <path fill="red"/>'


def list_styles(svg: str) -> list[dict[str, str]]:
    """Return the tag, position and style of every mark, including styles of its groups."""
    return list(_list_styles(ElementTree.fromstring(svg), {}))


def _list_styles(element: ElementTree.Element, around: Mapping[str, str]) -> Iterator[dict[str, str]]:
    own = {name: value for name, value in element.attrib.items() if (name, value) != ("opacity", "1")}
    given = {**around, **{name: own[name] for name in own if name.startswith(("stroke", "fill", "font"))}}
    tag = element.tag.rpartition("}")[2]
    if tag in ("path", "line", "text") and own.get("d", "line") not in ("", "M0,0h0v0h0Z"):
        yield {**given, **own, "tag": tag, "text": element.text or ""}
    for inner in element:
        yield from _list_styles(inner, given)


def test_shorter_drawing_looks_the_same() -> None:
    rows = [{"name": name, "n": n} for n, name in enumerate((HOSTILE_NAME, "b", "c", "d"), 1)]
    colour = field("name", "N", scale={"domain": [row["name"] for row in rows], "range": ["#123456", "#8a8a8a"]})
    chart = marks(rows, "bar", {}, x=field("n"), y=field("name", "N", axis={"labelLimit": 900}), color=colour)
    svg = drawn(finished(chart), None)
    assert len(shortened(svg)) < 0.8 * len(svg)
    assert list_styles(shortened(svg)) == list_styles(svg)
    assert HOSTILE_NAME in {look["text"] for look in list_styles(shortened(svg))}
