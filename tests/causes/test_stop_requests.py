"""Ends that were asked for (accounting §3, docs/causes.md): request x exit x one or two sources.

A process that ends after a request to stop ends as the request states, whatever its exit code. A clean end is an exit
with 0 and no request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.accounting.attempts.endings import find_requests
from goodput_cli.analysis.goodput.analysis import Analysis
from tests.support.story import account, end, job_finished, notice, start, steps, user_terminated

STEPS, EACH = 20, 6
LAST = 60 + EACH * STEPS
REQUEST, EXIT = LAST + 3, LAST + 7
API = "torch/distributed/elastic/agent/server/api.py:879]"


def at(seconds: float) -> datetime:
    return datetime(2026, 3, 1, 10) + timedelta(seconds=seconds)


def iso(seconds: float) -> str:
    return f"{at(seconds):%Y-%m-%dT%H:%M:%S}"


def line(seconds: float, words: str) -> str:
    return f"{at(seconds):%Y-%m-%d %H:%M:%S},000 - INFO - {words}"


def glog(letter: str, seconds: float, words: str) -> str:
    return f"{letter}{at(seconds):%m%d %H:%M:%S}.000000 2001 {words}"


TRAINED = [
    glog("I", 0, f"{API} [default] starting workers for entrypoint: train.py"),
    *(line(60 + EACH * n, f"step {n}/1000 loss 2.31 step_time 6.00s") for n in range(1, STEPS + 1)),
]


def exit_lines(code: str) -> list[str]:
    return [glog("E", EXIT, f"{API} failed (exitcode: {code}) local_rank: 0 (pid: 2007) of binary: /usr/bin/python")]


EXITS = {
    "0": [glog("I", EXIT, f"{API} [default] worker group successfully finished. Waiting 300 seconds for others.")],
    "143": exit_lines("143"),
    "-15": exit_lines("-15"),
    "traceback": [
        "Traceback (most recent call last):", '  File "/app/train.py", line 88, in <module>', "    main()",
        "RuntimeError: pipeline is closed",
    ],
    "Exiting.": [line(EXIT, "Exiting.")],
}  # fmt: skip
LINES = {
    "SIGTERM": glog("W", REQUEST, f"{API} Received 15 death signal, shutting down workers"),
    "SIGINT": f"[{at(REQUEST):%Y-%m-%d %H:%M:%S},000] [INFO] [launch.py:328:sigkill_handler] Main process received "
    "SIGINT, exiting",
    "time limit": f"slurmstepd: error: *** JOB 77 ON node-3 CANCELLED AT {iso(REQUEST)} DUE TO TIME LIMIT ***",
    "scancel": f"slurmstepd: error: *** JOB 77 ON node-3 CANCELLED AT {iso(REQUEST)} ***",
    "Ray": line(REQUEST, "Node 10.0.0.7 will be terminated soon (reason: kubernetes-pod-termination)"),
}
"""Requests in the job's log."""


def workload(reason: str, seconds: float = REQUEST) -> dict[str, Any]:
    """Return an evicted Workload of Kueue."""
    evicted = {"type": "Evicted", "status": "True", "reason": reason, "lastTransitionTime": f"{iso(seconds)}Z"}
    about = {"name": "jobset-llm-1f2", "uid": "w", "ownerReferences": [{"kind": "JobSet", "name": "llm"}]}
    return {"kind": "Workload", "metadata": about, "status": {"conditions": [evicted]}}


def event(reason: str, pod: str = "llm-0-0") -> dict[str, Any]:
    return {"kind": "Event", "reason": reason, "involvedObject": {"kind": "Pod", "name": pod},
            "lastTimestamp": f"{iso(REQUEST)}Z"}  # fmt: skip


