"""Logs with very many of one thing: ranks of a failure, pods, custom types, jobs, files and the like."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.causes.wordings import attempt_lines
from tests.text.agent_logs import AgentJob

START = 1_767_225_600
Written = Callable[[Path, int], None]


def failed_ranks(folder: Path, count: int) -> None:
    """A launcher names each rank of a failure, eight to a host, and the failure of the first of them."""
    said = [
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "/opt/train.py", line 8, in step',
        "[rank3]: RuntimeError: boom",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        *(line for rank in range(1, count) for line in _failed(rank)),
        "-" * 60,
        "Root Cause (first observed failure):",
        *_failed(0),
        "=" * 60,
    ]
    (folder / "train.log").write_text("\n".join([*attempt_lines(0, 10), *said, *attempt_lines(30, 160)]) + "\n")


def _failed(rank: int) -> tuple[str, ...]:
    return (
        f"[{rank}]:",
        "  time      : 2026-03-01_10:10:50",
        f"  host      : node-{rank // 8}",
        f"  rank      : {rank} (local_rank: {rank % 8})",
        f"  exitcode  : 1 (pid: {1000 + rank})",
        "  error_file: <N/A>",
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
    )


def failing_ranks(folder: Path, count: int) -> None:
    """Write an exception for each rank."""
    said = [
        line
        for rank in range(count)
        for line in (
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/opt/train.py", line {rank}, in step',
            f"[rank{rank}]: RuntimeError: boom {rank}",
        )
    ]
    (folder / "train.log").write_text("\n".join([*attempt_lines(0, 10), *said, *attempt_lines(30, 160)]) + "\n")


def bystanders(folder: Path, count: int) -> None:
    """Write a different failure for each rank, reported by its agent, each on a separate host."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    said = [
        line
        for rank in range(count)
        for line in (
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/opt/train.py", line 8, in step',
            f"[rank{rank}]: ValueError: {''.join(letters[rank // 26**place % 26] for place in range(4))}",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "=" * 60,
            "train.py FAILED",
            "-" * 60,
            "Root Cause (first observed failure):",
            *_failed(rank),
            "=" * 60,
        )
    ]
    (folder / "train.log").write_text("\n".join([*attempt_lines(0, 10), *said, *attempt_lines(30, 160)]) + "\n")


def bootstrapped_hosts(folder: Path, count: int) -> None:
    """NCCL names each host of a job, and one rank of each dies."""
    hosts = [f"node-{at}:812:{at} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>" for at in range(count)]
    (folder / "train.log").write_text(
        "\n".join([*hosts, *attempt_lines(0, 10), "RuntimeError: boom", *attempt_lines(30, 160)]) + "\n"
    )


def nccl_ranks(folder: Path, count: int) -> None:
    """NCCL names each rank of a communicator, and each rank waits in vain for a collective of the first."""
    named = [f"node-{rank // 8}:{812 + rank}:{930 + rank} [{rank % 8}]" for rank in range(count)]
    begun = [f"{name} NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>" for name in named]
    ready = [f"{name} NCCL INFO comm 0x7f12 rank {at} nranks {count} - Init COMPLETE" for at, name in enumerate(named)]
    waits = [
        line
        for rank, name in enumerate(named)
        for line in (
            f"[rank{rank}]:[E301 10:10:50.123456 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds "
            "before timing out.",
            f"{name} misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer node-{rank // 8 + 1}<4711>",
        )
    ]
    (folder / "train.log").write_text(
        "\n".join([*begun, *ready, *attempt_lines(0, 10), *waits, *attempt_lines(30, 160)]) + "\n"
    )


def ray_actors(folder: Path, count: int) -> None:
    """Write actors of a job with pid and host, as Ray names them, each with its own failure."""
    said = [
        line
        for at in range(count)
        for line in (
            f"(TrainWorker pid={1000 + at}, ip=10.0.{at // 200}.{at % 200}) Traceback (most recent call last):",
            f'(TrainWorker pid={1000 + at}, ip=10.0.{at // 200}.{at % 200})   File "/opt/train.py", line 8, in step',
            f"(TrainWorker pid={1000 + at}, ip=10.0.{at // 200}.{at % 200}) RuntimeError: boom {at}",
            "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
            "\tclass_name: TrainWorker",
            f"\tpid: {1000 + at}",
            f"\tip: 10.0.{at // 200}.{at % 200}",
            "The actor is dead because its worker process has died.",
        )
    ]
    (folder / "train.log").write_text("\n".join([*attempt_lines(0, 10), *said, *attempt_lines(30, 160)]) + "\n")


def kernel_logs(folder: Path, count: int) -> None:
    """A log of the kernel for each host of the job."""
    bootstrapped_hosts(folder, count)
    for at in range(count):
        (folder / f"dmesg-node-{at}.log").write_text(
            f"2026-03-01T10:10:{at % 60:02d}+00:00 node-{at} kernel: NVRM: Xid (PCI:0000:b1:00): 79, pid=812, GPU has "
            "fallen off the bus.\n"
        )


