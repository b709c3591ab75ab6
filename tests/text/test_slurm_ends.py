"""Deaths in stdout as launchers, Slurm and collective libraries report them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import goodput_cli
from tests.text.support import SAMPLES, analysed, codes, seconds, written
from tests.text.test_folders import printed

TRAINED = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
 [2026-03-01 10:01:00] iteration       10/     100 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:01:40] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |
"""


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: node-3: task 24: Out Of Memory",
        "srun: error: node-3: tasks 24-31: Killed",
        "srun: error: node-3: task 24: Exited with exit code 1",
    ],
)
def test_untimed_death_is_at_the_last_time(tmp_path: Path, line: str) -> None:
    analysis = analysed(written(tmp_path / "run", a_out=TRAINED + line + "\n"))
    assert analysis.job.ending == "crashed"
    assert seconds(analysis) == {"productive": 80, "program_startup": 20}


def test_timed_records_are_never_missing(tmp_path: Path) -> None:
    log = TRAINED.replace("      10/", "       1/").replace("      20/", "      60/")
    assert "missing_records" not in codes(analysed(written(tmp_path / "run", a_out=log)))


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("slurmstepd: error: *** JOB 8 ON n0 CANCELLED AT 2026-03-01T10:02:00 DUE TO TIME LIMIT ***", "terminated"),
        ("slurmstepd: error: *** JOB 8 ON n0 CANCELLED AT 2026-03-01T10:02:00 DUE to SIGNAL Term ***", "terminated"),
        ("slurmstepd: error: *** STEP 8.0 ON n0 CANCELLED AT 2026-03-01T10:02:00 ***", "terminated"),
        ("srun: error: *** STEP 8.0 CANCELLED AT 2026-03-01T10:02:00 DUE TO JOB REQUEUE ***", "terminated"),
        ("slurmstepd: error: *** JOB 8 ON n0 CANCELLED AT 2026-03-01T10:02:00 DUE TO PREEMPTION ***", "preempted"),
        (
            "slurmstepd: error: *** JOB 8 ON n0 CANCELLED AT 2026-03-01T10:02:00 DUE TO NODE FAILURE, SEE SLURMCTLD "
            "LOG FOR DETAILS ***",
            "crashed",
        ),
    ],
)  # fmt: skip
def test_slurm_cancellation_has_a_cause(tmp_path: Path, line: str, ended: str) -> None:
    analysis = analysed(written(tmp_path / "run", a_out=f"{TRAINED}{line}\n", b_out=AGAIN))
    (disruption,) = analysis.disruptions
    assert disruption.ended == ended
    assert seconds(analysis)["infrastructure_recovery_from_disruption"] == 480


@pytest.mark.parametrize(
    ("state", "ended", "cause"),
    [
        ("COMPLETED", "clean", None),
        ("CANCELLED by 1002", "cancelled", None),
        ("FAILED", "crashed", None),
        ("OUT_OF_MEMORY", "crashed", "host_oom"),
        ("NODE_FAIL", "crashed", "node_failure"),
        ("TIMEOUT", "terminated", "time_limit"),
        ("PREEMPTED", "terminated", "preempted"),
    ],
)
def test_slurm_state_is_the_same_in_jobs_and_analyze(tmp_path: Path, state: str, ended: str, cause: str | None) -> None:
    table = f"JobID|State|Submit|Start|End\n8|{state}|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T10:03:00\n"
    folder = written(tmp_path / "run", slurm__8_out=TRAINED, sacct_txt=table)
    (job,) = goodput_cli.jobs(folder, year=2026).jobs
    assert (job.ending, job.cause) == (ended, cause)
    analysis = analysed(folder)
    last = analysis.timeline.last_cause
    assert (analysis.job.ending, None if last is None else last.code) == (ended, cause)
    assert f", {ended if cause is None else f'{ended} ({cause})'}".replace("clean", "clean end") in str(analysis)


