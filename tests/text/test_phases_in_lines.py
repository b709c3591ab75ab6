"""Phases in lines of trainers: three forms of Megatron's timers, verl, Paddle, mmengine, and a custom mapping. The
expected values were worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.step_breakdown.sheet import inside_line, inside_sheets

SECOND = 10**9
ITERATION = (
    " [2026-06-01 00:00:{second:02}] iteration       {step}/    1000 | consumed samples:         2560 | elapsed time "
    "per iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.0E-04 | global batch size:"
    "   256 | lm loss: 2.5E+00 |\n"
)
BEFORE = "[before the start of training step] datetime: 2026-06-01 00:00:00 \n"


def analysed(folder: Path, text: str, name: str = "run.log", **options: Any) -> Analysis:
    path = folder / name
    path.write_text(text, "utf-8")
    return goodput_cli.analyze(path, **options)


def seconds(analysis: Analysis) -> dict[str, float]:
    """Return the seconds of the slowest rank, by logged name."""
    return {row.logged or row.phase: row.slowest_ns / SECOND for row in analysis.step_phases[0].phases}


def megatron(block: str, prefix: str = "") -> str:
    text = BEFORE
    for record in range(1, 6):
        text += ITERATION.format(second=10 * record, step=10 * record)
        text += "".join(f"{prefix}{line}\n" for line in block.splitlines())
    return text


def test_minimum_and_maximum_have_no_rank(tmp_path: Path) -> None:
    block = """\
(min, max) time across ranks (ms):
    forward-backward ...............................: (850.00, 852.00)
    batch-generator ................................: (5.00, 120.00)
    all-grads-sync .................................: (20.00, 60.00)
    optimizer ......................................: (100.00, 101.00)"""
    analysis = analysed(tmp_path, megatron(block))
    assert seconds(analysis) == {
        "forward_backward": 42.6, "batch-generator": 6.0, "all-grads-sync": 3.0, "optimizer": 5.05, "other": 2.35,
    }  # fmt: skip
    (inside,) = analysis.step_phases
    assert (inside.net_step_ns, inside.steps, inside.ranks) == (50 * SECOND, 50, ())
    assert [round(row.percent or 0, 2) for row in inside.phases if row.phase == "data"] == [12.0]
    assert analysis.job.name == "run"


@pytest.mark.parametrize("prefix", ["", "[default3]: ", "INFO:megatron.core.timers:"])
def test_maximum_alone_is_read_after_any_prefix(tmp_path: Path, prefix: str) -> None:
    block = "max time across ranks (ms):\n    batch-generator ....: 120.00\n    forward-backward ....: 852.00"
    found = seconds(analysed(tmp_path, megatron(block, prefix)))
    assert (found["batch-generator"], found["forward_backward"]) == (6.0, 42.6)


def test_times_of_all_ranks_show_the_slowest(tmp_path: Path) -> None:
    ranks = [("forward-compute", (200, 200, 240, 200)), ("backward-compute", (400, 400, 480, 400))]
    ranks += [("batch-generator", (5, 5, 5, 5)), ("forward-backward", (850, 850, 850, 850))]
    block = "times across ranks (ms):\n" + "\n".join(
        f"  {name}:\n" + "\n".join(f"     rank {rank:2}: {ms:.2f}" for rank, ms in enumerate(times))
        for name, times in ranks
    )
    (inside,) = analysed(tmp_path, megatron(block)).step_phases
    assert [(row.rank, row.own_ns, row.cost_ns) for row in inside.ranks][:2] == [
        (2, 36_250_000_000, 6 * SECOND), (0, 30_250_000_000, 0),
    ]  # fmt: skip
    assert inside.ranks_logged == 4


def test_timers_do_not_change_the_ledger(tmp_path: Path) -> None:
    block = "max time across ranks (ms):\n    batch-generator ....: 120.00\n    forward-backward ....: 852.00"
    with_timers, without = (analysed(tmp_path, megatron(one), f"{at}.log") for at, one in enumerate((block, "")))
    assert with_timers.step_phases
    assert not without.step_phases
    assert (with_timers.goodput, with_timers.badput) == (without.goodput, without.badput)


def test_invalid_timers_are_ignored(tmp_path: Path) -> None:
    block = """\
