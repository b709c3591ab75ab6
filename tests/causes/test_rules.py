"""Which of several lines says why (docs/causes.md): a small log for each rule, judged by hand before it was run.

Every job steps every 40 s from 10:01:20, its last record is of 10:10:45, and it starts again at 10:30:00.
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


def life(date_and_minute: str, first: int) -> Iterator[str]:
    """The start lines of a process and fifteen records of ten steps, the last at :45 of minute 10."""
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


FIRST = tuple(life("2026-03-01 10:00", 10))
SECOND = tuple(life("2026-03-01 10:30", 110))


def job(tmp_path: Path, *said: str, before: tuple[str, ...] = (), **files: str) -> Disruption:
    """The disruption of a job whose processes say some lines behind their last record. before: right before that
    record. files: what else lies in the folder, by name (`_` for `.`)."""
    lines = [*FIRST[:-1], *before, FIRST[-1], *said, *SECOND]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
    (found,) = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    return found


def raised(rank: int, what: str) -> tuple[str, ...]:
    """What the interpreter of a rank prints on its way out."""
    prefix = f"[rank{rank}]:"
    frame = f'{prefix}   File "/opt/train.py", line 8, in step'
    return f"{prefix} Traceback (most recent call last):", frame, f"{prefix} {what}"


def failed(at: str, code: int, local_rank: int, pid: int) -> str:
    """An agent's line about a process."""
    return (
        f"E0301 {at}.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) "
        f"local_rank: {local_rank} (pid: {pid}) of binary: /usr/bin/python"
    )


def block(host: str, rank: int, code: int, pid: int, at: str) -> tuple[str, ...]:
    """What an agent says at its end about one process."""
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


def test_what_stands_before_the_last_step_was_survived(tmp_path: Path) -> None:
    """Caught between two records, without a stamp: it is no cause of what came later."""
    assert verdict(job(tmp_path, before=raised(3, OOM))) == ("unknown", None)


def test_an_error_behind_the_last_step_is_said(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, OOM), failed("10:10:49", 1, 3, 103))
    assert verdict(found) == ("device_oom", "confirmed")
    assert (found.first_rank, found.first_device) == (3, "3")


def test_a_process_that_says_something_ordinary_had_caught_its_error(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, OOM), "[rank3]: skipping this batch", failed("10:10:49", -9, 1, 101))
    assert verdict(found) == ("killed", "confirmed")


def test_without_ranks_a_stamped_line_a_minute_later_shows_that_it_was_caught(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "[2026-03-01 10:10:46] Traceback (most recent call last):",
        '  File "/opt/train.py", line 8, in step',
        "ValueError: a batch without labels",
        "[2026-03-01 10:10:50] INFO going on",
        "[2026-03-01 10:15:00] INFO still waiting",
    )
    assert verdict(found) == ("unknown", None)


def test_an_error_long_before_the_kill_of_another_rank_is_not_its_cause(tmp_path: Path) -> None:
    """`No space left` at 10:10:50; at 10:20:50 another rank is killed: that is what ended the job."""
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
def test_who_lost_its_peers_is_not_the_cause(tmp_path: Path, what: str) -> None:
    found = job(tmp_path, *raised(5, what), *raised(3, OOM), failed("10:10:49", 1, 3, 103))
    assert verdict(found) == ("device_oom", "confirmed")
    assert found.first_rank == 3
    assert [one.code for one in found.echoes] == ["peer_lost"]


def test_a_reset_connection_of_a_data_set_is_an_error_of_its_own(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "[rank5]: Traceback (most recent call last):",
        '[rank5]:   File "/opt/requests/adapters.py", line 8, in send',
        "[rank5]: ConnectionResetError: [Errno 104] Connection reset by peer",
        failed("10:10:49", 1, 5, 105),
    )
    assert verdict(found) == ("python_error", "confirmed")
    assert found.first_rank == 5


def test_an_abort_behind_timeouts_is_their_way_out(tmp_path: Path) -> None:
    timeout = (
        "[rank{0}]:[E301 10:20:50.000000123 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds"
    )
    found = job(tmp_path, *map(timeout.format, range(2)), failed("10:20:51", -6, 0, 100))
    assert verdict(found) == ("collective_timeout", "likely")


def test_an_abort_alone_is_a_crash(tmp_path: Path) -> None:
    assert job(tmp_path, failed("10:10:49", -6, 0, 100)).cause == "native_crash"


def test_ctrl_c_says_not_by_whom(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, *raised(0, "KeyboardInterrupt"))) == ("cancelled", "likely")


