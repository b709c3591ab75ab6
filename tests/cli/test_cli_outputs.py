"""`goodput analyze -o`: formats by suffix, and files that are never overwritten by accident."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from tests.cli.conftest import Library

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("library")


def test_output_format_follows_the_suffix(capsys: Output) -> None:
    assert run("analyze run.jsonl -o r.json -o r.csv -o r.md -o r.txt".split()) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(Path("r.json").read_text())["goodput"]["percent"] == 50.0
    assert Path("r.csv").read_text().startswith("category,label,seconds,ns,percent\nproductive,,6000,")
    assert Path("r.md").read_text().startswith("# Goodput of goodput-primer: 50.00 %\n")
    assert "GOODPUT  50.00 %" in Path("r.txt").read_text()
    assert sorted(os.listdir()) == ["r.csv", "r.json", "r.md", "r.txt"]
    assert Path("r.json").stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_output_and_format_write_both(capsys: Output) -> None:
    assert run("analyze run.jsonl -o r.md --format csv".split()) == 0
    assert capsys.readouterr().out.startswith("category,")
    assert Path("r.md").exists()


def test_existing_file_needs_force(library: Library, capsys: Output) -> None:
    Path("r.json").write_text("old")
    assert run("analyze run.jsonl -o r.json".split()) == 2
    assert "--force" in capsys.readouterr().err
    assert library.asked == []
    assert Path("r.json").read_text() == "old"
    assert run("analyze run.jsonl -o r.json --force".split()) == 0
    assert Path("r.json").read_text() != "old"


@pytest.mark.parametrize(("ci", "code"), [("true", 0), ("1", 0), ("false", 2), ("", 2)])
def test_second_ci_run_replaces_its_reports(
    ci: str, code: int, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    assert run("analyze run.jsonl -o r.json".split()) == 0
    assert run("analyze run.jsonl -o r.json".split()) == code
    Path("run.json").write_text("{}")
    assert run("analyze ./run.json -o run.json".split()) == 2
    assert Path("run.json").read_text() == "{}"


def test_log_is_never_overwritten(library: Library, capsys: Output) -> None:
    Path("run.json").write_text("{}")
    assert run("analyze ./run.json -o run.json --force".split()) == 2
    assert "one of the input logs" in capsys.readouterr().err
    assert library.asked == []


def test_failed_write_leaves_no_file(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("analyze run.jsonl -o r.json".split()) == 1
    assert "r.json: cannot be written: No space left" in capsys.readouterr().err
    assert os.listdir() == []
