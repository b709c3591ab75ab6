"""The process that failed first is the cause, not those that the launcher killed later. Lines that end no process do
not change a confirmed cause (docs/causes.md)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.events.text.blocks import exception_in
from goodput_cli.events.text.causes import shipped_rows
from goodput_cli.vocabulary.categories import group_of
from tests.accounting.test_properties import slowly
from tests.causes.test_rules import failed, job, raised, verdict

DISK = "OSError: [Errno 28] No space left on device: '/ckpt/step_150'"
HEAD = ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "=" * 60, "train.py FAILED", "-" * 60)


def entry(number: int, at: str, rank: int, code: int) -> tuple[str, ...]:
    """Return the entry of a process in an agent's block."""
    return (
        f"[{number}]:",
        f"  time      : 2026-03-01_{at}",
        "  host      : node-01",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : {code} (pid: {100 + rank})",
        "  error_file: <N/A>",
        f"  traceback : Signal {-code} received by PID {100 + rank}",
    )


def block(*ended: tuple[str, int, int], cut: int = 0) -> tuple[str, ...]:
    """Return an agent's block about its processes, the first failure last. cut: number of lines missing at its end."""
    others = [line for at, one in enumerate(ended[1:], 1) for line in entry(at, *one)]
    lines = [*HEAD, "Failures:", *others, "-" * 60, "Root Cause (first observed failure):", *entry(0, *ended[0])]
    return (*lines, "=" * 60) if not cut else tuple(lines[:-cut])


@pytest.mark.parametrize("later", [-9, -15, -6, -11])
def test_processes_killed_by_the_agent_are_not_the_cause(later: int, tmp_path: Path) -> None:
    """Rank 1 exits with 1 at 10:10:46 without a message; rank 0 is killed 31 s later."""
    found = job(tmp_path, *block(("10:10:46", 1, 1), ("10:11:17", 0, later)))
    assert verdict(found) == ("unknown", None)
    assert (found.first_rank, found.first_host) == (1, "node-01")


@pytest.mark.parametrize("cut", [2, 4, 6, 9])
def test_processes_killed_by_the_agent_with_a_cut_block(cut: int, tmp_path: Path) -> None:
    found = job(tmp_path, *block(("10:10:46", 1, 1), ("10:11:17", 0, -9), cut=cut))
    assert verdict(found) == ("unknown", None)
    assert found.first_rank != 0


def test_block_in_another_time_zone_is_ordered(tmp_path: Path) -> None:
    """The block has Berlin's time, the log UTC."""
    found = job(tmp_path, *block(("11:10:46", 1, 1), ("11:11:17", 0, -9)))
    assert (found.cause, found.first_rank) == ("unknown", 1)


def test_first_observed_kill_is_the_cause(tmp_path: Path) -> None:
    found = job(tmp_path, *block(("10:10:46", 0, -9), ("10:10:46", 1, 1)))
    assert verdict(found) == ("killed", "confirmed")
    assert found.first_rank == 0


def test_error_of_another_rank_is_only_likely(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, DISK), *block(("10:10:46", 1, 1), ("10:10:46", 3, 1)))
    assert verdict(found) == ("disk_full", "likely")
    assert found.first_rank == 3


def test_error_of_the_first_rank_is_confirmed(tmp_path: Path) -> None:
    found = job(tmp_path, *raised(3, "ValueError: wrong shape"), *raised(1, DISK), *block(("10:10:46", 3, 1)))
    assert (found.cause, found.first_rank) == ("python_error", 3)
    assert [(one.rank, one.code) for one in found.also_seen] == [(1, "disk_full")]


def test_mpi_launcher_names_rank_and_host(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "[node-09:4711:0:4711] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x18)",
        "prterun noticed that process rank 21 with PID 913 on node node-05 exited on signal 11 (Segmentation fault).",
    )
    assert (found.cause, found.first_rank, found.first_host) == ("native_crash", 21, "node-05")


def test_first_exited_mpi_process_is_the_cause(tmp_path: Path) -> None:
    said = "prterun detected that one or more processes exited with non-zero status. The first process to do so was:"
    found = job(tmp_path, said, "", "   Process name: [prterun-node-05-31337@1,6]", "   Exit code:    139")
    assert (found.cause, found.first_rank, found.first_host) == ("native_crash", 6, "node-05")


def test_ray_process_has_the_location_of_its_prefix(tmp_path: Path) -> None:
    found = job(tmp_path, "(TrainWorker pid=913, ip=10.0.0.7) *** SIGABRT received at time=1772359846 on cpu 12 ***")
    assert (found.cause, found.first_host) == ("native_crash", "10.0.0.7")


def test_peer_of_a_lost_connection_is_named(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "libfabric:913:1772359846::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Unresponsive receiver "
        "My EFA addr: fi_addr_efa://[fe80::1]:0:77 My host id: i-0a11 Peer EFA addr: fi_addr_efa://[fe80::2]:0:78 "
        "Peer host id: i-0b22 (14)",
    )
    assert (found.cause, found.first_host, found.first_peer) == ("network", "i-0a11", "i-0b22")
    assert "Unresponsive receiver" in (found.cause_text or "")


def kernel(pid: int, at: str) -> str:
    return f"[Sun Mar  1 {at} 2026] Out of memory: Killed process {pid} (python3) total-vm:912kB, anon-rss:404kB\n"