(min, max) time across ranks (ms):
    forward-backward ....: (-850.00, nan)
    batch-generator ....: (5.00, 1e99)
    no-such-timer ....: (1.00, 2.00)
     rank 99999999: 3.00
     rank  1: 3.00
    optimizer ....: (100.00, 101.00)"""
    analysis = analysed(tmp_path, megatron(block))
    assert seconds(analysis) == {"optimizer": 5.05, "other": 44.95}


VERL = (
    "(TaskRunner pid=4711) step:{step} - actor/pg_loss:0.012 - timing_s/gen:30.0 - timing_s/reward:2.0 - "
    "timing_s/old_log_prob:6.0 - timing_s/update_actor:14.0 - timing_s/timing_s/param_sync:2.0 - "
    "timing_s/testing:20.0 - timing_s/step:80.0 - timing_s/agent_loop/tool_calls/mean:3.5{more} - "
    "perf/total_num_tokens:1200000\n"
)


def test_steps_of_reinforcement_learning_have_their_parts(tmp_path: Path) -> None:
    sync = analysed(tmp_path, "".join(VERL.format(step=step, more="") for step in range(1, 5)), "sync.log")
    (inside,) = sync.step_phases
    assert inside.net_step_ns == 4 * 60 * SECOND  # Without the evaluation.
    assert seconds(sync) == {
        "generate": 120.0, "train": 80.0, "update_actor": 56.0, "old_log_prob": 24.0, "reward": 8.0, "sync": 8.0,
        "other": 24.0, "evaluation": 80.0,
    }  # fmt: skip
    beside = " - fully_async/trainer/idle_ratio:0.5"
    alone = analysed(tmp_path, "".join(VERL.format(step=step, more=beside) for step in range(1, 5)), "async.log")
    wait = alone.step_phases[0].phase("wait")
    assert wait is not None
    assert (wait.slowest_ns, wait.percent) == (120 * SECOND, 50.0)


def test_data_in_the_time_of_a_batch(tmp_path: Path) -> None:
    text = "".join(
        f"[2026-06-01 00:00:{10 * record:02},500] [    INFO] - global step {10 * record}, epoch: 0, batch: "
        f"{10 * record - 1}, loss: 9.5, avg_reader_cost: 0.30000 sec, avg_batch_cost: 1.00000 sec, speed: 0.80 step/s, "
        "ips_total: 13107 tokens/s, ips: 1638 tokens/s, learning rate: 1.0e-04\n"
        for record in range(1, 6)
    )
    analysis = analysed(tmp_path, text)
    assert seconds(analysis) == {"data": 15.0, "other": 35.0}
    line = "2022/12/13 19:0{m}:{s:02} - mmengine - INFO - Epoch(train) [1][{step:>4}/3104]  lr: 1.0e-02  eta: 0:26:28  "
    line += "time: 0.1000  data_time: 0.0400  loss: 0.7176\n"
    text = "".join(line.format(m=at // 12, s=5 * (at % 12), step=50 * (at + 1)) for at in range(20))
    assert seconds(analysed(tmp_path, text, "mm.log")) == {"data": 40.0, "other": 60.0}


def test_mapping_defines_phases(tmp_path: Path) -> None:
    mapping = tmp_path / "own.toml"
    mapping.write_text(
        """\
name = "own"

[[rule]]
event = "step"
line = "{time:time} it={step:int} took={each:float} wait={d:float}ms"
phases = { data = { field = "d", unit = "ms" } }

[[rule]]
event = "phase"
regex = '^rank=(?P<rank>\\\\d+)@(?P<host>\\\\S+) inside it=(?P<step>\\\\d+):'
phase_pattern = '(?P<phase>\\\\w+)=(?P<value>[\\\\d.]+)s'
names = { io = "data", fb = "forward_backward" }
""".replace("\\\\", "\\")
    )
    text = "".join(
        f"2026-06-01 00:00:{step:02} it={step} took=1.0 wait=250.0ms\n"
        + "".join(f"rank={rank}@node-{rank} inside it={step}: io=0.{1 + rank}s fb=0.5s junk=9s\n" for rank in range(2))
        for step in range(1, 41)
    )
    analysis = analysed(tmp_path, text, mapping=[str(mapping)])
    (inside,) = [one for one in analysis.step_phases if one.ranks]
    assert [(row.rank, row.host, row.data_ns, row.cost_ns) for row in inside.ranks] == [
        (1, "node-1", 8 * SECOND, 4 * SECOND), (0, "node-0", 4 * SECOND, 0),
    ]  # fmt: skip
    plain = "".join(line + "\n" for line in text.splitlines() if line.startswith("2026"))
    bare = analysed(tmp_path, plain, "plain.log", mapping=[str(mapping)])
    assert (analysis.goodput, analysis.badput) == (bare.goodput, bare.badput)
    assert seconds(bare) == {"data": 10.0, "other": 30.0}


USUAL = """\
name = "own"

[[rule]]
event = "step"
line = "it {step:int} data {data:float}s"
phases = { data = { field = "data", unit = "s" } }
each = { of = "usual" }
"""


def own(folder: Path, took: list[int], data: float) -> Analysis:
    """Return a line every ten steps. took: seconds between them."""
    mapping = folder / "usual.toml"
    mapping.write_text(USUAL)
    at, text = 0, ""
    for number, seconds_more in enumerate([0, *took], 1):
        at += seconds_more
        text += f"2026-06-01 00:{at // 60:02}:{at % 60:02} it {10 * number} data {data}s\n"
    return analysed(folder, text, "own.log", mapping=[str(mapping)])


def test_phases_are_compared_with_steps_between_lines(tmp_path: Path) -> None:
    """Twenty lines are 10 s apart and one 40 s, including 30 s without training: 21 x 10 s. The time of the first
    line's steps is unknown, so their data phase is not part of any."""
    analysis = own(tmp_path, [10] * 10 + [40] + [10] * 10, 0.25)
    (inside,) = analysis.step_phases
    assert (inside.net_step_ns, inside.steps, inside.untimed) == (210 * SECOND, 210, 10)
    assert seconds(analysis) == {"data": 52.5, "other": 157.5}
    assert [row.percent for row in inside.phases] == [25.0, 75.0]
    assert "excluded because their length is not logged: 10 kept steps" in next(inside_sheets(analysis)).notes


def test_phase_longer_than_its_steps_has_no_share(tmp_path: Path) -> None:
    """1.5 s of waiting in steps of 1 s: reported by a diagnostic, and no share is 150 %."""
    analysis = own(tmp_path, [10] * 30, 1.5)
    assert [(row.phase, row.percent) for row in analysis.step_phases[0].phases] == [("data", None)]
    assert [one.code for one in analysis.diagnostics if one.code == "phases_overlap"] == ["phases_overlap"]
    assert inside_line(analysis) is None
    assert not any("of step time waited" in one.text for one in analysis.insights)
    assert any("its share is unknown" in note for note in next(inside_sheets(analysis)).notes)