def pod(seconds: float = EXIT) -> dict[str, Any]:
    """Return a pod whose container exited with 0."""
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": f"{iso(0)}Z", "finishedAt": f"{iso(seconds)}Z"}
    about = {"name": "llm-0-0", "uid": "p", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
    status = {"containerStatuses": [{"name": "train", "state": {"terminated": ended}}]}
    return {"kind": "Pod", "metadata": about, "spec": {"containers": [{"name": "train"}]}, "status": status}


OBJECTS = {
    "Kueue": workload("Preempted"),
    "PodsReadyTimeout": workload("PodsReadyTimeout"),
    "autoscaler": event("ScaleDown"),
    "kubelet": event("Evicted"),
}
"""Requests in objects of the cluster."""
CAUSES = {
    "SIGTERM": "killed", "SIGINT": "cancelled", "time limit": "time_limit", "scancel": "cancelled", "Ray": "evicted",
    "Kueue": "preempted", "PodsReadyTimeout": "evicted", "autoscaler": "evicted", "kubelet": "evicted",
}  # fmt: skip


def analyze_log(
    folder: Path, lines: Sequence[str], beside: Sequence[str] = (), objects: Sequence[Any] = ()
) -> Analysis:
    """Return the analysis of a log, together with another log or objects."""
    (folder / "llm.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if beside:
        (folder / "agent.log").write_text("\n".join(beside) + "\n", encoding="utf-8")
    if objects:
        (folder / "objects.json").write_text(json.dumps({"kind": "List", "items": objects}), encoding="utf-8")
    return goodput_cli.analyze(folder)


def cause(analysis: Analysis) -> str:
    """Return the cause of the last attempt's end; None after a clean end."""
    assert analysis.job.ending != "clean"
    return analysis.timeline.causes.why[-1].code


CELLS = [(name, 1) for name in LINES] + [(name, 2) for name in (*LINES, *OBJECTS)]


@pytest.mark.parametrize("ended", EXITS)
@pytest.mark.parametrize(("request_", "sources"), CELLS)
def test_end_after_a_request_is_as_the_request_states(request_: str, sources: int, ended: str, tmp_path: Path) -> None:
    line_, objects = LINES.get(request_), [OBJECTS[request_]] if request_ in OBJECTS else []
    said = [] if line_ is None or sources == 2 else [line_]
    beside = [line_] if line_ is not None and sources == 2 else []
    analysis = analyze_log(tmp_path, [*TRAINED, *said, *EXITS[ended]], beside, objects)
    assert cause(analysis) == CAUSES[request_]
    assert not any("planned" in one.text for one in analysis.insights)


NO_REQUEST = {
    "0": ("clean", None), "143": ("terminated", "killed"), "-15": ("terminated", "killed"),
    "traceback": ("crashed", "python_error"), "Exiting.": ("clean", None),
}  # fmt: skip


@pytest.mark.parametrize("ended", EXITS)
def test_end_without_a_request_is_as_the_exit_states(ended: str, tmp_path: Path) -> None:
    analysis = analyze_log(tmp_path, [*TRAINED, *EXITS[ended]])
    ending, why = NO_REQUEST[ended]
    assert analysis.job.ending == ending
    assert why is None or cause(analysis) == why


def test_pod_that_exits_with_0_after_its_eviction_was_preempted(tmp_path: Path) -> None:
    analysis = analyze_log(tmp_path, TRAINED, objects=[pod(), workload("Preempted")])
    assert cause(analysis) == "preempted"
    [asked] = find_requests(analysis.timeline.table)
    assert (asked.kind, asked.sender) == ("preempted", "pod")


UNASKED = {
    "an exit before the request": [pod(REQUEST - 1), workload("Preempted")],
    "a request to another job": [pod(), event("Evicted", pod="other-0-0")],
    "a request that was outlived": [pod(), workload("Preempted", 30)],
}


@pytest.mark.parametrize("objects", UNASKED.values(), ids=UNASKED)
def test_exit_with_0_stays_clean_without_a_request(objects: list[Any], tmp_path: Path) -> None:
    assert analyze_log(tmp_path, TRAINED, objects=objects).job.ending == "clean"


TOTALS = line(EXIT, "Total training time: 0:02:00 (6.0 s / it)")
LEFT = {
    "totals alone": ([TOTALS], "clean"),
    "an exception after the totals": ([TOTALS, *EXITS["traceback"]], "crashed"),
    "totals after a signal": ([LINES["SIGTERM"], TOTALS], "terminated"),
}


@pytest.mark.parametrize(("lines", "ending"), LEFT.values(), ids=LEFT)
def test_totals_end_a_job_that_left_by_itself(lines: list[str], ending: str, tmp_path: Path) -> None:
    assert analyze_log(tmp_path, [*TRAINED, *lines]).job.ending == ending


def test_signal_of_a_launcher_is_not_a_request(tmp_path: Path) -> None:
    """Rank 3 fails, its launcher stops the others, and one of them reports the signal."""
    failed = glog("E", EXIT, f"{API} failed (exitcode: 1) local_rank: 3 (pid: 2010) of binary: /usr/bin/python")
    log = [*TRAINED, *EXITS["traceback"], failed, line(EXIT + 1, "Received SIGTERM, saving a checkpoint")]
    assert cause(analyze_log(tmp_path, log)) == "python_error"


STOPS = {
    "exit after a notice": ((end(270),), "terminated"),
    "planned stop after a notice": ((user_terminated(270),), "clean"),
    "finished after a notice": ((job_finished(270),), "clean"),
}


@pytest.mark.parametrize(("lines", "ending"), STOPS.values(), ids=STOPS)
def test_user_ends_a_job_after_a_notice_but_an_exit_does_not(lines: tuple[str, ...], ending: str) -> None:
    """The recorder's reason for a stop precedes a notice of preemption; its exit event has no reason."""
    assert account(start(0), steps(0, 20, at=60), notice(255), *lines).analysis.job.ending == ending
