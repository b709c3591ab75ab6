"""Running monitors: in this process with a thread that plays the job, or in separate processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from goodput_cli.cli.main import run
from tests.support.commands import until
from tests.support.logs import Recorder

ROOT = Path(__file__).parent.parent.parent
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


def ended(path: Path, steps: int = 10) -> Path:
    """Write the log of a job of 2026 that ended: steps of 10 s."""
    log = Recorder().start(0).steps(0, steps - 1, 20, 10).end(20 + 10 * steps)
    path.write_text("".join(f"{line}\n" for line in log.lines), encoding="utf-8")
    return path


class Job:
    """A job that runs now, and logs."""

    def __init__(self, path: Path, name: str = "job") -> None:
        self.path = path
        self.name = name

    def add(self, **fact: Any) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(Recorder().add(**{"job_name": self.name, **fact}).lines[0] + "\n")

    def start(self) -> None:
        self.add(job_start_time=time.time())

    def steps(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.add(step_count=number, step_start_time=time.time())

    def end(self) -> None:
        self.add(job_end_time=time.time())


def monitor(*arguments: object) -> int:
    """Run the command in this process, to its end."""
    return run(["monitor", *map(str, arguments)])


def monitor_job(job: Callable[[], None], *arguments: object) -> int:
    """Run the command in this process, to its end, while a thread plays the job. Raise exceptions of the thread."""
    errors: list[BaseException] = []

    def play() -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    code = monitor(*arguments)
    thread.join()
    if errors:
        raise errors[0]
    return code


def started(*arguments: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Start the command in a separate process."""
    return subprocess.Popen(
        [sys.executable, "-m", "goodput_cli", "monitor", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


class Endpoint:
    """The address of a monitor in this process, from its standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._url = ""

    def find(self) -> str:
        said = self._capsys.readouterr().err
        match = re.search(r"Metrics at (http://\S+)/metrics", said)
        self._url = self._url or (match.group(1) if match else "")
        return self._url

    def samples(self) -> Samples:
        until(self.find)
        return samples(get(f"{self._url}/metrics")[1])

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of the one series with these labels; None without one."""
        return value(self.samples(), name, **labels)


def get(url: str, headers: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Return status, text and content type."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=120) as answer:
            return answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), ""


def samples(text: str) -> Samples:
    """Return (name, labels) -> value, by the parsers of both formats; no series twice."""
    read = []
    for parse in (parse_openmetrics, parse_text):
        found = [
            ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
            for family in parse(text)
            for sample in family.samples
        ]
        assert len(dict(found)) == len(found)
        read.append(dict(found))
    assert read[0] == read[1]
    return read[0]


def value(found: Samples, name: str, **labels: str) -> float | None:
    """Return the value of the one series with these labels; None without one."""
    values = [
        value for (known, pairs), value in found.items() if known == name and labels.items() <= dict(pairs).items()
    ]
    assert len(values) <= 1
    return values[0] if values else None
