"""The last planned step finishes a job (docs/formats.md, Text), and another run may begin after it (accounting §10)."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from tests.text.support import analysed, codes, written
from tests.text.test_folders import ERROR, at, printed
from tests.text.test_progress_bars import TRAINER, state, trained

START = "[before the start of training step] datetime: {at} \n"
MAPPING = """\
name = "mine"

[[rule]]
event = "step"
line = "step {step:int} of {total}"

[[rule]]
event = "start"
line = "Starting training"
"""


def night(begin: int, last: int = 60, total: int = 60) -> str:
    """Return Megatron output of a process without its final line."""
    return START.format(at=at(begin)) + printed(begin, 1, last).replace("1000 | consumed", f"{total:4d} | consumed")


def ended(folder: Path, **files: str) -> str | None:
    return analysed(written(folder, **files)).job.ending


def test_last_planned_iteration_finishes_the_job(tmp_path: Path) -> None:
    """The job ends with its last activity, including a save after the step."""
    saved = f"[{at(75)}] successfully saved checkpoint from iteration      60 to /ckpt\n"
    analysis = analysed(written(tmp_path / "a", train_log=night(0) + saved))
    assert (analysis.job.ending, analysis.window.end_ns) == ("clean", analysis.job.end_ns)
    assert "end_not_logged" not in codes(analysis)
    assert ended(tmp_path / "b", train_log=night(0, 59)) == "not_logged"
    assert ended(tmp_path / "c", train_log=printed(0)) == "not_logged"


def test_death_after_the_last_step_takes_precedence(tmp_path: Path) -> None:
    assert ended(tmp_path / "a", train_log=night(0) + ERROR) == "crashed"
    assert ended(tmp_path / "b", train_log=night(0), train_err=ERROR) != "clean"
    killed = f"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT {at(90).replace(' ', 'T')} DUE TO TIME LIMIT ***\n"
    assert ended(tmp_path / "c", train_log=night(0) + killed) == "terminated"
    earlier = written(tmp_path / "d", train_log=night(0, 40) + ERROR + night(100))
    assert (analysed(earlier).job.ending, analysed(earlier).job.attempts) == ("clean", 2)
    other = {"slurm-1_err": ERROR, "slurm-1_out": night(0, 40), "slurm-2_out": night(100)}
    assert ended(tmp_path / "e", **other) == "clean"


def test_nights_that_reach_the_last_step_are_separate_runs(tmp_path: Path) -> None:
    """As one run, goodput would be 25 %, but each night trained all of its steps."""
    nights = written(tmp_path / "run", train_log="".join(night(10_000 * number) for number in range(4)))
    analysis = analysed(nights)
    assert (analysis.job.kept_steps, analysis.job.attempts) == (60, 1)
    assert "earlier_runs" in codes(analysis)
    assert len(goodput_cli.jobs(str(nights)).jobs) == 4
    crashed = written(tmp_path / "crashed", train_log=night(0) + ERROR + night(10_000))
    assert analysed(crashed).job.attempts == 2


def test_later_steps_show_that_it_was_not_the_last(tmp_path: Path) -> None:
    """A longer stage in the same process, and another node that has not reached the step."""
    on = printed(100, 61, 100).replace("1000 | consumed", " 100 | consumed")
    assert ended(tmp_path / "a", train_log=night(0) + on) == "clean"
    assert analysed(tmp_path / "a").job.attempts == 1
    assert ended(tmp_path / "b", train_log=night(0) + on.replace(" 100 | consumed", "1000 | consumed")) == "not_logged"
    behind = night(0) + night(100, 40)
    assert ended(tmp_path / "c", train_log=behind) == "not_logged"


def test_only_the_bar_of_the_whole_training_finishes_it(tmp_path: Path) -> None:
    """The Trainer's bar at 100 % counts; bars of evaluations and epochs do not, whatever their name."""
    whole, half = (TRAINER.format(minute=0) + trained(range(1, last + 1), 2, 2) for last in (100, 50))
    evaluation = state(0, 10, 0) + " ?it/s]" + state(10, 10, 20) + "  2.00s/it]\n"
    assert ended(tmp_path / "a", a_log=whole) == "clean"
    assert ended(tmp_path / "b", a_log=half + evaluation) == "not_logged"
    assert ended(tmp_path / "c", a_log=whole + "\n" + ERROR) == "crashed"
    named = {"Training: ": "not_logged", "Epoch 0: ": "not_logged", "Steps: ": "clean"}
    for number, (name, ending) in enumerate(named.items()):
        bar = "".join(state(done, 50, 2 * done, name) + "  2.00s/it]" for done in range(51)) + "\n"
        folder = written(tmp_path / f"bar{number}", a_log=bar)
        assert analysed(folder, clock_start="2026-03-01T10:00:00Z").job.ending == ending
        again = written(tmp_path / f"again{number}", a_log=3 * bar)
        assert analysed(again, clock_start="2026-03-01T10:00:00Z").job.ending == "not_logged"


@pytest.mark.parametrize(("total", "ending"), [("40", "clean"), ("41", "not_logged"), ("?", "not_logged")])
def test_mapping_defines_the_total_field(tmp_path: Path, total: str, ending: str) -> None:
    steps = "".join(f"{at(step)} step {step} of {total}\n" for step in range(1, 41))
    folder = written(tmp_path / "run", a_log=f"{at(0)} Starting training\n{steps}")
    (tmp_path / "mine.toml").write_text(MAPPING)
    assert analysed(folder, mapping=[str(tmp_path / "mine.toml")]).job.ending == ending


def test_ranks_end_with_the_slowest(tmp_path: Path) -> None:
    """In one file, a rank lags by a step, and the job ends only when it arrives; files of ranks behave the same."""
    (tmp_path / "mine.toml").write_text(MAPPING)
    for last, ending in ((40, "clean"), (39, "not_logged")):
        lines = [
            f"[rank{rank}]: {at(step + rank)} step {step} of 40\n"
            for step in range(1, 42)
            for rank, step in ((0, step), (1, step - 1))
            if 0 < step <= (40 if rank == 0 else last)
        ]
        folder = written(tmp_path / f"run{last}", a_log="".join(lines))
        assert analysed(folder, mapping=[str(tmp_path / "mine.toml")]).job.ending == ending
    files = {
        f"rank__{rank}_log": f"{at(rank)} Starting training\n"
        + "".join(f"{at(10 * step + rank)} step {step} of 40\n" for step in range(1, 41))
        for rank in range(2)
    }
    ranks = analysed(written(tmp_path / "ranks", **files), mapping=[str(tmp_path / "mine.toml")])
    assert (ranks.job.ending, ranks.job.attempts, ranks.job.runs) == ("clean", 1, 1)
