"""The fuzzer finds what it is made to find, and nothing in some inputs of every kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from goodput_cli.errors import UsageError
from tests.fuzz.__main__ import fault_of

ROOT = Path(__file__).parents[2]


def test_what_is_a_fault_and_what_is_none() -> None:
    def refuses() -> None:
        raise UsageError("no")

    assert fault_of(refuses) is None
    assert fault_of(lambda: 2) is None
    assert "ZeroDivisionError" in (fault_of(lambda: 1 // 0) or "")
    assert "is a bug" in (fault_of(lambda: print("Error: … This is a bug: …", file=sys.stderr)) or "")
    assert "exit code is 7" in (fault_of(lambda: 7) or "")


@pytest.mark.parametrize("seed", ["1", "2"])
def test_some_inputs_of_every_kind(seed: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "80", "--seconds", "120", "--seed", seed]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 faults" in done.stdout
