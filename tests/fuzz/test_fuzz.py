"""The fuzzer finds prepared faults, and none in some inputs of every kind."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from tests.fuzz.__main__ import PRIMER, fault_of

ROOT = Path(__file__).parents[2]


def test_faults_are_distinguished_from_errors() -> None:
    def refuses() -> None:
        raise UsageError("no")

    assert fault_of(refuses) is None
    assert fault_of(lambda: 2) is None
    assert "ZeroDivisionError" in (fault_of(lambda: 1 // 0) or "")
    assert "is a bug" in (fault_of(lambda: print("error: … cause: This is a bug", file=sys.stderr)) or "")
    assert "exit code is 7" in (fault_of(lambda: 7) or "")


def test_some_inputs_of_every_kind_have_no_fault() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "80", "--seconds", "120", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 faults" in done.stdout


BIG = "1" * 400


@pytest.mark.parametrize(
    ("options", "content"),
    [
        (["fleet", "--workers", "1", "--labels"], b'job,team\n"a"b,c\n'),
        (["fleet", "--workers", "1", "--labels"], b'job,team\n"a'),
        (["analyze", "--config"], f'exclude = ["2025-01-01T00:{BIG}:00Z/2025-01-02"]'.encode()),
    ],
    ids=["quotes in a table", "a quote without an end", "a time of hundreds of digits"],
)
def test_inputs_found_by_the_fuzzer_are_one_sentence(options: list[str], content: bytes, tmp_path: Path) -> None:
    path = tmp_path / ("goodput.toml" if options[-1] == "--config" else "labels.csv")
    path.write_bytes(content)
    command, *rest = options
    assert fault_of(lambda: run([command, str(PRIMER), *rest, str(path), "-q"])) is None


@pytest.mark.parametrize("value", [10**30, -(10**30), 4_000_000, 1e-320])
def test_saved_analysis_of_any_numbers_is_compared_or_rejected(value: float, tmp_path: Path) -> None:
    """A million disruptions need no million fractions, and a change from almost zero has no percentage."""
    run(["analyze", str(PRIMER), "-q", "-o", str(tmp_path / "saved.json")])
    saved = json.loads((tmp_path / "saved.json").read_bytes())
    for place, key in (
        (saved["job"], "attempts"),
        (saved["job"], "disruptions"),
        (saved["reliability"], "mtbf_seconds"),
    ):
        before, place[key] = place[key], value
        (tmp_path / "odd.json").write_text(json.dumps(saved))
        assert fault_of(lambda: run(["compare", str(PRIMER), "--baseline", str(tmp_path / "odd.json"), "-q"])) is None
        place[key] = before


def test_infinite_metric_and_damaged_database_are_not_bugs(tmp_path: Path) -> None:
    sample = (ROOT / "tests" / "text" / "samples" / "mldiagnostics-two-attempts.jsonl").read_bytes()
    (tmp_path / "run.jsonl").write_bytes(re.sub(rb'"values": ?\[[^]]*\]', b'"values":[%s]' % BIG.encode(), sample))
    assert fault_of(lambda: run(["jobs", str(tmp_path / "run.jsonl"), "-q"])) is None
    database = tmp_path / "mlflow.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript((ROOT / "tests" / "real" / "mlflow-3.17" / "mlflow.sql").read_text())
    whole = database.read_bytes()
    for name in (b"run_uuid", b"fa2b92c3", b"CREATE TABLE"):
        database.write_bytes(whole.replace(name, name[:-1] + b"\xb5"))
        assert fault_of(lambda: run(["analyze", str(database), "-q"])) is None


def test_clock_of_hundreds_of_digits_is_not_a_duration(tmp_path: Path) -> None:
    shipped = (ROOT / "goodput_cli" / "events" / "mappings" / "shipped" / "llama-factory.toml").read_text()
    (tmp_path / "m.toml").write_text(shipped.replace("0:00:19", f"{BIG}:00:19").replace("llama-factory", "mine"))
    assert fault_of(lambda: run(["analyze", str(PRIMER), "--mapping", str(tmp_path / "m.toml"), "-q"])) is None
