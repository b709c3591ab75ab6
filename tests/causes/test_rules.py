"""Choice of the cause between several lines (docs/causes.md): a small log per rule, solved by hand.

Every job steps every 40 s from 10:01:20, its last record is at 10:10:45, and it starts again at 10:30:00.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodput_cli
from goodput_cli.accounting.build import build_timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.events.evidence import NO_EVIDENCE
from goodput_cli.events.read import read_events


def attempt_lines(date_and_minute: str, first: int) -> Iterator[str]:
    """Return the start lines of a process and fifteen records of ten steps, the last at :45 of minute 10."""
    yield "time to initialize megatron (seconds): 20.000"
    yield f"[after megatron is initialized] datetime: {date_and_minute}:20.000000 "
    hour, minute = date_and_minute.split(" ")[1].split(":")
    for record in range(15):
        seconds = int(hour) * 3600 + int(minute) * 60 + 80 + 40 * record + 5 * (record == 14)
        clock = f"{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"
        yield (
            f" [2026-03-01 {clock}.000000] iteration {first + 10 * record:8d}/    1000 | "
            "elapsed time per iteration (ms): 4000.0 | loss scale: 1.0 |"
        )


FIRST = tuple(attempt_lines("2026-03-01 10:00", 10))
SECOND = tuple(attempt_lines("2026-03-01 10:30", 110))


def job(tmp_path: Path, *said: str, before: tuple[str, ...] = (), **files: str) -> Disruption:
    """Return the disruption of a job whose processes log `said` after their last record. before: lines before that
    record. files: other files of the directory, by name (`_` for `.`)."""
    lines = [*FIRST[:-1], *before, FIRST[-1], *said, *SECOND]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
    (found,) = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    return found


def raised(rank: int, what: str) -> tuple[str, ...]:
    """Return the lines that the interpreter of a rank prints at exit."""
    prefix = f"[rank{rank}]:"
    frame = f'{prefix}   File "/opt/train.py", line 8, in step'
    return f"{prefix} Traceback (most recent call last):", frame, f"{prefix} {what}"


def failed(at: str, code: int, local_rank: int, pid: int) -> str:
    """Return an agent's line about a process."""
    return (
        f"E0301 {at}.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) "
        f"local_rank: {local_rank} (pid: {pid}) of binary: /usr/bin/python"
    )


def block(host: str, rank: int, code: int, pid: int, at: str) -> tuple[str, ...]:
    """Return the block that an agent prints at its end about one process."""
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : 2026-03-01_{at}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {rank % 8})",
        f"  exitcode  : {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  traceback : Signal {-code} received by PID {pid}",
        "=" * 60,
    )


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB"


def verdict(one: Disruption) -> tuple[str | None, str | None]:
    return one.cause, one.cause_certainty


def test_error_before_the_last_step_was_survived(tmp_path: Path) -> None:
    """An exception caught between two records, without a timestamp, does not cause a later failure."""
    assert verdict(job(tmp_path, before=raised(3, OOM))) == ("unknown", None)


def test_error_after_the_last_step_is_confirmed(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, OOM), failed("10:10:49", 1, 3, 103))
    assert verdict(found) == ("device_oom", "confirmed")
    assert (found.first_rank, found.first_device) == (3, "3")


def test_error_before_an_ordinary_line_was_caught(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, OOM), "[rank3]: skipping this batch", failed("10:10:49", -9, 1, 101))
    assert verdict(found) == ("killed", "confirmed")


def test_error_without_ranks_before_a_later_line_was_caught(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "[2026-03-01 10:10:46] Traceback (most recent call last):",
        '  File "/opt/train.py", line 8, in step',
        "ValueError: a batch without labels",
        "[2026-03-01 10:10:50] INFO going on",
        "[2026-03-01 10:15:00] INFO still waiting",
    )
    assert verdict(found) == ("unknown", None)


def test_early_error_is_not_the_cause_of_another_rank_s_kill(tmp_path: Path) -> None:
    """`No space left` at 10:10:50. At 10:20:50 another rank is killed, which ended the job."""
    found = job(
        tmp_path,
        "[2026-03-01 10:10:50.000000] [rank0]: Traceback (most recent call last):",
        '[rank0]:   File "/opt/train.py", line 8, in log',
        "[rank0]: OSError: [Errno 28] No space left on device",
        "[2026-03-01 10:10:51.000000] saving of the profile was skipped",
        failed("10:20:50", -9, 2, 102),
        *block("node-02", 10, -9, 102, "10:20:50"),
    )
    assert found.cause == "killed"
    assert found.first_rank == 10


