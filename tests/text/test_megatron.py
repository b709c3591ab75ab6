"""Megatron's stdout and progress.txt: the examples of the formats, exactly."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import goodput_cli
from goodput_cli.analysis.summary import size_of
from goodput_cli.report.base import Page
from goodput_cli.report.first_screen import first_screen
from tests.text.support import SAMPLES, analysed, codes, seconds, written

FIRST = """\
time to initialize megatron (seconds): 20.000
[after megatron is initialized] datetime: 2026-03-01 10:00:20.000000
[after model, optimizer, and learning rate scheduler are built] datetime: 2026-03-01 10:00:30.000000
[before the start of training step] datetime: 2026-03-01 10:00:40.000000
 [2026-03-01 10:01:40.000000] iteration       10/     100 | consumed samples: 80 | elapsed time per iteration (ms): \
6000.0 | learning rate: 1.0E-04 |
 [2026-03-01 10:02:20.000000] iteration       20/     100 | consumed samples: 160 | elapsed time per iteration (ms): \
4000.0 | learning rate: 1.0E-04 |
[2026-03-01 10:02:20.000000] saving checkpoint at iteration      20 to /ckpt/llm in torch_dist format
  [2026-03-01 10:02:25.000000] successfully saved checkpoint from iteration      20 to /ckpt/llm [ t 1/8, p 1/4 ]
 [2026-03-01 10:03:05.000000] iteration       30/     100 | consumed samples: 240 | elapsed time per iteration (ms): \
4000.0 | learning rate: 1.0E-04 |
E0301 10:03:20.000000 123 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2 \
(pid: 7) of binary: python
"""
SECOND = """\
time to initialize megatron (seconds): 20.000
[after megatron is initialized] datetime: 2026-03-01 10:05:20.000000
 loading distributed checkpoint from /ckpt/llm at iteration 20
  successfully loaded checkpoint from /ckpt/llm [ t 1/8, p 1/4 ] at iteration 20
(min, max) time across ranks (ms):
    load-checkpoint ................................: (7900.00, 8000.00)
[after model, optimizer, and learning rate scheduler are built] datetime: 2026-03-01 10:05:35.000000
[before the start of training step] datetime: 2026-03-01 10:05:40.000000
 [2026-03-01 10:06:36.000000] iteration       30/     100 | consumed samples: 240 | elapsed time per iteration (ms): \
5600.0 | learning rate: 1.0E-04 |
 [2026-03-01 10:07:16.000000] iteration       40/     100 | consumed samples: 320 | elapsed time per iteration (ms): \
