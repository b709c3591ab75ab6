"""`goodput disruptions` as a command: the table, JSON, CSV, and the cost of disruptions."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.disruptions.find import find_disruptions
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.cli.main import run
from tests.analysis.test_disruptions import CRASH
from tests.support.answers import check_answer
from tests.support.documents import ROOT
from tests.support.story import end, start, step, steps, story_lines

Output = pytest.CaptureFixture[str]


@pytest.fixture
def log(folder: Path) -> Path:
    path = folder / "run.jsonl"
    path.write_text("\n".join(story_lines(*CRASH)) + "\n", encoding="utf-8")
    return path


def answer_of(capsys: Output, *arguments: str) -> Any:
    assert run([*arguments, "-q", "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    check_answer(value, "analysis" if arguments[0] == "analyze" else arguments[0])
    return value


def test_json_agrees_with_analyze(log: Path, capsys: Output) -> None:
    command, analysis = answer_of(capsys, "disruptions", "run.jsonl"), answer_of(capsys, "analyze", "run.jsonl")
    for row in command["disruptions"]:
        assert (row.pop("accelerator_hours"), row.pop("cost")) == (None, None)
    assert command["disruptions"] == analysis["disruptions"]
    assert command["reliability"] == analysis["reliability"]
    assert command["disruptions"][0]["evidence"]["next_start"] == "run.jsonl:8"
    assert command["cost"] is None


def test_cost_is_computed(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, "disruptions", "run.jsonl", "--accelerators", "90", "--price-per-hour", "2")
    assert value["disruptions"][0]["accelerator_hours"] == pytest.approx(1.7)  # 68 s x 90
    assert value["cost"] == {
        "accelerators": 90.0,
        "price_per_hour": 2.0,
        "lost_seconds": 68.0,
        "accelerator_hours": pytest.approx(1.7),
        "cost": pytest.approx(3.4),
    }
    hours_only = answer_of(capsys, "disruptions", "run.jsonl", "--accelerators", "90")
    assert hours_only["cost"]["cost"] is None


def test_price_needs_accelerators(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "--price-per-hour", "2"]) == 2
    assert "--accelerators" in capsys.readouterr().err
    assert run(["disruptions", "run.jsonl", "--accelerators", "0"]) == 2


def test_table_fits_and_names_the_lines(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "1 disruption in 2 min 30 s of up time" in out
    assert "last step 7, last activity 7, next start 8" in " ".join(out.split())
    assert "not shown for want of room" not in out


def test_evidence_and_totals_have_their_positions(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(at for at, line in enumerate(lines) if line.startswith("   1 "))
    assert lines[row + 1].startswith("     attempt 1, last step 5, resumed at step 3; lines: last step 7")
    assert row < next(at for at, line in enumerate(lines) if "MTBF" in line)


def test_only_shown_columns_have_a_legend(capsys: Output) -> None:
    assert run(["disruptions", str(ROOT / "sample_logs" / "llm-pretrain.jsonl"), "-q"]) == 0
    out = capsys.readouterr().out
    assert "not shown at this width: regained" in out
    assert "regained: " not in out
    assert "recover: " in out


def test_csv_has_exact_values_and_every_line(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["steps_lost"], row["wasted_seconds"], row["downtime_seconds"]) == ("3", "20", "40")
    assert (row["evidence_last_step"], row["evidence_ended"]) == ("run.jsonl:7", "")
    assert len(row) == len(set(row))


def test_job_without_disruptions_has_an_empty_list(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "calm.jsonl"
    path.write_text("\n".join(story_lines(start(0), steps(0, 5, at=10), end(60))) + "\n", encoding="utf-8")
    value = answer_of(capsys, "disruptions", str(path))
    assert value["disruptions"] == []
    assert value["reliability"]["mtbf_seconds"] is None
    assert run(["disruptions", str(path), "-q"]) == 0
    assert "0 disruptions in 1 min 00 s of up time: MTBF at least" in capsys.readouterr().out


def test_library_answers_the_same(log: Path) -> None:
    from goodput_cli import analyze

    analysis: Analysis = analyze(log)
    again = find_disruptions(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)
    assert analysis.disruptions == again
    assert step(5, 60) in log.read_text(encoding="utf-8")


def test_recovery_phases_of_each_outage_and_of_all_are_shown(log: Path, capsys: Output) -> None:
    assert run(["disruptions", "run.jsonl", "-q", "--full"]) == 0
    full = capsys.readouterr().out
    assert "Disruption 1, 2026-01-01: 1 min 08 s lost" in full
    assert "redone work" in full
    assert run(["disruptions", "run.jsonl", "-q", "--by", "link"]) == 0
    by_link = capsys.readouterr().out
    assert "Recovery phases of j: 1 min 08 s lost in 1 disruption" in by_link
    assert re.search(r"total +1 min 08 s +100.00 %", by_link)
    assert run(["disruptions", "run.jsonl", "-q", "--by", "link", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(float(row["lost_seconds"]) for row in rows) == 68


def test_json_has_every_phase_and_csv_the_times(log: Path, capsys: Output) -> None:
    value = answer_of(capsys, "disruptions", "run.jsonl")
    (row,) = value["disruptions"]
    known = [one for one in row["links"] if one["state"] == "known"]
    for name in ("wasted", "downtime", "restart", "queued"):
        assert sum(one.get(f"{name}_seconds", 0) for one in known) == row[f"{name}_seconds"]
    assert row["links"][1] == {"link": "failed", "state": "not_logged"}
    assert value["by_link"][-1]["lost_seconds"] == 68
    assert run(["disruptions", "run.jsonl", "-q", "--format", "csv"]) == 0
    (of_csv,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert float(of_csv["time_to_recover_seconds"]) == row["time_to_recover_seconds"]
    assert of_csv["time_to_recover_is"] == "at_most"


@pytest.mark.parametrize(("expression", "code"), [("mttr>10s", 3), ("mttr>10m", 0), ("time_to_detect>1s", 4)])
def test_gates_accept_recovery_phases(log: Path, expression: str, code: int) -> None:
    """The log does not contain the time of detection, so that gate is unjudged."""
    assert run(["analyze", "run.jsonl", "-q", "--fail-if", expression, "-o", "out.json"]) == code
