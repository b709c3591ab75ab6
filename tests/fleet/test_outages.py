"""Recovery phases of the outages of a fleet (accounting §10): agreement of formats, and with those of the runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.cli.main import run
from tests.analysis.test_chains import HANG, REQUEUE, SACCT, storm
from tests.support.answers import check_answer
from tests.support.fleets import fleet, put

pytestmark = pytest.mark.usefixtures("folder")
Output = pytest.CaptureFixture[str]
RUNS = ("hang", "requeue", "storm")
LABELS = "job,team,accelerators\nhang,red,8\nllm,blue,16\nstorm,red,8\n"


@pytest.fixture
def jobs(folder: Path) -> list[str]:
    put(folder / "hang" / "job.log", HANG)
    put(folder / "requeue" / "slurm-7001.out", REQUEUE)
    put(folder / "requeue" / "sacct.txt", SACCT)
    put(folder / "storm" / "job.log", storm(6))
    (folder / "labels.csv").write_text(LABELS, encoding="utf-8")
    return list(RUNS)


def rows() -> list[Disruption]:
    """The disruptions of each job by itself."""
    return [one for name in RUNS for one in goodput_cli.analyze(name).disruptions]


def text_of_fleet(capsys: Output, jobs: list[str], *arguments: str) -> str:
    assert run(["fleet", *jobs, "--labels", "labels.csv", "--workers", "1", "-q", *arguments]) == 0
    return capsys.readouterr().out


def test_phases_add_up_to_losses_and_match_numpy_percentiles(jobs: list[str]) -> None:
    answer = fleet(*jobs, "--labels", "labels.csv")
    check_answer(answer, "fleet")
    every = rows()
    links = {row["link"]: row for row in answer["outages"]}
    assert sum(row["lost_seconds"] for row in links.values()) == sum(one.lost_ns for one in every) / 1e9
    assert sum(row["share_percent"] for row in links.values()) == pytest.approx(100)
    redone = [one.chain.redone_ns / 1e9 for one in every if one.chain is not None]
    assert links["redone work"]["p50_seconds"] == pytest.approx(float(np.percentile(redone, 50)))
    assert links["redone work"]["p90_seconds"] == pytest.approx(float(np.percentile(redone, 90)))
    assert links["detected"]["p50_seconds"] == 1800  # for the failure whose time is logged
    assert links["detected"]["longest_seconds"] == 1800
    assert links["allocated"]["lost_seconds"] == 0  # the queue


def test_recoveries_are_those_of_the_runs(jobs: list[str]) -> None:
    recoveries = fleet(*jobs, "--labels", "labels.csv")["recoveries"]
    times = [one.chain.recover_ns for one in rows() if one.chain is not None]
    assert None not in times
    seconds = [(one or 0) / 1e9 for one in times]
    assert recoveries["mttr_seconds"] == pytest.approx(np.mean(seconds))
    assert recoveries["p50_seconds"] == pytest.approx(float(np.percentile(seconds, 50)))
    assert recoveries["p90_seconds"] == pytest.approx(float(np.percentile(seconds, 90)))
    assert (recoveries["automatic"], recoveries["by_scheduler"], recoveries["by_hand"], recoveries["not_said"]) == (
        6, 1, 0, 0,
    )  # fmt: skip
    assert recoveries["at_most"]


def test_by_cause_host_and_team(jobs: list[str]) -> None:
    groups: dict[tuple[str, str], Any] = {
        (row["what"], row["name"]): row for row in fleet(*jobs, "--labels", "labels.csv")["outage_groups"]
    }
    assert groups["team", "blue"]["outages"] == 1
    assert groups["team", "blue"]["most_lost_in"] == "detected"
    assert groups["team", "blue"]["mttr_seconds"] == 2514
    assert groups["team", "red"]["outages"] == 6
    by_cause = [row["lost_seconds"] for (what, _), row in groups.items() if what == "cause"]
    assert sum(by_cause) == sum(one.lost_ns for one in rows()) / 1e9


def test_the_order_of_documents_changes_nothing(jobs: list[str]) -> None:
    once = fleet(*jobs, "--labels", "labels.csv")
    again = fleet(*reversed(jobs), "--labels", "labels.csv")
    for name in ("outages", "outage_groups", "recoveries"):
        assert again[name] == once[name]


def test_store_returns_stored_results(jobs: list[str], folder: Path) -> None:
    options = ("--labels", "labels.csv", "--store", str(folder / "store"))
    first, second = fleet(*jobs, *options), fleet(*jobs, *options)
    assert second["outages"] == first["outages"]
    assert second["recoveries"] == first["recoveries"]


def test_formats_agree(jobs: list[str], capsys: Output) -> None:
    answer = fleet(*jobs, "--labels", "labels.csv")
    table = text_of_fleet(capsys, jobs)
    assert "Outages by recovery phase" in table
    assert "Outages by cause, host and team" in table
    assert "6 automatic, 1 by the scheduler" in " ".join(table.split())
    page = text_of_fleet(capsys, jobs, "--format", "html")
    assert "Outages by recovery phase" in page
    metrics = text_of_fleet(capsys, jobs, "--format", "openmetrics")
    lost = {name: float(value) for name, value in re.findall(r'outage_lost_hours\{.*link="([^"]+)"\} (\S+)', metrics)}
    assert lost == {row["link"]: pytest.approx(row["accelerator_hours"]) for row in answer["outages"]}
    quantiles = dict(re.findall(r'time_to_recover_seconds\{.*quantile="([^"]+)"\} (\S+)', metrics))
    assert {name: float(value) for name, value in quantiles.items()} == {
        "0.5": answer["recoveries"]["p50_seconds"], "0.9": answer["recoveries"]["p90_seconds"],
    }  # fmt: skip


@pytest.mark.parametrize(("expression", "code"), [("mttr>1m", 3), ("mttr>2h", 0), ("time_to_detect>1h", 0)])
def test_gates(jobs: list[str], expression: str, code: int) -> None:
    fleet(*jobs, "--labels", "labels.csv", "--fail-if", expression, code=code)


def test_fleet_without_outages_does_not_mention_them(folder: Path, capsys: Output) -> None:
    put(folder / "hang" / "job.log", HANG[:30])
    answer = fleet("hang")
    check_answer(answer, "fleet")
    assert answer["outages"] == []
    assert "recoveries" not in answer
    assert run(["fleet", "hang", "--workers", "1", "-q"]) == 0
    assert "Outages by recovery phase" not in capsys.readouterr().out