4000.0 | learning rate: 1.0E-04 |
[after training is done] datetime: 2026-03-01 10:07:17.000000
"""
TWO_JOBS = {
    "productive": 160,
    "program_startup": 36,
    "tpu_initialization": 40,
    "training_prep": 32,
    "unproductive_checkpoint_save_time": 5,
    "unproductive_checkpoint_restore_time": 8,
    "wasted_progress_from_disruption": 55,
    "infrastructure_recovery_from_disruption": 100,
    "other": 1,
}
"""Seconds of the two files, 437 s: the crash at 200 s wastes ten steps and 15 s of one in flight."""


def test_two_slurm_jobs_in_a_folder_are_attempts_of_one_job(tmp_path: Path) -> None:
    folder = written(tmp_path / "llm-7b", slurm__812_out=FIRST, slurm__813_out=SECOND)
    analysis = analysed(folder)
    assert seconds(analysis) == TWO_JOBS
    assert (analysis.job.name, analysis.job.attempts, len(analysis.disruptions)) == ("llm-7b", 2, 1)
    assert analysis.disruptions[0].ended == "crashed"
    assert codes(analysis).isdisjoint({"malformed_lines", "starts_mid_run", "open_interval", "orphan_end"})


def test_jobs_split_into_other_files_are_the_same(tmp_path: Path) -> None:
    joined = written(tmp_path / "one", all_out=FIRST + SECOND)
    doubled = written(tmp_path / "two", a_out=FIRST, b_out=SECOND, c_out=FIRST, d_out=SECOND)
    packed = written(tmp_path / "three")
    (packed / "a.out.gz").write_bytes(gzip.compress((FIRST + SECOND).encode()))
    ranks = written(tmp_path / "four", a_out="".join(f" 7: {line}\n" for line in (FIRST + SECOND).splitlines()))
    crlf = written(tmp_path / "five", a_out=(FIRST + SECOND).replace("\n", "\r\n"))
    for folder in (joined, doubled, packed, ranks, crlf):
        assert seconds(analysed(folder)) == TWO_JOBS, folder.name


def test_file_split_at_timestamps_is_the_same(tmp_path: Path) -> None:
    lines = (FIRST + SECOND).splitlines(keepends=True)
    cuts = [0, *(at for at, line in enumerate(lines) if "] iteration" in line), len(lines)]
    pieces = {f"p{at}_out": "".join(lines[a:b]) for at, (a, b) in enumerate(pairwise(cuts))}
    assert seconds(analysed(written(tmp_path / "cut", **pieces))) == TWO_JOBS


def test_untimed_records_continue_from_the_last_timestamp() -> None:
    analysis = analysed(SAMPLES / "megatron-2021-log-interval-10.out")
    assert seconds(analysis) == {
        "productive": 277.653,
        "program_startup": 7.716,
        "tpu_initialization": 0.398,
        "training_prep": 1,
        "other": 6.631,
    }
    assert analysis.job.ending == "terminated"


def test_timers_locate_evaluations_and_saves(tmp_path: Path) -> None:
    """Between records 20 and 30 are 40 s of training and 9 s more: 4 s of evaluation and 5 s of a save."""
    log = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
 [2026-03-01 10:00:40] iteration       10/     100 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:01:20] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |
(min, max) time across ranks (ms):
    evaluate .......................................: (3990.00, 4000.00)
 validation loss at iteration 20 | lm loss value: 8.0E+00 |
saving checkpoint at iteration      20 to /ckpt/llm
  successfully saved checkpoint at iteration      20 to /ckpt/llm
(min, max) time across ranks (ms):
    save-checkpoint ................................: (4990.00, 5000.00)
 [2026-03-01 10:02:09] iteration       30/     100 | elapsed time per iteration (ms): 4000.0 |
"""
    found = seconds(analysed(written(tmp_path / "timers", a_out=log)))
    assert found == {"productive": 120, "EVAL_STEP": 4, "unproductive_checkpoint_save_time": 5}


def test_gap_with_one_kind_of_mark_belongs_to_it(tmp_path: Path) -> None:
    log = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
 [2026-03-01 10:00:40] iteration       10/     100 | elapsed time per iteration (ms): 4000.0 |
  successfully saved checkpoint at iteration      10 to /ckpt/llm
 [2026-03-01 10:01:30] iteration       20/     100 | elapsed time per iteration (ms): 4000.0 |
"""
    found = seconds(analysed(written(tmp_path / "gap", a_out=log)))
    assert found == {"productive": 80, "unproductive_checkpoint_save_time": 10}


def test_first_iteration_is_not_counted_twice(tmp_path: Path) -> None:
    """501 took 13 s; the line of 510 has the mean of all ten, 4.9 s: the other nine took 4 s each."""
    log = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
  successfully loaded checkpoint from /ckpt at iteration 500
 [2026-03-01 10:00:13] iteration      501/    1000 | elapsed time per iteration (ms): 13000.0 |
 [2026-03-01 10:00:49] iteration      510/    1000 | elapsed time per iteration (ms): 4900.0 |
 [2026-03-01 10:01:29] iteration      520/    1000 | elapsed time per iteration (ms): 4000.0 |
"""
    found = seconds(analysed(written(tmp_path / "first", a_out=log)))
    assert found == {"productive": 80, "program_startup": 9}