AGAIN = TRAINED.replace(" 10:0", " 10:1").replace("      20/", "      40/").replace("      10/", "      30/")


def test_process_dies_at_the_time_of_its_launcher_line(tmp_path: Path) -> None:
    """The lines of the process have no time, or one of another thread; those of the launcher have one, 40 s after the
    last record. If errors go into a separate file, the result is the same."""
    death = """\
[rank5]:[E301 10:02:15.123456789 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout
terminate called after throwing an instance of 'c10::DistBackendError'
E0301 10:02:20.000000 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 5 (pid: 7) of binary: python
srun: error: node-0: task 0: Exited with exit code 1
"""  # noqa: E501 - as torchrun writes it
    expected = {"productive": 80, "program_startup": 20, "wasted_progress_from_disruption": 40}
    assert seconds(analysed(written(tmp_path / "one", a_out=TRAINED + death), year=2026)) == expected
    assert seconds(analysed(written(tmp_path / "two", a_out=TRAINED, a_err=death), year=2026)) == expected


@pytest.mark.parametrize("who", ["NCCL", "Process group"])
def test_watchdog_of_each_version_ends_a_process(tmp_path: Path, who: str) -> None:
    death = (
        f"[rank5]:[E301 10:02:15.123456789 ProcessGroupNCCL.cpp:1414] [PG ID 0 PG GUID 0(default_pg) Rank 5] {who} "
        "watchdog thread terminated with exception: [Rank 5] Watchdog caught collective operation timeout\n"
    )
    analysis = analysed(written(tmp_path / "run", a_out=TRAINED + death), year=2026)
    assert analysis.job.ending == "crashed"


def test_untimed_error_file_ends_with_its_output(tmp_path: Path) -> None:
    error = "srun: error: node-3: task 24: Out Of Memory\n"
    analysis = analysed(written(tmp_path / "run", slurm__8_out=TRAINED, slurm__8_err=error))
    assert (analysis.job.ending, seconds(analysis)) == ("crashed", {"productive": 80, "program_startup": 20})
    assert "no_clock" not in codes(analysis)
    other = analysed(written(tmp_path / "other", node0_out=TRAINED, node1_out=error))
    assert (other.job.ending, other.job.attempts) == ("not_logged", 1)


def test_yearless_timestamps_get_the_year_of_other_files(tmp_path: Path) -> None:
    """A copied file has the modification time of the copy."""
    error = "E0301 10:02:20.000000 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) \
local_rank: 5 (pid: 7) of binary: python\n"
    folder = written(tmp_path / "run", node0_out=TRAINED.replace("2026", "2019"), node1_out=error)
    assert seconds(analysed(folder))["wasted_progress_from_disruption"] == 40


FIRST_RANK = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
(min, max) time across ranks (ms):
    evaluate .......................................: (3990.00, 4000.00)
 validation loss at iteration 20 | lm loss value: 8.0E+00 |
saving checkpoint at iteration      20 to /ckpt/llm
  successfully saved checkpoint at iteration      20 to /ckpt/llm
(min, max) time across ranks (ms):
    save-checkpoint ................................: (4990.00, 5000.00)
"""
LAST_RANK = """\
 [2026-03-01 10:01:00] iteration       10/     100 | elapsed time per iteration (ms): 6000.0 |
 [2026-03-01 10:01:40] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:02:29] iteration       30/     100 | elapsed time per iteration (ms): 4000.0 |