@pytest.mark.parametrize(
    "what",
    [
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, remote process exited or "
        "there was a network error",
        "RuntimeError: NCCL communicator was aborted on rank 5.",
        "RuntimeError: [/gloo/transport/tcp/pair.cc:525] Read error [10.0.0.7]:21342: Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe",
    ],
)
def test_lost_peers_are_not_the_cause(tmp_path: Path, what: str) -> None:
    found = job(tmp_path, *raised(5, what), *raised(3, OOM), failed("10:10:49", 1, 3, 103))
    assert verdict(found) == ("device_oom", "confirmed")
    assert found.first_rank == 3
    assert [one.code for one in found.echoes] == ["peer_lost"]


def test_connection_reset_of_a_data_set_is_its_own_error(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "[rank5]: Traceback (most recent call last):",
        '[rank5]:   File "/opt/requests/adapters.py", line 8, in send',
        "[rank5]: ConnectionResetError: [Errno 104] Connection reset by peer",
        failed("10:10:49", 1, 5, 105),
    )
    assert verdict(found) == ("python_error", "confirmed")
    assert found.first_rank == 5


def test_abort_after_timeouts_is_their_consequence(tmp_path: Path) -> None:
    timeout = (
        "[rank{0}]:[E301 10:20:50.000000123 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds"
    )
    found = job(tmp_path, *map(timeout.format, range(2)), failed("10:20:51", -6, 0, 100))
    assert verdict(found) == ("collective_timeout", "likely")


def test_abort_alone_is_a_crash(tmp_path: Path) -> None:
    assert job(tmp_path, failed("10:10:49", -6, 0, 100)).cause == "native_crash"


def test_ctrl_c_has_no_known_user(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, *raised(0, "KeyboardInterrupt"))) == ("cancelled", "likely")


def test_errors_of_killed_processes_are_not_the_cause(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "slurmstepd: error: *** STEP 8.0 ON node-01 CANCELLED AT 2026-03-01T10:10:50 DUE TO TIME LIMIT ***",
        *raised(0, "KeyboardInterrupt"),
        "srun: error: node-01: tasks 0-7: Terminated",
    )
    assert verdict(found) == ("time_limit", "confirmed")
    assert found.first_host is None


def test_same_exception_of_many_ranks_has_no_rank(tmp_path: Path) -> None:
    ranks = [line for rank in range(8) for line in raised(rank, "ValueError: wrong shape")]
    found = job(tmp_path, *ranks, "E0301 10:10:48.000000 7 torch/distributed/elastic/x.py:1] done")
    assert found.cause == "python_error"
    assert found.first_rank is None


def test_worker_that_exits_with_0_is_not_the_cause(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, *raised(0, "SystemExit: 0"))) == ("unknown", None)


def test_errors_of_the_next_start_belong_to_it(tmp_path: Path) -> None:
    lines = [*FIRST, *SECOND[:2], *raised(0, "ValueError: bad option"), failed("10:30:25", 1, 0, 100)]
    third = attempt_lines("2026-03-01 10:50", 110)
    (tmp_path / "train.log").write_text("\n".join([*lines, *third]) + "\n")
    first, second = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    assert verdict(first) == ("unknown", None)
    assert verdict(second) == ("python_error", "confirmed")


XID = (
    "2026-03-01T10:{0}+00:00 node-07 kernel: NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)
NODE_07 = "[2026-03-01 10:00:00,500] [INFO] [ft_launcher@{0}] [default] starting workers for entrypoint: python\n"


def test_kernel_log_of_a_host_of_the_job_is_likely(tmp_path: Path) -> None:
    found = job(tmp_path, kern_log=XID.format("10:50"), agent_log=NODE_07.format("node-07"))
    assert verdict(found) == ("gpu_fault", "likely")
    assert (found.first_host, found.first_device) == ("node-07", "0000:05:00")


@pytest.mark.parametrize("host", ["node-0", "node-070", "node-70", "other"])
def test_kernel_log_of_another_host_is_not_used(tmp_path: Path, host: str) -> None:
    assert verdict(job(tmp_path, kern_log=XID.format("10:50"), agent_log=NODE_07.format(host))) == ("unknown", None)


def test_unnamed_hosts_are_not_used(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, kern_log=XID.format("10:50"))) == ("unknown", None)


def test_kernel_line_in_job_output_ignores_the_file_name(tmp_path: Path) -> None:
    """`train.log` is named after the job, `node-07.kern.log` after a host."""
    xid = "[Sun Mar  1 10:10:50 2026] NVRM: Xid (PCI:0000:0b:00): 79, pid='<unknown>', GPU has fallen off the bus."
    one = job(tmp_path, xid)
    assert (one.cause, one.first_host, one.first_device) == ("gpu_fault", None, "0000:0b:00")


