"""`--help` of every command is quick, because it imports nothing slow, and fits a terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from goodput_cli.cli.main import COMMANDS, run

_HEAVY = {"numpy", "pandas", "pyarrow", "msgspec", "vl_convert", "jinja2", "google.cloud", "grpc", "boto3", "dask"}
_ALL_HELP = f"""
import sys
from goodput_cli.cli.main import COMMANDS, run
for name in [None, *COMMANDS]:
    for option in ("--help", "-h"):
        assert run([*([name] if name else []), option]) == 0
    loaded = sorted({_HEAVY} & set(sys.modules))
    assert not loaded, (name, loaded)
print(len(COMMANDS), "commands", file=sys.stderr)
"""


def test_help_imports_nothing_slow() -> None:
    done = subprocess.run([sys.executable, "-c", _ALL_HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[0]) > 10


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_fits_80_columns(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_short_help_has_at_most_40_lines(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command, "-h"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Usage: goodput")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
