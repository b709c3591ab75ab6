"""`goodput fleet` in the process: whole fleets, as `goodput jobs` lists them, and in any order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from goodput_cli.fleet.passes.plan import InProcessEngine
from goodput_cli.fleet.passes.read import LEAST
from tests.support.answers import check_answer
from tests.support.fleets import fleet, put, text_of, training

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def listed(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the output of `goodput jobs`."""
    out = tmp_path_factory.mktemp("jobs") / "jobs.json"
    assert run(["jobs", str(logs), "-q", "-o", str(out)]) == 0
    return json.loads(out.read_text())


def test_runs_of_a_fleet_are_those_that_jobs_lists(logs: Path, listed: Any) -> None:
    answer = fleet(str(logs), "--runs", "all", "--weight", "time")
    check_answer(answer, "fleet")
    jobs = {job["name"]: job for job in listed["jobs"] if job["reason"] is None}
    assert {row["job"] for row in answer["runs"]} == jobs.keys()
    for row in answer["runs"]:
        job = jobs[row["job"]]
        assert (row["start"], row["end"], row["events"]) == (job["start"], job["end"], job["events"])
        assert (row["disruptions"], row["goodput_ns"]) == (job["disruptions"], job["goodput"]["ns"])
    assert answer["totals"]["chip_ns"] == str(sum(row["ns"] for row in answer["runs"]))
    productive = next(row for row in answer["categories"] if row["category"] == "productive")
    assert productive["chip_ns"] == str(sum(row["goodput_ns"] for row in answer["runs"]))


def test_a_job_of_three_documents_is_the_uncut_one(logs: Path) -> None:
    parts = sorted(logs.glob("part-*/split.jsonl"))
    whole = "".join(line for path in parts for line in path.read_text().splitlines(keepends=True))
    Path("whole.jsonl").write_text(whole)
    cut, uncut = (fleet(str(source))["runs"] for source in (logs / "..", "whole.jsonl"))
    (split,) = [row for row in cut if row["job"] == "split"]
    assert len(split["documents"]) == 3
    assert {**split, "documents": None} == {**uncut[0], "documents": None}


def test_excluded_documents_are_listed_with_a_reason(logs: Path) -> None:
    answer = fleet(str(logs), "--runs", "each")
    reasons = {Path(row["name"]).name: row["reason"] for row in answer["not_analysed"]}
    assert reasons.keys() == {"noise.jsonl", "single"}
    assert not answer["complete"]
    assert [row["run"] for row in answer["runs"] if row["job"] == "again"] == [1, 2, 3]
    assert "truncated_file" in {one["code"] for one in answer["diagnostics"]}


def test_warnings_are_merged_over_all_runs(logs: Path) -> None:
    noticed = {one["code"]: one for one in fleet(str(logs))["diagnostics"]}
    twice = noticed["duplicate_events"]
    assert twice["message"] == "in 1 run (twin); run `goodput check -j NAME` for details"
    assert twice["count"] > 100


