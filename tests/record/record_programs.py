"""Programs that record, as separate processes, and their logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parent.parent.parent
_PRELUDE = "import os, signal, sys, time\nsys.path.insert(0, os.environ['RECORD_ROOT'])\n"
_QUIET = ("GOODPUT_RECORDER_", "GOODPUT_LOGGING_", "GOOGLE_", "GCLOUD_", "GCE_", "STORAGE_EMULATOR", "JOB_", "SLURM_")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a machine outside of any cloud and scheduler."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_QUIET) and name != "RANK"}
    kept |= {"RECORD_ROOT": str(ROOT), "HOME": str(folder), "CLOUDSDK_CONFIG": str(folder), "NO_PROXY": "*"}
    return {**kept, **more}


def start(
    folder: Path, text: str, *arguments: str, python: str = sys.executable, packages: bool = False, **more: str
) -> subprocess.Popen[str]:
    """Start a program in a folder; its output can be read. Without `packages` it has only the standard library. That is
    enough for a recorder, and starts in a third of the time."""
    path, program = folder / "program.py", _PRELUDE + textwrap.dedent(text)
    if not path.exists() or path.read_text(encoding="utf-8") != program:  # another process may be reading it
        path.write_text(program, encoding="utf-8")
    command = [python, *([] if packages else ["-S"]), str(path), *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment(folder, **more), **pipes)


def run(
    folder: Path,
    text: str,
    *arguments: str,
    python: str = sys.executable,
    packages: bool = False,
    code: int = 0,
    **more: str,
) -> tuple[str, str]:
    """Run a program to its end, and check its exit code; return its output and its standard error."""
    process = start(folder, text, *arguments, python=python, packages=packages, **more)
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, (process.returncode, out, err)
    return out, err


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log, which must all be whole."""
    content = path.read_bytes()
    assert content.endswith(b"\n")
    return [orjson.loads(line) for line in content.splitlines() if line]


def events(path: Path) -> list[str]:
    """Return each line as a word."""
    return [word(line) for line in lines(path)]


def word(line: dict[str, Any]) -> str:
    """Return a line as a word: its native event, its Orbax event, its step, or the key of its time."""
    if "goodput_event" in line:
        return str(line["goodput_event"])
    if "step_count" in line:
        return f"step {line['step_count']}"
    return str(line.get("event_type") or next(key for key in line if "_time" in key))


@cache
def pythons() -> list[str]:
    """Return the installed interpreters that can run the recorder: this one, and one of every other version from 3.10
    on."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for minor in range(10, 30):
        version = f"3.{minor}"
        candidates = [shutil.which(f"python{version}"), *map(str, sorted(folder.glob(f"{version}.*/bin/python3")))]
        for candidate in filter(None, candidates):
            if version not in found and _is(candidate, version):
                found[version] = candidate
    return [found[version] for version in sorted(found, key=lambda text: int(text.partition(".")[2]))]


def _is(python: str, version: str) -> bool:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=120, check=False)
    except OSError:
        return False
    return answer.stdout.strip() == version
