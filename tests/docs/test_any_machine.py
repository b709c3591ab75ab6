"""What the project's files may hold of the machine on which they were made: nothing, so that a clone works on any."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MADE_HERE = (".git", ".venv*", ".*_cache", ".hypothesis", ".benchmarks", "__pycache__", "*.egg-info", "build", "dist")
"""Folders that no clone holds."""
LOGS = ("tests/real/*", "tests/text/samples/*", "sample_logs/*", "LICENSE", "*/LICENSE")
"""Logs rightly hold the paths of the machine that they are of; licences are others' texts."""


def files(root: Path) -> Iterator[Path]:
    """Every file below a folder that is the project's own; links are files, and not followed."""
    for folder, folders, names in os.walk(root):
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in MADE_HERE)]
        yield from (Path(folder, name) for name in names)


def of_a_machine(root: Path, homes: tuple[str, ...]) -> list[str]:
    """What of a tree only one machine has: symbolic links, and paths below one of the homes, each with its place."""
    path = re.compile("|".join(rf"(?<![\w.]){re.escape(home.rstrip('/'))}/" for home in homes).encode())
    faults: list[str] = []
    for file in files(root):
        name = file.relative_to(root).as_posix()
        if file.is_symlink():
            faults.append(f"{name} is a symbolic link to {file.readlink()}")
        elif not any(fnmatch(name, pattern) for pattern in LOGS):
            lines = file.read_bytes().split(b"\n")
            faults += [f"{name}:{number}: {line[:200]!r}" for number, line in enumerate(lines, 1) if path.search(line)]
    return faults


def homes() -> tuple[str, ...]:
    """The folders that are of this machine alone: its users' and the one in which this checkout stands."""
    return tuple({"/" + "root", str(Path.home()), str(ROOT)} - {"/"})


def test_no_link_and_no_path_of_a_machine_is_in_the_tree() -> None:
    assert of_a_machine(ROOT, homes()) == []


@pytest.mark.parametrize("log", ["tests/real/a/run.log", "sample_logs/a.log"])
def test_a_link_and_a_path_are_found_with_their_place(tmp_path: Path, log: str) -> None:
    (tmp_path / log).parent.mkdir(parents=True)
    (tmp_path / log).write_text('File "/home/ann/train.py", line 1\n')
    (tmp_path / "code.py").write_text('x = 1\nHOME = "/home/ann/data"\nURL = "https://site/home/ann/"\n')
    (tmp_path / "gone").symlink_to("/home/ann/gone")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "python").symlink_to("/usr/bin/python3")
    assert sorted(of_a_machine(tmp_path, ("/home/ann",))) == [
        "code.py:2: b'HOME = \"/home/ann/data\"'",
        "gone is a symbolic link to /home/ann/gone",
    ]
