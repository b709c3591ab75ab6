"""Completion in the shell: the scripts that docs/cli.md loads, and their answers to TAB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from goodput_cli.cli.main import COMMANDS
from goodput_cli.report.base import format_names
from goodput_cli.vocabulary.categories import CATEGORIES

ROOT = Path(__file__).parent.parent.parent
SHELLS = ("bash", "zsh", "fish")
BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
IN_BASH = """eval "$(_GOODPUT_COMPLETE=bash_source goodput)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_goodput_completion goodput
printf '%s\\n' "${COMPREPLY[@]}"
"""


def environment(**more: str) -> dict[str, str]:
    """Return the environment of an installed package: the command `goodput` is on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | more


def output(*command: str, **more: str) -> str:
    done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


def goodput(**more: str) -> str:
    return output(sys.executable, "-m", "goodput_cli", **more)


def complete_last_word(*words: str) -> list[str]:
    """Return the completions of the last word, `kind,name` each. The first word is the command."""
    answer = goodput(
        _GOODPUT_COMPLETE="bash_complete", COMP_WORDS=" ".join(words) + " ", COMP_CWORD=str(len(words) - 1)
    )
    return answer.splitlines()


@pytest.mark.parametrize(
    ("shell", "registers"),
    [
        ("bash", "complete -o nosort -F _goodput_completion goodput"),
        ("zsh", "compdef _goodput_completion goodput"),
        ("fish", "complete --no-files --command goodput"),
    ],
)
def test_each_shell_gets_its_script(shell: str, registers: str) -> None:
    script = goodput(_GOODPUT_COMPLETE=f"{shell}_source")
    assert registers in script
    assert f"_GOODPUT_COMPLETE={shell}_complete" in script


def test_every_shell_completes_a_command() -> None:
    bash = goodput(_GOODPUT_COMPLETE="bash_complete", COMP_WORDS="goodput ana", COMP_CWORD="1")
    assert bash == "plain,analyze\n"
    zsh = goodput(_GOODPUT_COMPLETE="zsh_complete", COMP_WORDS="goodput ana", COMP_CWORD="1")
    assert zsh.splitlines()[:2] == ["plain", "analyze"]
    fish = goodput(_GOODPUT_COMPLETE="fish_complete", COMP_WORDS="goodput ana", COMP_CWORD="ana")
    assert fish.startswith("plain,analyze")


@BASH
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ana",), ["analyze"]),
        (("",), [*COMMANDS]),
        (("timeline", "--cat"), ["--category"]),
        (("steps", "--data-loading", "b"), ["blocking"]),
    ],
)
def test_bash_itself_completes(words: tuple[str, ...], expected: list[str]) -> None:
    assert output("bash", "-c", IN_BASH, "bash", "goodput", *words).splitlines() == expected


@pytest.mark.parametrize("words", [("check", "sam"), ("analyze", "--log-file", "sam"), ("steps", "-o", "sam")])
def test_sources_and_files_are_completed_by_the_shell(words: tuple[str, ...]) -> None:
    assert complete_last_word("goodput", *words) == ["file,sam"]


def test_formats_and_categories_are_completed() -> None:
    assert complete_last_word("goodput", "jobs", "--format", "") == [f"plain,{name}" for name in format_names()]
    assert complete_last_word("goodput", "timeline", "--category", "ela") == [
        f"plain,{name}" for name in CATEGORIES if name.startswith("elastic")
    ]


def test_documented_scripts_exist() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for shell in SHELLS:
        assert f"_GOODPUT_COMPLETE={shell}_source goodput" in text
