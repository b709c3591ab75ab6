"""`goodput record`: one event from a launcher script, with few imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from goodput_cli.cli.main import run

Output = pytest.CaptureFixture[str]


def test_event_is_a_line_in_every_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sinks = ("--sink", "a.jsonl", "--sink", "b.jsonl")
    said = "record checkpoint_saved -j llm --step 500 --node-rank 3 --time 2026-01-01T00:00:00Z".split()
    assert run([*said, *sinks]) == 0
    line = {
        "job_name": "llm",
        "goodput_event": "checkpoint_saved",
        "goodput_time": 1767225600.0,
        "step": 500,
        "rank": 3,
    }
    assert json.loads(Path("a.jsonl").read_text()) == line
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


def test_names_of_the_resiliency_library_are_read_back(tmp_path: Path, capsys: Output) -> None:
    log = str(tmp_path / "run.jsonl")
    for name, at in (("user_scheduled", 0), ("job_started", 60), ("job_finished", 90)):
        assert run(["record", name, "-j", "llm", "--sink", log, "--time", str(1767225600 + at)]) == 0
    assert run(["analyze", log, "--format", "csv", "-q"]) == 0
    assert "queued,,60,60000000000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("attempt", "'attempt' is not one of"),
        ("checkpoint_saved", "checkpoint_saved requires --step N"),
        ("finished --step 3", "finished does not take step"),
        ("finished --sink s3://b/x", "cannot record to s3://"),
        ("finished --time noon", "invalid time 'noon'"),
    ],
)
def test_invalid_event_is_wrong_usage(arguments: str, sentence: str, capsys: Output) -> None:
    assert run(["record", *arguments.split(), "-j", "llm"]) == 2
    assert sentence in capsys.readouterr().err


def test_target_that_rejects_the_line_is_a_failure(capsys: Output) -> None:
    assert run(["record", "finished", "-j", "llm", "--sink", "/dev/full"]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_recording_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom goodput_cli.cli.main import run\n"
        "assert run(['record', 'finished', '-j', 'llm', '--sink', 'run.jsonl']) == 0\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'dateutil', 'google', 'orjson', 'msgspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode()
