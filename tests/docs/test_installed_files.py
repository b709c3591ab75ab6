"""Installed man pages and completions agree with the program; `UPDATE_DOCS=1` writes them again."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from goodput_cli.cli.main import COMMANDS
from tests.support.documents import ROOT, updating
from tests.support.generated_docs import COMPLETIONS, MAN_PAGE, PICTURES, completion, man_page, terminal_picture


def check_file(name: str, text: str) -> None:
    path = ROOT / name
    if updating():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{name}: UPDATE_DOCS=1 writes it anew"


def test_man_page_agrees_with_help() -> None:
    text = man_page()
    check_file(MAN_PAGE, text)
    assert [name for name in COMMANDS if f'.SH "goodput {name}"' not in text] == []


def test_man_reads_the_page(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff here")
    done = subprocess.run([groff, "-man", "-Tutf8", "-ww", str(ROOT / MAN_PAGE)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completions_agree_with_the_command(shell: str) -> None:
    check_file(COMPLETIONS[shell], completion(shell))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_terminal_are_up_to_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    svg = terminal_picture("sample_logs/llm-pretrain.jsonl", *PICTURES[name])
    check_file(name, svg)
    assert "restored&#160;step&#160;1400" in svg
    assert "url(http" not in svg


def test_files_are_installed() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    installed = {name for names in tools["setuptools"]["data-files"].values() for name in names}
    assert installed == {MAN_PAGE, *COMPLETIONS.values()}
