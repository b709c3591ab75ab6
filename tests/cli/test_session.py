"""Features that the question commands share: sources, environment, exit codes, and imports on demand."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from goodput_cli.cli.main import COMMANDS, goodput, run
from tests.support.logs import Recorder, outage

Output = pytest.CaptureFixture[str]
QUESTIONS = ["rolling", "timeline"]


@pytest.fixture
def log(folder: Path) -> Path:
    return outage().write(folder / "run.jsonl")


@pytest.fixture
def open_log(tmp_path: Path) -> Path:
    """Write a log with a start line but no end line: a warning."""
    log = Recorder().start(0).add(training_prep_start_time=1_767_225_601).steps(0, 9, 10, 10).end(110)
    return log.write(tmp_path / "open.jsonl")


@pytest.mark.parametrize("command", QUESTIONS)
def test_diagnostics_go_to_stderr_unless_quiet(open_log: Path, command: str, capsys: Output) -> None:
    assert run([command, str(open_log)]) == 0
    out, err = capsys.readouterr()
    assert "open_interval" in err
    assert "open_interval" not in out
    assert run([command, str(open_log), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", QUESTIONS)
def test_strict_exits_with_5_after_the_answer(open_log: Path, command: str, capsys: Output) -> None:
    assert run([command, str(open_log), "--strict", "--format", "json"]) == 5
    assert json.loads(capsys.readouterr().out)["schema_version"] == 2


@pytest.mark.parametrize("command", ["analyze", *QUESTIONS])
def test_missing_source_shows_the_command_as_example(command: str, capsys: Output) -> None:
    assert run([command]) == 2
    assert f"`goodput {command} run.jsonl`" in capsys.readouterr().err


@pytest.mark.parametrize("command", QUESTIONS)
def test_existing_file_is_rejected_before_reading(log: Path, command: str, capsys: Output) -> None:
    Path("there.json").write_text("mine", encoding="utf-8")
    assert run([command, "no-such-log.jsonl", "-o", "there.json"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run([command, str(log), "-q", "-o", "there.json", "--force"]) == 0
    assert Path("there.json").read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize("command", QUESTIONS)
def test_standard_input_and_exit_codes_are_shared(
    log: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log.read_bytes())))
    assert run([command, "-", "-q"]) == 0
    assert run([command, "no-such-log.jsonl"]) == 1
    assert run([command, str(log), "-j", "nobody"]) == 4
    assert "nobody" in capsys.readouterr().err


def test_each_command_has_its_own_environment(log: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("GOODPUT_ROLLING_WINDOW", "1m;5m")
    monkeypatch.setenv("GOODPUT_TIMELINE_FORMAT", "csv")
    assert run(["rolling", str(log), "-q", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rolling"]
    assert {row["window_seconds"] for row in rows} == {60.0, 300.0}
    assert run(["timeline", str(log), "-q"]) == 0
    assert capsys.readouterr().out.startswith("start,end,category")
    assert run(["analyze", str(log), "-q"]) == 0
    assert "windows" not in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["nonsense"]])
def test_commands_are_imported_on_demand(arguments: list[str]) -> None:
    code = f"import sys; from goodput_cli.cli.main import run; run({arguments}); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    modules = [command.module for command in COMMANDS.values()]
    assert not any(f"'{module}'" in out for module in (*modules, "msgspec", "numpy", "pandas"))
    assert arguments == ["--version"] or "'importlib.metadata'" not in out, "slow to import"


def test_small_analysis_imports_nothing_slow(log: Path) -> None:
    arguments = ["analyze", str(log), "-q", "--format", "json"]
    code = f"import sys; from goodput_cli.cli.main import run; run({arguments}); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    slow = ("google.protobuf", "pandas", "pyarrow", "rich", "zoneinfo")
    assert [module for module in slow if f"'{module}'" in out] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_help_is_that_of_the_command(name: str) -> None:
    own = COMMANDS[name].load(name)
    assert COMMANDS[name].summary == (own.help or "").partition("\n")[0]
    for width in (20, 45, 65, 200):
        assert goodput.commands[name].get_short_help_str(width) == own.get_short_help_str(width)
    assert not own.hidden


def test_misspelled_command_is_suggested(capsys: Output) -> None:
    assert run(["analyse"]) == 2
    assert "analyze" in capsys.readouterr().err


HELPS = """
import sys
from goodput_cli.cli.main import run
for command in sys.argv[1:]:
    run([command, "--help"])
    print(sorted(sys.modules), end="\\f")
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """Return the help of each command and the modules imported so far, of one process."""
    done = subprocess.run([sys.executable, "-c", HELPS, *COMMANDS], capture_output=True, text=True, check=True)
    return dict(zip(COMMANDS, done.stdout.split("\f"), strict=False))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_is_light_and_has_an_example(command: str, helps: dict[str, str]) -> None:
    out = helps[command]
    assert f"goodput {command}" in out.partition("Examples:")[2]
    assert not any(f"'{module}'" in out for module in ("msgspec", "numpy", "pandas"))
