"""`goodput fleet` as a separate process, observed from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 120.0


def command(folder: Path, name: str, *more: str) -> list[str]:
    outputs = [argument for ending in ("json", "csv", "txt") for argument in ("-o", f"{name}.{ending}")]
    return [
        sys.executable, "-m", "goodput_cli", "fleet", "logs", "--labels", "labels.csv", "--by", "team", "-q", "--force",
        *outputs, *more,
    ]  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    """Its own folder for temporary files, which is to be empty afterwards."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    paths = [str(Path(__file__).parent.parent.parent), str(folder / "plugins")]
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(paths)}


def start(folder: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(folder, name, *more), cwd=folder, env=environment(folder), stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def read(folder: Path, name: str) -> dict[str, bytes]:
    return {ending: (folder / f"{name}.{ending}").read_bytes() for ending in ("json", "csv", "txt")}


def answers(folder: Path, name: str, *more: str, silent: bool = True) -> dict[str, bytes]:
    """Return the written files. silent: nothing is printed. The library that started a worker may report
    its end later."""
    process = start(folder, name, *more)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said.decode(errors="replace")
    assert not (silent and said), said.decode(errors="replace")
    return read(folder, name)


def workers_of(process: subprocess.Popen[bytes], least: int, *, working: bool = False) -> list[psutil.Process]:
    """Return the worker processes, when there are at least this many; working: that have already worked."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        children = [one for one in psutil.Process(process.pid).children(recursive=True) if _is_worker(one, working)]
        if len(children) >= least:
            return children
        time.sleep(0.05)
    return []


def _is_worker(process: psutil.Process, working: bool) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline()) and (not working or process.memory_info().rss > 60 << 20)
    except psutil.Error:
        return False


def remains_of_session(folder: Path, group: int) -> list[str]:
    """Processes of a session, and temporary files."""
    processes = []
    for one in psutil.process_iter():
        try:
            if os.getsid(one.pid) == group and one.status() != psutil.STATUS_ZOMBIE:
                processes.append(" ".join(one.cmdline()))
        except (psutil.Error, OSError):
            continue
    return [*processes, *(str(path) for path in (folder / "temporary").iterdir())]


def resident(process: psutil.Process) -> int:
    """Bytes of memory, shared ones too; 0 for a process that is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
