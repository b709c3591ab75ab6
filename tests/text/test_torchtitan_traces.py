"""torchtitan's structured logs: events of the lowest rank, phases of all (docs/inside-steps.md)."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.events.inside import RankSteps, within_memory
from tests.support.logs import BEGIN, TracedRank, slow_loader

SECOND = 10**9


def analysed(folder: Path) -> Analysis:
    """Return the analysis of the only job in a folder."""
    return goodput_cli.analyze(folder)


def shares(analysis: Analysis) -> dict[str, tuple[float, float | None, float | None]]:
    """Return the seconds of the slowest, the mean and the median rank, by phase."""
    (inside,) = analysis.step_phases
    return {
        row.phase: (
            row.slowest_ns / SECOND,
            None if row.mean_ns is None else row.mean_ns / SECOND,
            None if row.median_ns is None else row.median_ns / SECOND,
        )
        for row in inside.phases
    }


def ledger(analysis: Analysis) -> list[tuple[object, ...]]:
    """Return all categories with their ns, and all segments."""
    rows = [(row.category, row.label, row.ns) for row in (analysis.goodput, *analysis.badput)]
    return [*rows, *analysis.segments[["start", "end", "category"]].itertuples(index=False, name=None)]


def test_ranks_of_two_hosts_give_phases_and_slowest_rank(tmp_path: Path) -> None:
    for one in slow_loader():
        one.write(tmp_path)
    analysis = analysed(tmp_path)
    assert (analysis.job.attempts, analysis.job.kept_range) == (1, (1, 49))
    assert analysis.goodput.ns == 53_900_000_000
    assert {row.category: row.ns for row in analysis.badput}["unproductive_checkpoint_save_time"] == 4 * SECOND
    (inside,) = analysis.step_phases
    assert (inside.steps, inside.net_step_ns, inside.first_step_ns) == (48, 52_800_000_000, 10 * SECOND)
    assert shares(analysis) == {
        "forward_backward": (42.24, 35.28, 37.44),
        "data": (14.4, 4.32, 0.96),
        "optimizer": (12.0, 10.8, 12.0),
        "other": (2.4, 2.4, 2.4),
        "save": (4.0, 4.0, 4.0),
    }
    data = inside.phase("data")
    assert data is not None
    assert data.percent == pytest.approx(100 * 14.4 / 52.8)
    assert [(row.rank, row.host, row.cost_ns, row.likely_ns) for row in inside.ranks] == [
        (1, "node-a", 13_440_000_000, 0),
        (3, "node-b", 0, 4_800_000_000),
        (0, "node-a", 0, 0),
        (2, "node-b", 0, 0),
    ]
    assert [(row.host, row.cost_ns) for row in inside.hosts] == [("node-a", 13_440_000_000), ("node-b", 0)]
    assert inside.phase("save").percent is None  # type: ignore[union-attr]


def test_phases_do_not_change_the_ledger(tmp_path: Path) -> None:
    for one in slow_loader():
        one.write(tmp_path / "with")
        kept = (
            "step_start",
            "step_end",
            "checkpoint_save_start",
            "checkpoint_save_end",
            "torch_distributed",
            "training",
        )
        one.lines = [line for line in one.lines if json.loads(line)["log_type_name"].startswith(kept)]
        one.write(tmp_path / "without")
    with_phases, without = analysed(tmp_path / "with"), analysed(tmp_path / "without")
    assert {row.phase for row in without.step_phases[0].phases} == {"other", "save"}
    assert ledger(with_phases) == ledger(without)


def test_order_compression_and_clocks_of_files_change_nothing(tmp_path: Path) -> None:
    ranks = list(slow_loader())
    for one in ranks:
        one.write(tmp_path / "plain")
    expected = analysed(tmp_path / "plain")
    for one in ranks:
        path = one.write(tmp_path / "zipped")
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    files = sorted((tmp_path / "plain" / "structured_logs").iterdir(), reverse=True)
    for other in (analysed(tmp_path / "zipped"), goodput_cli.analyze(files)):
        assert other.step_phases[0].phases == expected.step_phases[0].phases
        assert other.step_phases[0].ranks == expected.step_phases[0].ranks
        assert ledger(other) == ledger(expected)
    for one in ranks[1:]:  # All but the one whose spans are the job's events.
        one.lines = [shifted(line, 3_600_000_000) for line in one.lines]
        one.write(tmp_path / "clocks")
    ranks[0].write(tmp_path / "clocks")
    apart = analysed(tmp_path / "clocks")
    assert (apart.step_phases[0].phases, apart.step_phases[0].ranks) == (
        expected.step_phases[0].phases,
        expected.step_phases[0].ranks,
    )
    assert ledger(apart) == ledger(expected)


def shifted(line: str, us: int) -> str:
    """Return a line of another clock."""
    record = json.loads(line)
    record["time_us"] += us
    return json.dumps(record)


def test_lowest_available_rank_gives_the_events(tmp_path: Path) -> None:
    for one in slow_loader():
        if one.rank not in (0, 2):
            one.write(tmp_path)
    analysis = analysed(tmp_path)
    (inside,) = analysis.step_phases
    assert (inside.ranks_logged, inside.missing_ranks) == (2, (0, 2))
    assert analysis.job.kept_range == (1, 49)
    assert inside.ranks[0].cost_ns == 13_440_000_000


def test_resumed_attempt_matches_ranks_and_omits_wasted_steps(tmp_path: Path) -> None:
    for rank in range(2):
        first = TracedRank(rank).started()
        for at in range(30):
            save = {"checkpoint_save": 500.0} if at == 19 else {"checkpoint_save": 0.01}
            first.step(1000.0 + (500.0 if at == 19 else 0), {"fetching_batch": 100.0, **save})
        first.step(0, {"fetching_batch": 100.0}, done=False)
        first.record("step_error")
        first.record("step_end", 100.0)
        first.write(tmp_path, 0)
        second = TracedRank(rank, begin_us=BEGIN + 120_000_000, resumed=20)
        second.span("torch_distributed_init", 4000.0)
        second.span("checkpoint_load", 3000.0)
        for _ in range(20):
            second.step(1000.0, {"fetching_batch": 200.0 if rank else 100.0})
        second.record("torch_distributed_teardown_start")
        second.write(tmp_path, 1)
    analysis = analysed(tmp_path)
    assert (analysis.job.attempts, analysis.job.disruptions, analysis.job.ending) == (2, 1, "clean")
    assert analysis.job.kept_range == (1, 40)
    (inside,) = analysis.step_phases
    assert inside.steps == 38  # 40 kept, without the first of each attempt.
    data = inside.phase("data")
    assert data is not None
    assert data.slowest_ns == (19 * 100 + 19 * 200) * 1_000_000
    lost = {row.category: row.ns for row in analysis.badput}
    assert lost["unproductive_checkpoint_restore_time"] == 3 * SECOND
    assert lost["unproductive_checkpoint_save_time"] == 500_000_000  # The span at every step saves nothing.
    assert analysis.disruptions[0].ended == "crashed"


def test_nested_span_is_counted_once(tmp_path: Path) -> None:
    one = TracedRank(0).started()
    for _ in range(12):
        one.steps += 1
        begin = one.now
        one.record("step_start")
        one.record("eval_start")
        one.span("fetching_batch", 100.0)
        one.now += 100_000
        one.record("eval_end", 200.0)
        one.span("fetching_batch", 50.0)
        one.now = begin + 400_000
        one.record("step_end", 400.0)
    one.write(tmp_path)
    (inside,) = analysed(tmp_path).step_phases
    assert {row.phase: row.slowest_ns for row in inside.phases} == {
        "data": 11 * 50_000_000, "evaluation": 11 * 200_000_000, "other": 11 * 150_000_000,
    }  # fmt: skip
    assert inside.net_step_ns == 11 * 200_000_000


def test_stdout_and_traces_are_one_job(tmp_path: Path) -> None:
    for one in slow_loader():
        one.write(tmp_path / "run")
    lines = ["[titan] 2026-06-01 00:00:00,000 - root - INFO - Starting job: example"]
    lines += [
        f"[titan] 2026-06-01 00:00:{second:02},000 - root - INFO - step: {step:2}  loss:  8.0  tps: 8,192  mfu: 39.76%"
        for step, second in ((10, 23), (20, 33))
    ]
    (tmp_path / "run" / "train.log").write_text("\n".join(lines) + "\n")
    assert len(goodput_cli.jobs(tmp_path).jobs) == 1
    analysis = analysed(tmp_path)
    assert (analysis.job.attempts, analysis.job.kept_range) == (1, (1, 49))
    assert analysis.goodput.ns == 53_900_000_000


_KEYS = "value step relative_step time_us rank pid source host_name log_type_name step_tags".split()
_GARBAGE: st.SearchStrategy[Any] = st.sampled_from(
    [None, -1, -5.5, 1e300, float("nan"), float("inf"), "x", "12", [], {}, True, 2**70, 0]
)


@given(st.data())
def test_mutated_lines_never_raise_and_no_phase_is_negative(data: st.DataObject) -> None:
    rank = TracedRank(0).started()
    for _ in range(12):
        rank.step(100.0, {"fetching_batch": 10.0, "fwd_bwd": 60.0})
    lines = list(rank.lines)
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(lines) - 1))
        record = json.loads(lines[at])
        key = data.draw(st.sampled_from(_KEYS))
        record[key] = data.draw(_GARBAGE)
        lines[at] = json.dumps(record)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.jsonl"
        path.write_text("\n".join(lines) + "\n")
        try:
            analysis = goodput_cli.analyze(path)
        except goodput_cli.GoodputError:
            return
    for inside in analysis.step_phases:
        assert all(row.slowest_ns >= 0 for row in inside.phases)


def test_memory_is_bounded_by_summing_blocks_and_sums_stay_exact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for one in slow_loader():
        one.write(tmp_path)
    exact = analysed(tmp_path).step_phases[0]
    monkeypatch.setattr("goodput_cli.events.text.job_passes.within_memory", _bounded)
    summed = analysed(tmp_path).step_phases[0]
    assert summed.at_least
    for name in ("data", "optimizer"):
        few, all_of_them = summed.phase(name), exact.phase(name)
        assert few is not None
        assert all_of_them is not None
        assert few.mean_ns == all_of_them.mean_ns
    assert summed.net_step_ns == exact.net_step_ns
    assert summed.ranks[0].rank == 1


def _bounded(parts: Sequence[RankSteps]) -> tuple[RankSteps, ...]:
    return within_memory(parts, 300)


def test_ranks_merged_into_one_file_give_the_same_sums(tmp_path: Path) -> None:
    ranks = list(slow_loader())
    for one in ranks:
        one.write(tmp_path / "a")
    every = [line for one in ranks for line in one.lines]
    every.sort(key=lambda line: (json.loads(line)["time_us"], json.loads(line)["rank"], json.loads(line)["seq_id"]))
    merged = tmp_path / "b" / "structured_logs"
    merged.mkdir(parents=True)
    (merged / "all.jsonl").write_text("\n".join(every) + "\n")
    assert analysed(tmp_path / "b").step_phases[0].ranks == analysed(tmp_path / "a").step_phases[0].ranks


def test_rl_programs_have_a_table_each(tmp_path: Path) -> None:
    """The controller's spans are the steps; background work after them is not included."""
    controller, trainer = TracedRank(0, pool="controller"), TracedRank(0, pool="trainer")
    for _ in range(40):
        for one in (controller, trainer):
            one.steps += 1
        begin = controller.now
        controller.record("train_step_start")
        controller.span("wait_for_training_batch", 400.0)
        trainer.now = controller.now
        trainer.span("forward_backward", 250.0)
        controller.span("forward_backward", 300.0)
        controller.span("blocking_trainer_push_model_state_dict", 50.0)
        trainer.now = controller.now
        trainer.span("optim_step", 100.0)
        controller.span("optim_step", 120.0)
        controller.now = begin + 1_000_000
        controller.record("train_step_end", 1000.0)
        controller.span("trainer_save_checkpoint", 2000.0 if controller.steps == 20 else 20.0)
        controller.span("generator_pull_model_state_dict", 30.0)
    for one in (controller, trainer):
        one.write(tmp_path)
    analysis = analysed(tmp_path)
    assert analysis.job.kept_range == (1, 40)
    saves = {row.category: row.ns for row in analysis.badput}["unproductive_checkpoint_save_time"]
    assert saves == 2 * SECOND  # The calls that save nothing do not count.
    own, other = analysis.step_phases
    assert (own.program, other.program, other.net_step_ns) == ("controller", "trainer", None)
    assert {row.phase: row.slowest_ns for row in own.phases} == {
        "wait": 39 * 400_000_000, "forward_backward": 39 * 300_000_000, "optimizer": 39 * 120_000_000,
        "sync": 39 * 50_000_000, "other": 39 * 130_000_000,
    }  # fmt: skip
    assert {row.phase: row.slowest_ns for row in other.phases} == {
        "forward_backward": 39 * 250_000_000, "optimizer": 39 * 100_000_000,
    }  # fmt: skip