def test_what_processes_shout_while_they_are_killed_is_no_cause(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "slurmstepd: error: *** STEP 8.0 ON node-01 CANCELLED AT 2026-03-01T10:10:50 DUE TO TIME LIMIT ***",
        *raised(0, "KeyboardInterrupt"),
        "srun: error: node-01: tasks 0-7: Terminated",
    )
    assert verdict(found) == ("time_limit", "confirmed")
    assert found.first_host is None


def test_the_same_exception_of_many_ranks_is_of_none(tmp_path: Path) -> None:
    ranks = [line for rank in range(8) for line in raised(rank, "ValueError: wrong shape")]
    found = job(tmp_path, *ranks, "E0301 10:10:48.000000 7 torch/distributed/elastic/x.py:1] done")
    assert found.cause == "python_error"
    assert found.first_rank is None


def test_the_interpreter_of_a_worker_that_ends_well_says_nothing(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, *raised(0, "SystemExit: 0"))) == ("unknown", None)


def test_what_the_next_start_says_is_its_own(tmp_path: Path) -> None:
    lines = [*FIRST, *SECOND[:2], *raised(0, "ValueError: bad option"), failed("10:30:25", 1, 0, 100)]
    third = life("2026-03-01 10:50", 110)
    (tmp_path / "train.log").write_text("\n".join([*lines, *third]) + "\n")
    first, second = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    assert verdict(first) == ("unknown", None)
    assert verdict(second) == ("python_error", "confirmed")


XID = (
    "2026-03-01T10:{0}+00:00 node-07 kernel: NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)
NODE_07 = "[2026-03-01 10:00:00,500] [INFO] [ft_launcher@{0}] [default] starting workers for entrypoint: python\n"


def test_a_kernel_log_of_a_host_of_the_job_is_likely(tmp_path: Path) -> None:
    found = job(tmp_path, kern_log=XID.format("10:50"), agent_log=NODE_07.format("node-07"))
    assert verdict(found) == ("gpu_fault", "likely")
    assert (found.first_host, found.first_device) == ("node-07", "0000:05:00")


@pytest.mark.parametrize("host", ["node-0", "node-070", "node-70", "other"])
def test_a_kernel_log_of_another_host_is_not_of_the_job(tmp_path: Path, host: str) -> None:
    assert verdict(job(tmp_path, kern_log=XID.format("10:50"), agent_log=NODE_07.format(host))) == ("unknown", None)


def test_hosts_that_nobody_names_are_not_believed(tmp_path: Path) -> None:
    assert verdict(job(tmp_path, kern_log=XID.format("10:50"))) == ("unknown", None)


def test_a_kernel_line_in_the_job_s_own_output_is_of_no_host_by_the_name_of_the_file(tmp_path: Path) -> None:
    """`train.log` is named after the job, `node-07.kern.log` after a host."""
    xid = "[Sun Mar  1 10:10:50 2026] NVRM: Xid (PCI:0000:0b:00): 79, pid='<unknown>', GPU has fallen off the bus."
    one = job(tmp_path, xid)
    assert (one.cause, one.first_host, one.first_device) == ("gpu_fault", None, "0000:0b:00")


@pytest.mark.parametrize("at", ["08:00", "29:59", "20:00"])
def test_a_kernel_line_far_from_the_death_is_no_cause(tmp_path: Path, at: str) -> None:
    """Three minutes of steps behind it, or nineteen minutes after the agent said that workers had died."""
    found = job(tmp_path, failed("10:10:49", 1, 0, 100), kern_log=XID.format(at), agent_log=NODE_07.format("node-07"))
    assert found.cause == "unknown"


def test_the_kill_of_another_program_is_not_ours(tmp_path: Path) -> None:
    killed = "2026-03-01T10:10:47,500000+00:00 Out of memory: Killed process 977 (jupyter) total-vm:5kB\n"
    found = job(
        tmp_path,
        failed("10:10:49", -9, 2, 4242),
        *block("node-02", 10, -9, 4242, "10:10:49"),
        dmesg__node__02_log=killed,
    )
    assert verdict(found) == ("killed", "confirmed")


def events(reason: str, pod: str, message: str, at: str = "10:46") -> str:
    """What `kubectl get events -o json` prints."""
    about = {"kind": "Pod", "name": pod}
    event = {"kind": "Event", "reason": reason, "message": message, "lastTimestamp": f"2026-03-01T10:{at}Z"}
    return json.dumps({"kind": "List", "items": [{**event, "involvedObject": about}]}) + "\n"


def test_a_pod_whose_name_holds_that_of_the_job_is_the_job_s(tmp_path: Path) -> None:
    found = job(tmp_path, events_json=events("Evicted", "job-0-3", "The node was low on resource: memory."))
    assert verdict(found) == ("evicted", "confirmed")


@pytest.mark.parametrize("pod", ["jobs-0-3", "llm-0-3", "myjob-3"])
def test_another_pod_is_context(tmp_path: Path, pod: str) -> None:
    assert verdict(job(tmp_path, events_json=events("Evicted", pod, "low"))) == ("unknown", None)


def test_observations_change_no_second(tmp_path: Path) -> None:
    """With all that was seen, and with nothing: the same account but for causes."""
    job(tmp_path, *raised(3, OOM), kern_log=XID.format("10:50"), agent_log=NODE_07.format("node-07"))
    table = read_events([str(tmp_path)]).table
    rules: Any = goodput_cli.analyze(str(tmp_path), job_name="job").timeline.rules
    seen, blind = (build_timeline(in_order(one), rules) for one in (table, replace(table, observed=NO_EVIDENCE)))
    assert seen is not None
    assert blind is not None
    assert (seen.start, seen.end, seen.sign_of_life.tolist()) == (blind.start, blind.end, blind.sign_of_life.tolist())
    window = np.array([seen.start]), np.array([seen.end])
    assert repr(seen.ledger.between(*window)) == repr(blind.ledger.between(*window))


def test_the_first_screen_says_causes_in_the_place_of_ends(tmp_path: Path) -> None:
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


def test_a_log_and_its_scheduler_that_say_the_same_are_one() -> None:
    """Both `DUE TO TIME LIMIT` and the state TIMEOUT: said, and nothing else was seen."""
    log = "sample_logs/trainers/megatron-slurm"
    found = goodput_cli.analyze(log).disruptions[1]
    assert verdict(found) == ("time_limit", "confirmed")
    assert found.also == ()


OUT_OF_MEMORY = "2026-03-01T10:10:48,500000+00:00 Out of memory: Killed process 4242 (python) total-vm:53312244kB\n"


def with_hosts(tmp_path: Path, log: str, said: tuple[str, ...], *hosts: str) -> tuple[str | None, str | None, set[str]]:
    """Cause and host of a job beside a kernel log, and the codes of what was noticed."""
    job(tmp_path, *said)
    (tmp_path / log).write_text(OUT_OF_MEMORY)
    found = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=hosts)
    (one,) = found.disruptions
    return one.cause, one.first_host, {each.code for each in found.diagnostics}


