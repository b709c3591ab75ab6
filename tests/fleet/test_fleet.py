"""`goodput fleet` in the process: the acceptance checks of docs/fleet.md that need no other processes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import goodput_cli.fleet.passes.read
from goodput_cli.analysis.disruptions.reliability import poisson_interval
from goodput_cli.cli.main import run
from tests.support.fleets import fleet, make_fleet, of_job, put
from tests.support.json_answers import check_answer
from tests.support.story import end, start, steps, told

HOUR = 3600
Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of 6 ordinary jobs and one of each odd kind."""
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    make_fleet(folder, 6)
    return folder


@pytest.fixture(scope="module")
def listed(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `goodput jobs` says of it."""
    out = tmp_path_factory.mktemp("jobs") / "jobs.json"
    assert run(["jobs", str(logs), "-q", "-o", str(out)]) == 0
    return json.loads(out.read_text())


def training(name: str, hours: float, productive: float, at: float = 0) -> list[str]:
    """A job of so many hours of which so many were kept training, in steps of a minute; the rest is before it."""
    count = round(productive * 60)
    first = (hours - productive) * HOUR
    lines = told(start(0), steps(0, count + 1, at=first, every=60), end(hours * HOUR))
    return of_job(lines, name, at)


def text_of(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


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


def test_what_is_not_in_the_totals_is_listed_with_a_reason(logs: Path) -> None:
    answer = fleet(str(logs))
    reasons = {Path(row["name"]).name: row["reason"] for row in answer["not_analysed"]}
    assert reasons.keys() == {"noise.jsonl", "single"}
    assert not answer["complete"]
    assert [row["run"] for row in answer["runs"] if row["job"] == "again"] == [1, 2, 3]
    assert "truncated_file" in {one["code"] for one in answer["diagnostics"]}


def test_a_document_that_cannot_be_read_costs_no_other(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The documents that are read, and by `account` the jobs that are accounted for."""
    names: list[str] = []
    original = goodput_cli.fleet.passes.read.read_one

    def counted(task: Any, document: Any, *more: Any) -> Any:
        names.append(document.name)
        return original(task, document, *more)

    monkeypatch.setattr(goodput_cli.fleet.passes.read, "read_one", counted)
    monkeypatch.setattr("goodput_cli.fleet.passes.pieces.read_one", counted)
    monkeypatch.setattr("goodput_cli.fleet.store.store._RACY_NS", 0)
    return names


def test_what_is_in_the_store_is_not_read_again(logs: Path, read: list[str]) -> None:
    shutil.copytree(logs, "copy")
    plain = fleet("copy")
    assert fleet("copy", "--store", "store") == plain
    read.clear()
    assert fleet("copy", "--store", "store") == plain
    assert read == []
    with open("copy/job-0003.jsonl", "a") as file:
        file.write(json.dumps({"job_name": "job-0003", "job_end_time": 1.78e9}) + "\n")
    changed = fleet("copy", "--store", "store")
    assert read == ["copy/job-0003.jsonl"]
    assert changed != plain
    assert changed == fleet("copy")
    assert fleet("copy", "--store", "store", "--accelerators", "8")["totals"]["known_runs"] > 0


def test_another_question_reads_again_and_the_first_is_still_known(logs: Path, read: list[str]) -> None:
    answers = [fleet(str(logs), "--store", "store", *more) for more in ((), ("--stall-factor", "0"))]
    assert answers[0] != answers[1]
    read.clear()
    assert fleet(str(logs), "--store", "store") == answers[0]
    assert read == []


def test_a_damaged_part_of_the_store_is_made_anew(logs: Path, read: list[str]) -> None:
    plain = fleet(str(logs), "--store", "store")
    part = min(Path("store/results").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    (Path("store") / "tmp-left-behind").write_bytes(b"half")
    again = fleet(str(logs), "--store", "store")
    assert "damaged_store_part" in {one["code"] for one in again["diagnostics"]}
    assert {**again, "diagnostics": None} == {**plain, "diagnostics": None}


def test_a_store_of_another_version_is_refused(capsys: Output) -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    Path("store").mkdir()
    Path("store/format.json").write_text('{"format": 99}')
    assert run(["fleet", "a.jsonl", "--store", "store"]) == 1
    assert "another version" in capsys.readouterr().err


def test_weeks_add_up_exactly_across_a_clock_change() -> None:
    """Two weeks around 2026-03-29 in Berlin, the first of 167 hours; accelerators change inside the second."""
    put(Path("a.jsonl"), training("a", 24 * 12, 24 * 10, at=82 * 86_400))
    rows = ("job,start,end,accelerators", "a,2026-03-20,2026-04-02,64", "a,2026-04-02,2026-04-20,96")
    Path("allocations.csv").write_text(text_of(*rows))
    answer = fleet(
        "a.jsonl", "--timezone", "Europe/Berlin", "--allocations", "allocations.csv", "--reference-step-time", "59.9"
    )
    assert [week["week"] for week in answer["weeks"]] == ["2026-W13", "2026-W14"]
    short = answer["weeks"][0]
    assert (short["start"], short["end"]) == ("2026-03-24T00:00:00Z", "2026-03-29T22:00:00Z")
    assert short["covered_percent"] == pytest.approx(100 * (5 * 24 + 22) / 167)
    for category in answer["categories"]:
        weekly = [
            int(row["chip_ns"])
            for week in answer["weeks"]
            for row in week["categories"]
            if row["category"] == category["category"]
        ]
        assert str(sum(weekly)) == category["chip_ns"]


def test_a_run_across_new_year_is_in_the_weeks_of_both_years() -> None:
    put(Path("a.jsonl"), training("a", 24 * 7, 24 * 6, at=-3 * 86_400))
    weeks = fleet("a.jsonl", "--accelerators", "8")["weeks"]
    assert [week["week"] for week in weeks] == ["2026-W01"]
    put(Path("a.jsonl"), training("a", 24 * 7, 24 * 6, at=-5 * 86_400))
    weeks = fleet("a.jsonl", "--accelerators", "8")["weeks"]
    assert [week["week"] for week in weeks] == ["2025-W52", "2026-W01"]


def mpg_fleet(*ideal: str) -> Any:
    """8 accelerators for 10 h of which 6 were kept, 24 for 5 h of which 4 were kept, 32 that there are."""
    put(Path("logs/a.jsonl"), training("a", 10, 6))
    put(Path("logs/b.jsonl"), training("b", 5, 4))
    Path("labels.csv").write_text(text_of("job,accelerators,ideal_step_seconds", *ideal))
    Path("capacity.csv").write_text(text_of("from,to,count", "2026-01-01,2026-01-01T10:00:00,32"))
    return fleet("logs", "--labels", "labels.csv", "--capacity", "capacity.csv")


def test_mpg_by_hand() -> None:
    """K = 320, A = 200, P = 144 chip hours; 3 ideal hours are half of what a kept, 3/4 of what b kept."""
    mpg = mpg_fleet("a,8,30", "b,24,")["mpg"]
    assert (mpg["scheduling_percent"], mpg["runtime_percent"]) == (62.5, 72.0)
    assert mpg["program_percent"] == pytest.approx(50)
    assert mpg["program_coverage_percent"] == pytest.approx(100 / 3)
    both = mpg_fleet("a,8,30", "b,24,45")["mpg"]
    assert both["program_percent"] == pytest.approx(100 * 96 / 144)
    assert both["mpg_percent"] == pytest.approx(30)
    none = fleet("logs", "--labels", "labels.csv")["mpg"]
    assert (none["scheduling_percent"], none["mpg_percent"], none["runtime_percent"]) == (None, None, 72.0)


def test_mpg_of_a_small_part_is_said_not_to_be_recorded(capsys: Output) -> None:
    mpg_fleet("a,8,30", "b,24,")
    assert run(["fleet", "logs", "--labels", "labels.csv", "--capacity", "capacity.csv", "--workers", "1"]) == 0
    assert "MPG not recorded (program goodput known for 33.33 %" in capsys.readouterr().out


def test_mttf_by_hand() -> None:
    """Exposures of 100, 50 and 50 h with 2 failures: 100 h, and Garwood's interval; without a failure only its lower
    end."""
    died = told(
        start(0), steps(0, 61, at=0, every=60), start(40 * HOUR), steps(30, 61, at=40 * HOUR, every=60),
        start(70 * HOUR), steps(60, 61, at=70 * HOUR, every=60), end(170 * HOUR),
    )  # fmt: skip
    put(Path("logs/a.jsonl"), of_job(died, "a"))
    for name in "bc":
        put(Path(f"logs/{name}.jsonl"), training(name, 50, 40))
    Path("labels.csv").write_text(text_of("job,accelerators,accelerators_per_node", "a,64,8", "*,64,8"))
    (row,) = fleet("logs", "--labels", "labels.csv")["sizes"]
    lower, upper = poisson_interval(2)
    up = row["up_seconds"]
    assert row["failures"] == 2
    assert row["mttf_seconds"] == pytest.approx(up / 2)
    assert row["mttf_low_seconds"] == pytest.approx(up / upper)
    assert row["mttf_high_seconds"] == pytest.approx(up / lower)
    assert (round(200 / upper, 1), round(200 / lower, 1)) == (27.7, 825.7)
    assert row["per_1000_node_days"] == pytest.approx(2 / (up / 86_400 * 8) * 1000)
    (quiet,) = fleet("logs", "--labels", "labels.csv", "--failures", "preempted")["sizes"]
    assert (quiet["failures"], quiet["mttf_seconds"], quiet["mttf_high_seconds"]) == (0, None, None)
    assert quiet["mttf_low_seconds"] == pytest.approx(up / poisson_interval(0)[1])


def test_without_labels_chip_time_is_not_recorded_and_job_time_is(logs: Path, capsys: Output) -> None:
    answer = fleet(str(logs))
    assert (answer["totals"]["goodput_percent"], answer["totals"]["accelerator_hours"]) == (None, None)
    assert answer["totals"]["time_goodput_percent"] > 0
    assert run(["fleet", str(logs), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "GOODPUT not recorded by chip time" in shown
    assert "by job time" in shown
    assert run(["fleet", str(logs), "--workers", "1", "-q", "--fail-if", "mpg<50"]) == 4


def test_thresholds_of_groups(logs: Path, capsys: Output) -> None:
    Path("labels.csv").write_text(text_of("job,team,accelerators", "job-000?,search,8", "job-*,vision,16"))
    judge = ["fleet", str(logs), "--labels", "labels.csv", "--workers", "1", "-q"]
    assert run([*judge, "--fail-if", "any(team):goodput<99"]) == 3
    said = capsys.readouterr().err
    assert "[search]: FAILED" in said
    assert "[(none)]: not recorded" in said
    assert run([*judge, "--fail-if", "goodput<1", "--fail-if", "analysed<50"]) == 0
    assert run([*judge, "--fail-if", "lost_hours>0.001"]) == 3
    assert run([*judge, "--strict"]) == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "-2h"], "differs from job to job"),
        (["--to", "attempt:3"], "differs from job to job"),
        (["--from", "2026-01-01", "--last", "7d"], "exclude each other"),
        (["--by", "moon"], "no such dimension"),
        (["--sizes", "8,4"], "rising"),
        (["--failures", "tired"], "no way to end"),
        (["--labels", "bad.csv"], "bad.csv:3: accelerators: '0' is not a number from 1"),
        (["--capacity", "overlap.csv"], "overlap.csv:3: overlaps"),
        (["--labels", "nothing.csv"], "no such file"),
        (["--fail-if", "moon<3"], "there is no 'moon'"),
        (["--scheduler", "tcp://127.0.0.1:1", "--store", "s"], "--insecure-scheduler"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_read(arguments: list[str], words: str, capsys: Output) -> None:
    put(Path("a.jsonl"), training("a", 1, 0.5))
    Path("bad.csv").write_text(text_of("job,accelerators", "a,8", "b,0"))
    Path("overlap.csv").write_text(text_of("from,to,count", "2026-01-01,2026-01-03,8", "2026-01-02,2026-01-04,8"))
    assert run(["fleet", "a.jsonl", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_sacct_rows_are_allocations() -> None:
    """A requeued job: two rows with the same name; the first waited an hour. One that nobody logged is counted."""
    put(Path("a.jsonl"), training("a", 10, 6))
    rows = (
        "JobIDRaw|JobName|Account|User|Partition|Cluster|State|Submit|Eligible|Start|End|AllocTRES|NNodes",
        "7|a|search|ann|gpu|west|NODE_FAIL|2025-12-31T23:00:00|2025-12-31T23:00:00|2026-01-01T00:00:00|"
        "2026-01-01T04:00:00|billing=8,cpu=8,gres/gpu:h100=8,gres/gpu=8,node=1|1",
        "7|a|search|ann|gpu|west|COMPLETED|2025-12-31T23:00:00|Unknown|2026-01-01T04:00:00|2026-01-01T10:00:00|"
        "gres/gpu:h100=16|2",
        "8|b|vision|bob|gpu|west|COMPLETED|2026-01-01T00:00:00|None|2026-01-01T01:00:00|2026-01-01T02:00:00|"
        "gres/gpu=4|1",
        "9|c|vision|bob|gpu|west|PENDING|2026-01-01T00:00:00|Unknown|Unknown|Unknown||1",
    )
    Path("sacct.txt").write_text(text_of(*rows))
    answer = fleet("a.jsonl", "--sacct", "sacct.txt", "--by", "team", "--by", "accelerator")
    (run_,) = answer["runs"]
    assert (run_["accelerators"], run_["team"], run_["accelerator"]) == (16, "search", "h100")
    assert answer["mpg"]["allocated_chip_ns"] == str((4 * 8 + 6 * 16) * HOUR * 10**9)
    assert answer["coverage"]["allocations_without_logs"] == 1
    assert answer["coverage"]["allocations_without_logs_hours"] == 4


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
    assert Path("out.prom").read_text().endswith("# EOF\n")


def test_the_plan_reads_nothing(logs: Path, read: list[str], capsys: Output) -> None:
    assert run(["fleet", str(logs), "--plan", "--workers", "1"]) == 0
    assert "documents" in capsys.readouterr().out
    assert read == []
