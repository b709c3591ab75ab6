"""Progress on a terminal while a long log is read, and Ctrl-C at that time: real terminals and processes."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from goodput_cli.cli import console as interrupts
from goodput_cli.cli.console import reading_progress
from goodput_cli.events.read import read_events
from tests.support.clouds import ROOT, log_lines
from tests.support.logs import MessageRecorder

AT_ONCE = (
    "import goodput_cli.cli.console as progress; progress._PATIENCE_SECONDS = 0; "
    "from goodput_cli.__main__ import main; main()"
)
SILENCE_SECONDS = 60
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "COLUMNS": "80", "LINES": "24", "TERM": "xterm", "PATH": os.defpath}


class Terminal:
    """A terminal that runs the command and shows its progress without a delay."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, *arguments],
            env=ENVIRONMENT | environment,
            preexec_fn=lambda: os.login_tty(terminal),
        )
        os.close(terminal)
        self.shown = ""

    def type(self, key: bytes) -> None:
        os.write(self._screen, key)

    def until(self, seen: Callable[[str], object]) -> None:
        """Read the output until it contains `seen`, or to the end."""
        while not seen(self.shown):
            if not select.select([self._screen], [], [], SILENCE_SECONDS)[0]:
                self.process.kill()
                pytest.fail(f"nothing more is shown than {self.shown[-500:]!r}")
            try:
                part = os.read(self._screen, 65_536)
            except OSError:  # Linux reports this error once all writers are gone.
                break
            self.shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", part.decode())

    def code(self) -> int:
        """Return the exit code of the command."""
        self.until(lambda _: False)
        os.close(self._screen)
        return self.process.wait(20)


def test_bytes_lines_rate_and_remaining_time_are_shown(tmp_path: Path) -> None:
    for part in range(10):
        (tmp_path / f"{part}.jsonl").write_bytes(log_lines(*range(part * 20_000, (part + 1) * 20_000)))
    terminal = Terminal("analyze", str(tmp_path), "--format", "json")
    assert terminal.code() == 0
    every = re.split(r"[\r\n]+", terminal.shown)  # A fast machine has read everything before a second update.
    drawn = [line for line in every if "reading" in line or "accounting" in line]
    megabytes = sum(path.stat().st_size for path in tmp_path.iterdir()) / 1e6
    shown = rf"\d[\d.]*/{megabytes:.1f} MB \d[\d,]* lines \S+ [kMG]B/s \d\d:\d\d"
    assert any(re.search(shown, line) for line in drawn), drawn
    assert all(len(line) <= 80 for line in drawn)
    assert "accounting" in terminal.shown


def test_ctrl_c_while_reading_ends_the_command_at_once(tmp_path: Path) -> None:
    """A pipe that never ends replaces a log that takes hours."""
    path = tmp_path / "endless.jsonl"
    os.mkfifo(path)
    terminal = Terminal("analyze", str(path))
    with path.open("wb") as stream:
        stream.write(log_lines(*range(70_000)))
        stream.flush()
        terminal.until(lambda shown: "lines" in shown)
        assert not re.search(r"\d\d:\d\d", terminal.shown), "nobody knows how much a pipe will give"
        terminal.type(b"\x03")
        assert terminal.code() == 130
    assert "Interrupted." in terminal.shown
    assert "Traceback" not in terminal.shown


def test_wait_for_a_silent_server_is_shown() -> None:
    terminal = Terminal("analyze", "gs://logs/a.jsonl", STORAGE_EMULATOR_HOST="http://127.0.0.1:1")
    terminal.until(lambda shown: re.search(r"no answer; try 2 of 5 in \d+ s", shown))
    terminal.type(b"\x03")
    assert terminal.code() == 130


def test_progress_needs_a_terminal_and_permission(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(100)))
    piped = subprocess.run(
        [sys.executable, "-c", AT_ONCE, "analyze", str(path)], env=ENVIRONMENT, capture_output=True, check=True
    )
    assert b"reading" not in piped.stderr
    for option in ("--no-progress", "--quiet"):
        terminal = Terminal("analyze", str(path), option)
        assert terminal.code() == 0
        assert "reading" not in terminal.shown


def test_bytes_and_lines_are_reported_with_their_total(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_bytes(log_lines(*range(100)) + b"rubbish\n")
    told = MessageRecorder()
    read_events([str(path) for path in [*paths, paths[0]]], progress=told)
    size = sum(path.stat().st_size for path in paths)
    assert (told.bytes, told.expected, told.lines, told.finished) == (size, size, 202, True)


def test_check_counts_jobs_after_everything_is_read(tmp_path: Path) -> None:
    """Its lines replace each other, because the terminal has one line for them."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(log_lines(*range(70_000)))
    terminal = Terminal("check", str(path), "--format", "json")
    assert terminal.code() in (0, 5)
    assert terminal.shown.index("reading") < terminal.shown.index("jobs ━")
    assert "accounting" not in terminal.shown


def test_interrupt_lost_while_reading_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some libraries swallow exceptions. No answer may be written after an interrupt."""
    monkeypatch.setattr(interrupts, "_raised", False)
    with reading_progress(wanted=False, then=""):
        pass
    with pytest.raises(KeyboardInterrupt), reading_progress(wanted=False, then=""), suppress(KeyboardInterrupt):
        interrupts._raise(2, None)