def test_save_after_the_last_record_shows_training_progress(tmp_path: Path) -> None:
    """A record every hundredth iteration, and a last save of 10 s at 360: 60 iterations of 4 s are not logged."""
    log = """\
[before the start of training step] datetime: 2026-03-01 10:00:00
 [2026-03-01 10:06:40] iteration      100/    1000 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:13:20] iteration      200/    1000 | elapsed time per iteration (ms): 4000.0 |
 [2026-03-01 10:20:00] iteration      300/    1000 | elapsed time per iteration (ms): 4000.0 |
saving checkpoint at iteration     360 to /ckpt/llm in torch_dist format
  successfully saved checkpoint from iteration     360 to /ckpt/llm [ t 1/8, p 1/4 ]
(min, max) time across ranks (ms):
    save-checkpoint ................................: (9900.00, 10000.00)
[exiting program at iteration 360] datetime: 2026-03-01 10:24:10
"""
    analysis = analysed(written(tmp_path / "run", train_log=log))
    assert round(seconds(analysis)["productive"], 6) == 1440
    assert (analysis.job.last_step, analysis.job.ending) == (360, "clean")


def test_load_before_the_loop_belongs_to_its_process(tmp_path: Path) -> None:
    """A filtered log has no initialization lines: the load is the first line of the new process, not a process that
    died before training."""
    kept = ("loaded checkpoint", "start of training step", "iteration  ", "failed", "launching")
    log = FIRST + "[2026-03-01 10:05:00.000000] launching\n" + SECOND
    text = "".join(line for line in log.splitlines(keepends=True) if any(word in line for word in kept))
    analysis = analysed(written(tmp_path / "llm", kept_out=text))
    assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)
    assert "restart_without_start" not in codes(analysis)


def test_progress_txt_alone_is_a_checkpoint_log(tmp_path: Path) -> None:
    log = "".join(
        f"2025-02-24 {time}\tJob ID: {job}\t# GPUs: 8\t{what}\n"
        for time, job, what in (
            ("17:31:25", 198424, "Starting job"),
            ("17:35:03", 198424, "Saving async checkpoint\tIteration: 100\tJob throughput: 364.8 TFLOP/s/GPU"),
            ("17:35:10", 198424, "Saved async checkpoint\tIteration: 100"),
            ("17:38:45", 198424, "Saving async checkpoint\tIteration: 200"),
            ("17:38:52", 198424, "Saved async checkpoint\tIteration: 200"),
            ("18:10:00", 198555, "Starting job"),
            ("18:14:02", 198555, "Saving async checkpoint\tIteration: 300"),
            ("18:14:10", 198555, "Saved async checkpoint\tIteration: 300"),
        )
    )
    analysis = analysed(written(tmp_path / "save", progress_txt=log))
    assert seconds(analysis) == {
        "productive": 666,
        "training_slowdown": 16,
        "disruption_undetermined": 1875,
        "other": 8,
    }


def test_iterations_in_seconds_after_torchrun_prefixes() -> None:
    analysis = analysed(SAMPLES / "megatron-deepspeed-bloom.txt")
    assert "no_clock" in codes(analysis)
    assert analysis.steps.count > 0


SACCT = """\
JobID|JobName|State|Submit|Start|End
812|llm|NODE_FAIL|2026-03-01T09:50:00|2026-03-01T09:59:50|2026-03-01T10:03:20
812.batch|batch|CANCELLED|2026-03-01T09:59:50|2026-03-01T09:59:50|2026-03-01T10:03:20
813|llm|TIMEOUT|2026-03-01T10:03:30|2026-03-01T10:04:50|2026-03-01T10:07:20
814|llm|RUNNING|2026-03-01T10:08:00|2026-03-01T10:10:00|Unknown
"""
THIRD = (
    SECOND.replace("10:05:", "10:10:")
    .replace("10:06:36", "10:11:36")
    .replace("10:07:16", "10:12:16")
    .replace("iteration 20", "iteration 40")
    .replace("      30/", "      50/")
    .replace("      40/", "      60/")
    .replace("[after training is done] datetime: 2026-03-01 10:07:17.000000\n", "")
)


