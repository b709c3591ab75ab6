"""Real runs of Weights & Biases and MLflow: an exception, a SIGKILL, a clean end; compared with the program's own
records."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.errors import SourceError

PROGRAM = Path(__file__).with_name("train.py")
QUIET = {"WANDB_SILENT": "true", "WANDB_MODE": "offline", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
PROCESSES = (("raise", "24"), ("kill", "33"), ())


def trained(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the records of three processes of a training."""
    for ending in PROCESSES:
        command = [sys.executable, str(PROGRAM), kind, str(folder), "40", *ending]
        subprocess.run(command, env={**os.environ, **QUIET}, cwd=folder, check=False, capture_output=True, timeout=240)
        time.sleep(2)
    return [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]


def check_starts(analysis: Analysis, notes: list[dict[str, Any]], what: str, late: float) -> None:
    """Check that attempts begin with their processes, or up to `late` seconds later."""
    begins = [one["time"] for one in notes if one["what"] == what][1:]
    for one, begin in zip(analysis.disruptions, begins, strict=True):
        assert -0.1 < one.next_start_ns / 1e9 - begin < late


def test_wandb(tmp_path: Path) -> None:
    notes = trained(tmp_path, "wandb")
    analysis = goodput_cli.analyze(str(tmp_path / "wandb"))
    assert (analysis.job.attempts, analysis.job.ending) == (3, "clean")
    assert [one.ended for one in analysis.disruptions] == ["crashed", "silent"]
    first, second = analysis.disruptions
    assert (first.cause, first.cause_text, second.cause) == ("python_error", "RuntimeError: a fault", "unknown")
    assert "/files/output.log:" in (first.evidence.cause or "")
    check_starts(analysis, notes, "begin", 10)  # imports come before the first line
    assert "rows_lost_at_kill" in {one.code for one in analysis.diagnostics}


@pytest.mark.parametrize("kind", ["mlflow", "mlflow-sqlite"])
def test_mlflow(tmp_path: Path, kind: str) -> None:
    notes = trained(tmp_path, kind)
    analysis = goodput_cli.analyze(str(tmp_path / ("mlruns" if kind == "mlflow" else "mlflow.db")))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (3, 40)
    assert [one.steps_lost for one in analysis.disruptions] == [5, 4]
    check_starts(analysis, notes, "up", 0.2)


def test_tracking_server_equals_its_database(tmp_path: Path) -> None:
    trained(tmp_path, "mlflow-sqlite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = f"sqlite:///{tmp_path}/mlflow.db"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store, "--port", str(port)]
    with open(tmp_path / "server.log", "w") as log, subprocess.Popen(
        command, env={**os.environ, **QUIET}, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True
    ) as server:  # fmt: skip
        try:
            asked = analysis_of_server(f"mlflow+http://127.0.0.1:{port}")
        finally:
            os.killpg(server.pid, signal.SIGTERM)
    stored = goodput_cli.analyze(str(tmp_path / "mlflow.db"))
    assert (asked.job.attempts, asked.job.kept_steps) == (3, 40)
    assert asked.window == stored.window
    assert asked.badput == stored.badput


def analysis_of_server(uri: str) -> Analysis:
    """Return the analysis of a server, as soon as it answers."""
    for _ in range(60):
        try:
            return goodput_cli.analyze(uri)
        except SourceError:
            time.sleep(2)
    return goodput_cli.analyze(uri)
