"""A kernel line from a host that the job's log does not name is joined by pid, program and time of a logged exit
(docs/causes.md, Sources of evidence)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.disruptions.rows import Disruption
from tests.causes.test_rules import job, verdict

EXIT = "E0301 10:10:50.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {}) "
EXIT += "local_rank: 3 (pid: {}) of binary: {}"
KILLED = EXIT.format(-9, 103, "/usr/bin/python3")
LIKELY, KEPT = ("host_oom", "likely"), ("killed", "confirmed")


def oom(at: str, pid: int = 103, program: str = "python3") -> str:
    return f"[Sun Mar  1 {at} 2026] Out of memory: Killed process {pid} ({program}) total-vm:912kB, anon-rss:404kB\n"


def read_failure(tmp_path: Path, exited: str, **kernels: str) -> Disruption:
    """Return the failure of a job next to kernel logs of hosts that its log does not name. kernels: lines by host."""
    files: dict[str, Any] = {f"dmesg__{host}_log": text for host, text in kernels.items()}
    return job(tmp_path, exited, **files)


@pytest.mark.parametrize(("exited", "kernel", "expected"), [
    (KILLED, oom("10:10:47"), LIKELY),
    (KILLED, oom("10:10:55"), LIKELY),
    (KILLED, oom("10:10:44"), KEPT),
    (KILLED, oom("10:12:30"), KEPT),
    (KILLED, oom("10:10:47", pid=104), KEPT),
    (KILLED, oom("10:10:47", program="jupyter"), KEPT),
    (KILLED, oom("10:10:47", program="pt_main_thread"), LIKELY),
    (EXIT.format(-9, 103, "/opt/run_trainer_with_long_name"), oom("10:10:47", program="run_trainer_wit"), LIKELY),
    (EXIT.format(-9, 103, "/opt/my_trainer"), oom("10:10:47"), KEPT),
])  # fmt: skip
def test_kernel_line_joins_if_pid_program_and_time_match(
    exited: str, kernel: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    assert verdict(read_failure(tmp_path, exited, node7=kernel)) == expected


def test_joined_kernel_line_names_host_and_confirmation(tmp_path: Path) -> None:
    found = read_failure(tmp_path, KILLED, node7=oom("10:10:47"))
    assert found.first_host == "node7"
    analysis = goodput_cli.analyze(str(tmp_path), job_name="job")
    assert "--hosts-of-job node7" in analysis.disruptions.why[0].doubt
    assert any("likely host_oom on node7" in one.text for one in analysis.insights)
    confirmed = goodput_cli.analyze(str(tmp_path), job_name="job", hosts_of_job=("node7",))
    assert verdict(confirmed.disruptions[0]) == ("host_oom", "confirmed")


def test_kernel_lines_of_two_hosts_join_nothing(tmp_path: Path) -> None:
    assert verdict(read_failure(tmp_path, KILLED, node7=oom("10:10:47"), node8=oom("10:10:48"))) == KEPT


def test_kernel_line_of_another_host_than_named_joins_nothing(tmp_path: Path) -> None:
    exited = (
        f"[node3] host : node3\n{KILLED}\n"
        + "slurmstepd: error: *** STEP 7.0 ON node3 CANCELLED AT 2026-03-01T10:10:52 ***"
    )
    found = job(tmp_path, *exited.split("\n"), dmesg__node7_log=oom("10:10:47"))
    assert found.first_host != "node7"
    assert found.cause != "host_oom"