@pytest.mark.parametrize("at", ["08:00", "29:59", "20:00"])
def test_kernel_line_far_from_the_failure_is_not_the_cause(tmp_path: Path, at: str) -> None:
    """It comes before three minutes of steps, or nineteen minutes after the agent reported failed workers."""
    found = job(tmp_path, failed("10:10:49", 1, 0, 100), kern_log=XID.format(at), agent_log=NODE_07.format("node-07"))
    assert found.cause == "unknown"


def test_kill_of_another_program_is_not_the_cause(tmp_path: Path) -> None:
    killed = "2026-03-01T10:10:47,500000+00:00 Out of memory: Killed process 977 (jupyter) total-vm:5kB\n"
    found = job(
        tmp_path,
        failed("10:10:49", -9, 2, 4242),
        *block("node-02", 10, -9, 4242, "10:10:49"),
        dmesg__node__02_log=killed,
    )
    assert verdict(found) == ("killed", "confirmed")


def events(reason: str, pod: str, message: str, at: str = "10:46") -> str:
    """Return the output of `kubectl get events -o json`."""
    about = {"kind": "Pod", "name": pod}
    event = {"kind": "Event", "reason": reason, "message": message, "lastTimestamp": f"2026-03-01T10:{at}Z"}
    return json.dumps({"kind": "List", "items": [{**event, "involvedObject": about}]}) + "\n"


def test_pod_name_with_the_job_name_belongs_to_the_job(tmp_path: Path) -> None:
    found = job(tmp_path, events_json=events("Evicted", "job-0-3", "The node was low on resource: memory."))
    assert verdict(found) == ("evicted", "confirmed")


@pytest.mark.parametrize("pod", ["jobs-0-3", "llm-0-3", "myjob-3"])
def test_other_pod_is_context(tmp_path: Path, pod: str) -> None:
    assert verdict(job(tmp_path, events_json=events("Evicted", pod, "low"))) == ("unknown", None)


def test_observations_change_no_second(tmp_path: Path) -> None:
    """Compare the account with and without observations, except for causes."""
    job(tmp_path, *raised(3, OOM), kern_log=XID.format("10:50"), agent_log=NODE_07.format("node-07"))
    table = read_events([str(tmp_path)]).table
    rules: Any = goodput_cli.analyze(str(tmp_path), job_name="job").timeline.rules
    seen, blind = (build_timeline(in_order(one), rules) for one in (table, replace(table, observed=NO_EVIDENCE)))
    assert seen is not None
    assert blind is not None
    assert (seen.start, seen.end, seen.sign_of_life.tolist()) == (blind.start, blind.end, blind.sign_of_life.tolist())
    window = np.array([seen.start]), np.array([seen.end])
    assert repr(seen.ledger.between(*window)) == repr(blind.ledger.between(*window))


def test_first_screen_shows_causes_instead_of_ends(tmp_path: Path) -> None:
    job(tmp_path, failed("10:10:49", -9, 2, 4242), *block("node-02", 10, -9, 4242, "10:10:49"))
    insights = goodput_cli.analyze(str(tmp_path), job_name="job").insights
    (one,) = [insight for insight in insights if insight.code == "disruptions"]
    assert "(killed on node-02)" in one.text
    sooner = "detect failures sooner, and restart automatically"
    assert one.advice == f"{sooner}; check the kernel log: `ssh node-02 dmesg -T`"


def test_lines_of_other_hosts_are_counted(tmp_path: Path) -> None:
    job(tmp_path, kern_log=XID.format("10:50"), agent_log=NODE_07.format("other"))
    found = {one.code for one in goodput_cli.analyze(str(tmp_path), job_name="job").diagnostics}
    assert "evidence_of_other_hosts" in found


def test_log_and_scheduler_that_agree_are_one_cause() -> None:
    """Both `DUE TO TIME LIMIT` and the state TIMEOUT: confirmed, with no other observation."""
    log = "sample_logs/trainers/megatron-slurm"
    found = goodput_cli.analyze(log).disruptions[1]
    assert verdict(found) == ("time_limit", "confirmed")
    assert found.also == ()


OUT_OF_MEMORY = "2026-03-01T10:10:48,500000+00:00 Out of memory: Killed process 4242 (python) total-vm:53312244kB\n"


