"""Logs of real libraries in trainings that were killed, failed and continued, compared with their programs' own clocks
(tests/real/README.md)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import Analysis

REAL = Path(__file__).parents[1] / "real"


def losses(analysis: Analysis) -> list[tuple[str | None, int | None, str | None]]:
    return [(one.cause, one.steps_lost, one.steps_lost_is) for one in analysis.disruptions]


class TestTransformers:
    """60 steps of 1 s, saved every 15: killed after 22, an exception after 38, a clean end. Progress bars only."""

    WRITTEN = (("out_kill.txt", 915.26), ("out_raise.txt", 949.34), ("out_clean.txt", 988.85))

    @pytest.fixture
    def analysis(self, tmp_path: Path) -> Analysis:
        for name, at in self.WRITTEN:
            shutil.copy(REAL / "transformers-bars" / name, tmp_path / name)
            os.utime(tmp_path / name, ns=(int(at * 1e9) + 1_795_459_000 * 10**9,) * 2)
        return goodput_cli.analyze([str(tmp_path / name) for name, _ in self.WRITTEN])

    def test_bars_that_jump_to_a_checkpoint_resume_there(self, analysis: Analysis) -> None:
        assert (analysis.job.attempts, analysis.job.kept_range, analysis.job.ending) == (3, (1, 60), "clean")
        # The true values are 7 and 8.
        assert losses(analysis) == [("unknown", 6, "at_least"), ("not_finite", 7, "exact")]
        assert analysis.goodput.ns / 1e9 == pytest.approx(60.2, abs=1)

    def test_bar_closed_after_a_traceback_shows_no_progress(self, analysis: Analysis) -> None:
        _, failed = analysis.disruptions
        assert failed.cause_text == "ValueError: loss is nan"
        assert failed.last_sign_of_life_ns / 1e9 == pytest.approx(1_795_459_949.34, abs=1)


class TestMmengine:
    """80 iterations of 0.08 s, saved every 20: killed after 27, failed after 53, a clean end."""

    def test_work_folder_is_one_job_with_a_folder_per_process(self) -> None:
        analysis = goodput_cli.analyze(str(REAL / "mmengine-0.10" / "work"))
        assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_range) == ("work", 3, (1, 80))
        # The true values are 7 and 13.
        assert losses(analysis) == [("unknown", 5, "at_least"), ("unknown", 10, "at_least")]

    def test_scalars_count_without_a_better_text_log(self, tmp_path: Path) -> None:
        shutil.copytree(REAL / "mmengine-0.10" / "work", tmp_path / "work")
        for log in tmp_path.rglob("*.log"):
            log.unlink()
        only = tmp_path / "work" / "20261123_184917"
        analysis = goodput_cli.analyze(str(only))
        assert [log.name for log in analysis.job.log_formats] == ["mmengine"]


class TestRay:
    """12 iterations of half a second, saved every two; an exception in the 6th. Its times are whole seconds."""

    def test_iterations_have_the_times_of_their_rows(self) -> None:
        analysis = goodput_cli.analyze(str(REAL / "ray-2.60" / "result.json"))
        assert (analysis.job.attempts, analysis.job.kept_range, analysis.job.ending) == (2, (1, 12), "clean")
        assert analysis.goodput.ns / 1e9 == pytest.approx(6.02, abs=0.01)
        assert losses(analysis) == [("unknown", 1, "at_least")]


class TestDlrover:
    """30 steps of 0.2 s, saved every ten in 0.3 s: killed after 17; initialized for 1 s, restored for 1 s."""

    def test_restore_stage_of_initialization_is_a_restore(self) -> None:
        analysis = goodput_cli.analyze(str(REAL / "dlrover-0.6" / "events_0.log"))
        found = {one.category: round(one.ns / 1e9, 2) for one in (analysis.goodput, *analysis.badput) if one.ns}
        assert (found["unproductive_checkpoint_restore_time"], found["tpu_initialization"]) == (1.0, 2.0)
        assert found["infrastructure_recovery_from_disruption"] == 2.63  # The true value is 2.626.
        assert losses(analysis) == [("unknown", 7, "at_least")]
        assert (analysis.job.kept_range, analysis.job.ending) == ((1, 30), "clean")


class TestOneLogger:
    """30 steps of 0.2 s, logged every five, saved every ten in 0.3 s: killed after 17, restored for 1 s."""

    def test_iterations_are_indexes_but_saves_are_not(self) -> None:
        analysis = goodput_cli.analyze(str(REAL / "one-logger-2.3"))
        assert (analysis.job.kept_range, analysis.job.ending) == ((1, 30), "clean")
        assert losses(analysis) == [("unknown", 5, "at_least")]  # The true value is 7.
        assert analysis.goodput.ns / 1e9 == pytest.approx(6.05, abs=0.02)


class TestUltralytics:
    def test_one_process_has_no_clock_restart(self, tmp_path: Path) -> None:
        """The writer formats numbers with six digits, so that days have an exponent."""
        rows = [f"{epoch:.6g},{epoch * 86400.123:.6g},1.2,0.01" for epoch in range(1, 15)]
        (tmp_path / "results.csv").write_text("\n".join(["epoch,time,train/box_loss,lr/pg0", *rows, ""]))
        analysis = goodput_cli.analyze(str(tmp_path))
        assert (analysis.job.attempts, analysis.job.kept_range) == (1, (1, 14))
        assert "clock_begins_anew" not in {one.code for one in analysis.diagnostics}


class TestDetectron2:
    """Its folder as its writers lay it out: `log.txt` has timestamps, `metrics.json` the same iterations without."""

    def test_text_counts_instead_of_scalars_next_to_it(self, tmp_path: Path) -> None:
        lines = ["[11/07 10:00:00] d2.engine.train_loop INFO: Starting training from iteration 0"]
        scalars = []
        for at in range(1, 11):
            about = f"eta: 0:01:00  iter: {20 * at - 1}  total_loss: 2.1  time: 0.5  data_time: 0.01  lr: 1e-05"
            lines.append(f"[11/07 10:0{at // 6}:{10 * at % 60:02d}] d2.utils.events INFO:  {about}  max_mem: 2440M")
            row = {"data_time": 0.01, "iteration": 20 * at - 1, "lr": 1e-5, "time": 0.5, "total_loss": 2.1}
            scalars.append(json.dumps(row))
        (tmp_path / "log.txt").write_text("\n".join([*lines, ""]))
        (tmp_path / "metrics.json").write_text("\n".join([*scalars, ""]))
        analysis = goodput_cli.analyze(str(tmp_path), year=2025)
        assert [log.name for log in analysis.job.log_formats] == ["detectron2-text"]
        assert (analysis.job.attempts, analysis.job.kept_range) == (1, (1, 200))
        (tmp_path / "log.txt").unlink()
        alone = goodput_cli.analyze(str(tmp_path))
        assert [log.name for log in alone.job.log_formats] == ["detectron2"]
