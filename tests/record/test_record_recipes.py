"""The shell blocks of docs/record.md, run unchanged, with replacements of pip, srun and a training image."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.record_programs import ROOT, environment, events, lines
from tests.support.documents import Block, blocks

DOCUMENT = ROOT / "docs" / "record.md"
SHELL = blocks(DOCUMENT, "sh")
PYTHON = f'exec "{sys.executable}" "$@"'
STAND_INS = {
    "pip": "true",  # the wheel and its names are tested elsewhere
    "srun": 'for SLURM_PROCID in 0 1; do export SLURM_PROCID; "$@"; done',
    "python": PYTHON,
    "goodput": f'exec "{sys.executable}" -m goodput_cli "$@"',
}
MOVED = """
import sys
from ml_goodput_measurement import goodput, monitoring
from resiliency.goodput_measure import logging as goodput_logging, constant
recorder = goodput.GoodputRecorder("moved", "goodput_moved", True)
recorder.record_job_start_time()
for step in range(3):
    recorder.record_step_start_time(step)
recorder.record_job_end_time()
goodput_logging.log_event(constant.JOB_STARTED)
assert monitoring.GoodputMonitor
"""
TRAIN = """
from goodput_cli.record import Recorder
recorder = Recorder(heartbeat=0, to="logs/run.jsonl")
with recorder.run():
    for step in recorder.steps(range(3)):
        pass
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a folder with the replacements, and goodput_record as in the small wheel."""
    (tmp_path / "bin").mkdir()
    for name, text in STAND_INS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "wheel").mkdir()
    (tmp_path / "wheel" / "goodput_record").symlink_to(ROOT / "goodput_cli" / "record")
    return tmp_path


def shell(block: Block, folder: Path) -> str:
    """Return the output of the commands of a block; each must succeed."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    more = {"PATH": path, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder / 'wheel'}", "SLURM_JOB_NAME": "llm-7b"}
    done = subprocess.run(
        ["sh", "-eu", "-c", block.text],
        cwd=folder,
        env=environment(folder, **more, GOODPUT_USE_FILE_TRACKING="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def block_with(text: str) -> Block:
    (found,) = [block for block in SHELL if text in block.text]
    return found


def test_every_block_is_tested() -> None:
    known = ("pip install ./recorder", "goodput analyze", "resiliency", "gcloud_stub", "srun")
    assert [sum(text in block.text for block in SHELL) for text in known] == [1] * len(SHELL)


def test_five_minute_example_works(workspace: Path) -> None:
    shell(block_with("pip install ./recorder"), workspace)
    program = next(block for block in blocks(DOCUMENT, "python") if "recorder.run()" in block.text)
    (workspace / "train.py").write_text(program.text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "train.py"], cwd=workspace, env=environment(workspace, PYTHONPATH=str(ROOT)), check=True
    )
    assert "llm-7b" in shell(block_with("goodput analyze"), workspace)


def test_one_sed_command_migrates_a_program(workspace: Path) -> None:
    (workspace / "train.py").write_text(MOVED, encoding="utf-8")
    shell(block_with("resiliency"), workspace)
    subprocess.run(
        [sys.executable, "train.py"],
        cwd=workspace,
        env=environment(workspace, PYTHONPATH=str(ROOT), GOODPUT_USE_FILE_TRACKING="1"),
        check=True,
        capture_output=True,
    )
    assert events(workspace / "goodput-logs" / "moved.jsonl")[-1] == "job_end_time"
    assert len(lines(workspace / "training-job-goodput.log")) == 1


MAXTEXT = {
    "goodput.py": """
from maxtext.common.gcloud_stub import goodput_modules
goodput, monitoring, _ = goodput_modules()
""",
    "gcloud_stub.py": """
def goodput_modules():
    try:
        from ml_goodput_measurement import goodput, monitoring
        return goodput, monitoring, False
    except ModuleNotFoundError:
        raise
""",
}
"""The two files of MaxText with imports, and their imports."""


def test_maxtext_recipe_migrates_recorder_and_monitor(workspace: Path) -> None:
    folder = workspace / "src" / "maxtext" / "common"
    folder.mkdir(parents=True)
    for name, text in MAXTEXT.items():
        (folder / name).write_text(text, encoding="utf-8")
    shell(block_with("gcloud_stub"), workspace)
    program = "from maxtext.common.goodput import goodput, monitoring; print(goodput.__name__, monitoring.__name__)"
    path = f"{ROOT}{os.pathsep}{workspace / 'src'}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=workspace, env=environment(workspace, PYTHONPATH=path), check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    drop_in = "goodput_cli.compat.drop_in.ml_goodput_measurement.src"
    assert done.stdout.split() == [f"{drop_in}.goodput", f"{drop_in}.monitoring"]


def test_fsdp_on_slurm_recipe_works(workspace: Path) -> None:
    (workspace / "train.py").write_text(TRAIN, encoding="utf-8")
    (workspace / "logs").mkdir()
    shell(block_with("srun"), workspace)
    found = lines(workspace / "logs" / "run.jsonl")
    assert events(workspace / "logs" / "run.jsonl") == [
        *("scheduled", "attempt", "job_start_time", "step 0", "step 1", "step 2", "job_end_time")
    ]
    assert {line["job_name"] for line in found} == {"llm-7b"}
