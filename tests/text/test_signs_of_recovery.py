"""Signs of a recovery: moments in lines of launchers, agents and schedulers, with their time and job. No such line
changes the accounting.

The lines have the shapes of NVRx' profiler and launcher, torch.distributed.elastic, PyTorch's watchdog, slurmctld,
`sacct`, DLRover's training events and the API of Kubernetes. The expected values were worked out by hand.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodput_cli.events.mappings import registry
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import COLUMNS, EventLog
from goodput_cli.events.signs import MOST_SIGNS, RecoveryEvent, RecoveryPhase
from goodput_cli.events.text import entries, scan
from goodput_cli.events.text.lines import LineRules

STEP = (
    " [2026-05-01 {at}.000000] iteration {step:8d}/     400 | consumed samples: {step:12d} | elapsed time per "
    "iteration (ms): 10000.0 | learning rate: 1.0E-04 | global batch size:    64 | lm loss: 2.0E+00 |\n"
)


def steps(hour: int, minute: int, first: int, last: int) -> str:
    """Return steps of 10 s each; the first ends after a minute."""
    found = ""
    for number, step in enumerate(range(first, last + 1)):
        second = 60 * minute + 10 * number
        found += STEP.format(at=f"{hour:02d}:{second // 60:02d}:{second % 60:02d}", step=step)
    return found


def cycle(number: int, event: str, at: str, host: str = "node-07", rank: str = "0") -> str:
    return (
        f"2026-05-01 {at},120 [INFO] [{host}] [workload:None(None) infra:0(0)] profiling.py:93   - Cycle: {number} "
        f"Event: {event} Node: {host}_812_0 Rank: {rank} Time: 2026-05-01 {at}.120 UTC\n"
    )


def read(*sources: Path | str) -> EventLog:
    return read_events([str(source) for source in sources])


def signs(log: EventLog) -> tuple[RecoveryEvent, ...]:
    return log.table.observed.signs


def shown(log: EventLog) -> list[tuple[str, str]]:
    """Return the phase and time of day of each sign."""
    return [(one.point.words, clock(one.time)) for one in signs(log)]


def clock(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%H:%M:%S")


def noticed(log: EventLog) -> set[str]:
    return {one.code for one in log.diagnostics}


NVRX = (
    cycle(0, "rendezvous_completed", "10:00:04")
    + steps(10, 1, 1, 12)
    + cycle(1, "failure_detected", "10:09:00")
    + cycle(1, "attribution_get_started", "10:09:01")
    + cycle(1, "attribution_get_completed", "10:09:05")
    + "2026-05-01 10:09:06,001 [INFO] [node-08] [workload:None(None) infra:0(0)] launcher.py:763 "
    "[default] Joining cluster restart (group_rank=1)\n"
    + cycle(1, "worker_terminated", "10:09:11")
    + cycle(1, "rendezvous_started", "10:09:20", rank="None")
    + cycle(1, "health_check_completed", "10:09:40", rank="None")
    + cycle(1, "rendezvous_completed", "10:09:50", rank="None")
    + cycle(1, "worker_start_started", "10:09:51")
    + cycle(1, "worker_start_completed", "10:09:53")
    + steps(10, 12, 9, 20)
)
RECOVERY = [
    ("detected", "10:09:00"),
    ("decided", "10:09:05"),
    ("decided", "10:09:06"),
    ("terminated", "10:09:11"),
    ("rendezvous begun", "10:09:20"),
    ("health checked", "10:09:40"),
    ("rendezvous done", "10:09:50"),
    ("workers started", "10:09:51"),
    ("workers started", "10:09:53"),
]


def test_nvrx_cycles_show_the_recovery_phases(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(NVRX)
    log = read(tmp_path / "job.log")
    assert shown(log) == [("rendezvous done", "10:00:04"), *RECOVERY]
    first, detected = signs(log)[:2]
    assert (detected.job, detected.host, detected.rank) == ("job", "node-07", 0)
    assert dict(detected.facts) == {"by": "launcher", "cycle": 1}
    assert dict(first.facts) == {"cycle": 0}
    assert detected.where.endswith("job.log:14")
    assert signs(log)[5].rank is None


def docker(line: str, at: str = "2026-05-01T10:09:00.500000000Z") -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": at}) + "\n"


def entry(number: int, line: str, at: str) -> dict[str, Any]:
    return {
        "insertId": f"id-{number}", "timestamp": at, "textPayload": line, "logName": "projects/p/logs/stdout",
        "resource": {"type": "k8s_container", "labels": {"pod_name": "train-0"}},
        "labels": {"k8s-pod/job-name": "llm"},
    }  # fmt: skip


def stamped_as_utc(line: str) -> str:
    """Return a line with its time of collection, a moment after its own time."""
    at = line.split("2026-05-01 ", 1)[1][:8]
    return f"2026-05-01T{at}.400Z"


@pytest.mark.parametrize("way", ["as it is", "gz", "behind ranks", "docker", "entries", "backwards"])
def test_signs_are_the_same_in_all_containers(tmp_path: Path, way: str) -> None:
    lines = NVRX.splitlines()
    path = tmp_path / "job.log"
    if way == "gz":
        path = tmp_path / "job.log.gz"
        path.write_bytes(gzip.compress(NVRX.encode()))
    elif way == "behind ranks":
        path.write_text("".join(f"[rank{at % 2}]: {line}\n" for at, line in enumerate(lines)))
    elif way == "docker":
        path = tmp_path / "job.json"
        path.write_text("".join(docker(line, stamped_as_utc(line)) for line in lines))
    elif way in ("entries", "backwards"):
        path = tmp_path / "job.json"
        rows = [entry(at, line, stamped_as_utc(line)) for at, line in enumerate(lines)]
        path.write_text(json.dumps(rows if way == "entries" else rows[::-1], indent=1))
    else:
        path.write_text(NVRX)
    assert shown(read(path)) == [("rendezvous done", "10:00:04"), *RECOVERY]


def test_files_of_nodes_in_any_order_give_one_recovery(tmp_path: Path) -> None:
    one, other = tmp_path / "node-07.log", tmp_path / "node-08.log"
    one.write_text(NVRX)
    other.write_text(
        cycle(1, "failure_detected", "10:09:03", "node-08", "1") + cycle(1, "worker_terminated", "10:09:13", "node-08")
    )
    found = [signs(read(*some)) for some in ((one, other), (other, one))]
    assert found[0] == found[1]
    assert {sign.host for sign in found[0]} == {"", "node-07", "node-08"}
    assert len({sign.job for sign in found[0]}) == 1


TORCHRUN = (
    "I0501 10:00:00.272000 8566 torch/distributed/elastic/agent/server/api.py:912] [default] starting workers for "
    "entrypoint: python3\n"
    "I0501 10:00:00.272000 8566 torch/distributed/elastic/agent/server/api.py:707] [default] Rendezvous'ing worker "
    "group\n"
    "I0501 10:00:02.100000 8566 torch/distributed/elastic/agent/server/api.py:553] [default] Rendezvous complete for "
    "workers. Result:\n"
    "I0501 10:00:03.100000 8566 torch/distributed/elastic/agent/server/api.py:715] [default] Starting worker group\n"
    + steps(10, 1, 1, 12)
    + "E0501 10:03:10.481000 8566 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) "
    "local_rank: 1 (pid: 8605) of binary: /usr/bin/python3\n"
    "I0501 10:03:11.481000 8566 torch/distributed/elastic/agent/server/api.py:942] [default] Worker group FAILED. 2/3 "
    "attempts left; will restart worker group\n"
    "I0501 10:03:12.481000 8566 torch/distributed/elastic/agent/server/api.py:707] [default] Rendezvous'ing worker "
    "group\n"
    "I0501 10:03:20.481000 8566 torch/distributed/elastic/agent/server/api.py:553] [default] Rendezvous complete for "
    "workers. Result:\n"
    "I0501 10:03:21.481000 8566 torch/distributed/elastic/agent/server/api.py:715] [default] Starting worker group\n"
    + steps(10, 4, 9, 20)
)


def test_torchrun_agent_shows_restarts_left(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(TORCHRUN)
    log = read(tmp_path / "job.log")
    assert shown(log) == [
        ("rendezvous begun", "10:00:00"),
        ("rendezvous done", "10:00:02"),
        ("workers started", "10:00:03"),
        ("detected", "10:03:10"),
        ("decided", "10:03:11"),
        ("rendezvous begun", "10:03:12"),
        ("rendezvous done", "10:03:20"),
        ("workers started", "10:03:21"),
    ]
    assert dict(signs(log)[4].facts) == {"by": "launcher", "left": 2, "of": 3}


def test_nccl_watchdog_shows_begin_and_detection_of_a_hang(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        steps(10, 1, 1, 12)
        + "[rank3]:[E501 10:13:10.500000000 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600060 "
        "milliseconds before timing out.\n"
    )
    failed, detected = signs(read(tmp_path / "job.log"))
    assert (failed.point, clock(failed.time)) == (RecoveryPhase.FAILED, "10:03:10")
    assert detected.time - failed.time == 600_060 * 10**6
    assert dict(failed.facts) == {"timeout_ns": 600_060 * 10**6, "exact": 1}
    assert (detected.point, detected.rank) == (RecoveryPhase.DETECTED, 3)


@pytest.mark.parametrize("kind", ["initial", "subsequent"])
def test_rank_monitor_shows_its_timeout(tmp_path: Path, kind: str) -> None:
    (tmp_path / "job.log").write_text(
        steps(10, 1, 1, 12)
        + "2026-05-01 10:13:10,500 [WARNING] [node-07] [RankMonitorServer:3] rank_monitor_server.py:497 [Cycle 0] Did "
        f"not get {kind} heartbeat. Waited 600.00 seconds.\n"
    )
    found = {(one.point, one.facts.get("timeout_ns")) for one in signs(read(tmp_path / "job.log"))}
    assert (RecoveryPhase.DETECTED, 600 * 10**9) in found


def test_slurm_shows_node_failure_and_end_of_the_job(tmp_path: Path) -> None:
    line = "slurmstepd: error: *** JOB 812 ON node-3 CANCELLED AT 2026-05-01T10:04:00 DUE TO {why} ***\n"
    for why, wanted in (("NODE FAILURE", ["detected", "terminated"]), ("TIME LIMIT", ["terminated"])):
        (tmp_path / "job.log").write_text(steps(10, 1, 1, 12) + line.format(why=why))
        found = signs(read(tmp_path / "job.log"))
        assert [one.point.words for one in found] == wanted
        assert {(one.host, one.facts["allocation"], clock(one.time)) for one in found} == {
            ("node-3", "812", "10:04:00")
        }


SACCT = "JobID|JobName|State|ExitCode|Submit|Eligible|Start|End\n"


def sacct(*rows: str) -> str:
    return SACCT + "".join(f"{row}\n" for row in rows)


def read_sacct(folder: Path, *rows: str) -> EventLog:
    (folder / "slurm-812.out").write_text(steps(10, 1, 1, 12) + steps(11, 1, 9, 20))
    (folder / "sacct.txt").write_text(sacct(*rows))
    return read(folder)


FIRST = "812|llm|{state}|0:0|2026-05-01T09:50:00|2026-05-01T09:50:00|2026-05-01T10:00:00|2026-05-01T10:05:00"
SECOND = "812|llm|COMPLETED|0:0|2026-05-01T10:05:00|2026-05-01T10:07:00|2026-05-01T11:00:00|2026-05-01T11:30:00"


@pytest.mark.parametrize(("state", "by"), [("REQUEUED", "scheduler"), ("NODE_FAIL", "scheduler"), ("FAILED", None)])
def test_sacct_rows_of_one_job_give_its_queue(tmp_path: Path, state: str, by: str | None) -> None:
    log = read_sacct(tmp_path, SECOND, FIRST.format(state=state))
    assert shown(log) == [
        ("allocated", "10:00:00"),
        ("terminated", "10:05:00"),
        ("requeued", "10:07:00"),
        ("allocated", "11:00:00"),
        ("terminated", "11:30:00"),
    ]
    assert [one.facts.get("by") for one in signs(log)] == [None, None, by, by, None]
    assert "requeues_hidden" not in noticed(log)


def test_requeues_hidden_by_sacct_are_requested(tmp_path: Path) -> None:
    log = read_sacct(tmp_path, SECOND)
    assert shown(log) == [("allocated", "11:00:00"), ("terminated", "11:30:00")]
    assert "requeues_hidden" in noticed(log)


@pytest.mark.parametrize(("uid", "by"), [("1002", "hand"), ("0", None)])
def test_cancellation_by_a_person_is_reported(tmp_path: Path, uid: str, by: str | None) -> None:
    log = read_sacct(tmp_path, FIRST.format(state=f"CANCELLED by {uid}"))
    assert [one.facts.get("by") for one in signs(log)] == [None, by]


def event(at: str, name: str, kind: str, target: str = "dlrover-agent", **content: Any) -> str:
    return f"[2026-05-01T{at}.250000] [426] [22b7ca89] [{target}] [{name}] [{kind}] {json.dumps(content)}\n"


DLROVER = (
    event("10:00:00", "#start", "INSTANT", "trainer")
    + "".join(event(f"10:00:{at}0", "#step", "END", "trainer", global_step=at) for at in range(1, 6))
    + event("10:04:00", "#worker_no_heartbeat", "INSTANT", "dlrover-master", pod_name="w-3", timeout=180)
    + event(
        "10:04:05", "#process_restart", "INSTANT", node_rank=3, restart_count=1, remaining_restarts=2, state="FAILED"
    )
    + event("10:04:09", "#node_join", "INSTANT", "dlrover-master", node_id="3", node_rank="3", node_ip="10.0.0.3")
    + event("10:04:15", "#rendezvous", "BEGIN", node_name="w-3", node_rank=3, timeout=600)
    + event("10:04:25", "#network_check", "END", round=1, node_rank=3)
    + event("10:04:35", "#rendezvous", "END", node_name="w-3", node_rank=3, timeout=600)
    + event("10:05:00", "#init##load_ckpt", "BEGIN", "trainer")
    + event("10:05:40", "#init##load_ckpt", "END", "trainer")
    + "".join(event(f"10:06:{at}0", "#step", "END", "trainer", global_step=at) for at in range(1, 6))
)


def test_training_events_of_dlrover(tmp_path: Path) -> None:
    (tmp_path / "events_0.log").write_text(DLROVER)
    log = read(tmp_path)
    assert shown(log) == [
        ("detected", "10:04:00"),
        ("decided", "10:04:05"),
        ("allocated", "10:04:09"),
        ("rendezvous begun", "10:04:15"),
        ("health checked", "10:04:25"),
        ("rendezvous done", "10:04:35"),
        ("restored", "10:05:40"),
    ]
    detected, decided, joined, *_ = signs(log)
    assert dict(detected.facts) == {"timeout_ns": 180 * 10**9}
    assert dict(decided.facts) == {"by": "agent", "left": 2, "used": 1, "of": 3}
    assert (joined.host, joined.rank) == ("10.0.0.3", 3)


def test_separate_agent_and_master_files_belong_to_the_job(tmp_path: Path) -> None:
    lines = DLROVER.splitlines(keepends=True)
    (tmp_path / "events_0.log").write_text("".join(one for one in lines if "[trainer]" in one))
    (tmp_path / "master.log").write_text("".join(one for one in lines if "dlrover-master" in one))
    log = read(tmp_path)
    assert [one.point.words for one in signs(log)] == ["detected", "allocated", "restored"]
    assert {one.job for one in signs(log)} == set(log.table.jobs)


@pytest.mark.parametrize("text", [NVRX, TORCHRUN, DLROVER])
@pytest.mark.parametrize("cut", [0.3, 0.71, 0.997])
def test_truncated_lines_give_only_their_facts(tmp_path: Path, text: str, cut: float) -> None:
    (tmp_path / "job.log").write_text(text)
    whole = signs(read(tmp_path / "job.log"))
    (tmp_path / "job.log").write_text(text[: round(cut * len(text))])
    part = signs(read(tmp_path / "job.log"))
    assert {(one.point, one.time) for one in part} <= {(one.point, one.time) for one in whole}


def test_impossible_times_and_hostile_names_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        steps(10, 1, 1, 12)
        + cycle(1, "failure_detected", "10:09:00", "\x1b[31m" + "x" * 5000)
        + "[2026-05-01T10:04:05.250000] [4] [a] [dlrover-agent] [#process_restart] [INSTANT] "
        '{"node_rank": 99999999999999999999, "restart_count": 99999999999999999999, "remaining_restarts": 1}\n'
        + "[9999-99-99T99:99:99] [4] [a] [dlrover-agent] [#fault_detect] [INSTANT] {}\n"
    )
    found = signs(read(tmp_path / "job.log"))
    assert all(len(one.host) <= 80 and one.host.isprintable() for one in found)
    assert [(one.point, one.rank) for one in found] == [(RecoveryPhase.DECIDED, None), (RecoveryPhase.DETECTED, 0)]
    assert found[0].facts == {"by": "agent", "left": 1}


def test_number_of_signs_is_bounded(tmp_path: Path) -> None:
    lines = [
        event(f"10:{at // 60 % 60:02d}:{at % 60:02d}", "#fault_detect", "INSTANT", reason=f"{at}")
        for at in range(MOST_SIGNS + 5000)
    ]
    (tmp_path / "events_0.log").write_text(DLROVER + "".join(lines))
    log = read(tmp_path)
    detected = [one.time for one in signs(log) if one.point is RecoveryPhase.DETECTED]
    assert len(signs(log)) < 300
    assert "signs_left_out" in noticed(log)
    assert clock(min(detected)) == "10:00:00"
    assert clock(max(detected)) == "10:59:59"


SAMPLES = Path(__file__).parent / "samples"
TEXTS: dict[str, Callable[[Path], None]] = {
    "nvrx": lambda folder: written(folder, "job.log", NVRX),
    "torchrun": lambda folder: written(folder, "job.log", TORCHRUN),
    "dlrover": lambda folder: written(folder, "events_0.log", DLROVER),
    "joining alone": lambda folder: written(
        folder,
        "job.log",
        steps(10, 1, 1, 12) + "2026-05-01 10:09:06,001 [default] Joining cluster restart (group_rank=1)\n",
    ),
    "of the master": lambda folder: written(
        folder, "job.log", DLROVER + event("10:30:00", "#fault_detect", "INSTANT", "dlrover-master")
    ),
}


def written(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the reading of signs."""
    monkeypatch.setattr(registry, "LineRules", lambda rules, causes, _signs: LineRules(rules, causes))
    for module in (scan, entries):
        monkeypatch.setattr(module, "signs_in", lambda _lines: [])


