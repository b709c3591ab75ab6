"""Result files of MLPerf."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.plugins import Page
from goodput_cli.report.first_screen import first_screen
from tests.text.support import analysed, codes, seconds, written

T0 = 1_759_966_200


def line(second: float, key: str, kind: str = "POINT_IN_TIME", value: Any = None, **metadata: Any) -> str:
    entry = {
        "namespace": "", "time_ms": round((T0 + second) * 1000), "event_type": kind, "key": key, "value": value,
        "metadata": {"file": "train.py", "lineno": 1, **metadata},
    }  # fmt: skip
    return f"0: :::MLLOG {json.dumps(entry)}\n"


BEGIN, END = "INTERVAL_START", "INTERVAL_END"
HEAD = [
    line(1.037, "cache_clear", value=True),
    line(1.037, "global_batch_size", value=32),
    line(1.075, "init_start", BEGIN),
    line(2.0, "init_start", BEGIN),
    line(6.5, "init_stop", END),
    line(6.549, "init_stop", END),
    line(6.549, "run_start", BEGIN),
    line(6.549, "block_start", BEGIN, samples_count=0),
    line(414.209, "block_stop", END, samples_count=12_288),
    line(414.209, "eval_start", BEGIN, samples_count=12_288),
    line(424.658, "eval_stop", END, samples_count=12_288),
    line(424.658, "block_start", BEGIN, samples_count=12_288),
]
REST = [
    line(826.079, "block_stop", END, samples_count=24_576),
    line(826.079, "eval_start", BEGIN, samples_count=24_576),
    line(835.956, "eval_stop", END, samples_count=24_576),
]


def test_a_run_of_two_blocks(tmp_path: Path) -> None:
    analysis = analysed(written(tmp_path / "r", result__0_txt="noise\n".join(HEAD + REST)))
    assert seconds(analysis) == {
        "productive": 809.081,
        "EVAL_STEP": 20.326,
        "training_prep": 5.474,
        "other": 0.038,
    }
    assert (analysis.job.name, analysis.job.kept_steps) == ("result#0", 768)


def test_ranks_write_out_of_order(tmp_path: Path) -> None:
    lines = HEAD + REST
    analysis = analysed(written(tmp_path / "r", result__0_txt="noise\n" + "".join(lines[::-1])))
    assert seconds(analysis)["productive"] == 809.081


def test_a_run_that_was_cut(tmp_path: Path) -> None:
    analysis = analysed(written(tmp_path / "r", result__0_txt="".join(HEAD)))
    assert seconds(analysis) == {"productive": 407.66, "EVAL_STEP": 10.449, "training_prep": 5.474, "other": 0.038}


def test_each_file_is_a_separate_run(tmp_path: Path) -> None:
    end = line(840, "run_stop", END, status="success")
    folder = written(tmp_path / "r", result__0_txt="".join([*HEAD, *REST, end]), result__1_txt="".join(HEAD))
    analysis = analysed(folder, job_name="result#0")
    assert analysis.job.ending == "clean"
    assert analysis.job.attempts == 1


def run(tmp_path: Path, *lines: str) -> Any:
    return analysed(written(tmp_path / "r", result__0_txt="".join(lines)))


def length(analysis: Any) -> float:
    """Return the seconds of the window."""
    return float(analysis.job.end_ns - analysis.job.start_ns) / 1e9


def settings(**values: int) -> list[str]:
    return [line(0, name, value=value) for name, value in values.items()]


def blocks(ends: list[float], **counts: list[Any]) -> list[str]:
    """Return consecutive blocks from second 10 on, each with counters at its `tracked_stats`."""
    out = [line(5, "init_start", BEGIN), line(10, "init_stop", END), line(10, "run_start", BEGIN)]
    begin = 10.0
    for at, end in enumerate(ends):
        out.append(line(begin, "block_start", BEGIN))
        out.append(line(end, "tracked_stats", **{key: values[at] for key, values in counts.items()}))
        out.append(line(end, "block_stop", END))
        begin = end
    return [*out, line(ends[-1], "run_stop", END, status="success")]


def test_longer_first_block_is_training(tmp_path: Path) -> None:
    """The first block is 10 s to 70 s, then two of 20 s: all is training, from the begin of the first block."""
    counts = blocks([70, 90, 110], samples_count=[640, 1280, 1920])
    analysis = run(tmp_path, *settings(global_batch_size=64), *counts)
    assert seconds(analysis) == {"productive": 100.0, "other": 5.0, "training_prep": 5.0}
    assert analysis.job.kept_steps == 30


def test_tokens_written_as_epochs_are_steps(tmp_path: Path) -> None:
    """65,536 tokens are 4 steps of 32 times 512."""
    counts = blocks([20, 30, 40], epoch_num=[65_536, 131_072, 196_608])
    analysis = run(tmp_path, *settings(global_batch_size=32, max_sequence_length=512), *counts)
    assert analysis.job.kept_steps == 12
    assert seconds(analysis)["productive"] == 30.0


def test_samples_written_as_epochs_are_steps(tmp_path: Path) -> None:
    """100,032 samples are 1,563 steps of 64; 512 tokens per sample do not divide them."""
    counts = blocks([20, 30], epoch_num=[100_032, 200_064])
    analysis = run(tmp_path, *settings(global_batch_size=64, max_sequence_length=512), *counts)
    assert analysis.job.kept_steps == 3126


def test_samples_per_step_from_one_line(tmp_path: Path) -> None:
    """800,000 at step 100 are 8,000 per step, whatever the batch size."""
    told = line(20, "eval_accuracy", epoch_num=800_000, step_num=100)
    counts = blocks([20, 30], epoch_num=[800_000, 1_600_000])
    assert run(tmp_path, *settings(global_batch_size=64), *counts, told).job.kept_steps == 200


def test_a_step_that_counts_samples(tmp_path: Path) -> None:
    counts = blocks([20, 30], step=[320, 640])
    assert run(tmp_path, *settings(global_batch_size=32), *counts).job.kept_steps == 20


def test_a_step_that_blocks_begin_with_counts_steps(tmp_path: Path) -> None:
    counts = [one.replace('"block_start"', '"block_start"') for one in blocks([20, 30], step=[320, 640])]
    begun = line(10, "block_start", BEGIN, step=0)
    assert run(tmp_path, *settings(global_batch_size=32), *counts, begun).job.kept_steps == 640


def test_block_length_is_not_progress(tmp_path: Path) -> None:
    """Block ends contain the block's length; the evaluations after them contain the progress."""
    out = [line(10, "run_start", BEGIN), line(10, "block_start", BEGIN)]
    for at, end in enumerate((20, 31, 42)):
        out.append(line(end, "block_stop", END, samples_count=640))
        out.append(line(end, "eval_start", BEGIN, samples_count=640 * (at + 1)))
        out.append(line(end + 1, "eval_stop", END, samples_count=640 * (at + 1)))
        out.append(line(end + 1, "block_start", BEGIN, samples_count=640))
    analysis = run(tmp_path, *settings(global_batch_size=64), *out)
    assert analysis.job.kept_steps == 30
    assert seconds(analysis) == {"productive": 30.0, "EVAL_STEP": 3.0, "other": 10.0}