def test_documents_excluded_for_one_reason_are_one_line(capsys: Output) -> None:
    put(Path("some/good.jsonl"), training("good", 1, 0.5))
    for number in range(12):
        put(Path(f"some/{number:02d}.jsonl"), training(f"short-{number:02d}", 1, 0.5)[:1])
    assert run(["fleet", "some", "--workers", "1", "--format", "markdown", "-q"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "short-" in line]
    reason = "all events have the same time; at least two different times are needed"
    assert line == f"| job | 12 | {reason} | short-00, short-01, short-02, … |"


def test_unreadable_document_does_not_affect_others(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(logs, "copy")
    Path("copy/locked.jsonl").mkdir()
    answer = fleet("copy", "copy/locked.jsonl/../job-0000.jsonl", "nowhere.jsonl")
    missing = [row["name"] for row in answer["not_analysed"] if "no such file" in row["reason"]]
    assert missing == ["nowhere.jsonl"]


def test_the_order_of_sources_makes_no_difference(logs: Path, capsys: Output) -> None:
    documents = sorted(str(path) for path in logs.rglob("*") if path.is_file())
    answers = []
    for sources in (documents, documents[::-1]):
        for kind in ("json", "csv", "table"):
            assert run(["fleet", *sources, "--workers", "1", "--format", kind, "-q", "--by", "week"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_names_of_a_log_do_nothing_on_a_page() -> None:
    evil = "<script>alert(1)</script>"
    put(Path("a.jsonl"), training(evil, 10, 6))
    put(Path("b.jsonl"), training("=cmd()", 10, 6))
    Path("labels.json").write_text(json.dumps([{"job": "*", "team": evil, "accelerators": 8}]))
    names = [f"out.{ending}" for ending in ("html", "md", "csv", "prom", "xml", "parquet")]
    outputs = [argument for name in names for argument in ("-o", name)]
    assert run(["fleet", "a.jsonl", "b.jsonl", "--labels", "labels.json", "--by", "team", "-q", *outputs]) == 0
    page = Path("out.html").read_text()
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page
    assert f"<title>{escape(evil)}, {escape(evil)}: 60.00 % of 80.0 h</title>" in page
    assert Path("out.prom").read_text().endswith("# EOF\n")


def test_the_plan_reads_nothing(logs: Path, read: list[str], capsys: Output) -> None:
    assert run(["fleet", str(logs), "--plan", "--workers", "1"]) == 0
    assert "documents" in capsys.readouterr().out
    assert read == []


def test_document_without_read_permission_is_listed(logs: Path) -> None:
    """Run as an unprivileged user: root may read everything, so its right to do so is removed from the command."""
    shutil.copytree(logs / "part-0", "some")
    shutil.copy(logs / "job-0001.jsonl", "some/locked.jsonl")
    Path("some/locked.jsonl").chmod(0)
    drop = (
        "import ctypes, os, sys; libc = ctypes.CDLL(None); [libc.prctl(24, right) for right in (1, 2)]; "
        "os.execv(sys.executable, [sys.executable, '-m', 'goodput_cli', *sys.argv[1:]])"
    )  # PR_CAPBSET_DROP: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    command = [sys.executable, "-c", drop, "fleet", "some", "--workers", "1", "--format", "json"]
    paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(command, env=paths, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    (row,) = answer["not_analysed"]
    assert (row["what"], row["name"]) == ("document", "some/locked.jsonl")
    assert "permission" in row["reason"].lower()
    assert [run_["job"] for run_ in answer["runs"]] == ["split"]


def test_too_large_documents_are_read_by_this_process(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    plain = fleet(str(logs))
    capsys.readouterr()
    monkeypatch.setattr(InProcessEngine, "memory", LEAST + 20_000)
    assert fleet(str(logs), quiet=False) == plain
    said = capsys.readouterr().err
    assert "analyzed in the main process" in said
    monkeypatch.setattr("goodput_cli.fleet.passes.plan.of_this_machine", lambda: LEAST + 20_000)
    answer = fleet(str(logs), "--runs", "each")
    reasons = {row["reason"] for row in answer["not_analysed"]}
    assert any("too large for --memory: needs about 0.1 GB" in reason for reason in reasons)
    assert 0 < len(answer["runs"]) < len(plain["runs"])


def test_a_fleet_in_one_process_does_without_arrow() -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    told = "from goodput_cli.cli.main import run; run(['fleet', 'a.jsonl', '--workers', '1', '-q'])"
    code = f"import sys; {told}; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"


def test_library_and_command_give_the_same_report(logs: Path) -> None:
    Path("labels.csv").write_text(text_of("job,team,accelerators", "job-*,search,8"))
    report = goodput_cli.fleet_report(logs, labels="labels.csv", by=["team"], jobs=["job-*"], workers=1)
    assert isinstance(report, goodput_cli.FleetReport)
    assert [row.group for row in report.groups[0].rows] == ["search"]
    answer = fleet(str(logs), "--labels", "labels.csv", "-j", "job-*")
    assert report.total.goodput_percent == answer["totals"]["goodput_percent"]
    with pytest.raises(goodput_cli.UsageError, match="number of processes"):
        goodput_cli.fleet_report(logs, workers=0)


def test_disruptions_of_a_fleet_are_those_that_disruptions_lists(logs: Path, capsys: Output) -> None:
    names = ("number", "last_sign_of_life", "ended", "wasted_seconds", "downtime_seconds", "restart_seconds")
    answer = fleet(str(logs), "--runs", "all", "--top", "1000")["disruptions"]
    capsys.readouterr()
    for job in ("job-0003", "many-7", "split", "twin"):
        assert run(["disruptions", str(logs), "-j", job, "--format", "json", "-q"]) == 0
        listed = json.loads(capsys.readouterr().out)["disruptions"]
        own = sorted((row for row in answer if row["job"] == job), key=lambda row: row["number"])
        assert [[row[name] for name in names] for row in own] == [[row[name] for name in names] for row in listed]
        shown = [row["evidence"]["ended"] or row["evidence"]["last_sign_of_life"] for row in listed]
        assert [row["evidence"] for row in own] == shown
    assert len(own) > 0