def test_a_kernel_log_counts_where_somebody_says_that_the_job_ran_there(tmp_path: Path) -> None:
    cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", ())
    assert (cause, host) == ("unknown", None)
    assert "hosts_unknown" in codes
    for pattern in ("node-0*", "NODE-02", "*"):
        cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", (), pattern)
        assert (cause, host) == ("host_oom", "node-02"), pattern
        assert not codes & {"hosts_unknown", "evidence_of_other_hosts"}


def test_a_host_that_no_pattern_fits_stays_a_stranger(tmp_path: Path) -> None:
    for pattern in ("node-03", "node-0", "2"):
        cause, host, codes = with_hosts(tmp_path, "dmesg-node-02.log", (), pattern)
        assert (cause, host) == ("unknown", None), pattern
        assert "evidence_of_other_hosts" in codes


def test_a_kernel_log_that_names_no_host_is_of_none_whatever_the_pattern(tmp_path: Path) -> None:
    cause, _, codes = with_hosts(tmp_path, "dmesg.log", (), "*")
    assert cause == "unknown"
    assert "hosts_unknown" in codes


def test_another_process_of_a_host_of_the_job_is_context(tmp_path: Path) -> None:
    said = (failed("10:10:49", -9, 2, 777),)
    cause, _, _ = with_hosts(tmp_path, "dmesg-node-02.log", said, "node-02")
    assert cause == "killed"


@pytest.mark.parametrize(("process", "cause"), [("pt_main_thread", "host_oom"), ("agent", "killed")])
def test_a_process_of_a_container_has_another_pid_there(tmp_path: Path, process: str, cause: str) -> None:
    job(tmp_path, failed("10:10:49", -9, 2, 777))
    killed = OUT_OF_MEMORY.replace("Out", "Memory cgroup out", 1).replace("python", process)
    (tmp_path / "dmesg-node-02.log").write_text(killed)
    (found,) = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=("node-02",)).disruptions
    assert (found.cause, found.cause_certainty) == (cause, "likely" if cause == "host_oom" else found.cause_certainty)


def test_what_a_kernel_repeats_counts_for_each_minute(tmp_path: Path) -> None:
    """The first of three lines stands minutes before the last step, the last one behind it."""
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


