"""`goodput reconcile`: both numbers, why they differ, and logs without a second number."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.console import INTERRUPTED
from goodput_cli.cli.main import run
from goodput_cli.compat import library as running
from goodput_cli.compat.api import CheckpointReason, reconcile_checkpoints
from goodput_cli.compat.rules import CALCULATOR_RULES as CHECKPOINT_RULES
from goodput_cli.errors import GoodputError, NotEnoughData, UsageError
from tests.accounting.test_properties import analyse
from tests.support.answers import HOSTILE, check_answer, check_golden
from tests.support.commands import LONG_ENOUGH, until
from tests.support.differences import Log, run_here, text_of
from tests.support.logs import Recorder, outage
from tests.support.story import megatron

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "sample_logs"
HOSTILE_LABELS = (HOSTILE, "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "\ud800 alone", "X" * 10_000)
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the root of the checkout, and the library in this process."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(running, "_run", run_here)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the comparison of the sample log in every text format; from the process of the library."""
    folder = tmp_path_factory.mktemp("night")
    write_all(SAMPLES / "llm-pretrain.jsonl", folder)
    return folder


def write_all(log: Path, folder: Path) -> None:
    """Write both.json, both.txt, both.md and both.csv of a log."""
    outputs = [part for ending in ("json", "txt", "md", "csv") for part in ("-o", str(folder / f"both.{ending}"))]
    assert run(["reconcile", str(log), "-q", *outputs]) == 0


def valid(value: dict[str, Any], kind: str) -> dict[str, Any]:
    check_answer(value, kind)
    return value


def answer_of(capsys: Output, *arguments: str, checkpoints: bool = False) -> dict[str, Any]:
    assert run(["reconcile", *arguments, "-q", "--format", "json"]) == 0
    name = "checkpoint_reconciliation" if checkpoints else "reconciliation"
    return valid(json.loads(capsys.readouterr().out), name)


def test_movements_add_up_to_the_differences(night: Path) -> None:
    value = valid(json.loads((night / "both.json").read_text(encoding="utf-8")), "reconciliation")
    moved: dict[tuple[str, str | None], int] = {}
    for one in value["why"]:
        for side, sign in (("here", -1), ("there", 1)):
            key = (one[side]["category"], one[side]["label"])
            moved[key] = moved.get(key, 0) + sign * one["ns"]
    for row in value["rows"]:
        left = row["difference_ns"] - moved.get((row["category"], row["label"]), 0)
        assert left == row["not_explained_ns"]
        assert abs(left) < 1_000_000
    assert value["goodput_percent"]["there"] - value["goodput_percent"]["here"] == pytest.approx(
        value["rows"][0]["difference_points"]
    )


@pytest.mark.parametrize("ending", ["txt", "md", "csv"])
def test_output_matches_the_golden_text(night: Path, ending: str) -> None:
    check_golden(f"reconcile.{ending}", (night / f"both.{ending}").read_text(encoding="utf-8"))


def test_every_line_fits_80_columns(night: Path) -> None:
    assert all(len(line) <= 80 for line in (night / "both.txt").read_text(encoding="utf-8").splitlines())


def test_unfinished_job_is_measured_up_to_one_time(tmp_path: Path, capsys: Output) -> None:
    log = Recorder().start(0).steps(0, 9, 100, 10).write(tmp_path / "job.jsonl")
    value = answer_of(capsys, str(log))
    assert value["total_ns"] == {"here": 190 * 10**9, "there": 190 * 10**9}
    value = answer_of(capsys, str(log), "--as-of", "2026-01-01T00:10:00Z")
    assert value["total_ns"] == {"here": 600 * 10**9, "there": 600 * 10**9}