@pytest.mark.parametrize(("at", "pid", "named"), [
    ("10:10:43", 103, True), ("10:10:52", 103, True), ("10:12:40", 103, False), ("10:14:00", 103, False),
    ("10:10:43", 977, False),
])  # fmt: skip
def test_kernel_line_without_a_host_is_joined_by_pid(at: str, pid: int, named: bool, tmp_path: Path) -> None:
    """The time must be within 5 s of the exit of that pid."""
    found = job(tmp_path, failed("10:10:47", -9, 3, 103), dmesg_log=kernel(pid, at))
    assert verdict(found) == (("host_oom", "likely") if named else ("killed", "confirmed"))


def test_preemption_with_requeue_is_not_a_cancellation(tmp_path: Path) -> None:
    found = job(
        tmp_path,
        "submitit WARNING (2026-03-01 10:10:47,453) - Caught signal SIGUSR2 on node-03: this job is preempted.",
        "slurmstepd: error: *** JOB 77 ON node-03 CANCELLED AT 2026-03-01T10:10:48 DUE TO JOB REQUEUE ***",
    )
    assert verdict(found) == ("preempted", "confirmed")


PROCESS_ROWS = [
    row for row in shipped_rows().rows
    if row.speaker == "process" and row.role == "root" and "NCCL WARN" not in row.sample
    and not row.by and group_of(row.code) != "scheduler"
]  # fmt: skip
WARNINGS = (
    "/opt/lib/cache.py:46: UserWarning: {0}",
    "[2026-03-01 10:10:46] WARNING {0}",
    "[rank2]: WARNING:data.reader:{0}",
    "2026-03-01 10:10:46,120 - INFO - {0}",
    "{0}, skipping this batch",
    "{0}; retrying in 5 s",
    "the log of my job says {0}",
    "example: `{0}` is what it printed",
    '"what does it mean" "{0}',
)
WAYS = st.sampled_from(["warning", "warning", "caught", "logged", "kill"])


@st.composite
def noise(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Draw lines that end no process: before the agent's block, and about ranks that the agent ended later."""
    lines: list[str] = []
    kills: list[str] = []
    for way in draw(st.lists(WAYS, min_size=1, max_size=4)):
        words = draw(st.sampled_from([row for row in PROCESS_ROWS if "<rank" not in row.regex])).sample.strip()
        rank = draw(st.sampled_from([0, 2]))
        if way == "warning":
            lines.append(draw(st.sampled_from(WARNINGS)).format(words))
        elif way == "caught":
            what = words if exception_in(words) else f"RuntimeError: {words}"
            lines += [*raised(rank, what), f"[rank{rank}]: going on with the next shard"]
        elif way == "logged":
            lines += [f"2026-03-01 10:10:4{draw(st.integers(2, 6))},100 - ERROR - worker {rank} - {words}"]
        elif not kills:
            kills += entry(1, f"10:11:{draw(st.integers(10, 40))}", rank, draw(st.sampled_from([-9, -15])))
    return tuple(lines), tuple(kills)


def judged(before: tuple[str, ...], behind: tuple[str, ...], kills: tuple[str, ...]) -> Disruption:
    """Return the disruption of a job whose rank 1 dies of a full disk, as its agent reports, among other lines."""
    agent = (*HEAD, "Failures:", *kills, "-" * 60, "Root Cause (first observed failure):", *entry(0, "10:10:48", 1, 1))
    with tempfile.TemporaryDirectory() as folder:
        return job(Path(folder), *before, *raised(1, DISK), *behind, failed("10:10:48", 1, 1, 101), *agent, "=" * 60)


@slowly
@given(noise(), st.booleans())
def test_what_ends_nothing_never_changes_what_is_said(
    words: tuple[tuple[str, ...], tuple[str, ...]], ahead: bool
) -> None:
    lines, kills = words
    found = judged(lines if ahead else (), () if ahead else lines, kills)
    assert verdict(found) == ("disk_full", "confirmed")
    assert (found.first_rank, found.first_host) == (1, "node-01")


@pytest.mark.parametrize("row", PROCESS_ROWS, ids=lambda row: row.name)
def test_warning_line_is_not_the_cause(row: object, tmp_path: Path) -> None:
    """Each form of warning is the only line after the last record."""
    lines = [way.format(row.sample.strip()) for way in WARNINGS]  # type: ignore[attr-defined]
    assert verdict(job(tmp_path, *lines)) == ("unknown", None)


def test_other_observations_show_rank_host_and_line(tmp_path: Path) -> None:
    from goodput_cli.analysis.disruptions.sheet import cause_text_of

    job(tmp_path, *raised(3, "ValueError: wrong shape"), *raised(1, DISK), *block(("10:10:46", 3, 1)))
    found = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    text = cause_text_of(found.why[0])
    assert "rank 3, node-01, likely python_error: `ValueError: wrong shape`" in text
    assert "; also: rank 1, host not logged, " in text
    assert "`OSError: [Errno 28] No space left on device: '/ckpt/step_150'`, disk_full" in text


def test_kill_without_a_reason_is_described(tmp_path: Path) -> None:
    from goodput_cli.analysis.disruptions.sheet import cause_text_of

    job(tmp_path, *block(("10:10:46", 0, -9)))
    found = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    assert "killed: received SIGKILL; the log does not show the sender" in cause_text_of(found.why[0])


def test_unknown_cause_suggests_where_to_look(tmp_path: Path) -> None:
    from goodput_cli.analysis.disruptions.sheet import cause_text_of

    job(tmp_path, *block(("10:10:46", 1, 1), ("10:11:17", 0, -9)))
    found = goodput_cli.analyze(str(tmp_path), job_name="job").disruptions
    text = "cause not logged; rank 1 on node-01 failed first, so add its output"
    assert text in cause_text_of(found.why[0])
