"""The words next to a number define it: ranks, sizes and channels are not steps, epochs or resume steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.api.check import draft_mapping
from goodput_cli.events.mappings.draft.expected import Draft
from tests.mappings.drafting import at, drafted, pytorch

OWN = Path("sample_logs/trainers/own-loop.log")


def draft_of(tmp_path: Path, log: str, name: str = "train.log") -> Draft:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(log, encoding="utf-8")
    return draft_mapping(str(tmp_path / name))


def steps_of(begin: float, first: int, last: int, said: str = "step {} loss 2.1") -> str:
    """Return a step per second, from `begin`; every tenth is logged."""
    return "".join(pytorch(begin + n - first + 1, said.format(n)) for n in range(first, last + 1) if n % 10 == 0)


@pytest.mark.parametrize("lines", range(14, 16))
def test_size_is_not_a_resume_step(tmp_path: Path, lines: int) -> None:
    """Its start contains `world_size=8`, its first record is step 10, and the contradicting lines are cut off."""
    head = "".join(OWN.read_text(encoding="utf-8").splitlines(keepends=True)[:lines])
    analysis = drafted(tmp_path, head)
    assert analysis.job.kept_steps == 70


def test_device_number_is_not_a_resume_step(tmp_path: Path) -> None:
    log = pytorch(0, "Resuming on gpu 8") + steps_of(2, 1, 100)
    assert "{step:int}" not in draft_of(tmp_path, log).text.partition('"resume"')[2]


def test_channel_numbers_are_not_steps(tmp_path: Path) -> None:
    """Lines of epochs, and between them others that contain `n/m` and count up."""
    log = "".join(
        pytorch(10 * n, f"Epoch: {n:03d}, Loss: 1.{n}")
        + (f"gpu07:1201 NCCL INFO Channel 02/16 :    {n % 5}   1   2   3\n" if n % 3 == 0 else "")
        for n in range(1, 40)
    )  # fmt: skip
    draft = draft_of(tmp_path, log)
    assert not draft.refused
    assert "'Epoch: {step:int}" in draft.text


def test_files_of_ranks_are_not_epochs(tmp_path: Path) -> None:
    """Steps restart in each file, where the rank number rises."""
    for rank in range(3):
        log = "".join(
            f"[{at(8 * n, '%Y-%m-%d %H:%M:%S')},{rank}00] [Rank {rank}] step {10 * n} | loss 2.1 | 0.800 s/step\n"
            for n in range(1, 31)
        )
        draft_of(tmp_path, log, f"logs/rank_{rank}.log")
    draft = draft_mapping(str(tmp_path / "logs"))
    assert not draft.refused
    assert "epoch" not in draft.text


def test_epoch_repeated_after_a_restart_counts_once(tmp_path: Path) -> None:
    """`[epoch/6][batch/200]`, killed in the third epoch and restarted there."""

    def epoch(number: int, begin: float, upto: int = 200) -> str:
        return "".join(
            pytorch(begin + n, f"Train: [{number}/6][{n}/200] lr 0.1 loss 2.1") for n in range(0, upto, 20)
        )  # fmt: skip

    lives = [(0, 0, 200), (1, 200, 200), (2, 400, 130), (2, 600, 200), (3, 800, 200), (4, 1000, 200), (5, 1200, 200)]
    log = pytorch(-5, "Start training") + "".join(
        (pytorch(begin - 9, "Start training") if begin == 600 else "") + epoch(number, begin, upto)
        for number, begin, upto in lives
    )
    analysis = drafted(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 1181)


def test_running_mean_does_not_begin_a_step(tmp_path: Path) -> None:
    log = "".join(pytorch(n, f"global_step={n}, RunningAvgSamplesPerSec=6.6") for n in range(1, 31))
    text = draft_of(tmp_path, log).text
    assert 'event = "step"' in text
    assert "step_start" not in text


def test_save_lines_with_step_words_are_not_missed_steps(tmp_path: Path) -> None:
    log = pytorch(0, "Start training") + "".join(
        pytorch(80 * n, f"[step: {100 * n:10d}] loss:  1.486e-02, time/iteration:  8.0e+02 ms")
        + pytorch(80 * n + 1, f"[step: {100 * n:10d}] saved checkpoint to out/model")
        + (pytorch(80 * n + 2, f"[step: {100 * n:10d}] saved checkpoint to out/best") if n % 4 == 0 else "")
        for n in range(1, 13)
    )
    draft = draft_of(tmp_path, log)
    assert not draft.refused


def test_starts_in_a_truncated_log_are_starts(tmp_path: Path) -> None:
    log = steps_of(0, 491, 600) + pytorch(200, "Starting training") + steps_of(220, 501, 800)
    log += pytorch(600, "Starting training") + steps_of(620, 801, 900)
    analysis = drafted(tmp_path, log)
    assert analysis.job.attempts == 3
    assert not any(one.event == "start" for one in draft_of(tmp_path, log).left_out)


def test_yearless_timestamp_before_a_location_is_read(tmp_path: Path) -> None:
    log = "".join(f"[{at(20 * n, '%m%d %H:%M:%S')} @monitor.py:467] step {10 * n} loss 1.2\n" for n in range(1, 40))
    assert "time = { format = '[%m%d %H:%M:%S @' }" in draft_of(tmp_path, log).text
    log = "".join(f"[{at(20 * n, '%m/%d %H:%M:%S')}] step {10 * n} loss 1.2\n" for n in range(1, 40))
    assert "time = { format = '%m/%d %H:%M:%S' }" in draft_of(tmp_path, log).text


def test_steps_before_the_first_record_give_a_warning(tmp_path: Path) -> None:
    """The log does not show if steps 1 to 9 were done in the 30 s before."""
    log = pytorch(0, "model built") + "".join(pytorch(30 + n, f"step {n} loss 2.1") for n in range(10, 41))
    assert "the first step line has step 10; earlier steps are not counted" in draft_of(tmp_path, log).doubts


def test_time_far_below_the_elapsed_time_gives_a_warning(tmp_path: Path) -> None:
    log = "".join(pytorch(100 * n, f"epoch: {n} | runtime: 00:01:1{n % 3} | loss: 2.1") for n in range(1, 20))
    assert any("`runtime` covers 71% of the time" in one for one in draft_of(tmp_path, log).doubts)


def test_clock_that_exceeds_the_step_times_refuses(tmp_path: Path) -> None:
    """A time of day inside a line is not read as a timestamp, but it shows that more time passed than the steps
    took."""
    log = "".join(f"[RK0][{at(20 * n, '%H:%M:%S')}] iteration {n}, 10.0 s/it\n" for n in range(1, 31))
    (reason,) = draft_of(tmp_path, log).refused
    assert "their clock shows 580 s" in reason


@pytest.mark.parametrize(("said", "of"), [("Time(100 iters): 8.0s", "all"), ("time: 0.080", "mean")])
def test_time_covers_all_steps_if_their_count_is_logged(tmp_path: Path, said: str, of: str) -> None:
    """Without timestamps; otherwise it is taken for the time of one step, with a warning."""
    text = draft_of(tmp_path, "".join(f"Iter: {100 * n} {said} Loss: 0.3\n" for n in range(1, 31))).text
    assert ("of = 'all'" in text) == (of == "all")
    assert ("`time` is the time of one step, not of all 100" in text) == (of == "mean")


def test_epochs_with_repeated_lines_are_steps(tmp_path: Path) -> None:
    log = pytorch(0, "Start training") + "".join(
        2 * pytorch(10 * n, f"epoch {n} training loss: 1.{n}") for n in range(1, 40)
    )
    analysis = drafted(tmp_path, log)
    assert analysis.job.kept_steps == 39