def test_accounting_of_slurm_shows_queueing(tmp_path: Path) -> None:
    second = SECOND.replace("[after training is done] datetime: 2026-03-01 10:07:17.000000\n", "")
    folder = written(
        tmp_path / "llm", slurm__812_out=FIRST, slurm__813_out=second, slurm__814_out=THIRD, sacct_txt=SACCT
    )
    analysis = analysed(folder)
    found = seconds(analysis)
    assert analysis.job.attempts == 3
    assert [one.ended for one in analysis.disruptions] == ["crashed", "terminated"]
    assert found["queued"] == 590 + 80 + 120
    assert found["productive"] == 80 + 80 + 80


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_timestamps_are_local_in_the_given_zone(tmp_path: Path, zone: str) -> None:
    analysis = analysed(written(tmp_path / "zone", a_out=FIRST + SECOND), timezone=zone)
    assert analysis.job.start_ns // 10**9 == 1_772_359_200 - (0 if zone == "UTC" else 3600)


def test_files_that_overlap_and_disagree_are_different_jobs(tmp_path: Path) -> None:
    other = FIRST.replace("      10/", "    5010/").replace("      20/", "    5020/").replace("      30/", "    5030/")
    folder = written(tmp_path / "both", big_out=FIRST, small_out=other)
    analysis = analysed(folder, job_name="big")
    assert analysis.job.name == "big"
    assert "several_jobs_in_folder" in codes(analysis)


def test_year_is_from_near_timestamps_or_modification_time(tmp_path: Path) -> None:
    log = "\n".join(
        f"I1231 23:5{minute}:00.000000 1 metric_logger.py:226] completed step: {minute}, seconds: 1.0"
        for minute in range(5, 10)
    )
    log += "\nI0101 00:00:00.000000 1 metric_logger.py:226] completed step: 10, seconds: 1.0\n"
    folder = written(tmp_path / "year", a_log=log)
    os.utime(folder / "a.log", (1_772_000_000, 1_772_000_000))  # February 2026.
    analysis = analysed(folder)
    assert str(np.datetime64(analysis.job.start_ns, "ns"))[:4] == "2025"
    assert "assumed_year" in codes(analysis)
    assert seconds(analysis) == {"productive": 300}
    assert str(np.datetime64(analysed(folder, year=2019).job.start_ns, "ns"))[:4] == "2019"


def test_trainer_start_after_its_launcher_is_one_start(tmp_path: Path) -> None:
    """The launcher logs nothing after it restarted the workers, as its job is killed."""
    log = """\
I0301 10:00:00.200000 140 torch/distributed/elastic/agent/server/api.py:845] [default] starting workers for entrypoint: python
I0301 10:00:01.000000 140 torch/distributed/elastic/agent/server/api.py:670] [default] Starting worker group
time to initialize megatron (seconds): 12.000
[after megatron is initialized] datetime: 2026-03-01 10:00:25
[before the start of training step] datetime: 2026-03-01 10:00:45
[rank15]: [2026-03-01 10:01:45] iteration       10/     100 | elapsed time per iteration (ms): 6000.0 |
E0301 10:02:40.500000 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 7) of binary: python
I0301 10:02:40.700000 140 torch/distributed/elastic/agent/server/api.py:670] [default] Starting worker group
time to initialize megatron (seconds): 12.000
[after megatron is initialized] datetime: 2026-03-01 10:03:05
[before the start of training step] datetime: 2026-03-01 10:03:25
[rank15]: [2026-03-01 10:04:25] iteration       10/     100 | elapsed time per iteration (ms): 6000.0 |
"""  # noqa: E501 - as torchrun writes them
    analysis = analysed(written(tmp_path / "run", a_log=log))
    assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)
    assert analysis.disruptions[0].ended == "crashed"
    errors = [line for line in log.splitlines() if "torch/distributed" in line]
    output = [line for line in log.splitlines() if "torch/distributed" not in line]
    folder = written(tmp_path / "apart", slurm__1_err="\n".join(errors), slurm__1_out="\n".join(output))
    assert seconds(analysed(folder, year=2026)) == seconds(analysis)


def stamped(second: int, step: int, each: float) -> str:
    time = f"2025-04-13 23:{41 + second // 60:02d}:{second % 60:02d}"
    return f" [{time}] iteration {step:8d}/     200 | elapsed time per iteration (ms): {1000 * each:.1f} |\n"


def timer(name: str, most: float) -> str:
    return f"(min, max) time across ranks (ms):\n    {name} {'.' * 40}: ({most - 0.5:.2f}, {most:.2f})\n"