def test_refusal_is_shown_and_explained(tmp_path: Path, capsys: Output) -> None:
    log = tmp_path / "job.jsonl"
    log.write_text(text_of("refuses_negative_time"), encoding="utf-8")
    assert run(["reconcile", str(log), "-q"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the library failed: ValueError: Productive training time is invalid" in shown
    assert "job end before last step" in shown
    value = answer_of(capsys, str(log))
    assert value["other_side"]["failed"].startswith("ValueError")
    assert value["rows"][0]["there_ns"] is None
    assert value["not_explained_ns"] is None
    assert value["why"]


def test_hostile_text_is_harmless_in_both_systems(tmp_path: Path) -> None:
    log = Recorder().start(0)
    for position, label in enumerate(HOSTILE_LABELS):
        log.custom(110 + position, 110.5 + position, label)
    log.steps(0, 3, 100, 20).end(180)
    path = tmp_path / "job.jsonl"
    name = json.dumps("../\x1b[31m=1+2<script>")
    path.write_text("\n".join(log.lines).replace('"job"', name) + "\n", encoding="utf-8")
    write_all(path, tmp_path)
    table, markdown, table_csv = ((tmp_path / f"both.{ending}").read_text("utf-8") for ending in ("txt", "md", "csv"))
    value = valid(json.loads((tmp_path / "both.json").read_text("utf-8")), "reconciliation")
    assert value["not_explained_ns"] < 1_000_000
    assert len([row for row in value["rows"] if row["label"]]) == len(HOSTILE_LABELS)
    assert not {"\x1b", "\u202e"} & {*table, *markdown, *table_csv}
    assert not any(cell.startswith(("=", "+", "@")) for row in csv.reader(io.StringIO(table_csv)) for cell in row)
    assert "<script" not in markdown.lower()


def test_parquet_has_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet

    out = tmp_path / "both.parquet"
    assert run(["reconcile", str(outage().write(tmp_path / "job.jsonl")), "-q", "-o", str(out)]) == 0
    rows = pyarrow.parquet.read_table(out).to_pylist()
    assert rows[0]["category"] == "productive"
    assert rows[0]["difference_ns"] == rows[0]["library_ns"] - rows[0]["here_ns"]


def test_missing_library_error_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(running, "MODULE", "no_such_module_anywhere")
    assert run(["reconcile", str(outage().write(tmp_path / "job.jsonl"))]) == UsageError.exit_code
    error = capsys.readouterr().err
    assert "pip install '.[reconcile]'" in error
    assert "Traceback" not in error


def test_checkpoint_logs_need_no_library(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(running, "MODULE", "no_such_module_anywhere")
    value = answer_of(
        capsys, str(SAMPLES / "fsdp-2-attempts.jsonl"), "--reference-step-time", "0.002569", checkpoints=True
    )
    rows = {row["name"]: row for row in value["rows"]}
    assert (rows["total_events"]["here"], rows["total_events"]["there"]) == (26, 27)
    assert rows["total_events"]["why"][0]["rule"] == "own_event"
    assert rows["goodput_percentage"]["there"] == pytest.approx(21.72, abs=0.005)
    assert all(not row["not_explained"] for row in value["rows"])


def test_log_of_only_saves_has_no_reference(tmp_path: Path, capsys: Output) -> None:
    save = Log().save(1, 100, 5).save(2, 200, 5)
    assert run(["reconcile", str(save.write(tmp_path / "job.jsonl")), "-q"]) == NotEnoughData.exit_code
    assert "neither steps nor starts" in capsys.readouterr().err


def test_log_unreadable_for_the_library_is_not_compared(tmp_path: Path, capsys: Output) -> None:
    """It has no line with the start of a step; the library would count all of the job as lost."""
    log = tmp_path / "train.log"
    log.write_text("\n".join(megatron(200)) + "\n", encoding="utf-8")
    assert run(["reconcile", str(log), "-q", "--timezone", "UTC"]) == NotEnoughData.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert "cannot compare: " in err
    assert "cannot read this log" in err


def test_time_counted_twice_names_its_other_category(tmp_path: Path, capsys: Output) -> None:
    log = tmp_path / "job.jsonl"
    log.write_text(text_of("counted_twice"), encoding="utf-8")
    (twice,) = [one for one in answer_of(capsys, str(log))["why"] if one["rule"] == "counted_twice"]
    assert twice["there"]["category"] == "training_prep"
    assert twice["beside"]["category"] == "unproductive_checkpoint_restore_time"
    assert twice["ns"] == 40 * 10**9


def test_calculator_counts_lost_steps_as_kept() -> None:
    """The job loads 0, saves 100 and crashes, then loads 0 again and saves 60: 100 steps there, 60 here."""
    event = '{"timestamp": "2026-01-01T00:%02d:00Z", "job_name": "j", "event_type": "%s", "step": %d}'
    start = '{"timestamp": "2026-01-01T00:%02d:00Z", "job_name": "j", "event_type": "%s"}'
    lines = [
        start % (0, "job_started"), event % (1, "checkpoint_loaded", 0), event % (11, "checkpoint_saved", 100),
        start % (12, "job_crashed"), start % (13, "job_started"), event % (14, "checkpoint_loaded", 0),
        event % (20, "checkpoint_saved", 60), start % (21, "job_finished"),
    ]  # fmt: skip
    analysis = analyse(lines, reference_step_time="6")
    assert analysis is not None
    rows = {row.name: row for row in reconcile_checkpoints(analysis).rows}
    assert (rows["kept_steps"].here, rows["kept_steps"].there) == (60, 100)
    assert rows["kept_steps"].why == (CheckpointReason("counted_but_not_kept", 40.0),)
    assert rows["effective_computation_time"].why == (CheckpointReason("counted_but_not_kept", 240.0),)
    assert all(abs(row.not_explained or 0) < 1e-9 for row in rows.values())
    assert {reason.rule for row in rows.values() for reason in row.why} <= CHECKPOINT_RULES.keys()


def test_slow_library_is_terminated(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the library is in a process of its own
    log = outage().write(tmp_path / "job.jsonl")
    assert run(["reconcile", str(log), "--timeout", "1ms"]) == GoodputError.exit_code
    assert "--timeout" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_ctrl_c_ends_both_processes(tmp_path: Path) -> None:
    """The library needs a long time for this log."""
    log = Recorder().start(0)
    for step in range(3000):
        log.custom(100 + step + 0.2, 100 + step + 0.4, "EVAL")
    path = log.steps(0, 2999, 100, 1).end(4000).write(tmp_path / "job.jsonl")
    command = [sys.executable, "-m", "goodput_cli", "reconcile", str(path), "-q"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            until(lambda: process.poll() is not None or computing_for(process.pid))
            assert process.poll() is None
            os.killpg(process.pid, signal.SIGINT)
            _, error = process.communicate(timeout=LONG_ENOUGH)
        finally:
            process.kill()
        assert process.returncode == INTERRUPTED
        assert b"Traceback" not in error
        until(lambda: not computing_for(process.pid))


def computing_for(session: int) -> list[str]:
    """Return the processes of a session in which the library computes."""
    return [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"compat.library_worker" in content(path) and content(path.with_name("stat")).split()[5] == b"%d" % session
    ]


def content(path: Path) -> bytes:
    """Return the contents of a file of /proc; empty once the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b" 0" * 6
