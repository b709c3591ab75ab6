"""A fleet known only from a scheduler: allocated time and waits are exact, and goodput is unknown, never 0."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from tests.support.answers import check_any_answer
from tests.support.fleets import fleet, put, text_of, training

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("folder")
HEADER = "JobID|JobName|User|Account|Partition|Cluster|State|Submit|Eligible|Start|End|AllocTRES|NNodes|NodeList"
DAY = "2026-03-01T"
ROWS = (
    ("1", "a", "u1", "pre", "FAILED", "10:00:00", "10:10:00", "12:10:00", 8),
    ("1", "a", "u1", "pre", "COMPLETED", "12:10:00", "12:20:00", "16:20:00", 8),
    ("2", "b", "u2", "rl", "TIMEOUT", "10:01:40", "10:06:40", "14:10:00", 16),
    ("3", "c", "u2", "rl", "CANCELLED by 1002", "10:08:20", "", "10:15:00", 0),
    ("4", "d", "u3", "pre", "NODE_FAIL", "10:16:40", "11:16:40", "12:16:40", 32),
    ("5", "e", "u3", "pre", "COMPLETED", "10:33:20", "10:34:20", "11:34:20", 1),
)
"""Id, name, user, account, state, asked, start, end, accelerators: 48 + 64.8889 + 32 + 1 = 145.8889 accelerator h.
Waits of 60, 300, 600, 600 and 3600 s."""
STEP = f"1.batch|batch||pre|gpu|c1|FAILED|{DAY}10:10:00|{DAY}10:10:00|{DAY}10:10:00|{DAY}12:10:00|gres/gpu=8|1|n1"


def line(row: tuple[Any, ...]) -> str:
    number, name, user, account, state, asked, start, end, count = row
    begun = DAY + start if start else "Unknown"
    held = f"gres/gpu={count}" if count else ""
    at = DAY + asked
    return f"{number}|{name}|{user}|{account}|gpu|c1|{state}|{at}|{at}|{begun}|{DAY + end}|{held}|1|n{number}"


def table(*more: str, rows: tuple[tuple[Any, ...], ...] = ROWS, path: str = "sacct.txt") -> str:
    Path(path).write_text(text_of(HEADER, *map(line, rows), *more))
    return path


def pod(
    name: str, job: str, created: str, begun: str | None, end: str | None, count: int, phase: str
) -> dict[str, Any]:
    told = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{DAY}{begun}Z"}] if begun else []
    state = {"terminated": {"exitCode": 0, "finishedAt": f"{DAY}{end}Z"}} if end else {"running": {}}
    resources = {"limits": {"nvidia.com/gpu": str(count)}}
    about = {"name": name, "uid": name, "namespace": "pre", "creationTimestamp": f"{DAY}{created}Z",
             "labels": {"batch.kubernetes.io/job-name": job}}  # fmt: skip
    status = {"phase": phase, "conditions": told, "containerStatuses": [{"name": "t", "state": state}] if begun else []}
    return {"kind": "Pod", "metadata": about, "spec": {"containers": [{"name": "t", "resources": resources}]},
            "status": status}  # fmt: skip


PODS = [
    pod("a-1", "a", "10:00:00", "10:10:00", "12:10:00", 8, "Failed"),
    pod("a-2", "a", "12:10:00", "12:20:00", "16:20:00", 8, "Succeeded"),
    pod("b-1", "b", "10:01:40", "10:06:40", "14:10:00", 16, "Failed"),
    pod("c-1", "c", "10:08:20", None, None, 4, "Failed"),
    pod("d-1", "d", "10:16:40", "11:16:40", "12:16:40", 32, "Failed"),
    pod("e-1", "e", "10:33:20", "10:34:20", "11:34:20", 1, "Succeeded"),
]


def same_amounts(answer: dict[str, Any]) -> None:
    """Check the amounts that are the same for every scheduler."""
    held = answer["allocations"]
    total = held["total"]
    assert round(total["accelerator_hours"], 4) == 145.8889
    assert (total["wait_p50_seconds"], total["wait_p95_seconds"]) == (600, 3000)
    assert (total["allocations"], total["never_started"], total["requeued_jobs"], held["jobs"]) == (5, 1, 1, 5)
    assert (answer["totals"]["goodput_percent"], answer["totals"]["time_goodput_percent"]) == (None, None)
    assert (answer["runs"], answer["complete"], held["jobs_with_log"]) == ([], True, 0)
    check_any_answer(answer)


def test_table_alone_gives_allocated_time_and_waits() -> None:
    answer = fleet(table(STEP))
    same_amounts(answer)
    held = answer["allocations"]
    assert {row["group"]: round(row["accelerator_hours"], 4) for row in held["groups"][0]["rows"]} == {
        "pre": 81, "rl": 64.8889
    }  # fmt: skip
    assert {one["state"]: one["rows"] for one in held["states"]} == {
        "timeout": 1, "completed": 2, "node_fail": 1, "failed": 1, "cancelled": 1,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["list", "lines"])
def test_kubernetes_objects_give_the_same_totals(kind: str) -> None:
    whole = json.dumps({"kind": "List", "items": PODS}) if kind == "list" else "\n".join(map(json.dumps, PODS))
    Path("pods.json").write_text(whole)
    answer = fleet("pods.json")
    same_amounts(answer)
    assert answer["allocations"]["rows_of"] == "Kubernetes"
    assert answer["allocations"]["groups"][0]["by"] == ["namespace"]


def test_workload_contains_its_waiting_time() -> None:
    conditions = [{"type": "Admitted", "status": "True", "lastTransitionTime": f"{DAY}10:30:00Z"}]
    about = {"name": "w", "creationTimestamp": f"{DAY}10:00:00Z", "ownerReferences": [{"name": "a"}]}
    spec, status = {"queueName": "big"}, {"conditions": conditions}
    workload = {"kind": "Workload", "metadata": about, "spec": spec, "status": status}
    pods = [pod(f"a-{n}", "a", "10:30:00", "10:31:00", "11:31:00", 8, "Succeeded") for n in range(4)]
    Path("k.json").write_text(json.dumps({"kind": "List", "items": [workload, *pods]}))
    held = fleet("k.json", "--by", "queue")["allocations"]
    assert (held["total"]["wait_p50_seconds"], held["total"]["accelerator_hours"]) == (1800, 32)
    assert (held["total"]["allocations"], held["total"]["requeued_jobs"]) == (1, 0)
    assert held["groups"][0]["rows"][0]["group"] == "big"


def test_terminal_prints_unknown_and_never_0(capsys: Output) -> None:
    assert run(["fleet", table(), "--workers", "1", "-q"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        " Fleet: 5 jobs, 6 rows of sacct, 0 training logs\n"
        " ALLOCATED  145.9 accelerator h in 5 allocations; 1 job never started\n"
        " GOODPUT    unknown: no job has a training log (add their stdout)\n"
        " ended      timeout 64.9 h, completed 33.0 h, node_fail 32.0 h, failed 16.0 h\n"
        " waited     p50 10 min 00 s, p95 50 min 00 s; 1 job requeued once\n"
    )
    assert "0.00 %" not in shown


WAITING = ("6", "f", "u3", "pre", "PENDING", "12:00:00", "", "", 0)


def test_waiting_job_waits_until_the_last_time_of_the_table(capsys: Output) -> None:
    pending = line(WAITING).replace(f"|{DAY}||", "|Unknown||")
    held = fleet(table(pending))["allocations"]
    first, *others = held["listed"]
    assert (first["job"], first["state"], first["waited_seconds"]) == ("f", "pending", 4 * 3600 + 20 * 60)
    waits = [one["waited_seconds"] for one in others]
    assert waits == [3600, 600, 600, 300, 60, None]
    assert (held["total"]["never_started"], len(held["listed"])) == (1, 7)
    assert run(["fleet", table(pending), "--workers", "1", "-q", "--full"]) == 0
    shown = capsys.readouterr().out
    assert " waiting    1 job (4 h 20 min so far)\n" in shown
    assert "Jobs of the scheduler, longest wait first" in shown


def test_scheduler_jobs_end_with_the_logged_state(capsys: Output) -> None:
    """Also one that never started (job 3), and the cause if it is in the table."""
    rows = (("0", "z", "u1", "pre", "CANCELLED by 1002", "09:00:00", "09:10:00", "09:15:00", 8), *ROWS)
    assert run(["jobs", table(rows=rows), "-q", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    check_any_answer(answer)
    assert [(one["name"], one["ending"], one["cause"]) for one in answer["jobs"]] == [
        ("z", "cancelled", None), ("a", "clean", None), ("b", "terminated", "time_limit"), ("c", "cancelled", None),
        ("d", "crashed", "node_failure"), ("e", "clean", None),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["csv", "markdown", "html", "openmetrics", "junit"])
def test_no_format_prints_0_percent(name: str, capsys: Output) -> None:
    assert run(["fleet", table(), "--workers", "1", "-q", "--format", name]) == 0
    shown = capsys.readouterr().out
    assert "0.00 %" not in shown.replace("100.00 %", "")
    assert "goodput_fleet_ratio{" not in shown
    if name not in ("csv", "openmetrics"):  # which have the groups, and the states
        assert "145.9 accelerator h in 5 allocations" in shown.replace("\N{NO-BREAK SPACE}", " ")


def test_metrics_contain_waits_and_allocated_hours(capsys: Output) -> None:
    assert run(["fleet", table(), "--workers", "1", "-q", "--format", "openmetrics"]) == 0
    shown = capsys.readouterr().out
    assert 'goodput_fleet_wait_seconds{job_name="fleet",quantile="0.95"} 3000' in shown
    assert 'goodput_fleet_held_hours{job_name="fleet",state="node_fail"} 32' in shown
    assert "goodput_fleet_failures" not in shown


@pytest.mark.parametrize(
    ("gate", "code"),
    [("wait_p95>49m", 3), ("wait_p95>51m", 0), ("held.failed_percent>77", 3), ("held.failed_percent>78", 0),
     ("goodput<80", 4), ("failures>0", 4)],
)  # fmt: skip
def test_gates_judge_what_is_known(gate: str, code: int) -> None:
    fleet(table(), "--fail-if", gate, code=code)


def test_labels_win_over_the_account_and_state_is_a_dimension() -> None:
    Path("labels.csv").write_text("job,team\nb,reasoning\n")
    held = fleet(table(), "--labels", "labels.csv", "--by", "team", "--by", "state")["allocations"]
    assert {row["group"] for row in held["groups"][0]["rows"]} == {"pre", "reasoning", "rl"}
    assert held["groups"][1]["rows"][0]["group"] == "timeout"


def test_unknown_dimension_is_rejected(capsys: Output) -> None:
    put(Path("a.jsonl"), training("a", 10, 6))
    assert run(["fleet", "a.jsonl", "--by", "partition", "--workers", "1"]) == 2
    assert "unknown dimension" in capsys.readouterr().err


def test_goodput_covers_only_jobs_with_logs() -> None:
    """a trained 6 of 10 h on 8; b was allocated 16 x 4 h and has no log."""
    put(Path("a.jsonl"), training("a", 10, 6))
    day = "2026-01-01T"
    rows = [f"{n}|{name}|u|x|gpu|c|COMPLETED|{day}00:00:00|{day}00:00:00|{day}00:00:00|{day}{end}|gres/gpu={count}|1|n"
            for n, name, end, count in ((1, "a", "10:00:00", 8), (2, "b", "04:00:00", 16))]  # fmt: skip
    Path("sacct.txt").write_text(text_of(HEADER, *rows))
    answer = fleet("a.jsonl", "sacct.txt")
    assert [one["job"] for one in answer["runs"]] == ["a"]
    assert answer["totals"]["goodput_percent"] == 60
    assert answer["totals"]["accelerator_hours"] == 80, "the table says how many it holds"
    held = answer["allocations"]
    assert (held["jobs_with_log"], held["accelerator_hours_with_log"], held["total"]["accelerator_hours"]) == (
        1,
        80,
        144,
    )
    again = fleet("a.jsonl", "sacct.txt", "--sacct", "sacct.txt")
    assert again["allocations"]["total"] == held["total"], "a row in two tables counts once"
    assert again["totals"]["accelerator_hours"] == 80


def test_jobs_has_no_goodput_for_them(capsys: Output) -> None:
    listed = goodput_cli.jobs(table())
    assert {one.goodput_percent for one in listed.jobs} == {None}
    assert {one.reason for one in listed.jobs} == {"no training log"}
    assert run(["analyze", "sacct.txt"]) == 2
    assert "run `goodput fleet sacct.txt`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    ["7|x", "7|x|u|p|gpu|c1|COMPLETED|then|then|now|never|gres/gpu=8|1|n", "", HEADER,
     "8|<script>\x1b[31m|u|p|gpu|c1|RUNNING|||" + DAY + "10:00:00|Unknown||4|n"],
)  # fmt: skip
def test_bad_and_hostile_rows_harm_nothing(more: str, capsys: Output) -> None:
    assert run(["fleet", table(more), "--workers", "1", "-q", "--by", "user", "-o", "f.html"]) == 0
    page = Path("f.html").read_text()
    assert "<script>[" not in page
    assert "\x1b" not in page
    assert run(["fleet", "sacct.txt", "--workers", "1", "-q"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_running_job_is_allocated_until_the_latest_time() -> None:
    at = DAY + "15:20:00"
    running = f"9|r|u|pre|gpu|c1|RUNNING|{at}|{at}|{at}|Unknown|gres/gpu=2|1|n"
    nodes = f"10|n|u|pre|cpu|c1|COMPLETED|{at}|{at}|{at}|{DAY}15:50:00|cpu=8|4|n"
    total = fleet(table(running, nodes))["allocations"]["total"]
    assert round(total["accelerator_hours"], 4) == 147.8889
    assert total["node_hours"] == 2


@pytest.mark.parametrize(
    ("nodes", "said"), [(None, "unknown in 1 allocation"), (4, "2.0 node h (accelerators unknown)")]
)
def test_allocated_time_without_counts_is_unknown(nodes: int | None, said: str, capsys: Output) -> None:
    at = DAY + "15:20:00"
    head, row = "JobID|JobName|User|State|Submit|Start|End", f"10|n|u|COMPLETED|{at}|{at}|{DAY}15:50:00"
    more = ("", "") if nodes is None else ("|NNodes", f"|{nodes}")
    Path("sacct.txt").write_text(text_of(head + more[0], row + more[1]))
    assert run(["fleet", "sacct.txt", "--workers", "1", "-q"]) == 0
    assert f"ALLOCATED  {said}" in capsys.readouterr().out


def test_a_thousand_teams_are_201_series_that_add_up(capsys: Output) -> None:
    count = 260
    for number in range(count):
        put(Path(f"logs/{number}.jsonl"), training(f"j{number}", 2, 1, at=number))
    Path("labels.csv").write_text(text_of("job,team,accelerators", *(f"j{n},team {n},8" for n in range(count))))
    asked = ["fleet", "logs", "--labels", "labels.csv", "--by", "team", "--workers", "1", "-q", "--format"]
    assert run([*asked, "openmetrics"]) == 0
    shown = capsys.readouterr().out.splitlines()
    for name in ("goodput_fleet_ratio", "goodput_fleet_runs"):
        assert sum(one.startswith(f"{name}{{") for one in shown) == 1 + 201
    hours = [one for one in shown if one.startswith("goodput_fleet_accelerator_hours{")]
    whole = sum(float(one.rsplit(" ", 1)[1]) for one in hours if "team=" not in one)
    assert whole == sum(float(one.rsplit(" ", 1)[1]) for one in hours if "team=" in one) == count * 2 * 8
    assert "j12" not in "".join(shown), "no names of jobs"


def test_scheduler_only_group_is_a_row_without_goodput(capsys: Output) -> None:
    """Team x trained (a), and was allocated 16 x 4 h without a log (b); team y has no log at all (c)."""
    put(Path("a.jsonl"), training("a", 10, 6))
    at = "2026-01-01T00:00:00"
    jobs = ((1, "a", "x", "10:00:00", 8), (2, "b", "x", "04:00:00", 16), (3, "c", "y", "02:00:00", 4))
    rows = [f"{n}|{name}|u|{team}|gpu|c|COMPLETED|{at}|{at}|{at}|2026-01-01T{end}|gres/gpu={count}|1|n"
            for n, name, team, end, count in jobs]  # fmt: skip
    Path("sacct.txt").write_text(text_of(HEADER, *rows))
    asked = ["fleet", "a.jsonl", "sacct.txt", "--by", "account", "--workers", "1", "-q", "--format"]
    assert run([*asked, "csv"]) == 0
    shown = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    kept = "group runs accelerator_hours goodput_percent lost_hours unlogged_hours".split()
    assert [[one[name] for name in kept] for one in shown] == [
        ["x", "1", "80.0", "60.0", "32.0", "64.0"], ["y", "0", "", "", "", "8.0"],
    ]  # fmt: skip
    assert run([*asked, "table"]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["y", "0", "-", "-", "-", "0", "8.0"] in said


def test_waits_of_small_groups_are_merged(capsys: Output) -> None:
    """250 accounts of one job each, that waited 10 min: 200 have their own series, and `other` has the rest."""
    rows = tuple(
        (str(n), f"j{n}", "u", f"team{n:03}", "COMPLETED", "10:00:00", "10:10:00", "11:10:00", 1) for n in range(250)
    )
    assert run(["fleet", table(rows=rows), "--workers", "1", "-q", "--format", "openmetrics"]) == 0
    waits = [line for line in capsys.readouterr().out.splitlines() if line.startswith("goodput_fleet_wait_seconds{")]
    assert len(waits) == 2 * (1 + 200 + 1)
    assert 'goodput_fleet_wait_seconds{job_name="fleet",account="other",quantile="0.5"} 600' in waits


def test_table_of_one_job_joins_the_log_next_to_it() -> None:
    slurm = Path(__file__).parent.parent / "real" / "slurm" / "llm-20b"
    answer = fleet(str(slurm), "--timezone", "UTC")
    held = answer["allocations"]
    assert len(answer["runs"]) == 1
    assert held["jobs_with_log"] > 0


def test_one_job_of_a_table_alone_is_not_judged(tmp_path: Path) -> None:
    """Also one that failed: its training before that is unknown."""
    table = tmp_path / "sacct.txt"
    table.write_text(
        "JobID|JobName|State|Submit|Start|End|NNodes\n"
        "1|pretrain|NODE_FAIL|2026-03-01T10:00:00|2026-03-01T11:00:00|2026-03-01T12:00:00|4\n"
    )
    analysis = goodput_cli.analyze(table)
    assert analysis.goodput_percent is None
    assert "only a scheduler reports this job" in (analysis.timeline.why_unknown or "")


def test_rows_of_a_table_are_in_the_order_of_their_jobs(capsys: Output) -> None:
    """A requeued job ends after the beginning of the next one: no clock went back."""
    run(["check", table()])
    assert "stamps_go_back" not in capsys.readouterr().out
