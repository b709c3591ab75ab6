"""Kubernetes objects next to a log (docs/formats.md): queue, start-up, ends, and overwritten facts.

The objects follow the documented API schema; none was taken from a cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli import Analysis
from tests.text.support import analysed, codes, seconds

DAY = "2025-03-04T"
START = 9 * 3600


def clock(at: float) -> str:
    """Return a time (s since 09:00) as the API writes it."""
    whole = START + int(at)
    return f"{DAY}{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}Z"


def condition(kind: str, at: float, status: str = "True", reason: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": clock(at), "reason": reason, "message": ""}


def workload(created: float, *conditions: dict[str, Any], owner: str = "llm-7b") -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": f"jobset-{owner}-1a2b3",
        "uid": "w-1",
        "creationTimestamp": clock(created),
        "namespace": "ml",
    }
    about["ownerReferences"] = [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": owner, "uid": "j"}]
    spec = {"queueName": "team", "podSets": [{"name": "workers", "count": 2}]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload"}
    return {**kind, "metadata": about, "spec": spec, "status": {"conditions": [*conditions]}}


def over(begin: float, end: float, code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {
        "exitCode": code, "reason": reason if code else "Completed", "containerID": "containerd://0",
        "startedAt": clock(begin), "finishedAt": clock(end),
    }}  # fmt: skip


def running(begin: float) -> dict[str, Any]:
    return {"running": {"startedAt": clock(begin)}}


def pod(
    index: int, created: float, scheduled: float, state: dict[str, Any], last: dict[str, Any] | None = None,
    restarts: int = 0, owner: str = "llm-7b", uid: str = "", sidecar: dict[str, Any] | None = None, **status: Any,
) -> dict[str, Any]:  # fmt: skip
    labels = {"jobset.sigs.k8s.io/jobset-name": owner, "batch.kubernetes.io/job-completion-index": str(index)}
    name = f"{owner}-workers-0-{index}-x{uid}"
    about = {"name": name, "uid": uid or name, "creationTimestamp": clock(created), "labels": labels, "namespace": "ml"}
    main = {"name": "trainer", "restartCount": restarts, "state": state, "lastState": last or {}, "ready": False}
    every = [main] if sidecar is None else [{"name": "proxy", "restartCount": 0, "state": sidecar}, main]
    spec = {"nodeName": f"gke-{index}", "containers": [{"name": "trainer"}, {"name": "proxy"}]}
    whole = {
        "phase": "Running",
        "conditions": [condition("PodScheduled", scheduled)],
        "containerStatuses": every,
        **status,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": whole}


def megatron(*runs: tuple[float, int, int]) -> str:
    """Return the iterations of each run (first, last, and seconds after 09:00 of the first line), 20 s per ten."""
    return "".join(
        f" [{clock(begin + 20 * n)[:-1].replace('T', ' ')}] iteration {10 * step:8d}/    5000 | "
        f"consumed samples: {80 * step:12d}"
        " | elapsed time per iteration (ms): 2000.0 | learning rate: 1E-4 | global batch size:     8 | "
        "lm loss: 1.9E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for begin, first, last in runs
        for n, step in enumerate(range(first, last + 1))
    )


def analyzed(
    folder: Path, log: str, *objects: dict[str, Any], job: str | None = "llm-7b", split: bool = False
) -> Analysis:
    """Return the analysis of a log with objects: one list, or a file each."""
    folder.mkdir(exist_ok=True)
    (folder / "train.log").write_text(log)
    if split:
        for at, one in enumerate(objects):
            (folder / f"object-{at}.json").write_text(json.dumps(one, indent=4))
    else:
        (folder / "objects.json").write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=4)
        )
    return analysed(folder, job_name=job, timezone="UTC")


ADMITTED = workload(0, condition("QuotaReserved", 420), condition("Admitted", 480))


def test_job_list_agrees_with_the_analysis(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), ADMITTED, pod(0, 481, 500, over(540, 1012, 1)), job=None)
    (listed,) = goodput_cli.jobs(str(tmp_path), timezone="UTC").jobs
    assert (listed.start_ns, listed.end_ns) == (analysis.job.start_ns, analysis.job.end_ns)
    assert listed.ending == "crashed"


@pytest.mark.parametrize("split", [False, True])
def test_queue_start_up_and_the_first_failure(tmp_path: Path, split: bool) -> None:
    """Submitted at 0, admitted at 480, scheduled at 490 and 500; first ten steps completed at 620, the last at 1000."""
    pods = (pod(0, 481, 490, over(540, 1030, 137, "OOMKilled")), pod(1, 481, 500, over(545, 1060, 1)))
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), ADMITTED, *pods, split=split)
    found = seconds(analysis)
    assert (found["queued"], found["productive"], found["program_startup"]) == (500, 400, 100)
    assert (analysis.job.ending, analysis.job.end_ns // 10**9 % 3600) == ("crashed", 1030)
    assert [log.name for log in analysis.job.log_formats] == ["kubernetes", "megatron"]
    assert not codes(analysis) & {"cluster_objects_unused", "cluster_forgets"}


def test_queue_begins_with_the_pods_without_a_workload(tmp_path: Path) -> None:
    pods = (pod(0, 100, 110, over(540, 1002, 0)), pod(1, 100, 500, over(545, 1003, 0)))
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), *pods)
    assert (seconds(analysis)["queued"], analysis.job.ending) == (400, "clean")


def test_output_of_an_early_pod_does_not_end_the_queue(tmp_path: Path) -> None:
    early = "[2025-03-04 09:05:00] using world size: 2, data-parallel size: 2\n"
    pods = (pod(0, 100, 110, running(130)), pod(1, 100, 500, running(545)))
    assert seconds(analyzed(tmp_path, early + megatron((620, 1, 20)), *pods))["queued"] == 400


def test_restarted_container_has_an_end_and_a_next_start(tmp_path: Path) -> None:
    """Steps until 1000; killed at 1012; restarted at 1030, first steps repeated at 1100."""
    ends = (over(540, 1012, 137, "OOMKilled"), over(541, 1013, 1))
    pods = [pod(at, 481, 500, running(1030 + at), ends[at], restarts=1) for at in (0, 1)]
    analysis = analyzed(tmp_path, megatron((620, 1, 20), (1100, 16, 30)), ADMITTED, *pods)
    (one,) = analysis.disruptions
    assert (one.ended, one.cause, one.cause_certainty) == ("crashed", "host_oom", "confirmed")
    assert [at // 10**9 % 3600 for at in (one.last_sign_of_life_ns, one.next_start_ns)] == [1012, 1030]
    assert one.downtime_ns == 18 * 10**9
    assert "cluster_forgets" not in codes(analysis)


def test_forgotten_container_ends_are_reported_and_unknown(tmp_path: Path) -> None:
    """Three restarts, but the object keeps only the last end: the first two deaths are unknown."""
    pods = [pod(0, 481, 500, running(2030), over(1700, 2012, 1), restarts=3)]
    log = megatron((620, 1, 20), (1200, 16, 30), (1800, 26, 35), (2100, 31, 50))
    analysis = analyzed(tmp_path, log, ADMITTED, *pods)
    assert [one.ended for one in analysis.disruptions] == ["silent", "silent", "crashed"]
    assert "cluster_forgets" in codes(analysis)
    assert seconds(analysis)["queued"] == 500


def test_snapshots_at_all_times_show_all_attempts(tmp_path: Path) -> None:
    first = pod(0, 481, 500, running(1030), over(540, 1012, 1), restarts=1)
    second = pod(0, 481, 500, running(1630), over(1030, 1612, 137, "OOMKilled"), restarts=2)
    log = megatron((620, 1, 20), (1100, 16, 40), (1700, 36, 50))
    analysis = analyzed(tmp_path, log, ADMITTED, first, second)
    assert [one.ended for one in analysis.disruptions] == ["crashed", "crashed"]
    assert "cluster_forgets" not in codes(analysis)


def test_second_admission_overwrites_the_first_with_a_warning(tmp_path: Path) -> None:
    """Preempted at 1010 and admitted again at 1500: the first admission is overwritten."""
    again = workload(0, condition("Admitted", 1500), condition("Evicted", 1500, "False", "QuotaReserved"))
    pods = [pod(0, 1501, 1510, running(1530))]
    analysis = analyzed(tmp_path, megatron((620, 1, 20), (1600, 16, 30)), again, *pods)
    assert "cluster_forgets" in codes(analysis)
    (one,) = analysis.disruptions
    assert one.ended == "silent"
    assert one.next_start_ns // 10**9 % 3600 == 1510
    assert seconds(analysis)["queued"] == 9  # Of the second pods.


def test_workload_evicted_for_another_is_preempted(tmp_path: Path) -> None:
    gone = workload(0, condition("Admitted", 1010, "False"), condition("Evicted", 1010, "True", "Preempted"))
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), gone, pod(0, 481, 500, running(540)))
    assert (analysis.job.ending, analysis.job.end_ns // 10**9 % 3600) == ("terminated", 1010)


def test_evicted_pod_ends_the_attempt_with_a_cause(tmp_path: Path) -> None:
    target = condition("DisruptionTarget", 1005, reason="PreemptionByScheduler")
    state = over(540, 1009, 143)
    pods = [pod(0, 481, 500, state, conditions=[condition("PodScheduled", 500), target], phase="Failed")]
    again = [pod(0, 1020, 1220, running(1240), uid="second")]
    analysis = analyzed(tmp_path, megatron((620, 1, 20), (1300, 16, 30)), *pods, *again)
    (one,) = analysis.disruptions
    assert (one.ended, one.cause) == ("preempted", "preempted")
    assert seconds(analysis)["queued"] == 19 + 200


def test_stopped_sidecar_ends_nothing(tmp_path: Path) -> None:
    pods = [pod(0, 481, 500, over(540, 1004, 0), sidecar=over(530, 1009, 143))]
    assert analyzed(tmp_path, megatron((620, 1, 20)), *pods).job.ending == "clean"


def test_objects_of_another_job_or_time_are_ignored(tmp_path: Path) -> None:
    log = megatron((620, 1, 20))
    alone = analyzed(tmp_path / "alone", log)
    late = json.loads(json.dumps(pod(0, 481, 500, over(540, 1012, 1))).replace("2025-03-04", "2025-03-11"))
    cases = {
        "time": (late, "llm-7b"),
        "name": (pod(0, 481, 500, over(540, 800, 1), owner="other"), None),
        "half": (pod(0, 700, 705, running(710), owner="other"), None),
    }
    for name, (one, job) in cases.items():
        analysis = analyzed(tmp_path / name, log, one, job=job)
        assert "cluster_objects_unused" in codes(analysis), name
        assert (analysis.window, analysis.badput, analysis.job.ending) == (
            alone.window, alone.badput, alone.job.ending
        )  # fmt: skip


def test_single_job_matches_fitting_objects_of_a_single_job(tmp_path: Path) -> None:
    pods = [pod(0, 481, 500, over(540, 1012, 137, "OOMKilled"), owner="exp-42")]
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), *pods, job=None)
    assert (seconds(analysis)["queued"], analysis.job.ending) == (19, "crashed")


def test_container_that_ends_during_training_ends_nothing(tmp_path: Path) -> None:
    pods = [pod(0, 481, 500, over(540, 800, 1))]
    analysis = analyzed(tmp_path, megatron((620, 1, 40)), *pods)
    assert (analysis.job.ending, analysis.job.attempts) == ("not_logged", 1)


def test_recorder_starts_are_the_cluster_start(tmp_path: Path) -> None:
    """Two hosts log a begin at 550 and 560; from 500 on, it is one start-up."""
    base = 1741078800
    lines = [{"job_name": "llm-7b", "job_start_time": base + at} for at in (550, 560)]
    lines += [{"job_name": "llm-7b", "step_count": n, "step_start_time": base + 600 + 2 * n} for n in range(200)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    objects = {"kind": "List", "items": [ADMITTED, pod(0, 481, 500, over(540, 1012, 1))]}
    (tmp_path / "objects.json").write_text(json.dumps(objects))
    analysis = analysed(tmp_path)
    assert (analysis.job.attempts, analysis.job.ending) == (1, "crashed")
    assert seconds(analysis)["queued"] == 500


def test_deleted_job_with_an_owner_ends_with_it(tmp_path: Path) -> None:
    about = {"name": "llm-7b", "uid": "j", "creationTimestamp": clock(0)}
    failed = {"conditions": [condition("Failed", 1020, reason="DeadlineExceeded")], "startTime": clock(480)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {}, "status": failed}
    analysis = analyzed(tmp_path, megatron((620, 1, 20)), ADMITTED, job)
    assert (analysis.job.ending, analysis.job.end_ns // 10**9 % 3600) == ("crashed", 1020)


def test_hostile_objects_raise_no_traceback(tmp_path: Path) -> None:
    log = megatron((620, 1, 20))
    alone = analyzed(tmp_path / "alone", log)
    bad: list[Any] = [None, 7, "x", [], {}, [None], {"conditions": 3}, {"conditions": [None, 3, {"type": []}]}]
    for at, value in enumerate(bad):
        one = pod(0, 481, 500, running(540))
        for key in ("metadata", "spec", "status"):
            analysis = analyzed(tmp_path / f"{at}-{key}", log, {**one, key: value})
            assert (analysis.job.attempts, analysis.job.last_step) == (1, alone.job.last_step)
        (tmp_path / "lone.json").write_text(json.dumps({"kind": "List", "items": value}))
        with pytest.raises(goodput_cli.GoodputError):
            goodput_cli.analyze(str(tmp_path / "lone.json"))
