"""A member of a directory that cannot be read is a warning with its path; a path that was named is an error."""

from __future__ import annotations

import builtins
import inspect
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.api.watch import WatchedLog
from goodput_cli.cli.main import run
from goodput_cli.errors import SourceError
from goodput_cli.events.read import read_events
from goodput_cli.sources.walk import files_in_folder
from tests.support.fleets import put, training
from tests.support.logs import codes

Output = pytest.CaptureFixture[str]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a log next to files of another user. Root is also denied what others may not read."""
    top = tmp_path / "logs"
    for name in ("run", "closed"):
        (top / name).mkdir(parents=True)
        put(top / name / "a.jsonl", training("a", 2, 1))
    put(top / "secret.jsonl", training("a", 2, 1))
    (top / "gone.jsonl").symlink_to("moved/away.jsonl")
    (top / "loop").symlink_to("loop")
    (top / "zero.log").symlink_to("/dev/zero")
    os.mkfifo(top / "pipe.log")
    monkeypatch.chdir(top)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.log")
        listed, allowed = os.scandir, os.access

        def scandir(path: Any) -> Any:
            if str(path).endswith("closed"):
                raise PermissionError(13, "Permission denied")
            return listed(path)

        monkeypatch.setattr(os, "scandir", scandir)
        monkeypatch.setattr(os, "access", lambda path, mode: "secret" not in str(path) and allowed(path, mode))
        monkeypatch.chdir(tmp_path)
        yield top


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    "command",
    [
        "analyze", "jobs", "fleet --workers 1", "check --format json", "steps", "timeline", "disruptions", "advise",
        "compare run.jsonl", "rolling --window 1h", "fetch -o snapshot.jsonl",
    ],
)  # fmt: skip
def test_every_command_reads_the_other_members(command: str, capsys: Output) -> None:
    put(Path("run.jsonl"), training("a", 2, 1))
    code = run([*command.split(), "logs"])
    said = capsys.readouterr()
    assert code == (5 if command.startswith("check") else 0)
    text = said.out + said.err
    assert all(f"logs/{name}" in text for name in ("closed", "secret.jsonl", "gone.jsonl", "loop"))
    assert "logs/pipe.log" not in text


def test_each_reason_is_one_warning(tree: Path) -> None:
    found = [one for one in read_events([str(tree)]).diagnostics if one.code == "unread_members"]
    assert {one.message.rpartition(": ")[2]: [Path(place).name for place in one.where] for one in found} == {
        "permission denied": ["closed", "secret.jsonl"],
        "the target of the link does not exist": ["gone.jsonl"],
        "Too many levels of symbolic links": ["loop"],
    }
    assert {one.severity for one in found} == {"warning"}


@pytest.mark.parametrize("name", ["closed", "secret.jsonl", "gone.jsonl", "loop", "zero.log"])
def test_named_member_is_an_error(tree: Path, name: str) -> None:
    with pytest.raises(SourceError, match=name):
        read_events([str(tree), str(tree / name)])


def test_directory_of_unread_members_is_an_error(tree: Path) -> None:
    for name in ("run", "closed"):
        shutil.rmtree(tree / name, ignore_errors=name == "closed")
    with pytest.raises(SourceError, match=r"gone.jsonl: is a link .* \(and 2 other members of .*logs\)"):
        read_events([str(tree)])


def test_watched_directory_reports_unread_members(tree: Path) -> None:
    log = WatchedLog([str(tree)])
    assert log.look()
    assert "unread_members" in codes(log.log())
    assert not log.failing


def test_member_that_fails_during_reading_is_reported(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    shutil.copy(tree / "run" / "a.jsonl", tree / "broken.jsonl")
    opened = builtins.open

    def refuse(path: Any, *arguments: Any, **named: Any) -> Any:
        if str(path).endswith("broken.jsonl"):
            raise OSError(5, "Input/output error")
        return opened(path, *arguments, **named)

    monkeypatch.setattr(builtins, "open", refuse)
    for command in ("analyze", "jobs"):
        assert run([command, str(tree)]) == 0
        assert "not read: cannot be read: Input/output error\n    " in capsys.readouterr().err
    with pytest.raises(SourceError, match="Input/output error"):
        read_events([str(tree / "broken.jsonl")])


def test_tree_deeper_than_the_stack_is_read(tmp_path: Path) -> None:
    put(tmp_path.joinpath(*"d" * 200) / "a.jsonl", training("a", 2, 1))
    files_in_folder(str(tmp_path))  # so that everything is imported
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        found = files_in_folder(str(tmp_path))
    finally:
        sys.setrecursionlimit(limit)
    assert len(found.logs) == 1


def test_unread_directory_of_a_glob_is_a_warning(tree: Path) -> None:
    assert "unread_members" in codes(read_events([str(tree / "[rc]*[nd]")]))


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log next to links out of its directory."""
    put(tmp_path / "logs" / "run.jsonl", training("a", 2, 1))
    put(tmp_path / "other" / "more.jsonl", training("a", 2, 1, at=86_400))
    for name, target in {
        "kernel.log": "/proc/version", "proc": "/proc", "devices": "/dev", "root": "/", "above": "..",
        "more": "../other",
    }.items():  # fmt: skip
        (tmp_path / "logs" / name).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["analyze", "jobs", "fleet --workers 1", "check --format json", "timeline"])
@pytest.mark.usefixtures("linked")
def test_links_to_the_kernel_and_upwards_are_not_followed(command: str, capsys: Output) -> None:
    assert run([*command.split(), "logs"]) in (0, 5)
    said = capsys.readouterr()
    assert "links_followed" in said.out + said.err
    log = read_events(["logs"])
    found = {one.message.rpartition(": ")[2]: one.where for one in log.diagnostics if one.code == "unread_members"}
    assert found == {
        "in a file system of the kernel, whose files may never end": ("logs/devices", "logs/kernel.log", "logs/proc"),
        "the link leads to a directory that contains the named one": ("logs/above", "logs/root"),
    }
    assert [one.where for one in log.diagnostics if one.code == "links_followed"] == [("logs/more",)]
    assert {*log.table.sources} == {"logs/more/more.jsonl", "logs/run.jsonl"}


def test_named_directory_is_read_anywhere(linked: Path) -> None:
    sources = read_events([str(linked / "logs" / "above")]).table.sources
    assert sorted(Path(one).name for one in sources) == ["more.jsonl", "run.jsonl"]


@pytest.mark.parametrize("name", ["/proc/version", "logs/kernel.log", "logs/k*.log"])
@pytest.mark.usefixtures("linked")
def test_named_file_of_the_kernel_is_an_error(name: str) -> None:
    with pytest.raises(SourceError, match="is in a file system of the kernel"):
        read_events([name])


def test_member_removed_during_the_walk_is_ignored(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "getsize", lambda _: (_ for _ in ()).throw(FileNotFoundError()))
    assert len(read_events([str(tree)]).table)