def ledger(log: EventLog) -> tuple[Any, ...]:
    """Return all bytes of the events and the evidence of failures."""
    table = log.table
    columns = tuple(np.ascontiguousarray(np.asarray(getattr(table, name))).tobytes() for name in COLUMNS)
    return columns, table.jobs, table.labels, table.writers, list(table.details), table.observed.rows, log.formats


@pytest.mark.parametrize("name", [*TEXTS, *sorted(path.name for path in SAMPLES.glob("*.log"))])
def test_signs_are_not_events(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SAMPLES / name
    if name in TEXTS:
        TEXTS[name](tmp_path)
        source = tmp_path
    with_them = read(source)
    without_signs(monkeypatch)
    without = read(source)
    assert ledger(with_them) == ledger(without)
    assert {one for one in signs(without) if one.point is not RecoveryPhase.FAILED} == set() or name not in TEXTS
    assert not (name in TEXTS and name != "joining alone") or len(signs(with_them)) > len(signs(without))


def test_recorder_crash_is_the_time_of_detection(tmp_path: Path) -> None:
    told = [
        {"goodput_event": "started", "goodput_time": 1777629600.0},
        {"goodput_event": "step_finished", "goodput_time": 1777629700.0, "step": 1},
        {"goodput_event": "crashed", "goodput_time": 1777629710.5, "reason": "SIGSEGV", "step": 1, "rank": 3},
        {"goodput_event": "started", "goodput_time": 1777629800.0, "restarted_by": "hand"},
        {"goodput_event": "started", "goodput_time": 1777629900.0, "restarted_by": "magic"},
        {"goodput_event": "step_finished", "goodput_time": 1777629990.0, "step": 2},
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps({"job_name": "x", **one}) + "\n" for one in told))
    log = read(tmp_path / "run.jsonl")
    detected, begun = signs(log)
    assert (detected.point, detected.job, detected.rank, detected.time) == (
        RecoveryPhase.DETECTED,
        "x",
        3,
        1777629710_500_000_000,
    )
    assert detected.where.endswith("run.jsonl:3")
    assert (begun.point, dict(begun.facts), begun.where[-2:]) == (RecoveryPhase.WORKERS_STARTED, {"by": "hand"}, ":4")
    assert not noticed(log)


