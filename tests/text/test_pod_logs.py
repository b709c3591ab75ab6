"""Logs of pods: the collector's timestamp, and saves and starts of Megatron, NeMo 2 and torchtitan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from goodput_cli.events.text.lines import LineRules
from goodput_cli.events.text.scan import TextLines
from goodput_cli.sources.base import RawBatch
from tests.text.support import analysed, codes, seconds, written

BEGIN = datetime(2026, 1, 22, 18, tzinfo=UTC)


def line(second: float, text: str) -> str:
    return f"{BEGIN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.000Z {text}\n"


def nemo(second: float, index: int) -> str:
    return line(second, f"Training epoch 0, iteration {index}/199 | lr: 6e-07 | global_step: {index} | "
                "reduced_train_loss: 11.03 | train_step_timing in s: 5.000")  # fmt: skip


def megatron(second: float, step: int) -> str:
    return line(second, f" [{BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}.000000] iteration {step:8d}/     300 "
                "| elapsed time per iteration (ms): 1000.0 | learning rate: 1e-4 |")  # fmt: skip


def titan(second: float, step: int) -> str:
    text = f"step: {step:2d}  loss:  8.1322  memory: 39.00GiB(41.04%)  tps: 5,815  tflops: 28.17  mfu: 2.85%"
    return line(second, f"[titan] {BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S},000 - root - INFO - {text}")


def test_collected_ranks_are_separate_up_to_the_file_end() -> None:
    """Each rank has its first and its last activity; the file ends right after a rank prefix."""
    ranks = ("[rank10]: ", "[rank11]: ", "[rank1]:")
    text = "".join(line(second, f"{ranks[second % 3]}alive") for second in range(8)) + line(8, ranks[2]).rstrip("\n")
    part = TextLines(LineRules(())).feed(RawBatch("log", 1, text.encode())).text
    assert part is not None
    assert [(mark.line, mark.stream) for mark in part.log_lines] == [
        (1, "10"), (2, "11"), (3, "1"), (7, "10"), (8, "11"), (9, "1")
    ]  # fmt: skip


def test_saves_and_loads_with_printed_durations(tmp_path: Path) -> None:
    """Start, 20 s of loading, steps 101 to 110 of 5 s, a save of 60 s from second 110 on, ten more steps."""
    begin = BEGIN.timestamp()
    log = [
        line(0, "[NeMo I 2026-01-22 18:00:00 nemo_logging:393] Experiments will be logged at /ckpt/run"),
        line(50, "Global Checkpoint Load : Rank : 0 : Iteration : 99 : Time spent in load_checkpoint: 20.0s"),
        line(50, "Restoring states from the checkpoint path at /ckpt/run/model_name=0--step=99-last.ckpt"),
        *(nemo(60 + 5 * done, 99 + done) for done in range(1, 11)),
        line(170, f"Global Checkpoint Save : Rank: 0 : Iteration: 109 : Start time: {begin + 110:.1f}s : "
             "Save duration: 60.000s"),
        line(170, "Scheduled async checkpoint save for /ckpt/run/last"),
        *(nemo(170 + 5 * done, 109 + done) for done in range(1, 11)),
    ]  # fmt: skip
    analysis = analysed(written(tmp_path / "run", a_log="".join(log)), timezone="UTC")
    assert seconds(analysis) == {
        "productive": 100.0,
        "unproductive_checkpoint_save_time": 60.0,
        "unproductive_checkpoint_restore_time": 20.0,
        "program_startup": 40.0,
    }
    assert analysis.job.kept_range == (101, 120)


def test_unfinished_save_shows_process_activity(tmp_path: Path) -> None:
    """Saving from second 110 on, last activity at 140, the next start at 300: 160 s of downtime, not 190."""
    start = "[before the start of training step] datetime: {:%Y-%m-%d %H:%M:%S}.000000 "
    log = [
        line(10, start.format(BEGIN + timedelta(seconds=10))),
        *(megatron(10 + done, done) for done in range(10, 101, 10)),
        line(110, "saving checkpoint at iteration     100 to /ckpt in torch_dist format"),
        line(140, "a message of another library"),
        line(300, start.format(BEGIN + timedelta(seconds=300))),
        *(megatron(300 + done, done) for done in range(10, 101, 10)),
    ]
    analysis = analysed(written(tmp_path / "run", a_log="".join(log)), timezone="UTC")
    assert "open_interval" in codes(analysis)
    assert seconds(analysis) == {
        "productive": 100.0,
        "wasted_progress_from_disruption": 130.0,
        "infrastructure_recovery_from_disruption": 160.0,
    }


def test_save_followed_by_training_has_ended(tmp_path: Path) -> None:
    log = [*(megatron(10 + done, done) for done in range(10, 101, 10)),
           line(110, "saving checkpoint at iteration     100 to /ckpt in torch_dist format"),
           *(megatron(40 + done, done) for done in range(110, 201, 10))]  # fmt: skip
    analysis = analysed(written(tmp_path / "run", a_log="".join(log)), timezone="UTC")
    assert "open_interval" not in codes(analysis)
    assert seconds(analysis) == {"productive": 190.0, "unproductive_checkpoint_save_time": 30.0}


def test_excess_of_torchtitan_first_step_is_start_up(tmp_path: Path) -> None:
    """65 s for the first step, 5 s for each other; lines before `Training starts` are missing."""
    starts = line(20, "[titan] 2026-01-22 18:00:20,000 - root - INFO - Training starts at step 1.")
    log = starts + "".join(titan(80 + 5 * step, step) for step in range(1, 31))
    assert seconds(analysed(written(tmp_path / "run", a_log=log), timezone="UTC")) == {
        "productive": 150.0,
        "program_startup": 60.0,
    }


def test_jobs_of_slurm_in_one_file(tmp_path: Path) -> None:
    """Job 71 ends at its time limit, at second 90; the next one logs its first time at 600 and continues from 50."""
    cancelled = "slurmstepd: error: *** {} ON n1 CANCELLED AT 2026-01-22T18:01:30 DUE TO TIME LIMIT ***\n"
    log = [
        *(titan(20 + step, step) for step in range(10, 60, 10)),
        cancelled.format("JOB 71"), cancelled.format("STEP 71.0"), "srun: error: n1: task 0: Terminated\n",
        "Loading modules\n",
        line(600, "python train.py"),
        *(titan(620 + step - 50, step) for step in range(60, 101, 10)),
    ]  # fmt: skip
    analysis = analysed(written(tmp_path / "run", a_log="".join(log)), timezone="UTC")
    assert analysis.job.attempts == 2
    (lost,) = analysis.disruptions
    assert lost.resumed_step == 50
    assert seconds(analysis)["infrastructure_recovery_from_disruption"] == 510.0