def test_samples_without_a_batch_size_are_reported(tmp_path: Path) -> None:
    analysis = run(tmp_path, *blocks([20, 30], samples_count=[320_000, 640_000]))
    assert "counter_is_no_step" in codes(analysis)
    assert seconds(analysis)["productive"] == 20.0


def test_lines_after_the_end_do_not_count(tmp_path: Path) -> None:
    late = line(500, "tracked_stats", samples_count=64_000)
    analysis = run(tmp_path, late, *settings(global_batch_size=64), *blocks([20, 30], samples_count=[640, 1280]))
    assert analysis.job.kept_steps == 20
    assert length(analysis) == 30.0


def test_the_end_of_a_run_is_a_record(tmp_path: Path) -> None:
    lines = [line(10, "run_start", BEGIN), line(20, "eval_accuracy", epoch_num=1),
             line(30, "run_stop", END, status="success", epoch_num=2)]  # fmt: skip
    analysis = run(tmp_path, *lines)
    assert (analysis.job.kept_steps, seconds(analysis)) == (2, {"productive": 20.0})


def test_epochs_from_1_with_their_number(tmp_path: Path) -> None:
    """A block of 4 epochs from the first on: 4 are completed, of 1,000 samples each, 40 per step."""
    out = [line(10, "run_start", BEGIN), line(10, "block_start", BEGIN, first_epoch_num=1, epoch_count=4),
           line(50, "block_stop", END, first_epoch_num=1, epoch_count=4),
           line(50, "block_start", BEGIN, first_epoch_num=5, epoch_count=4),
           line(90, "block_stop", END, first_epoch_num=5, epoch_count=4)]  # fmt: skip
    analysis = run(tmp_path, *settings(global_batch_size=40, train_samples=1000), *out)
    assert analysis.job.kept_steps == 200
    assert seconds(analysis) == {"productive": 80.0, "other": 10.0}