def pod(created: str, scheduled: str, attempt: int, *states: dict[str, Any], **more: Any) -> dict[str, Any]:
    name = f"llm-w-0-{attempt}"
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "llm",
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
    }
    container = {"name": "trainer", "restartCount": 0, "state": states[0], "lastState": {}}
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"2026-05-01T{scheduled}Z"},
        *more.values(),
    ]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-05-01T{created}Z", "labels": labels},
        "spec": {"nodeName": f"gke-{attempt}", "containers": [{"name": "trainer"}]},
        "status": {"conditions": conditions, "containerStatuses": [container]},
    }  # fmt: skip


def over(begin: str, end: str, code: int) -> dict[str, Any]:
    told = {"exitCode": code, "startedAt": f"2026-05-01T{begin}Z", "finishedAt": f"2026-05-01T{end}Z"}
    return {"terminated": told}


def jobset(restarts: object, most: object) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "llm", "uid": "j", "creationTimestamp": "2026-05-01T09:58:00Z"},
        "spec": {"failurePolicy": {"maxRestarts": most}}, "status": {"restarts": restarts},
    }  # fmt: skip


def cluster(folder: Path, *objects: dict[str, Any]) -> EventLog:
    (folder / "llm.log").write_text(steps(10, 1, 1, 12) + steps(10, 12, 9, 20))
    (folder / "objects.json").write_text(json.dumps({"kind": "List", "items": [*objects]}))
    return read(folder)


