"""Real runs of tracker libraries, compared with the clocks of their programs: an exception after step 24, a kill after
step 33, a clean end after step 39; saved every ten steps (tests/real, tests/trackers/train.py)."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.events.schema import Kind

REAL = Path(__file__).parents[1] / "real"


def truth(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ends_of_steps(analysis: Analysis) -> list[float]:
    table = analysis.timeline.table
    return [float(time) / 1e9 for time in table.time[table.kind == int(Kind.STEP)]]


class TestWandb:
    FOLDER = REAL / "wandb-0.31"

    def test_processes_are_attempts_with_their_ends(self) -> None:
        analysis = goodput_cli.analyze(str(self.FOLDER / "wandb"))
        assert (analysis.job.name, analysis.job.attempts, analysis.job.ending) == ("abc12345", 3, "clean")
        assert [one.ended for one in analysis.disruptions] == ["crashed", "silent"]

    def test_first_failure_has_a_cause_and_second_has_none(self) -> None:
        first, second = goodput_cli.analyze(str(self.FOLDER / "wandb")).disruptions
        assert (first.cause, first.cause_certainty) == ("python_error", "confirmed")
        assert first.cause_text == "RuntimeError: a fault"
        assert (second.cause, second.cause_certainty) == ("unknown", None)

    def test_location_of_a_cause_is_the_output_line(self) -> None:
        """The exception leaves `with wandb.init()`: wandb prints it before its records end."""
        (one,) = goodput_cli.analyze(str(REAL / "wandb-why" / "wandb")).disruptions
        assert (one.cause, one.cause_text, one.first_host) == ("host_oom", "MemoryError: no room for a batch", "vm")
        assert (one.evidence.cause or "").endswith("_181734-why/files/output.log:4")
        assert (one.steps_lost, one.ended) == (5, "crashed")

    def test_output_next_to_truncated_files_changes_no_second(self, tmp_path: Path) -> None:
        chosen = random.Random(5)
        for place in range(12):
            copy = tmp_path / str(place)
            shutil.copytree(REAL / "wandb-why" / "wandb", copy / "wandb")
            for file in (copy / "wandb").rglob("*.*"):
                if file.is_file():
                    data = file.read_bytes()
                    file.write_bytes(data[: chosen.randrange(len(data))])
            (output,) = copy.rglob("output.log")
            beside = goodput_cli.analyze(str(copy))
            output.unlink()
            without = goodput_cli.analyze(str(copy))
            assert (beside.window, beside.badput, beside.job) == (without.window, without.badput, without.job)
            assert [one.cause for one in beside.disruptions] in (["host_oom"], ["unknown"], [])

    def test_begins_and_ends_match_the_program_minus_imports(self) -> None:
        analysis = goodput_cli.analyze(str(self.FOLDER / "wandb"))
        notes = truth(self.FOLDER / "truth.jsonl")
        begins = [one["time"] for one in notes if one["what"] == "begin"]
        ups = [one["time"] for one in notes if one["what"] == "up"]
        starts = [analysis.job.start_ns / 1e9, *(one.next_start_ns / 1e9 for one in analysis.disruptions)]
        for begin, start, up in zip(begins, starts, ups, strict=True):
            assert begin < start < up
        ends = [one["time"] for one in notes if one["what"] == "end"]
        assert analysis.disruptions[0].last_sign_of_life_ns / 1e9 == pytest.approx(ends[0], abs=0.05)
        assert analysis.job.end_ns / 1e9 == pytest.approx(ends[2], abs=0.05)

    def test_rows_are_the_ends_of_steps(self) -> None:
        analysis = goodput_cli.analyze(str(self.FOLDER / "wandb"))
        done = [one["time"] for one in truth(self.FOLDER / "truth.jsonl") if one["what"] == "step"]
        shown = ends_of_steps(analysis)
        assert len(shown) == 35  # 25 and 10: the 14 of the killed process never reached the disk
        nearest = [min(abs(time - one) for one in done) for time in shown]
        assert max(nearest) < 0.05

    def test_truncated_files_are_attempts_without_extra_steps(self, tmp_path: Path) -> None:
        chosen = random.Random(11)
        for place in range(6):
            copy = tmp_path / str(place)
            shutil.copytree(self.FOLDER / "wandb", copy / "wandb")
            for file in (copy / "wandb").rglob("*.*"):
                if file.is_file():
                    data = file.read_bytes()
                    file.write_bytes(data[: chosen.randrange(len(data))])
            analysis = goodput_cli.analyze(str(copy))
            assert 1 <= analysis.job.attempts <= 3
            assert analysis.job.kept_steps <= 40
            assert np.all(np.diff(ends_of_steps(analysis)) >= 0)


class TestMlflow:
    FOLDER = REAL / "mlflow-3.17"

    def database(self, folder: Path) -> Path:
        path = folder / "mlflow.db"
        connection = sqlite3.connect(path)
        connection.executescript((self.FOLDER / "mlflow.sql").read_text())
        connection.commit()
        connection.close()
        return path

    @pytest.mark.parametrize("kind", ["files", "database"])
    def test_resumes_are_attempts_and_repeated_steps_are_lost(self, kind: str, tmp_path: Path) -> None:
        path = self.FOLDER / "mlruns" if kind == "files" else self.database(tmp_path)
        notes = truth(self.FOLDER / ("truth.jsonl" if kind == "files" else "truth-of-database.jsonl"))
        analysis = goodput_cli.analyze(str(path))
        assert (analysis.job.attempts, analysis.job.kept_steps) == (3, 40)
        assert [one.steps_lost for one in analysis.disruptions] == [5, 4]
        done = [one["time"] for one in notes if one["what"] == "step"]
        assert ends_of_steps(analysis) == pytest.approx(done, abs=0.05)
        ups = [one["time"] for one in notes if one["what"] == "up"]
        for one, up in zip(analysis.disruptions, ups[1:], strict=True):
            # the time when its first step began, not its process
            assert one.next_start_ns / 1e9 == pytest.approx(up, abs=0.05)

    def test_truncated_store_has_no_extra_time_or_attempts(self, tmp_path: Path) -> None:
        """A truncated time is in 1970; a truncated step would be a smaller one, and so a resume."""
        copy = tmp_path / "mlruns"
        shutil.copytree(self.FOLDER / "mlruns", copy)
        whole = goodput_cli.analyze(str(copy))
        (meta,) = copy.glob("*/*/meta.yaml")
        (loss,) = copy.glob("*/*/metrics/loss")
        begin = meta.read_bytes().index(b"start_time: ") + 12
        places = [(meta, at) for at in range(begin, begin + 14)]
        places += [(loss, len(loss.read_bytes()) - back) for back in range(1, 30)]
        for file, at in places:
            data = file.read_bytes()
            file.write_bytes(data[:at])
            analysis = goodput_cli.analyze(str(copy))
            assert analysis.job.start_ns >= whole.job.start_ns
            assert (analysis.job.attempts, analysis.job.kept_steps or 0) <= (3, 40)
            file.write_bytes(data)
