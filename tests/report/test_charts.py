"""Charts are Vega-Lite: every specification is as the schema of that version says, and words of a log stay words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import vl_convert
from altair.vegalite.v6.schema.core import load_schema

from goodput_cli.cli.main import run
from goodput_cli.report.html.columns import _labels
from goodput_cli.report.html.vegalite import VERSION, texts

ROOT = Path(__file__).parent.parent.parent
NIGHT, AGAIN, CHECKPOINTS = (
    str(ROOT / "sample_logs" / f"{name}.jsonl") for name in ("llm-pretrain", "llm-pretrain-r2", "primer-50-percent")
)
COMMANDS = {  # and how many drawings: pages without scripts have each twice, once for a phone
    "analyze": (["analyze", NIGHT, "--window", "1h"], 3),
    "checkpoints": (["analyze", CHECKPOINTS], 2),
    "compare": (["compare", NIGHT, AGAIN], 2),
    "advise": (["advise", NIGHT], 2),
    "fleet": (["fleet", NIGHT, AGAIN, "--workers", "1", "--accelerators", "8", "--by", "week"], 10),
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