def with_hosts(tmp_path: Path, log: str, said: tuple[str, ...], *hosts: str) -> tuple[str | None, str | None, set[str]]:
    """Return cause and host of a job with a kernel log, and the codes of the diagnostics."""
    job(tmp_path, *said)
    (tmp_path / log).write_text(OUT_OF_MEMORY)
    found = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=hosts)
    (one,) = found.disruptions
    return one.cause, one.first_host, {each.code for each in found.diagnostics}


def test_kernel_log_counts_for_a_host_named_as_the_job_s(tmp_path: Path) -> None:
    cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", ())
    assert (cause, host) == ("unknown", None)
    assert "hosts_unknown" in codes
    for pattern in ("node-0*", "NODE-02", "*"):
        cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", (), pattern)
        assert (cause, host) == ("host_oom", "node-02"), pattern
        assert not codes & {"hosts_unknown", "evidence_of_other_hosts"}


def test_host_without_a_matching_pattern_is_unknown(tmp_path: Path) -> None:
    for pattern in ("node-03", "node-0", "2"):
        cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", (), pattern)
        assert (cause, host) == ("unknown", None), pattern
        assert "evidence_of_other_hosts" in codes


def test_kernel_log_without_a_host_ignores_patterns(tmp_path: Path) -> None:
    cause, _, codes = with_hosts(tmp_path, "dmesg.log", (), "*")
    assert cause == "unknown"
    assert "hosts_unknown" in codes


def test_other_process_on_a_host_of_the_job_is_context(tmp_path: Path) -> None:
    said = (failed("10:10:49", -9, 2, 777),)
    cause, _, _ = with_hosts(tmp_path, "dmesg-node-02.log", said, "node-02")
    assert cause == "killed"


@pytest.mark.parametrize(("process", "cause"), [("pt_main_thread", "host_oom"), ("agent", "killed")])
def test_container_process_has_another_pid(tmp_path: Path, process: str, cause: str) -> None:
    job(tmp_path, failed("10:10:49", -9, 2, 777))
    killed = OUT_OF_MEMORY.replace("Out", "Memory cgroup out", 1).replace("python", process)
    (tmp_path / "dmesg-node-02.log").write_text(killed)
    (found,) = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=("node-02",)).disruptions
    assert (found.cause, found.cause_certainty) == (cause, "likely" if cause == "host_oom" else found.cause_certainty)


def test_repeated_kernel_lines_count_once_per_minute(tmp_path: Path) -> None:
    """The first of three lines comes minutes before the last step, the last one after it."""
    lines = (f"2026-03-01T10:{at}+00:00 node-02 kernel: nfs: server filer not responding, timed out\n"
             for at in ("07:46", "09:16", "10:46"))  # fmt: skip
    job(tmp_path)
    (tmp_path / "node-02.kern.log").write_text("".join(lines))
    (found,) = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=("node-02",)).disruptions
    assert found.cause == "storage_error"


HEADLESS = (
    '  File "/opt/train.py", line 30, in step',
    "    loss = model(batch)",
    OOM,
)


def test_frames_without_a_header_are_a_traceback(tmp_path: Path) -> None:
    """The rank is unknown, so the cause is likely. A prefix of the hook for unhandled exceptions names the rank."""
    ended = failed("10:10:49", 1, 2, 103)
    assert verdict(job(tmp_path, *HEADLESS, ended)) == ("device_oom", "likely")
    (tmp_path / "hook").mkdir()
    by_hook = job(tmp_path / "hook", *(f"[rank2]: {line}" for line in HEADLESS), ended)
    assert verdict(by_hook) == ("device_oom", "confirmed")


def test_frames_without_an_exception_end_at_the_next_line(tmp_path: Path) -> None:
    stack = ("Stack (most recent call last):", '  File "/opt/train.py", line 3, in save', "    log(stack_info=True)")
    assert job(tmp_path, *stack, "saved in 3 s", "RuntimeError: of a message").cause == "unknown"


@pytest.mark.parametrize(
    ("nodes", "rank", "host"),
    [(("node-02: task 2",), 2, "node-02"), (("node-02: tasks 2-3",), None, "node-02"),
     (("node-02: task 2", "node-03: task 9"), None, None)],
)  # fmt: skip
def test_exit_code_1_names_the_host_if_it_is_the_only_one(
    tmp_path: Path, nodes: tuple[str, ...], rank: int | None, host: str | None
) -> None:
    found = job(tmp_path, *(f"srun: error: {node}: Exited with exit code 1" for node in nodes))
    assert (found.cause, found.first_rank, found.first_host) == ("unknown", rank, host)


