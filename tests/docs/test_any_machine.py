"""The project's files contain nothing of the machine that made them, so that a clone works on any machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MADE_HERE = (".git", ".venv*", ".*_cache", ".hypothesis", ".benchmarks", "__pycache__", "*.egg-info", "build", "dist")
"""Directories that no clone has."""
LOGS = ("tests/real/*", "tests/text/samples/*", "sample_logs/*", "LICENSE", "*/LICENSE")
"""Files exempt from the check: logs contain paths of their machines, and licenses are texts of others."""


def files(root: Path) -> Iterator[Path]:
    """Return every file of the project below a directory. Symbolic links are files and are not followed."""
    for folder, folders, names in os.walk(root):
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in MADE_HERE)]
        yield from (Path(folder, name) for name in names)


def of_a_machine(root: Path, homes: tuple[str, ...]) -> list[str]:
    """Return the parts of a tree that only one machine has, with their locations: symbolic links, and paths below
    one of the homes."""
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
    """Return the directories of this machine: home directories, and the parent of this checkout."""
    return tuple({"/" + "root", str(Path.home()), str(ROOT)} - {"/"})


def test_tree_has_no_links_and_no_local_paths() -> None:
    assert of_a_machine(ROOT, homes()) == []


@pytest.mark.parametrize("log", ["tests/real/a/run.log", "sample_logs/a.log"])
def test_link_and_path_are_found_with_their_location(tmp_path: Path, log: str) -> None:
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