def test_evaluations_and_a_save_between_timed_records(tmp_path: Path) -> None:
    """The process begins with its loop: a first record of 12 s, and a usual step time of 0.85 s."""
    log = "[after dataloaders are built] datetime: 2025-04-13 23:41:00\n"
    log += "[before the start of training step] datetime: 2025-04-13 23:41:00\n"
    log += stamped(12, 10, 1.1476) + stamped(20, 20, 0.81) + stamped(28, 30, 0.82) + stamped(37, 40, 0.85)
    log += stamped(46, 50, 0.86) + timer("evaluate", 3274.73) + " validation loss at iteration 50 | lm loss: 8.0 |\n"
    log += stamped(57, 60, 0.8376) + stamped(66, 70, 0.87) + stamped(74, 80, 0.81) + stamped(83, 90, 0.88)
    log += stamped(91, 100, 0.82) + timer("evaluate", 2052.52) + " validation loss at iteration 100 | lm loss: 8.0 |\n"
    log += "saving checkpoint at iteration     100 to /ckpt\n  successfully saved checkpoint at iteration 100 to /c\n"
    log += timer("save-checkpoint", 3413.14) + stamped(107, 110, 1.0698)
    found = seconds(analysed(written(tmp_path / "run", a_out=log), timezone="UTC"))
    assert found == pytest.approx({
        "productive": 94.75961,
        "EVAL_STEP": 5.32725,
        "unproductive_checkpoint_save_time": 3.41314,
        "program_startup": 3.5,
    }, abs=2e-5)  # fmt: skip


def test_progress_txt_next_to_stdout_starts_nothing(tmp_path: Path) -> None:
    """The file is written once the program is initialized; earlier time is start-up of the first record."""
    progress = "2026-03-01 10:00:35\tJob ID: 812\t# GPUs: 8\tStarting job\n"
    progress += "2026-03-01 10:02:25\tJob ID: 812\t# GPUs: 8\tSaved checkpoint\tIteration: 20\tJob throughput: 364.8\n"
    folder = written(tmp_path / "llm-7b", slurm__812_out=FIRST, slurm__813_out=SECOND, progress_txt=progress)
    assert seconds(analysed(folder)) == TWO_JOBS


def test_hang_between_two_records_is_found(tmp_path: Path) -> None:
    """Steps 11 to 20 take 20 min more than the 40 s of all others."""
    log = "[before the start of training step] datetime: 2026-03-01 10:00:00\n"
    for record in range(1, 9):
        at = 40 * record + (1200 if record > 1 else 0)
        each = 124000.0 if record == 2 else 4000.0
        log += f" [2026-03-01 10:{at // 60:02}:{at % 60:02}] iteration {10 * record:8}/     100 | "
        log += f"elapsed time per iteration (ms): {each} |\n"
    (hang,) = analysed(written(tmp_path, a_out=log)).insights
    assert (hang.code, hang.seconds, hang.about.steps) == ("hang", 1200, (11,))
    assert hang.text == "one of steps 11 to 20 hung: together they took 20 min 40 s (usually 40.0 s)"


def test_same_steps_in_unlike_files_give_a_warning(tmp_path: Path) -> None:
    """Copies of a job started together look like the processes of one job; the diagnostic names the assumption."""
    folder = written(tmp_path / "copies", big_out=FIRST, small_out=FIRST.replace("exitcode: 1", "exitcode: -9"))
    analysis = analysed(folder)
    (doubt,) = (one for one in analysis.diagnostics if one.code == "same_steps_in_files")
    assert (doubt.severity, doubt.count) == ("warning", 2)
    assert "big.out, small.out. They count as processes of one job" in doubt.message
    assert doubt.message in " ".join(first_screen(analysis, Page()).split())
    assert "same_steps_in_files" not in codes(analysed(folder, job_name="mine"))
    assert "same_steps_in_files" not in codes(analysed(folder / "big.out"))