def clock(at: float) -> str:
    """Return seconds after `START` in Kubernetes notation."""
    return datetime.fromtimestamp(START + at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(index: int, begin: float, end: float, code: int) -> dict[str, Any]:
    """A pod of the job whose container ended."""
    labels = {"jobset.sigs.k8s.io/jobset-name": "j", "batch.kubernetes.io/job-completion-index": str(index)}
    ended = {
        "exitCode": code, "reason": "Error" if code else "Completed", "startedAt": clock(begin),
        "finishedAt": clock(end),
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"j-{index}", "uid": f"j-{index}", "creationTimestamp": clock(0), "labels": labels},
        "spec": {"nodeName": f"node-{index}", "containers": [{"name": "main"}]},
        "status": {
            "phase": "Failed",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": clock(1)}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": ended}}],
        },
    }  # fmt: skip


def _objects(folder: Path, items: list[dict[str, Any]]) -> None:
    job(folder, 4)
    (folder / "objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def failed_pods(folder: Path, count: int) -> None:
    """Write failed pods of one attempt."""
    _objects(folder, [pod(at, 2 + at / count, 40 + at % 7, 1) for at in range(count)])


def finished_pods(folder: Path, count: int) -> None:
    """Write completed pods of one attempt."""
    _objects(folder, [pod(at, 2 + at / count, 40 + at % 7, 0) for at in range(count)])


def pods_in_turn(folder: Path, count: int) -> None:
    """Write pods that are one attempt each."""
    _objects(folder, [pod(at, 2 + 10 * at, 8 + 10 * at, 1) for at in range(count)])


def watched_pod(folder: Path, count: int) -> None:
    """Write a pod that the cluster reported at each of its restarts."""
    items = [pod(0, 2 + 10 * at, 8 + 10 * at, 1) for at in range(count)]
    _objects(folder, items)


def pods_in_a_watch(folder: Path, count: int) -> None:
    """Write `kubectl get pods -o json -w`, which prints each pod again whenever it changes."""
    job(folder, 4)
    changes = []
    for at in range(count):
        ended = pod(at, 2 + at / count, 40 + at % 7, 1)
        pending = {**ended, "status": {"phase": "Pending", "conditions": []}}
        running = {
            **ended["status"]["containerStatuses"][0],
            "state": {"running": {"startedAt": clock(2 + at / count)}},
        }
        begun = {**ended, "status": {**ended["status"], "phase": "Running", "containerStatuses": [running]}}
        changes += [(0.0, at, pending), (2 + at / count, at, begun), (40 + at % 7, at, ended)]
    changes.sort(key=lambda one: one[:2])
    (folder / "objects.json").write_text("\n".join(json.dumps(one, indent=4) for *_, one in changes))


def cluster_events(folder: Path, count: int) -> None:
    """An event of the eviction of each pod."""
    _objects(folder, [
        {"kind": "Event", "reason": "Evicted", "message": f"low on memory {at}", "lastTimestamp": clock(30 + at % 5),
         "involvedObject": {"kind": "Pod", "name": f"j-{at}"}}
        for at in range(count)
    ])  # fmt: skip


def workloads(folder: Path, count: int) -> None:
    """A Workload of Kueue and a Job of each name."""
    _objects(folder, [
        {"kind": kind, "metadata": {"name": f"{kind}-{at}", "uid": f"{kind}-{at}", "creationTimestamp": clock(0),
         "ownerReferences": [{"name": "j"}]}, "status": {"conditions": [
             {"type": "Admitted", "status": "True", "lastTransitionTime": clock(1)}]}}
        for at in range(count) for kind in ("Workload", "Job")
    ])  # fmt: skip


def steps(name: str, first: int, count: int, at: float) -> Iterator[dict[str, Any]]:
    """Yield steps of ten seconds, the first one `at` seconds after `START`."""
    for step in range(count):
        yield {"job_name": name, "step_count": first + step, "step_start_time": START + at + 10 * step}


def lines(path: Path, records: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> None:
    """Records as a log."""
    with path.open("w") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in records)


def begun(name: str, at: float) -> list[dict[str, Any]]:
    """An attempt begins."""
    return [
        {"job_name": name, "job_start_time": START + at},
        {"job_name": name, "tpu_init_start_time": START + at + 1},
        {"job_name": name, "tpu_init_end_time": START + at + 2},
    ]


def job(folder: Path, count: int) -> None:
    """Write a job of this many steps."""
    lines(folder / "run.jsonl", [*begun("j", 0), *steps("j", 0, count, 5)])


def devices(folder: Path, count: int) -> None:
    """Write samples of this many accelerators, as `nvidia-smi` prints them."""
    job(folder, 20)
    times = [f"{datetime.fromtimestamp(START + at, UTC):%Y/%m/%d %H:%M:%S}.000" for at in range(10, 200, 60)]
    rows = [f"{time}, GPU-{at:08x}, {50 + at % 50} %, 300.00 W" for time in times for at in range(count)]
    text = "\n".join(["timestamp, uuid, utilization.gpu [%], power.draw [W]", *rows])
    (folder / "gpu.csv").write_text(f"{text}\n")


def custom_types(folder: Path, count: int) -> None:
    """Write events with a separate custom type each."""
    records = begun("j", 0)
    for at in range(count):
        records += steps("j", at, 1, 10 + 10 * at)
        for edge, when in (("start", 12), ("end", 14)):
            records.append({"job_name": "j", "custom_badput_event_type": f"type-{at}",
                            f"custom_badput_event_{edge}_time": START + when + 10 * at})  # fmt: skip
    lines(folder / "run.jsonl", [*records, *steps("j", count, 3, 10 + 10 * count)])


def custom_events(folder: Path, count: int) -> None:
    """Many events of one custom type."""
    records = begun("j", 0)
    for at in range(count):
        records += steps("j", at, 1, 10 + 10 * at)
        for edge, when in (("start", 12), ("end", 14)):
            records.append({"job_name": "j", "custom_badput_event_type": "eval",
                            f"custom_badput_event_{edge}_time": START + when + 10 * at})  # fmt: skip
    lines(folder / "run.jsonl", [*records, *steps("j", count, 3, 10 + 10 * count)])


def phase_names(folder: Path, count: int) -> None:
    """Write recorder lines with ten phases each, all with different names."""
    records = begun("j", 0)
    for at in range(count):
        own = {f"phase_{at}_{number}": 0.5 for number in range(10)}
        when = {"goodput_event": "phases", "goodput_time": START + 14 + 10 * at, "step": at + 1, "steps": 1}
        records += [
            *steps("j", at, 1, 5 + 10 * at),
            {"job_name": "j", **when, "first_step": 1, "step_seconds": 9, **own},
        ]
    lines(folder / "run.jsonl", records)


def attempts(folder: Path, count: int) -> None:
    """Write this many attempts, each of which repeats a step."""
    records: list[dict[str, Any]] = []
    for at in range(count):
        records += [*begun("j", 100 * at), *steps("j", 2 * at, 4, 100 * at + 5)]
    lines(folder / "run.jsonl", records)


def jobs(folder: Path, count: int) -> None:
    """Write this many jobs in one file."""
    records: list[dict[str, Any]] = []
    for at in range(count):
        records += [*begun(f"j-{at}", at), *steps(f"j-{at}", 0, 3, at + 5)]
    lines(folder / "run.jsonl", records)


def files(folder: Path, count: int) -> None:
    """Write this many files of one job, each an attempt."""
    for at in range(count):
        lines(folder / f"run-{at}.jsonl", [*begun("j", 100 * at), *steps("j", 2 * at, 4, 100 * at + 5)])


def files_of_jobs(folder: Path, count: int) -> None:
    """Write this many files, each of a separate job."""
    for at in range(count):
        lines(folder / f"run-{at}.jsonl", [*begun(f"j-{at}", at), *steps(f"j-{at}", 0, 3, at + 5)])


def rank_logs(folder: Path, count: int) -> None:
    """Write this many text logs, one for each rank."""
    for at in range(count):
        (folder / f"rank-{at}.log").write_text(
            "\n".join([*list(attempt_lines(0, 10))[:6], f"[rank{at}]: ValueError: x"]) + "\n"
        )


_HEAD = "JobID|JobName|State|Submit|Start|End"


def _allocation(number: int, name: str, state: str, begin: float) -> str:
    """Return a row of `sacct` of five minutes."""
    times = "|".join(clock(60 * at).removesuffix("Z") for at in (begin - 1, begin, begin + 5))
    return f"{number}|{name}|{state}|{times}"


def _table(folder: Path, *rows: str) -> None:
    (folder / "slurm-5.out").write_text("\n".join(attempt_lines(0, 10)) + "\n")
    (folder / "sacct.txt").write_text("\n".join([_HEAD, _allocation(5, "llm", "FAILED", 0), *rows]) + "\n")


def allocations(folder: Path, count: int) -> None:
    """Write a table of a scheduler with this many requeues of one job."""
    _table(folder, *(_allocation(5, "llm", "FAILED", 10 * at) for at in range(1, count)))


def foreign_allocations(folder: Path, count: int) -> None:
    """Write a table of a scheduler with this many jobs of others."""
    _table(folder, *(_allocation(100 + at, f"other-{at}", "COMPLETED", at) for at in range(count)))


def agents(folder: Path, count: int) -> None:
    """Write the log of this many launcher agents, whose processes have the same pid, as in containers."""
    AgentJob(nodes=count).write(folder, "prefixes")


def text_logs_of_jobs(folder: Path, count: int) -> None:
    """Write this many text logs in a separate folder each."""
    for at in range(count):
        (folder / f"run-{at}").mkdir()
        (folder / f"run-{at}" / "train.log").write_text("\n".join(attempt_lines(0, 10)) + "\n")