"""


def test_the_first_rank_of_megatron_prints_into_another_file_than_the_last(tmp_path: Path) -> None:
    apart = written(tmp_path / "apart", node0_out=FIRST_RANK, node1_out=LAST_RANK)
    lines = LAST_RANK.splitlines(keepends=True)
    at = FIRST_RANK.index("(min, max)")
    one = written(tmp_path / "one", a_out=FIRST_RANK[:at] + "".join(lines[:2]) + FIRST_RANK[at:] + lines[2])
    expected = {
        "productive": 120,
        "program_startup": 20,
        "EVAL_STEP": 4,
        "unproductive_checkpoint_save_time": 5,
    }
    assert seconds(analysed(one)) == expected
    assert seconds(analysed(apart)) == expected


def test_deepspeed_launcher_shows_begin_and_end(tmp_path: Path) -> None:
    """Up at 2; ten steps of 2 s after a start of 20 s, a save of 4 s, and a death 5 s after the last record."""
    log = """\
[2026-03-01 10:00:02,000] [INFO] [launch.py:145:main] nnodes=1, num_local_procs=8, node_rank=0
[2026-03-01 10:00:42,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]
[2026-03-01 10:01:02,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]
[2026-03-01 10:01:02,000] [INFO] [logging.py:96:log_dist] [Torch] Checkpoint global_step20 is about to be saved!
[2026-03-01 10:01:06,000] [INFO] [engine.py:33:commit] [Torch] Checkpoint global_step20 is ready now!
[2026-03-01 10:01:26,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=30, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]
[2026-03-01 10:01:30,000] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 123
[2026-03-01 10:01:31,000] [ERROR] [launch.py:322:sigkill_handler] ['python'] exits with return code = -9
"""
    analysis = analysed(written(tmp_path / "run", a_log=log))
    assert analysis.job.ending == "crashed"
    assert seconds(analysis) == {
        "productive": 60,
        "program_startup": 20,
        "unproductive_checkpoint_save_time": 4,
        "wasted_progress_from_disruption": 5,
    }


def test_rotated_files_of_a_folder_are_read(tmp_path: Path) -> None:
    lines = TRAINED.splitlines(keepends=True)
    folder = written(tmp_path / "run", train_log=lines[2])
    (folder / "train.log.1").write_text(lines[1], encoding="utf-8")
    (folder / "train.log-20260301").write_text(lines[0], encoding="utf-8")
    assert seconds(analysed(folder)) == {"productive": 80, "program_startup": 20}


COLLECTED = """\
2026-03-01T08:00:00.100000000Z [before the start of training step] datetime: 2026-03-01 10:00:00
2026-03-01T08:01:00.200000000Z  [2026-03-01 10:01:00] iteration       10/100 | elapsed time per iteration (ms): 4000.0 |
2026-03-01T08:01:40.300000000Z  [2026-03-01 10:01:40] iteration       20/100 | elapsed time per iteration (ms): 4000.0 |
"""


def test_collector_times_next_to_line_times_show_the_zone(tmp_path: Path) -> None:
    """The error file was not collected: its times are two hours ahead, like those of the lines in the other file."""
    error = "slurmstepd: error: *** JOB 8 ON n0 CANCELLED AT 2026-03-01T10:02:00 DUE TO TIME LIMIT ***\n"
    folder = written(tmp_path / "run", a_log=COLLECTED, b_err=error)
    analysis = analysed(folder)
    assert analysis.job.end_ns == 1_772_352_120 * 10**9
    assert "timezone_found" in codes(analysis)
    assert "naive_timestamps" not in codes(analysis)
    assert "naive_timestamps" in codes(analysed(folder, timezone="Europe/Berlin"))


def test_launcher_log_beginning_with_a_death_has_downtime() -> None:
    """Seven of the ten seconds are the rendezvous."""
    analysis = analysed(SAMPLES / "nvrx-cycle-lines.log")
    (disruption,) = analysis.disruptions
    assert disruption.ended == "crashed"
    found = seconds(analysis)
    assert found["elastic_reinitialization"] == 7.25
    assert found["infrastructure_recovery_from_disruption"] == pytest.approx(2.627)


def test_death_amid_a_file_is_after_the_records_before_it(tmp_path: Path) -> None:
    """Records without a time in one stream, and a death without one in another; the job continues in the same file."""
    step = "[default7]: iteration {:8d}/     100 | elapsed time per iteration (s): 2.00 | TFLOPs: 149.10 |\n"
    log = "[default0]:[before the start of training step] datetime: 2026-03-01 10:00:00\n"
    log += "".join(step.format(at) for at in range(1, 31))
    log += "srun: error: node-3: task 5: Exited with exit code 1\n"
    log += "[default0]:  successfully loaded checkpoint from /ckpt at iteration 20\n"
    log += "[default0]:[before the start of training step] datetime: 2026-03-01 10:10:00\n"
    log += "".join(step.format(at) for at in range(21, 41))
    log += "slurmstepd: error: *** STEP 8.0 ON n0 CANCELLED AT 2026-03-01T10:10:40 ***\n"
    analysis = analysed(written(tmp_path / "run", a_log=log))
    (disruption,) = analysis.disruptions
    assert (disruption.ended, disruption.last_step, disruption.resumed_step) == ("crashed", 30, 20)
    assert seconds(analysis) == {
        "productive": 80,
        "wasted_progress_from_disruption": 20,
        "infrastructure_recovery_from_disruption": 540,
    }


def test_lines_kept_by_docker_have_its_times(tmp_path: Path) -> None:
    lines = [line.split(" ", 1) for line in COLLECTED.splitlines()]
    log = "".join(
        json.dumps({"log": f"{text}\n", "stream": "stdout", "time": time}) + "\n"
        for time, text in [*lines, ("2026-03-01T08:01:40.300000000Z", "no more")]
    )
    plain = seconds(analysed(written(tmp_path / "plain", a_log=COLLECTED)))
    analysis = analysed(written(tmp_path / "docker", c_log=log))
    assert seconds(analysis) == plain
    assert "unrecognised_lines" not in codes(analysis)


PRELUDE = "".join(f"2026-03-01 10:09:{second},000 INFO importing\n" for second in (30, 40, 55))


@pytest.mark.parametrize("apart", [False, True])
def test_lines_before_a_start_are_not_of_the_previous_attempt(tmp_path: Path, apart: bool) -> None:
    """A death without a message at the last record, 10:01:40; another process prints its first words at 10:09:30."""
    files = {"a_out": TRAINED, "b_out": PRELUDE + AGAIN} if apart else {"a_out": TRAINED + PRELUDE + AGAIN}
    found = seconds(analysed(written(tmp_path / "run", **files)))
    assert found["infrastructure_recovery_from_disruption"] == 500
    assert "wasted_progress_from_disruption" not in found


def test_lines_after_the_last_record_are_activity(tmp_path: Path) -> None:
    alive = "2026-03-01 10:02:40,000 INFO still here\n"
    found = seconds(analysed(written(tmp_path / "run", a_out=TRAINED + alive + AGAIN)))
    assert found["wasted_progress_from_disruption"] == 60
    assert found["infrastructure_recovery_from_disruption"] == 440


def test_rank_file_without_a_start_begins_with_the_job(tmp_path: Path) -> None:
    """Restarted pods write new files; the last rank, which prints the records, has no start line."""
    looping, *records = TRAINED.splitlines(keepends=True)
    files = {"a0_out": looping, "z0_out": "".join(records)}
    again, *more = AGAIN.splitlines(keepends=True)
    found = seconds(analysed(written(tmp_path / "run", **files, a1_out=again, z1_out=PRELUDE + "".join(more))))
    assert found["infrastructure_recovery_from_disruption"] == 500
    assert "wasted_progress_from_disruption" not in found


DYING = [
    "E0301 {at}.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2 "
    "(pid: 9) of binary: python",
    "[rank3]:[E301 {at}.000000 ProcessGroupNCCL.cpp:1414] [PG 0 Rank 3] Process group watchdog thread terminated with "
    "exception: CUDA error",
    "W0301 {at}.000000 7 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down "
    "workers",
    "W0301 {at}.000000 7 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 9 closing "
    "signal SIGTERM",
    "2026-03-01 {at},000 [ERROR] something ordinary of a process that dies",
]  # fmt: skip


@pytest.mark.parametrize("why", ["", " DUE TO TIME LIMIT"])
@pytest.mark.parametrize("line", DYING)
def test_processes_dying_after_a_cancel_are_not_a_start(tmp_path: Path, line: str, why: str) -> None:
    """The next Slurm job in the same file begins at 10:10, not where the processes of the last one died."""
    cancel = f"slurmstepd: error: *** STEP 8.0 ON n0 CANCELLED AT 2026-03-01T10:02:00{why} ***\n"
    log = TRAINED + cancel + line.format(at="10:02:02") + "\n" + AGAIN
    analysis = analysed(written(tmp_path / "run", a_out=log))
    (disruption,) = analysis.disruptions
    assert disruption.next_start_ns == analysis.job.start_ns + 600 * 10**9
    assert analysis.job.attempts == 2


def test_late_end_line_is_not_a_start(tmp_path: Path) -> None:
    cancel = "slurmstepd: error: *** STEP 8.0 ON n0 CANCELLED AT 2026-03-01T10:02:00 ***\n"
    log = TRAINED + cancel + DYING[0].format(at="10:03:40") + "\n" + AGAIN.partition("\n")[2]
    analysis = analysed(written(tmp_path / "run", a_out=log))
    assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)


def test_next_job_begins_at_its_first_yearless_time(tmp_path: Path) -> None:
    cancel = "slurmstepd: error: *** STEP 8.0 ON n0 CANCELLED AT 2026-03-01T10:02:00 ***\n"
    first = "I0301 10:09:00.000000 7 main.py:8] loading\n"
    log = TRAINED + cancel + DYING[0].format(at="10:02:02") + "\n" + first + AGAIN.partition("\n")[2]
    analysis = analysed(written(tmp_path / "run", a_out=log))
    (disruption,) = analysis.disruptions
    assert disruption.next_start_ns == analysis.job.start_ns + 540 * 10**9


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        ("srun: error: node1: task 0: Exited with exit code 143", "terminated"),
        ("srun: error: node1: task 0: Exited with exit code 1", "crashed"),
        ("E0301 10:01:11.5 7 api.py:1002] failed (exitcode: -15) local_rank: 1 (pid: 9) of binary: /p", "terminated"),
        ("E0301 10:01:11.5 7 api.py:1002] failed (exitcode: -6) local_rank: 1 (pid: 9) of binary: /p", "crashed"),
    ],
)
def test_process_ended_by_sigterm_is_terminated(tmp_path: Path, line: str, ended: str) -> None:
    (tmp_path / "train.log").write_text(printed(0) + line + "\n" + printed(300, 31))
    assert [one.ended for one in analysed(tmp_path).disruptions] == [ended]


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("Received SIGTERM, saving a checkpoint", "terminated"),
        ("WARNING:root:Got signal 15 (SIGTERM); leaving the loop", "terminated"),
        ("a handler for SIGTERM is registered", "not_logged"),
        ("Sending process 811 closing signal SIGTERM", "not_logged"),
    ],
)
def test_program_that_logs_sigterm_is_terminated(tmp_path: Path, line: str, ending: str) -> None:
    assert analysed(written(tmp_path / "run", a_out=TRAINED + line + "\n")).job.ending == ending


def test_program_that_continues_after_sigterm_is_alive(tmp_path: Path) -> None:
    later = " [2026-03-01 10:02:20] iteration       30/     100 | elapsed time per iteration (ms): 4000.0 |\n"
    analysis = analysed(written(tmp_path / "run", a_out=TRAINED + "Received SIGTERM\n" + later))
    assert (analysis.job.ending, analysis.job.attempts) == ("not_logged", 1)