def test_frames_without_a_first_line_are_a_traceback_of_somebody(tmp_path: Path) -> None:
    """Whose it is nobody says, so likely; the hook for unhandled exceptions says it by its prefix."""
    ended = failed("10:10:49", 1, 2, 103)
    assert verdict(job(tmp_path, *HEADLESS, ended)) == ("device_oom", "likely")
    (tmp_path / "hook").mkdir()
    by_hook = job(tmp_path / "hook", *(f"[rank2]: {line}" for line in HEADLESS), ended)
    assert verdict(by_hook) == ("device_oom", "confirmed")


def test_frames_of_no_exception_end_with_the_next_line(tmp_path: Path) -> None:
    stack = ("Stack (most recent call last):", '  File "/opt/train.py", line 3, in save', "    log(stack_info=True)")
    assert job(tmp_path, *stack, "saved in 3 s", "RuntimeError: of a message").cause == "unknown"


@pytest.mark.parametrize(
    ("nodes", "rank", "host"),
    [(("node-02: task 2",), 2, "node-02"), (("node-02: tasks 2-3",), None, "node-02"),
     (("node-02: task 2", "node-03: task 9"), None, None)],
)  # fmt: skip
def test_an_exit_code_of_one_names_the_host_if_it_is_the_only_one(
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


def test_an_exception_of_a_thread_alone_ends_nothing(tmp_path: Path) -> None:
    assert job(tmp_path, *THREAD).cause == "unknown"


def test_an_exception_of_a_thread_is_the_cause_where_its_process_ended_behind_it(tmp_path: Path) -> None:
    found = job(tmp_path, *THREAD, *raised(2, "RuntimeError: the queue of batches is closed"))
    assert (found.cause, found.first_rank, found.cause_text) == (
        "python_error", 2, "IndexError: list index out of range",
    )  # fmt: skip


def test_a_kill_is_not_of_an_exception_of_a_thread(tmp_path: Path) -> None:
    killed = "E0301 10:10:51.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
    found = job(tmp_path, *THREAD, f"{killed}local_rank: 2 (pid: 812) of binary: /usr/bin/python")
    assert found.cause == "killed"


AGENT = "10:10:50.000000 7 torch/distributed/elastic/multiprocessing/api.py:900]"


@pytest.mark.parametrize("prefix", ["[rank2]: ", ""])
def test_a_mechanism_goes_before_an_exception_of_a_thread(prefix: str, tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79 GiB"
    lines = [*THREAD, *raised(2, oom)]
    found = job(tmp_path, *(line.replace("[rank2]: ", prefix) for line in lines))
    assert found.cause == "device_oom"


CLOSING = f"W0301 {AGENT} Sending process 811 closing signal SIGTERM"


@pytest.mark.parametrize(("local", "cause"), [(3, "data_loader"), (1, "unknown")])
def test_a_loader_behind_a_closing_signal_counts_only_of_the_process_that_failed_first(
    local: int, cause: str, tmp_path: Path
) -> None:
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
def test_a_pod_is_of_the_job_whose_name_it_begins_with(pod: str, own: bool, tmp_path: Path) -> None:
    event = {
        "kind": "Event", "reason": "OOMKilling", "message": "Killed process 4242",
        "involvedObject": {"kind": "Pod", "name": pod}, "lastTimestamp": "2026-03-01T10:10:49Z",
    }  # fmt: skip
    found = job(tmp_path, events_json=json.dumps({"kind": "List", "items": [event]}))
    assert found.cause == ("host_oom" if own else "unknown")
    assert found.cause_text == (f"{pod}: Killed process 4242" if own else None)


def test_a_clock_that_went_back_leaves_every_cause_to_be_weighed(tmp_path: Path) -> None:
    """By its lines rank 0 ran out of memory before its ECC error, by the clocks each stands behind another."""
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


def test_the_hook_prints_the_whole_message_of_an_exception(tmp_path: Path) -> None:
    lines = raised(3, "RuntimeError: Expected to have finished reduction in the prior iteration")
    message = ("[rank3]: Parameter indices which did not receive grad for rank 3: 12 13", "[rank3]: See the manual.")
    assert verdict(job(tmp_path, *lines, *message)) == ("python_error", "likely")


def test_where_ordinary_lines_begin_as_the_hook_s_do_they_show_that_it_was_caught(tmp_path: Path) -> None:
    lines = raised(3, "RuntimeError: Expected to have finished reduction in the prior iteration")
    found = job(tmp_path, *lines, "[rank3]: next shard", before=("[rank3]: shard 12 is read",))
    assert verdict(found) == ("unknown", None)
