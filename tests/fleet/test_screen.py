"""First screen of a fleet: 24 lines of 80 columns, with the figures and words of JSON and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.fleet.phrases import largest_losses
from goodput_cli.fleet.report import FleetReport, first_screen, fleet_sheet
from goodput_cli.report.base import Page, load_sheet_renderer
from tests.support.fleets import put, text_of, training

pytestmark = pytest.mark.usefixtures("folder")
LINES, COLUMNS = 24, 80


def logs(count: int) -> None:
    """Write runs of 4 to 9 h with 1 to 4 h of training, over ten weeks; each in one of nine teams."""
    for number in range(count):
        at = number * 6_000_000 // count
        put(Path(f"logs/{number:04d}.jsonl"), training(f"llm-{number:04d}", 4 + number % 6, 1 + number % 4, at=at))
    rows = [f"llm-{number:04d},team-{number % 9},{8 * (1 + number % 3)}" for number in range(count)]
    Path("labels.csv").write_text(text_of("job,team,accelerators", *rows))


def screen(report: FleetReport) -> str:
    return str(load_sheet_renderer("table")(first_screen(fleet_sheet(report)), Page(width=COLUMNS)))


def fleet_of(count: int, **options: Any) -> FleetReport:
    logs(count)
    return goodput_cli.fleet_report("logs", workers=1, **options)


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("labelled", [False, True])
def test_screen_fits_24_lines_of_80_columns(count: int, labelled: bool) -> None:
    more: dict[str, Any] = {"labels": ["labels.csv"], "by": ["team"], "price_per_hour": 2} if labelled else {}
    report = fleet_of(count, **more)
    lines = screen(report).rstrip("\n").split("\n")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].startswith(f" Fleet: {count} run")
    assert "0.0 accelerator h" not in "".join(lines)
    share = report.total.goodput_percent if labelled else report.total.time_goodput_percent
    assert f"{share:.2f} %" in lines[1]


def test_screen_of_2000_runs_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of the screen is limited for a report with many groups and warnings."""
    report = fleet_of(60, labels=["labels.csv"], by=["team"])
    many = report.runs * 34
    object.__setattr__(report, "runs", many)
    assert len(screen(report).rstrip("\n").split("\n")) <= LINES


def test_time_is_used_if_half_the_accelerators_are_unknown() -> None:
    logs(12)
    Path("few.csv").write_text(text_of("job,accelerators", "llm-0000,8"))
    shown = screen(goodput_cli.fleet_report("logs", workers=1, labels=["few.csv"]))
    assert "by job time (to weigh by size: --labels or --accelerators)" in shown
    assert " job h; most to " in shown


def test_loss_is_printed_once_with_its_cost() -> None:
    report = fleet_of(3, accelerators=8, price_per_hour=2)
    lost, cost = report.total.lost_hours, report.total.cost
    assert f"LOST     {lost:,.1f} h = {cost}; most to other" in screen(report)
    assert "of them while" not in "\n".join(fleet_sheet(report).summary)


def test_screen_names_the_same_rows_as_the_page() -> None:
    report = fleet_of(6, accelerators=8)
    (whole,) = largest_losses(report)
    words = whole.split("(")[1].split(")")[0].split(",")[0]
    assert words in screen(report)


def test_fleet_without_logs_reports_the_same_everywhere() -> None:
    row = "1|a|u|pre|gpu|c|FAILED|{0}:00:00|{0}:00:00|{0}:10:00|{0}:40:00|gres/gpu=8|1|n".format("2026-03-01T10")
    header = "JobID|JobName|User|Account|Partition|Cluster|State|Submit|Eligible|Start|End|AllocTRES|NNodes|NodeList"
    Path("sacct.txt").write_text(text_of(header, row))
    report = goodput_cli.fleet_report("sacct.txt", workers=1)
    lines = screen(report).split("\n")
    assert lines[:5] == [
        " Fleet: 1 job, 1 row of sacct, 0 training logs",
        " ALLOCATED  4.0 accelerator h in 1 allocation",
        " GOODPUT    unknown: no job has a training log (add their stdout)",
        " ended      failed 4.0 h",
        " waited     p50 10 min 00 s, p95 10 min 00 s",
    ]
