"""Used and idle accelerators of a fleet: by team, with the same words in every output; unknown is not 0."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from tests.support.answers import page_text
from tests.support.fleets import fleet
from tests.support.logs import T0, DeviceJob

BUSY, IDLE, SILENT = DeviceJob(1, hosts=2, hung_at=100), DeviceJob(2, hosts=1, idle=frozenset({(0, 1)})), DeviceJob(3)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write a job of eight devices that hung for 4 of 14 minutes, one of four with one device idle for 10 minutes, and
    one without samples; each in its folder."""
    for name, job in (("busy", BUSY), ("idle", IDLE), ("silent", SILENT)):
        folder = job.write(tmp_path / "logs" / name)
        log = (folder / "log.jsonl").read_text(encoding="utf-8").replace('"j"', f'"{name}"')
        (folder / "log.jsonl").write_text(log, encoding="utf-8")
    for path in (tmp_path / "logs" / "silent").glob("*.csv"):
        path.unlink()
    (tmp_path / "labels.csv").write_text("job,team\nbusy,red\nidle,blue\nsilent,green\n", encoding="utf-8")
    return tmp_path / "logs"


def by_team(logs: Path, *more: str) -> dict[str, Any]:
    answer = fleet(
        str(logs), "--labels", str(logs.parent / "labels.csv"), "--by", "team", *more, out=logs.parent / "out.json"
    )
    return {row["group"]: row for row in answer["groups"][0]["rows"]} | {"whole": answer}


def test_energy_and_idle_hours_by_team(logs: Path) -> None:
    teams = by_team(logs)
    assert teams["red"]["kwh"] == pytest.approx(BUSY.joules / 3.6e6, rel=0.01)
    assert teams["red"]["lost_kwh"] == pytest.approx(BUSY.joules / 3.6e6 * 240 / 840, rel=0.02)
    assert teams["red"]["idle_hours"] == pytest.approx(0, abs=0.01)
    assert teams["blue"]["idle_hours"] == pytest.approx(10 / 60, rel=0.02)
    assert [teams["green"][key] for key in ("kwh", "lost_kwh", "idle_hours")] == [None] * 3
    whole = teams["whole"]
    assert whole["totals"]["kwh"] == pytest.approx((BUSY.joules + IDLE.joules) / 3.6e6, rel=0.01)
    assert (whole["coverage"]["runs_with_energy"], whole["coverage"]["runs_with_idle_hours"]) == (2, 2)


def test_fleet_and_analysis_agree_about_a_job(logs: Path) -> None:
    runs = {row["job"]: row for row in by_team(logs)["whole"]["runs"]}
    for name in ("busy", "idle"):
        devices = goodput_cli.analyze(str(logs / name)).accelerators
        assert devices is not None
        assert devices.idle_ns is not None
        assert runs[name]["kwh"] == pytest.approx(devices.kwh, rel=1e-6)
        assert runs[name]["lost_kwh"] == pytest.approx(devices.lost_kwh, rel=1e-6)
        assert runs[name]["idle_hours"] == pytest.approx(devices.seen * devices.idle_ns / 3.6e12, rel=1e-6)


def test_window_without_samples_is_unknown(logs: Path) -> None:
    """The samples of the first five of ten minutes are there."""
    path = logs / "idle" / "nvidia-smi-node-a.csv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    first, second = (
        by_team(logs, "--from", str(T0 + at), "--to", str(T0 + at + 180), "--accelerators", "4")["blue"]
        for at in (60, 360)
    )
    assert first["kwh"] == pytest.approx(IDLE.joules / 3.6e6 * 180 / 600, rel=0.03)
    assert first["idle_hours"] == pytest.approx(180 / 3600, rel=0.03)
    assert (second["kwh"], second["idle_hours"]) == (None, None)


SENTENCE = "accelerators: 1.01 kWh, of it 21 % lost (known for 2 of 3 runs); 0.2 h of training below 20 % utilization"


def test_people_read_the_same_words_everywhere(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["fleet", str(logs), "--labels", str(logs.parent / "labels.csv"), "--by", "team", "--workers", "1", "-q"]
    assert run(asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert SENTENCE in said
    page = logs.parent / "fleet.html"
    assert run([*asked, "-o", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert SENTENCE in page_text(page)
    assert all(f">{heading}<" in html for heading in ("kWh", "idle h", "kWh lost"))
    assert run([*asked, "--format", "openmetrics"]) == 0
    metrics = capsys.readouterr().out
    known = {
        name: set(re.findall(rf'goodput_fleet_{name}{{.*team="(\w+)"}}', metrics)) for name in ("kwh", "idle_hours")
    }
    assert known == {"kwh": {"red", "blue"}, "idle_hours": {"red", "blue"}}
    assert run([*asked, "--fail-if", "any(team):idle_hours>0.1"]) == 3
    assert "any(team):idle_hours>0.1 [green]: inconclusive" in capsys.readouterr().err


def _one_folder(logs: Path) -> None:
    """Put logs of two jobs in the folder of the samples, so that the owner of the samples is unknown."""
    (logs / "busy" / "other.jsonl").write_text((logs / "silent" / "log.jsonl").read_text(encoding="utf-8"))


def _above(logs: Path) -> None:
    """Samples above the folders of several jobs."""
    for path in (logs / "busy").glob("*.csv"):
        path.rename(logs / path.name)


@pytest.mark.parametrize("change", [_one_folder, _above])
def test_samples_without_a_job_are_reported_and_omitted(logs: Path, change: Callable[[Path], None]) -> None:
    change(logs)
    teams = by_team(logs)
    assert teams["red"]["kwh"] is None
    assert teams["blue"]["kwh"] is not None
    assert "devices_of_no_job" in {one["code"] for one in teams["whole"]["diagnostics"]}


def test_a_job_in_several_documents_and_a_store(logs: Path) -> None:
    """Parts of a log in separate folders, each with its samples, and again from the store."""
    before = by_team(logs)["red"]
    folder = logs / "busy"
    for place in ("1", "2"):
        (logs / place).mkdir()
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for place, some in (("1", lines[:300]), ("2", lines[300:])):
        (logs / place / "log.jsonl").write_text("".join(some), encoding="utf-8")
    (folder / "log.jsonl").unlink()
    for place, path in zip(("1", "2"), sorted(folder.glob("*.csv")), strict=True):
        path.rename(logs / place / path.name)
    store = ("--store", str(logs.parent / "store"))
    found, again = by_team(logs, *store)["red"], by_team(logs, *store)["red"]
    assert found["kwh"] == pytest.approx(before["kwh"], rel=1e-6)
    assert json.dumps(found) == json.dumps(again)