@pytest.mark.parametrize("names", [("rank_0_out", "rank_1_out"), ("slurm__812_out", "slurm__812_err")])
def test_same_steps_in_files_of_ranks_give_no_warning(tmp_path: Path, names: tuple[str, str]) -> None:
    assert "same_steps_in_files" not in codes(analysed(written(tmp_path / "job", **dict.fromkeys(names, FIRST))))


SWEEP = (
    " [2026-03-01 10:{at:02}:0{run}.000000] iteration {n:8}/ 100 | elapsed time per iteration (ms): 60000.0 | {loss}\n"
)


def of_sweep(run: int, more: float = 0.0, first: str = "lm loss: 1.09E+01 |") -> str:
    """Return the output of a run with a step per minute and the initial loss of all others."""
    return "".join(
        SWEEP.format(
            at=n, run=run, n=n, loss=first if n == 1 else f"lm loss: {10 - n / 10 + more:.6E} | loss scale: 1.0 |"
        )
        for n in range(1, 30)
    )


def test_runs_of_a_sweep_started_together_give_a_warning(tmp_path: Path) -> None:
    """Their names differ only in numbers, like those of ranks. Their losses show separate models, or ranks that print
    their own loss. Amounts stay the same."""
    folder = written(tmp_path / "sweep", sweep__1_out=of_sweep(1), sweep__2_out=of_sweep(2, 0.25))
    analysis = analysed(folder)
    (doubt,) = (one for one in analysis.diagnostics if one.code == "same_steps_in_files")
    assert "with different losses: sweep-1.out, sweep-2.out. They count as ranks of one job" in doubt.message
    assert doubt.message in " ".join(first_screen(analysis, Page()).split())
    assert "same_steps_in_files" not in codes(analysed(folder, job_name="mine"))
    same = written(tmp_path / "same", sweep__1_out=of_sweep(1), sweep__2_out=of_sweep(2))
    assert "same_steps_in_files" not in codes(analysed(same))
    assert seconds(analysed(same)) == seconds(analysis)


def test_ranks_with_their_own_losses_give_no_warning(tmp_path: Path) -> None:
    by_name = written(tmp_path / "names", rank_0_out=of_sweep(1), rank_1_out=of_sweep(2, 0.25))
    assert "same_steps_in_files" not in codes(analysed(by_name))
    lines = (of_sweep(1), of_sweep(2, 0.25))
    of_ranks = ("".join(f"[rank{rank}]:{row}\n" for row in log.splitlines()) for rank, log in enumerate(lines))
    by_line = written(tmp_path / "lines", **dict(zip(("a_1_out", "a_2_out"), of_ranks, strict=True)))
    assert "same_steps_in_files" not in codes(analysed(by_line))


