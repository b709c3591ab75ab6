"""A quantity has one value, whichever command is asked and in whichever format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.truth.judge import Case
from tests.truth.programs import PROGRAMS
from tests.truth.stories import STORIES

_METRICS = {
    "goodput_ratio": "ettr",
    "goodput_attempts": "attempts",
    "goodput_disruptions": "disruptions",
    "goodput_kept_steps": "kept_steps",
    "goodput_mtbf_seconds": "mtbf",
    "goodput_mean_downtime_seconds": "mean_downtime",
}


_TOLD = [
    ("saves_too_rare", "recorder"), ("saves_too_rare", "megatron"), ("starts_that_die", "megatron"),
    ("starts_that_die", "nemo2"), ("died_for_good", "recorder"),
]  # fmt: skip


@pytest.fixture(params=_TOLD, ids="-".join)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Six failures and saves nearly an hour apart; starts that died before they trained; a last attempt that died: as
    one program prints them."""
    (story,) = (one for one in STORIES if one.name == request.param[0])
    (program,) = (one for one in PROGRAMS if one.name == request.param[1])
    world = Case(story, program, 1).world()
    story.live(world)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").write_text(program.log(world))
    return str(tmp_path / "logs" / "run.log")


def test_a_quantity_has_one_value(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*line: str, form: str = "json") -> str:
        assert run([*line, "-q", "--timezone", "UTC", "--format", form]) == 0
        return capsys.readouterr().out

    def answer(*line: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(asked(*line))
        return value

    analysis = answer("analyze", log)
    reliability, job = analysis["reliability"], analysis["job"]
    values: dict[str, float | None] = {
        "goodput": analysis["goodput"]["percent"], "ettr": reliability["ettr"], "attempts": job["attempts"],
        "disruptions": job["disruptions"], "failures": reliability["failures"], "kept_steps": job["kept_steps"],
        "mtbf": reliability["mtbf_seconds"], "mean_downtime": reliability["mean_downtime_seconds"],
        "saves.interval": analysis["saves"]["interval_seconds"], "steps.median": analysis["steps"]["median_seconds"],
    }  # fmt: skip
    said: list[tuple[str, str, float | None]] = []
    compared = {one["name"]: one["value"] for one in answer("compare", log, log)["comparisons"][0]["facts"]}
    said += [("compare", name, compared[name]) for name in values if name in compared]
    (row,) = answer("jobs", log)["jobs"]
    said += [("jobs", "goodput", row["goodput_percent"]), ("jobs", "disruptions", row["disruptions"])]
    totals = answer("fleet", str(Path(log).parent))["totals"]
    said += [("fleet", "goodput", totals["time_goodput_percent"]), ("fleet", "failures", totals["failures"])]
    of_disruptions = answer("disruptions", log)["reliability"]
    said += [("disruptions", "mtbf", of_disruptions["mtbf_seconds"]), ("disruptions", "ettr", of_disruptions["ettr"])]
    said.append(("steps", "steps.median", answer("steps", log)["steps"]["median_seconds"]))
    advice = answer("advise", log)
    of_advice = advice["record"]
    said += [("advise", name, of_advice[name]) for name in ("failures", "disruptions")]
    said += [
        ("advise", "mtbf", of_advice["mtbf_seconds"]),
        ("advise", "goodput", advice["recorded"]["goodput_percent"]),
    ]
    assert of_advice["failed_lives"] <= of_advice["failures"]
    if of_advice["failed_lives"]:
        assert of_advice["training_between_failures_seconds"] == pytest.approx(
            of_advice["life_seconds"] / of_advice["failed_lives"]
        )
    for line in asked("analyze", log, form="openmetrics").splitlines():
        name, _, value = line.partition("{")
        if name in _METRICS:
            said.append(("openmetrics", _METRICS[name], float(value.rpartition(" ")[2])))
    assert len(said) >= 20
    assert [one for one in said if not _is_same(one[2], values[one[1]])] == []


def _is_same(said: float | None, value: float | None) -> bool:
    return said is None if value is None else said == pytest.approx(value, rel=1e-9)
