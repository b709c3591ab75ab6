"""Progress bars of training, whose states a carriage return overwrites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.errors import NotEnoughData
from tests.text.support import analysed, codes, seconds, written

TRAINER = "[INFO|trainer.py:2134] 2026-03-01 10:{minute:02d}:00,123 >> ***** Running training *****\n"
RUNTIME = "\n{'train_runtime': 221.3, 'train_samples_per_second': 45.1, 'train_loss': 2.0, 'epoch': 1.0}\n"


def clock(second: int) -> str:
    return f"{second // 60:02d}:{second % 60:02d}"


def state(done: int, total: int, second: int, name: str = "") -> str:
    return f"\r{name}{100 * done // total:3d}%|{'#' * (10 * done // total):10s}| {done}/{total} [{clock(second)}<10:00,"


def trained(steps: range, first: int, each: int, total: int = 100) -> str:
    """Return the bar of a process: the first step after `first` seconds, each other one after `each`."""
    text = state(0, total, 0) + " ?it/s]"
    for count, step in enumerate(steps):
        text += state(step, total, first + count * each) + f"  {each}.00s/it]"
        if step % 10 == 0:
            text += f"\r{' ' * 40}\r{{'loss': 2.1, 'learning_rate': 4.9e-05, 'epoch': 0.1}}\n"
    return text


def test_a_run_that_was_killed_and_resumed(tmp_path: Path) -> None:
    """62 steps in 22 + 61 x 2 s; 50 of them were saved. The other process takes 32 s for its first step, 51."""
    folder = written(
        tmp_path / "run",
        a_log=TRAINER.format(minute=0) + trained(range(1, 63), 22, 2),
        b_log=TRAINER.format(minute=10) + trained(range(51, 101), 32, 2) + RUNTIME,
    )
    analysis = analysed(folder, timezone="UTC")
    found = seconds(analysis)
    assert (analysis.job.attempts, analysis.job.ending, analysis.job.kept_steps) == (2, "clean", 100)
    (lost,) = analysis.disruptions
    assert (lost.resumed_step, lost.last_step) == (50, 62)
    assert found["productive"] == 200
    assert found["program_startup"] == 50
    assert sum(found.values()) == 600 + 32 + 49 * 2


def test_full_bar_drawn_again_belongs_to_last_process(tmp_path: Path) -> None:
    """The Trainer draws its bar again at the end: the state is not of the first process, which died at 50."""
    second = trained(range(41, 101), 0, 2) + state(100, 100, 118) + "  2.00s/it]" + RUNTIME
    log = trained(range(1, 51), 2, 2) + "\nRuntimeError: no\n" + second + state(100, 100, 118) + "  2.00s/it]\n"
    analysis = analysed(written(tmp_path / "run", a_log=log))
    (lost,) = analysis.disruptions
    assert (lost.last_step, lost.resumed_step, analysis.job.kept_steps) == (50, 40, 100)


def test_process_that_checks_its_validation_again_is_another_one(tmp_path: Path) -> None:
    """Lightning draws the bar of the check once, before training. Epoch 1 is trained again from its begin."""
    check = state(0, 2, 0, "Sanity Checking DataLoader 0: ") + " ?it/s]"
    check += state(2, 2, 0, "Sanity Checking DataLoader 0: ") + "  0.10s/it]"

    def epoch(number: int, stop: int) -> str:
        return "".join(state(done, 50, done, f"Epoch {number}: ") + "  1.00s/it, v_num=0]" for done in range(stop + 1))

    log = check + epoch(0, 50) + epoch(1, 20) + "Killed\n" + check + epoch(1, 50) + epoch(2, 50) + "\n"
    analysis = analysed(written(tmp_path / "run", a_log=log))
    (lost,) = analysis.disruptions
    assert (lost.last_step, lost.resumed_step, analysis.job.kept_steps) == (70, 50, 150)
    assert round(seconds(analysis)["wasted_progress_from_disruption"], 6) == 20


def test_bars_of_ignite_have_their_count_first(tmp_path: Path) -> None:
    bars = "".join(
        f"\rEpoch [{epoch}/3]: [{done}/40] {100 * done // 40:3d}%|{'#' * (done // 4):10s}, loss=1 [{clock(done)}<00:02]"
        for epoch in range(1, 4)
        for done in range(1, 41)
    )
    analysis = analysed(written(tmp_path / "run", a_log=bars + "\n"))
    assert (analysis.job.last_step, analysis.job.attempts) == (120, 1)


def test_bars_of_narrow_terminals_have_no_picture(tmp_path: Path) -> None:
    """tqdm draws none where it does not fit, as in notebooks: `12% 12/100 [00:24<10:00, ...`."""
    drawn = TRAINER.format(minute=0) + trained(range(1, 63), 22, 2) + "\n"
    drawn += TRAINER.format(minute=10) + trained(range(51, 101), 32, 2) + RUNTIME
    narrow = re.sub(r"\|[# ]*\|", "", drawn)
    analyses = [analysed(written(tmp_path / name, a_log=log)) for name, log in (("a", drawn), ("b", narrow))]
    assert "|" not in narrow.replace("INFO|trainer", "")
    assert analyses[0].job.attempts == 2
    assert seconds(analyses[0]) == seconds(analyses[1])


def test_restart_at_the_time_of_the_last_step(tmp_path: Path) -> None:
    """No line has a time: the second bar, which continues from step 50, begins where the first one ended."""
    log = trained(range(1, 61), 3, 3) + "\n" + trained(range(51, 101), 3, 3) + RUNTIME
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC")
    (lost,) = analysis.disruptions
    assert (lost.last_step, lost.resumed_step, lost.steps_lost) == (60, 50, 10)
    found = seconds(analysis)
    assert (found["productive"], round(found["wasted_progress_from_disruption"], 6)) == (300, 30)


def test_evaluations_are_excluded_from_bar_time(tmp_path: Path) -> None:
    """An evaluation of 20 s with its own bar between steps 30 and 31."""
    before, behind = trained(range(1, 31), 2, 2), trained(range(31, 61), 82, 2).split("]", 1)[1]
    evaluation = state(0, 10, 0) + " ?it/s]" + state(10, 10, 20) + "  2.00s/it]"
    evaluated = f"\r{' ' * 40}\r{{'eval_loss': 2.1, 'eval_runtime': 20.0, 'eval_samples_per_second': 9.1}}\n"
    log = TRAINER.format(minute=0) + before + evaluation + evaluated + behind + RUNTIME
    found = seconds(analysed(written(tmp_path / "run", a_log=log)))
    assert found == {"productive": 120, "EVAL_STEP": 20}


def test_bars_of_epochs_continue_the_count(tmp_path: Path) -> None:
    epochs = "".join(
        state(done, 50, 2 * done, f"Epoch {epoch}: ") + "  2.00s/it, v_num=0]"
        for epoch in range(3)
        for done in range(51)
    )
    analysis = analysed(written(tmp_path / "run", a_log=epochs + "\n"), clock_start="2026-03-01T10:00:00Z")
    assert (analysis.job.kept_steps, analysis.job.attempts) == (150, 1)
    assert seconds(analysis) == {"productive": 300}
    assert "no_clock" in codes(analysis)


def test_epoch_is_resumed_in_its_middle(tmp_path: Path) -> None:
    """Lightning draws its epoch at 0 first: 70 steps, 60 of them saved, and the bar continues with the 61st."""
    bars = "".join(state(done, 50, 2 * done, "Epoch 0: ") + "  2.00s/it, v_num=0]" for done in range(51))
    bars += "".join(state(done, 50, 2 * done, "Epoch 1: ") + "  2.00s/it, v_num=0]" for done in range(21))
    again = state(0, 50, 0, "Epoch 1: ") + " ?it/s, v_num=0]"
    again += "".join(state(done, 50, 2 * (done - 10), "Epoch 1: ") + "  2.00s/it, v_num=0]" for done in range(11, 51))
    analysis = analysed(written(tmp_path / "run", a_log=bars + "\n" + again + "\n"))
    (lost,) = analysis.disruptions
    assert (lost.last_step, lost.resumed_step, lost.steps_lost) == (70, 60, 10)
    assert round(seconds(analysis)["wasted_progress_from_disruption"], 6) == 20


def test_hydra_script_has_one_death_for_a_repeated_error(tmp_path: Path) -> None:
    error = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\nValueError: no\n\n'
    log = "".join(state(done, 50, 2 * done, "Epoch 0: ") + "  2.00s/it, v_num=0]" for done in range(51)) + "\n"
    log += "[2026-03-01 10:02:00,000][src.train][ERROR] - \n" + error
    log += "[2026-03-01 10:02:00,000][src.train][INFO] - Output dir: /logs\nError executing job with overrides: []\n"
    log += error + "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    assert analysed(written(tmp_path / "run", a_log=log)).job.ending == "crashed"


def test_text_after_a_killed_bar_is_of_the_next_process(tmp_path: Path) -> None:
    """Its bar has no line end: 10 min passed until the next process began, and no step hung in them."""
    first = TRAINER.format(minute=0) + trained(range(1, 63), 22, 2)
    glued = "03/01/2026 10:14:00 - WARNING - __main__ - Process rank: 0, device: cuda:0\n"
    second = TRAINER.format(minute=15) + trained(range(51, 101), 32, 2) + RUNTIME
    analysis = analysed(written(tmp_path / "run", a_log=first + glued + second), timezone="UTC")
    (lost,) = analysis.disruptions
    assert lost.last_step == 62
    assert {one.code for one in analysis.insights}.isdisjoint({"hang"})
    assert round(seconds(analysis)["infrastructure_recovery_from_disruption"]) == 900 - 144


def test_validation_between_epochs_has_its_own_bar(tmp_path: Path) -> None:
    epochs = ["".join(state(done, 50, 2 * done, f"Epoch {epoch}: ") + "  2.00s/it, v_num=0]" for done in range(51))
              for epoch in range(2)]  # fmt: skip
    loader = "".join(state(done, 10, done, "Validation DataLoader 0: ") + "  1.00it/s]" for done in range(11))
    folder = written(tmp_path / "run", a_log=epochs[0] + loader + epochs[1] + "\n")
    found = seconds(analysed(folder, clock_start="2026-03-01T10:00:00Z"))
    assert found == {"productive": 200, "EVAL_STEP": 10}


def test_validation_at_the_end_of_a_file_counts(tmp_path: Path) -> None:
    """No bar of training follows it."""
    epoch = "".join(state(done, 50, 2 * done, "Epoch 0: ") + "  2.00s/it, v_num=0]" for done in range(51))
    loader = "".join(state(done, 10, 2 * done, "Validation DataLoader 0: ") + "  1.00it/s]" for done in range(11))
    folder = written(tmp_path / "run", a_log=epoch + loader + "\n")
    found = seconds(analysed(folder, clock_start="2026-03-01T10:00:00Z"))
    assert found == {"productive": 100, "EVAL_STEP": 20}


def test_other_bars_are_not_training(tmp_path: Path) -> None:
    bars = "".join(state(at, 40, at, "Loading checkpoint shards: ") + "  1.00s/it]" for at in range(41))
    bars += "".join(state(at, 900, at) + "  1.00s/it]" for at in range(0, 901, 100))
    record = " [2026-03-01 10:{:02d}:00] iteration {:8d}/     100 | elapsed time per iteration (ms): 6000.0 |\n"
    log = bars + "\n" + "".join(record.format(minute, 10 * minute) for minute in range(1, 6))
    assert seconds(analysed(written(tmp_path / "run", a_log=log))) == {"productive": 240}


def test_few_states_of_a_bar_are_kept() -> None:
    from goodput_cli.events.text.log_lines import LogLine
    from goodput_cli.events.text.programs.progress_bars import RULES, thinned

    rule = next(one for one in RULES if one.anchor == "s/it")
    states = [rule.pattern.search(state(at, 9000, at // 10).strip("\r") + " 0.10s/it]") for at in range(9000)]
    marks = [(at, LogLine(1, "", None, rule.read(found))) for at, found in enumerate(states)]
    kept = [at for at, _ in thinned(marks)]
    assert kept[0] == 0
    assert kept[-1] == 8999
    assert len(kept) < 100


def test_bars_in_errors_and_losses_in_output_are_merged(tmp_path: Path) -> None:
    """As Slurm separates them with `--error`: the bars of training and evaluation are in the error file."""
    before, behind = trained(range(1, 31), 2, 2), trained(range(31, 61), 82, 2).split("]", 1)[1]
    evaluation = state(0, 10, 0) + " ?it/s]" + state(5, 10, 10) + "  2.00s/it]" + state(10, 10, 20) + "  2.00s/it]"
    bars = before + evaluation + behind
    losses = "".join(f"{{'loss': 2.1, 'learning_rate': 4.9e-05, 'epoch': 0.{at}}}\n" for at in range(6))
    errors = "\r".join(part.split("{'loss'")[0] for part in bars.split("\r"))
    folder = written(tmp_path / "run", slurm__8_err=errors, slurm__8_out=losses)
    analysis = analysed(folder, clock_start="2026-03-01T10:00:00Z")
    assert seconds(analysis) == {"productive": 120, "EVAL_STEP": 20}
    assert analysis.job.attempts == 1


def test_bar_of_four_nodes_counts_once(tmp_path: Path) -> None:
    """Without rank prefixes, each node draws 100 steps of 2 s and logs their time; states alternate."""
    start = "".join(TRAINER.format(minute=0) for _ in range(4))
    bars = "".join(
        state(step, 100, 22 + 2 * step + late) + "  2.00s/it]" for step in range(1, 101) for late in (0, 1, 0, 1)
    )
    analysis = analysed(written(tmp_path / "run", a_log=start + bars + 4 * RUNTIME), timezone="UTC")
    assert (analysis.job.attempts, analysis.job.ending, analysis.job.kept_steps) == (1, "clean", 100)
    assert seconds(analysis)["productive"] == 200
    assert not analysis.disruptions


def test_bar_with_only_its_end_on_each_node_counts_once(tmp_path: Path) -> None:
    ends = "".join(f"Epoch 0: 100%|####| 8/8 [02:{second}<00:00, 16.25s/it]\n" for second in (10, 9, 11, 10))
    log = ends + ends.replace("Epoch 0", "Epoch 1")
    analysis = analysed(written(tmp_path / "run", a_log=log), clock_start="2026-03-01T10:00:00Z")
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 16)


def test_evaluation_on_several_nodes_counts_once(tmp_path: Path) -> None:
    def both(step: int, second: int) -> str:
        return "".join(state(step, 60, second + late) + "  2.00s/it]" for late in (0, 1))

    evaluated = "\n" + "{'eval_loss': 2.1, 'eval_runtime': 20.0, 'eval_samples_per_second': 9.1}\n" * 2
    before = "".join(both(step, 2 * step) for step in range(1, 31))
    behind = "".join(both(step, 20 + 2 * step) for step in range(31, 61))
    log = 2 * TRAINER.format(minute=0) + before + evaluated + behind + 2 * RUNTIME
    found = seconds(analysed(written(tmp_path / "run", a_log=log)))
    assert found["EVAL_STEP"] == 20
    assert found["productive"] in (120, 121)  # Whole seconds, of one node or the other.


def test_bar_after_the_end_of_another_is_a_restart(tmp_path: Path) -> None:
    """Four nodes both times."""
    first = "".join(state(step, 100, 2 * step + late) + " 2.00s/it]" for step in range(1, 61) for late in (0, 1))
    second = "".join(
        state(step, 100, 2 * (step - 50) + late) + " 2.00s/it]" for step in range(51, 101) for late in (0, 1)
    )
    log = TRAINER.format(minute=0) + first + "\n" + 2 * TRAINER.format(minute=10) + second + 2 * RUNTIME
    analysis = analysed(written(tmp_path / "run", a_log=log))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 100)
    (lost,) = analysis.disruptions
    assert (lost.last_step, lost.resumed_step) == (60, 50)


def test_metrics_without_bar_or_time_are_not_an_empty_log(tmp_path: Path) -> None:
    """Regression: metrics between the bars, without the bars, were reported as empty sources."""
    log = tmp_path / "train.log"
    log.write_text("{'loss': 2.5, 'epoch': 0.1}\n{'loss': 2.4, 'epoch': 0.2}\n")
    with pytest.raises(NotEnoughData, match=r"2 x no_time_in_log.*without timestamps; pass its TensorBoard directory"):
        goodput_cli.analyze(log)


ERROR = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\nRuntimeError: CUDA error: no\n'
EXIT = ("E0301 {at}.000000 4711 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: "
        "{rank} (pid: 4750) of binary: /usr/bin/python3\n")  # fmt: skip
BEGINS = "03/01/2026 {at} - INFO - __main__ - Distributed environment: MULTI_GPU\n"


def epoch(number: int, states: range, total: int = 50) -> str:
    return "".join(state(done, total, 2 * done, f"Epoch {number}: ") + "  2.00s/it, v_num=0]" for done in states) + "\n"


def test_final_death_counts_though_its_words_are_repeated(tmp_path: Path) -> None:
    """Both deaths have only the same traceback."""
    stamp = "[2026-03-01 10:{}:00,000][src.train][INFO] - Instantiating datamodule\n"
    one = stamp.format("00") + epoch(0, range(41)) + ERROR
    other = stamp.format("20") + epoch(0, range(31)) + ERROR
    analysis = analysed(written(tmp_path / "run", a_log=one + other), timezone="UTC")
    assert (analysis.job.attempts, analysis.job.disruptions, analysis.job.ending) == (2, 1, "crashed")
    assert analysis.reliability is not None
    assert analysis.reliability.failures == 2


def test_error_before_a_continuing_bar_is_not_an_end(tmp_path: Path) -> None:
    """The error is repeated, and all epochs are trained."""
    log = "[2026-03-01 10:00:00,000][src.train][INFO] - Instantiating datamodule\n"
    for number in range(3):
        log += epoch(number, range(26)) + ERROR + epoch(number, range(26, 51)) + ERROR
    log += "[2026-03-01 10:05:10,000][src.train][INFO] - Best ckpt path: last.ckpt\n"
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC")
    assert (analysis.job.attempts, analysis.job.ending, analysis.job.kept_steps) == (1, "not_logged", 150)
    assert analysis.reliability is not None
    assert analysis.reliability.failures == 0


def steps_bar(first: int, last: int) -> str:
    """Return the bar of a loop that begins where it resumed, 2 s per step."""
    states = (state(step, 900, 2 * (step - first), "Steps: ") + "  2.00s/it, lr=0.1]" for step in range(first, last))
    return "".join(states) + "\n"


def died(at: str, rank: int = 3) -> str:
    return ERROR + EXIT.format(at=at, rank=rank)


def test_failed_starts_without_a_start_line_count(tmp_path: Path) -> None:
    """Each begins with the first words of the log; one attempt with steps, three without, and one with."""
    log = BEGINS.format(at="10:00:00") + steps_bar(0, 101) + died("10:03:22")
    log += "".join(BEGINS.format(at=f"10:{minute:02d}:00") + died(f"10:{minute:02d}:40") for minute in (5, 7, 9))
    log += BEGINS.format(at="10:11:00") + steps_bar(100, 301)
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC", year=2026)
    assert (analysis.job.attempts, analysis.job.disruptions, analysis.job.kept_steps) == (5, 4, 300)
    assert [one.ended for one in analysis.disruptions] == ["crashed"] * 4


@pytest.mark.parametrize(
    "between",
    [
        "03/01/2026 10:20:00 - INFO - __main__ - waiting for the other node\n",  # Other words than a start.
        BEGINS.format(at="10:03:40"),  # While processes still die.
        "",
    ],
)
def test_processes_that_die_in_sequence_are_one_death(tmp_path: Path, between: str) -> None:
    log = BEGINS.format(at="10:00:00") + steps_bar(0, 101) + died("10:03:22") + between + died("10:33:22", rank=5)
    log += BEGINS.format(at="10:40:00") + steps_bar(100, 301)
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC", year=2026)
    assert (analysis.job.attempts, analysis.job.disruptions) == (2, 1)


def test_job_that_dies_at_an_epoch_end_starts_again(tmp_path: Path) -> None:
    """Hydra logs the exit of its program; no step is trained twice."""
    log = "[2026-03-01 10:00:00,000][src.train][INFO] - Instantiating datamodule\n" + epoch(0, range(51))
    log += "[2026-03-01 10:01:40,000][src.train][ERROR] - \n" + ERROR
    log += "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    log += "[2026-03-01 10:20:00,000][src.train][INFO] - Instantiating datamodule\n"
    log += epoch(1, range(51)) + epoch(2, range(51))
    analysis = analysed(written(tmp_path / "run", a_log=log), timezone="UTC")
    (lost,) = analysis.disruptions
    assert (lost.ended, lost.last_step, lost.steps_lost, analysis.job.kept_steps) == ("crashed", 50, 0, 150)
