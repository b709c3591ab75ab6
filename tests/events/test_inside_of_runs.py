"""Step breakdowns in rows of Weights & Biases, by the names that trainers log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.events.trackers.runs import logged_of, phases_of, work_of
from tests.support.logs import exit_record, row, run_file, run_record

BEGIN = 1795385400
VERL = {
    "timing_s/gen": 30.0,
    "timing_s/reward": 2.0,
    "timing_s/update_actor": 20.0,
    "timing_s/timing_s/param_sync": 1.5,
    "timing_s/agent_loop/tool_calls/mean": 25.0,
    "timing_s/step": 60.0,
    "perf/mfu/actor": 0.38,
    "perf/total_num_tokens": 1_200_000,
    "perf/throughput": 2500.0,
}


def run_of(folder: Path, **logged: Any) -> Analysis:
    rows = [
        row(BEGIN + 60 * step, 60 * step, _step=step, **{"training/global_step": step, **logged})
        for step in range(1, 9)
    ]
    path = folder / "run-abc12345.wandb"
    path.write_bytes(run_file(run_record("abc12345", BEGIN), *rows, exit_record(0, 490)))
    return goodput_cli.analyze(str(path))


def seconds(analysis: Analysis) -> dict[str, float]:
    (one,) = analysis.step_phases
    return {one.phase: one.slowest_ns / 1e9 for one in one.phases if one.logged is None}


def test_verl_phases_fill_the_steps(tmp_path: Path) -> None:
    found = seconds(run_of(tmp_path, **VERL))
    assert found == {"generate": 240, "train": 160, "reward": 16, "sync": 12, "other": pytest.approx(52)}


def test_verl_with_separate_generators_waits(tmp_path: Path) -> None:
    assert seconds(run_of(tmp_path, **VERL, **{"fully_async/count": 3}))["wait"] == 240


def test_ledger_is_identical_with_and_without_phases(tmp_path: Path) -> None:
    others = {f"other/{at}": 1.0 for at in range(len(VERL))}
    tables = [run_of(tmp_path, **logged).segments.to_csv() for logged in (VERL, others)]
    assert tables[0] == tables[1]


def test_history_as_lines_gives_the_same_result(tmp_path: Path) -> None:
    lines = [{"_timestamp": BEGIN + 60 * at, "_runtime": 60 * at, "_step": at, **VERL} for at in range(1, 9)]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert seconds(goodput_cli.analyze(str(path)))["generate"] == 240


def test_work_has_the_names_of_metrics() -> None:
    assert work_of(logged_of(VERL)) == {
        "mfu": 38, "tokens_per_step": 1_200_000, "tokens_per_second_accelerator": 2500
    }  # fmt: skip
    monitor = {"device/mfu": 0.41, "device/flops_per_sec": 4e14, "samples_per_sec": 512.0, "loss": 2.0}
    assert work_of(logged_of(monitor)) == pytest.approx({"mfu": 41, "tflops": 400, "samples_per_second": 512})


NAMES = st.sampled_from([*VERL, "timing_s/", "timing_s/timing_s/timing_s/gen", "timing_s/\x1b", "device/mfu", "loss"])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))


@given(st.dictionaries(NAMES, VALUES))
def test_random_rows_give_no_traceback_or_negative_phase(values: dict[str, Any]) -> None:
    logged = logged_of(values)
    assert all(one.ns >= 0 for one in phases_of(logged))
    assert all(0 < value < float("inf") for value in work_of(logged).values())


def test_mlflow_metrics_give_the_same_result(tmp_path: Path) -> None:
    folder = tmp_path / "mlruns" / "0" / ("ab" * 16)
    (folder / "metrics" / "timing_s").mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"run_id: {'ab' * 16}\nstatus: 3\nstart_time: {BEGIN}000\n", encoding="utf-8")
    for name in ("loss", "timing_s/gen", "timing_s/step"):
        value = VERL.get(name, 0.5)
        rows = "".join(f"{BEGIN + 60 * step}000 {value} {step}\n" for step in range(1, 9))
        (folder / "metrics" / name).write_text(rows, encoding="utf-8")
    assert seconds(goodput_cli.analyze(str(tmp_path / "mlruns"))) == {"generate": 240, "other": 240}