def test_runs_of_one_file_are_jobs(tmp_path: Path) -> None:
    one = [*settings(global_batch_size=64), *blocks([20, 30], samples_count=[640, 1280])]
    other = [line(second, "run_start", BEGIN) if second == 100 else line(second, "tracked_stats", samples_count=n)
             for second, n in ((100, 0), (110, 640), (120, 1280))]  # fmt: skip
    folder = written(tmp_path / "r", result__0_txt="".join([*one, *settings(), *other]))
    first, second = (analysed(folder, job_name=name) for name in ("result#0", "result#0.2"))
    assert length(first) == 30.0
    assert length(second) == 20.0


WRAPPED = "STARTING TIMING RUN AT 2025-10-08 11:29:50 PM\n", "ENDING TIMING RUN AT 2025-10-08 11:45:00 PM\n"


def test_local_times_of_the_script_around_a_run_do_not_count(tmp_path: Path) -> None:
    """The script that starts a run prints local times of an unknown zone and clock."""
    before, behind = WRAPPED
    srun = "srun: error: n1: task 0: Exited with exit code 1\n"  # From a check before the run.
    whole = run(tmp_path, *HEAD, *REST, line(840, "run_stop", END, status="success"))
    with_script = run(
        tmp_path, before, "2025-10-08 01:00:00 caches dropped\n", srun, *HEAD, *REST,
        line(840, "run_stop", END, status="success"), behind, srun,
    )  # fmt: skip
    assert seconds(with_script) == seconds(whole)
    assert (with_script.job.attempts, with_script.job.ending) == (1, "clean")


def test_a_death_within_a_run_ends_it(tmp_path: Path) -> None:
    dead = run(tmp_path, *HEAD, "srun: error: n1: task 0: Exited with exit code 1\n")
    assert (dead.job.attempts, dead.job.ending) == (1, "crashed")
    assert length(dead) == 423.621


def old(second: float, key: str, value: str = "null", **metadata: Any) -> str:
    """Return a line of 2019 with invalid JSON."""
    text = "".join(f'"{name}": {json.dumps(number)}, ' for name, number in metadata.items())
    return f'3: :::MLL {T0 + second:.3f} {key}: {{"value": {value}, "metadata": {{{text}, "lineno": 129}}}}\n'


SECOND_YEAR = [
    ':::MLL 0.0 submission_benchmark: {"value": "ssd", "metadata": {"lineno": 0, "file": "N/A"}}\n',
    old(0, "cache_clear", "true"), old(5, "init_start"), old(25, "init_stop"), old(25, "run_start"),
    old(30, "block_start", first_epoch_num=1, epoch_count=2), old(30, "epoch_start", epoch_num=1),
    old(80, "epoch_stop", epoch_num=1), old(80, "epoch_start", epoch_num=2), old(130, "epoch_stop", epoch_num=2),
    old(130, "eval_start", epoch_num=2), old(140, "eval_stop", epoch_num=2),
    old(140, "block_stop", first_epoch_num=1), old(140, "epoch_start", epoch_num=3),
    old(190, "epoch_stop", epoch_num=3), old(190, "run_stop", status="success"),
]  # fmt: skip


def test_the_lines_of_2019(tmp_path: Path) -> None:
    analysis = run(tmp_path, *SECOND_YEAR)
    assert seconds(analysis) == {"productive": 150.0, "training_prep": 20.0, "other": 10.0, "EVAL_STEP": 10.0}
    assert (analysis.job.kept_steps, analysis.job.ending) == (3, "clean")


def test_epochs_that_end_and_are_numbered_from_0(tmp_path: Path) -> None:
    stops = [old(30 + 50 * n, "epoch_stop", epoch_num=n - 1) for n in range(1, 5)]
    analysis = run(tmp_path, old(25, "run_start"), old(30, "epoch_start", epoch_num=0), *stops, old(231, "run_stop"))
    assert (analysis.job.kept_steps, seconds(analysis)["productive"]) == (4, 200.0)