THREAD = (
    "[rank2]: Exception in thread Thread-3 (_prefetch):",
    "[rank2]: Traceback (most recent call last):",
    '[rank2]:   File "/opt/data.py", line 8, in _prefetch',
    "[rank2]: IndexError: list index out of range",
)


def test_thread_exception_alone_ends_nothing(tmp_path: Path) -> None:
    assert job(tmp_path, *THREAD).cause == "unknown"


def test_thread_exception_is_the_cause_if_its_process_ended(tmp_path: Path) -> None:
    found = job(tmp_path, *THREAD, *raised(2, "RuntimeError: the queue of batches is closed"))
    assert (found.cause, found.first_rank, found.cause_text) == (
        "python_error", 2, "IndexError: list index out of range",
    )  # fmt: skip


def test_kill_is_not_caused_by_a_thread_exception(tmp_path: Path) -> None:
    killed = "E0301 10:10:51.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
    found = job(tmp_path, *THREAD, f"{killed}local_rank: 2 (pid: 812) of binary: /usr/bin/python")
    assert found.cause == "killed"


AGENT = "10:10:50.000000 7 torch/distributed/elastic/multiprocessing/api.py:900]"


@pytest.mark.parametrize("prefix", ["[rank2]: ", ""])
def test_mechanism_precedes_a_thread_exception(prefix: str, tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79 GiB"
    lines = [*THREAD, *raised(2, oom)]
    found = job(tmp_path, *(line.replace("[rank2]: ", prefix) for line in lines))
    assert found.cause == "device_oom"


CLOSING = f"W0301 {AGENT} Sending process 811 closing signal SIGTERM"


@pytest.mark.parametrize(("local", "cause"), [(3, "data_loader"), (1, "unknown")])
def test_loader_error_after_a_signal_counts_for_the_first_rank(local: int, cause: str, tmp_path: Path) -> None:
    failed = f"failed (exitcode: 1) local_rank: {local} (pid: 812) of binary: /usr/bin/python"
    found = job(
        tmp_path,
        CLOSING,
        *raised(3, "RuntimeError: DataLoader worker (pid(s) 2211) exited unexpectedly"),
        f"E0301 10:10:51.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] {failed}",
    )
    assert found.cause == cause


@pytest.mark.parametrize(
    ("pod", "own"),
    [
        ("job-3", True),
        ("job-workers-0-3", True),
        ("pytorchjob-job-9f2c", True),
        ("serve-job-3", False),
        ("job3", False),
    ],
)
def test_pod_belongs_to_the_job_that_its_name_starts_with(pod: str, own: bool, tmp_path: Path) -> None:
    event = {
        "kind": "Event", "reason": "OOMKilling", "message": "Killed process 4242",
        "involvedObject": {"kind": "Pod", "name": pod}, "lastTimestamp": "2026-03-01T10:10:49Z",
    }  # fmt: skip
    found = job(tmp_path, events_json=json.dumps({"kind": "List", "items": [event]}))
    assert found.cause == ("host_oom" if own else "unknown")
    assert found.cause_text == (f"{pod}: Killed process 4242" if own else None)


def test_clock_that_went_back_keeps_all_candidates(tmp_path: Path) -> None:
    """By order of lines rank 0 ran out of memory before its ECC error, by timestamps after it."""
    by_nccl = "000000123 ProcessGroupNCCL.cpp:616]"
    said = (
        f"[rank0]:[E301 10:20:50.{by_nccl} CUDA error: an illegal memory access was encountered",
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        f"[rank0]:[E301 10:11:20.{by_nccl} CUDA error: uncorrectable ECC error encountered",
        "2026-03-01 10:15:00 [rank1]: OSError: [Errno 28] No space left on device: '/ckpt'",
        f"[rank1]:[E301 10:15:50.{by_nccl} NCCL error: unhandled system error",
    )
    found = job(tmp_path, *said)
    assert found.cause_certainty == "likely"
    assert found.also


def test_hook_prints_the_whole_message_of_an_exception(tmp_path: Path) -> None:
    lines = raised(3, "RuntimeError: Expected to have finished reduction in the prior iteration")
    message = ("[rank3]: Parameter indices which did not receive grad for rank 3: 12 13", "[rank3]: See the manual.")
    assert verdict(job(tmp_path, *lines, *message)) == ("python_error", "likely")


def test_ordinary_lines_with_the_hook_prefix_show_a_catch(tmp_path: Path) -> None:
    lines = raised(3, "RuntimeError: Expected to have finished reduction in the prior iteration")
    found = job(tmp_path, *lines, "[rank3]: next shard", before=("[rank3]: shard 12 is read",))
    assert verdict(found) == ("unknown", None)