TAKEN = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-05-01T10:03:30Z", "reason": "x"}


def test_pods_and_a_jobset_show_a_recovery(tmp_path: Path) -> None:
    first = pod("09:58:30", "09:59:00", 0, over("10:00:00", "10:03:40", 1), target=TAKEN)
    second = pod("10:05:00", "10:08:00", 1, {"running": {"startedAt": "2026-05-01T10:11:00Z"}})
    log = cluster(tmp_path, first, second, jobset(1, 3))
    assert shown(log)[3:] == [
        ("detected", "10:03:30"),
        ("failed", "10:03:40"),
        ("terminated", "10:03:40"),
        ("requeued", "10:05:00"),
        ("allocated", "10:08:00"),
        ("workers started", "10:11:00"),
    ]
    requeued = next(one for one in signs(log)[3:] if one.point is RecoveryPhase.REQUEUED)
    assert dict(requeued.facts) == {"by": "launcher", "used": 1, "left": 2, "of": 3}
    assert (requeued.host, requeued.job) == ("gke-1", log.table.jobs[0])


@pytest.mark.parametrize(("restarts", "most"), [(None, 3), (1, None), (5, 3), ("1", 3), (-1, 3), (True, 3)])
def test_invalid_restart_budget_is_ignored(tmp_path: Path, restarts: object, most: object) -> None:
    first = pod("09:58:30", "09:59:00", 0, over("10:00:00", "10:03:40", 1))
    second = pod("10:05:00", "10:08:00", 1, {"running": {"startedAt": "2026-05-01T10:11:00Z"}})
    log = cluster(tmp_path, first, second, jobset(restarts, most))
    assert not any("left" in one.facts for one in signs(log))


def test_requeued_workload_is_a_sign(tmp_path: Path) -> None:
    def became(kind: str, at: str) -> dict[str, str]:
        return {"type": kind, "status": "True", "lastTransitionTime": f"2026-05-01T{at}Z", "reason": ""}

    told = [became("Evicted", "10:03:20"), became("Requeued", "10:04:00"), became("Admitted", "10:09:00")]
    workload = {
        "kind": "Workload", "metadata": {"name": "w", "uid": "w", "creationTimestamp": "2026-05-01T09:58:00Z",
                                         "ownerReferences": [{"kind": "JobSet", "name": "llm", "uid": "j"}]},
        "status": {"conditions": told},
    }  # fmt: skip
    first = pod("09:58:30", "09:59:00", 0, over("10:00:00", "10:03:40", 143))
    second = pod("10:09:10", "10:09:30", 1, {"running": {"startedAt": "2026-05-01T10:11:00Z"}})
    found = [
        (one.point.words, clock(one.time), one.facts.get("by"))
        for one in signs(cluster(tmp_path, first, second, workload))
    ]
    for wanted in (
        ("detected", "10:03:20", None),
        ("decided", "10:04:00", "scheduler"),
        ("allocated", "10:09:00", None),
    ):
        assert wanted in found
