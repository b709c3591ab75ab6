"""Tables of trainers with their own clock, or with the time of a step (docs/formats.md, Tables of trainers)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli import Analysis, NotEnoughData

START = "2026-03-01T10:00:00Z"


def llama_factory(steps: range, first: int, per_row: int, total: int = 250) -> list[dict[str, Any]]:
    rows = []
    for place, step in enumerate(steps):
        elapsed = first + place * per_row
        clock = f"{elapsed // 3600}:{elapsed // 60 % 60:02d}:{elapsed % 60:02d}"
        rows.append({"current_steps": step, "total_steps": total, "loss": 1.0, "elapsed_time": clock,
                     "remaining_time": "0:10:00"})  # fmt: skip
    return rows


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def analysed(path: Path, text: str) -> Analysis:
    path.write_text(text)
    return goodput_cli.analyze(str(path), clock_start=START)


def seconds(analysis: Analysis) -> dict[str, float]:
    return {one.name: one.seconds for one in (*analysis.badput, analysis.goodput) if one.seconds}


def codes(analysis: Analysis) -> set[str]:
    return {one.code for one in analysis.diagnostics}


class TestLlamaFactory:
    def test_the_worked_example_is_ten_minutes_of_steps_and_seven_seconds_of_start_up(self, tmp_path: Path) -> None:
        analysis = analysed(tmp_path / "trainer_log.jsonl", lines(llama_factory(range(5, 251, 5), 19, 12)))
        assert analysis.job.end_ns - analysis.job.start_ns == 607 * 10**9
        assert analysis.job.kept_steps == 250
        assert analysis.steps is not None
        assert analysis.steps.median_seconds == 2.4
        assert seconds(analysis) == {"productive": 600.0, "program_startup": 7.0}
        assert "no_clock" in codes(analysis)

    def test_clock_reset_is_a_restart_of_unknown_downtime(self, tmp_path: Path) -> None:
        rows = [*llama_factory(range(5, 101, 5), 19, 12), *llama_factory(range(85, 251, 5), 20, 12)]
        analysis = analysed(tmp_path / "trainer_log.jsonl", lines(rows))
        assert analysis.job.attempts == 2
        assert analysis.disruptions[0].steps_lost == 20
        assert "clock_begins_anew" in codes(analysis)

    def test_file_without_start_ends_at_its_modification_time(self, tmp_path: Path) -> None:
        path = tmp_path / "trainer_log.jsonl"
        path.write_text(lines(llama_factory(range(5, 251, 5), 19, 12)))
        analysis = goodput_cli.analyze(str(path))
        assert analysis.job.end_ns == pytest.approx(path.stat().st_mtime_ns, abs=2_000)

    def test_days_are_read(self, tmp_path: Path) -> None:
        rows = llama_factory(range(5, 16, 5), 19, 12)
        rows[-1]["elapsed_time"] = "1 day, 0:00:19"
        analysis = analysed(tmp_path / "trainer_log.jsonl", lines(rows))
        assert analysis.job.end_ns - analysis.job.start_ns == (86400 + 19) * 10**9

    def test_truncated_table_is_read_up_to_the_cut(self, tmp_path: Path) -> None:
        text = lines(llama_factory(range(5, 251, 5), 19, 12))
        chosen = random.Random(5)
        for size in sorted(chosen.sample(range(300, len(text)), 8)):
            analysis = analysed(tmp_path / "trainer_log.jsonl", text[:size])
            assert analysis.job.kept_steps <= 250
            assert analysis.goodput.percent > 50


class TestUltralytics:
    def table(self, *columns: str, count: int = 6) -> str:
        header = ",".join(columns)
        values = {"epoch": lambda at: str(at + 1), "time": lambda at: f"{100 + 60.5 * at:.2f}"}
        rows = [",".join(values.get(name.strip(), lambda _: "0.5")(at) for name in columns) for at in range(count)]
        return "\n".join([header, *rows]) + "\n"

    def test_epochs_end_at_their_time(self, tmp_path: Path) -> None:
        text = self.table("epoch", "time", "train/box_loss", "metrics/mAP50(B)", "lr/pg0")
        analysis = analysed(tmp_path / "results.csv", text)
        assert analysis.job.end_ns - analysis.job.start_ns == 402_500_000_000
        assert analysis.job.kept_steps == 6
        assert seconds(analysis) == {"productive": 363.0, "program_startup": 39.5}

    def test_older_table_without_time_is_refused_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text(self.table("   epoch", "   train/box_loss", "   metrics/mAP50(B)", "   lr/pg0"))
        with pytest.raises(NotEnoughData, match="Ultralytics version contains no time"):
            goodput_cli.analyze(str(path))

    def test_table_counts_if_nothing_else_in_the_folder_has_steps(self, tmp_path: Path) -> None:
        (tmp_path / "args.yaml").write_text("task: detect\n")
        (tmp_path / "results.csv").write_text(self.table("epoch", "time", "train/box_loss", "lr/pg0"))
        assert goodput_cli.analyze(str(tmp_path), clock_start=START).job.kept_steps == 6


class TestMeans:
    def test_mmengine_uses_whole_times_of_training_only(self, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = [
            {"lr": 0.02, "data_time": 0.1, "loss": 1.5, "time": 0.5, "epoch": 1, "iter": n, "memory": 1, "step": n}
            for n in range(50, 501, 50)
        ]
        rows.insert(5, {"coco/bbox_mAP": 0.3, "data_time": 2.0, "time": 9.0, "step": 1})
        analysis = analysed(tmp_path / "scalars.json", lines(rows))
        assert analysis.job.end_ns - analysis.job.start_ns == 250 * 10**9
        assert analysis.job.formats == ("mmengine",)

    def test_detectron2_counts_from_0(self, tmp_path: Path) -> None:
        rows = [
            {"data_time": 0.01, "eta_seconds": 99.0, "iteration": n, "lr": 0.1, "time": 0.25, "total_loss": 2.0}
            for n in range(19, 400, 20)
        ]
        analysis = analysed(tmp_path / "metrics.json", lines(rows))
        assert analysis.job.end_ns - analysis.job.start_ns == 100 * 10**9
        assert analysis.job.formats == ("detectron2",)


class TestSpeedRuns:
    def test_clock_reset_after_a_warm_up_is_not_a_restart(self, tmp_path: Path) -> None:
        times = [500, 1000, 0, 250, 500, 750, 1000]
        text = "".join(
            f"step:{10 * (at + 1)}/70 train_time:{time}ms step_avg:25.00ms\n" for at, time in enumerate(times)
        )
        assert analysed(tmp_path / "log.txt", text).job.attempts == 1


class TestNoTime:
    @pytest.mark.parametrize(
        ("name", "text", "who"),
        [
            ("training.csv", "epoch,accuracy,loss,val_loss\n0,0.1,2.0,2.1\n1,0.2,1.9,2.0\n", "Keras"),
            ("metrics.csv", "epoch,step,train_loss\n0,9,2.0\n0,19,1.9\n", "Lightning"),
            ("trainer_state.json", '{"global_step": 3, "log_history": [{"loss": 1.0, "step": 3}]}\n', "Hugging Face"),
        ],
    )
    def test_table_without_times_is_refused_with_a_tip(self, tmp_path: Path, name: str, text: str, who: str) -> None:
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(NotEnoughData, match=rf"{who}.* contains no time"):
            goodput_cli.analyze(str(path))

    def test_refusal_names_the_timed_file_next_to_it(self, tmp_path: Path) -> None:
        (tmp_path / "runs").mkdir()
        (tmp_path / "checkpoint-500").mkdir()
        path = tmp_path / "checkpoint-500" / "trainer_state.json"
        path.write_text('{"global_step": 3, "log_history": [{"loss": 1.0, "step": 3}]}\n')
        with pytest.raises(NotEnoughData, match=r"trainer_state.json contains no timestamps; pass .*runs instead"):
            goodput_cli.analyze(str(path))