def test_bars_without_a_clock_and_with_other_losses_are_other_jobs(tmp_path: Path) -> None:
    def bars(more: float) -> str:
        state = "Epoch 0: 10%|█   | {n}/200 [{m:02}:{s:02}<01:00, 2.00s/it, loss={loss:.3f}]\n"
        return "".join(state.format(n=n, m=2 * n // 60, s=2 * n % 60, loss=3 - n / 100 + more) for n in range(1, 200))

    folder = written(tmp_path / "bars", run__1_log=bars(0), run__2_log=bars(0.5))
    for name in ("run-1.log", "run-2.log"):
        os.utime(folder / name, (1_772_359_200, 1_772_359_200))
    assert {one.name for one in goodput_cli.jobs(str(folder)).jobs} == {"run-1", "run-2"}


def test_no_same_steps_diagnostic_when_files_name_their_job(tmp_path: Path) -> None:
    named = FIRST.replace("time to init", "  save ....... /ckpt/llm\ntime to init")
    assert analysed(written(tmp_path / "named", a_out=named)).job.name == "llm"
    assert "same_steps_in_files" not in codes(analysed(written(tmp_path / "job", big_out=named, small_out=named)))


def test_successive_attempts_give_no_same_steps_diagnostic(tmp_path: Path) -> None:
    assert "same_steps_in_files" not in codes(analysed(written(tmp_path / "lives", first_out=FIRST, again_out=SECOND)))


def later(text: str, day: int) -> str:
    return text.replace("2026-03-01", f"2026-03-{day:02}").replace("E0301", f"E03{day:02}")


def test_run_from_scratch_weeks_later_is_another_job(tmp_path: Path) -> None:
    """An outage of 15 days is an outage; a run from the first step without a restore is not an attempt of the old
    job."""
    folder = written(tmp_path / "llm", run__1_out=FIRST, run__2_out=later(FIRST, 17))
    last = analysed(folder)
    assert (last.job.name, last.job.attempts) == ("llm", 1)
    (doubt,) = (one for one in last.diagnostics if one.code == "earlier_runs")
    assert "llm is only the last run: its files begin at the first step" in doubt.message
    assert doubt.message in " ".join(first_screen(last, Page()).split())
    assert [row.name for row in goodput_cli.jobs(folder).jobs] == ["llm/run-1", "llm"]
    assert analysed(folder, job_name="llm/run-1").job.end_ns < last.job.start_ns
    for joined in (analysed(folder, join=True), analysed(folder, join=True, job_name="mine")):
        assert joined.job.attempts == 2
        assert "earlier_runs" not in codes(joined)


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(later(FIRST, 15), id="less than 14 days"),
        pytest.param(later(SECOND, 20), id="restores"),
        pytest.param(
            later(FIRST, 20).replace("  10/", "  50/").replace("  20/", "  60/").replace("  30/", "  70/"), id="goes on"
        ),
    ],
)
def test_job_resumed_after_weeks_is_one_job(tmp_path: Path, again: str) -> None:
    analysis = analysed(written(tmp_path / "llm", run__1_out=FIRST, run__2_out=again))
    assert analysis.job.attempts == 2
    assert "earlier_runs" not in codes(analysis)


def test_files_naming_their_job_are_joined_at_any_distance(tmp_path: Path) -> None:
    named = FIRST.replace("time to init", "  save ....... /ckpt/llm\ntime to init")
    assert analysed(written(tmp_path / "job", run__1_out=named, run__2_out=later(named, 20))).job.attempts == 2


def test_world_size_of_a_start_is_the_job_size(tmp_path: Path) -> None:
    """Comparisons use it to detect that two runs did different work."""
    text = "using world size: 128, data-parallel size: 16, tensor-model-parallel size: 8\n"
    text += "[before the start of training step] datetime: 2026-03-01 10:00:00.000000\n"
    for step in range(1, 31):
        clock = f" [2026-03-01 10:{step:02}:00.000000]"
        text += f"{clock} iteration {step}/ 400 | elapsed time per iteration (ms): 60000.0 |\n"
    path = tmp_path / "run.out"
    path.write_text(text)
    assert size_of(goodput_cli.analyze(path)).accelerators == 128


LEFT = """\
[2026-03-01 10:02:20.000000] saving checkpoint at iteration      20 to /ckpt/llm in torch_dist format
  [2026-03-01 10:02:25.000000] successfully saved checkpoint from iteration      20 to /ckpt/llm [ t 1/8, p 1/4 ]
[exiting program {why}] datetime: 2026-03-01 10:02:26.000000
"""
HALF = FIRST[: FIRST.index("[2026-03-01 10:02:20.000000] saving")]


@pytest.mark.parametrize("why", ["after 235.0166 minutes", "at iteration 20"])
def test_timed_exit_with_a_save_is_planned(tmp_path: Path, why: str) -> None:
    folder = written(tmp_path / "llm", a_out=HALF + LEFT.format(why=why), b_out=SECOND)
    analysis = analysed(folder)
    assert analysis.job.disruptions == 0
    assert seconds(analysis)["stopped"] == pytest.approx(154)
    assert analysis.reliability is not None
    assert analysis.reliability.failures == 0


def test_exit_without_a_save_or_by_sigterm_is_terminated(tmp_path: Path) -> None:
    without = HALF + LEFT.format(why="after 235.0166 minutes").splitlines(keepends=True)[-1]
    told = HALF + LEFT.format(why="after receiving SIGTERM.")
    for name, text in (("without", without), ("told", told)):
        analysis = analysed(written(tmp_path / name, a_out=text, b_out=SECOND))
        assert [one.ended for one in analysis.disruptions] == ["terminated"]