def first(second: float, key: str, value: str = "") -> str:
    return f":::MLPv0.5.0 ncf {T0 + second:.9f} (main.scala:105) {key}{': ' if value else ''}{value}\n"


@pytest.mark.parametrize("base", [0, 1])
def test_the_lines_of_2018(tmp_path: Path, base: int) -> None:
    """Epochs of 90 s, each followed by an evaluation of 10 s, with either numbering."""
    lines = [first(0, "run_clear_caches"), first(10, "run_start"), first(20, "train_loop")]
    for n in range(4):
        lines += [
            first(20 + 100 * n, "train_epoch", str(n)), first(110 + 100 * n, "eval_start"),
            first(120 + 100 * n, "eval_accuracy", json.dumps({"epoch": n + base, "value": 0.5})),
            first(120 + 100 * n, "eval_stop"),
        ]  # fmt: skip
    analysis = run(tmp_path, *lines, first(420, "run_stop", '{"success": true}'), first(421, "run_final"))
    assert seconds(analysis) == {"productive": 360.0, "EVAL_STEP": 40.0, "other": 20.0}
    assert (analysis.job.kept_steps, analysis.job.ending) == (4, "clean")


def test_a_time_in_seconds(tmp_path: Path) -> None:
    """Some programs of 2020 did so, with settings at time 0."""
    entries = [
        (0, "submission_benchmark", {}), (T0, "run_start", {}), (T0 + 1, "epoch_start", {"epoch_num": 1}),
        (T0 + 51, "epoch_stop", {"epoch_num": 1}), (T0 + 101, "epoch_stop", {"epoch_num": 2}),
        (T0 + 101, "run_stop", {}),
    ]  # fmt: skip
    lines = [
        f":::MLLOG {json.dumps({'time_s': float(time), 'key': key, 'value': 'x', 'metadata': metadata})}\n"
        for time, key, metadata in entries
    ]
    assert seconds(run(tmp_path, *lines)) == {"productive": 100.0, "other": 1.0}


def test_run_has_a_begin_unless_its_file_is_cut(tmp_path: Path) -> None:
    assert "starts_mid_run" not in codes(run(tmp_path, *HEAD, *REST))
    without_start = [line(6, "global_batch_size", value=32), *HEAD[8:]]
    assert "starts_mid_run" in codes(run(tmp_path, *without_start, *REST))


BLOCKS = [
    line(second, key, kind, samples_count=12_288 * count)
    for number in range(3)
    for second, key, kind, count in (
        (10 + 410 * number, "block_start", BEGIN, number),
        (410 + 410 * number, "block_stop", END, number + 1),
        (410 + 410 * number, "eval_start", BEGIN, number + 1),
        (420 + 410 * number, "eval_stop", END, number + 1),
    )
]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_with_begin_and_end_are_training(tmp_path: Path, blocks: int) -> None:
    stop = line(10 + 410 * blocks, "run_stop", END)
    analysis = run(tmp_path, *HEAD[:2], line(0, "run_start", BEGIN), *BLOCKS[: 4 * blocks], stop)
    assert (seconds(analysis)["productive"], analysis.job.kept_steps) == (400 * blocks, 384 * blocks)
    assert analysis.goodput_percent == pytest.approx(100 * 400 * blocks / (10 + 410 * blocks))
    assert "few_records" not in codes(analysis)


@pytest.mark.parametrize("without", [("block_start",), ("block_stop", "eval_start")])
def test_blocks_without_begin_or_end_are_not_judged(tmp_path: Path, without: tuple[str, ...]) -> None:
    lines = [one for one in BLOCKS[:8] if not any(f'"{key}"' in one for key in without)]
    analysis = run(tmp_path, *HEAD[:2], line(0, "run_start", BEGIN), *lines, line(831, "run_stop", END))
    assert analysis.is_too_short
    assert analysis.timeline.few_records == 2
    assert analysis.goodput_percent is None
    page = " ".join(first_screen(analysis, Page()).split())
    assert "unknown only two step records were logged" in page


def test_setting_written_days_before_is_not_a_begin(tmp_path: Path) -> None:
    whole = run(tmp_path, *HEAD, *REST)
    early = run(tmp_path, line(-190_000, "gradient_accumulation_steps", value=1), *HEAD, *REST)
    assert seconds(early) == seconds(whole)
