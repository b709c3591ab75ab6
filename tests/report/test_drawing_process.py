"""A separate process draws charts while logs are read: the charts are the same, and no process remains."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import GoodputError
from goodput_cli.report.html import drawing_process
from tests.support.commands import LONG_ENOUGH, until

START = drawing_process.start  # before the setup of the tests replaces it
SAMPLE = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"
CHART = """{"data": {"values": [{"x": 3}]}, "mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    START()
    assert drawing_process._started is not None
    yield
    drawing_process.stop()


@pytest.mark.usefixtures("started")
def test_charts_are_the_same_and_failed_ones_are_redrawn() -> None:
    broken = drawing_process.begin_to_draw("svg", '{"mark": 1}')
    svg, png = (drawing_process.begin_to_draw(kind, CHART) for kind in ("svg", "png"))
    assert png() == drawing_process.draw("png", CHART)
    assert svg() == drawing_process.draw("svg", CHART)
    with pytest.raises(ValueError, match="conversion failed"):
        broken()
    assert drawing_process._started is not None
    drawing_process._started._process.kill()  # as on a system that is short of memory
    assert drawing_process.begin_to_draw("svg", CHART)() == drawing_process.draw("svg", CHART)


@pytest.mark.usefixtures("started")
def test_drawing_process_ended_early_is_not_needed() -> None:
    """Ctrl-C ends it like this while a thread may be about to use it. An exception in a thread fails a test."""
    assert drawing_process._started is not None
    drawing_process._started.kill()
    assert drawing_process.begin_to_draw("svg", CHART)() == drawing_process.draw("svg", CHART)


def test_only_answers_with_charts_start_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(drawing_process, "start", lambda: calls.append("started"))
    Path("there.html").touch()
    for arguments in ("analyze -o a.json", "analyze -o there.html", "steps -o steps.html", "analyze --format csv"):
        run([*arguments.split(), str(SAMPLE), "-q"])
    assert calls == []
    run(["analyze", str(SAMPLE), "-q", "-o", "a.html", "-o", "a.svg"])
    assert calls == ["started"]


@pytest.mark.skipif(sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_remains(folder: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "goodput_cli", "analyze", "-", "-q", "-o", "page.html"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text().split())
        (child,) = children.read_text().split()
        process.send_signal(number)
        process.wait(LONG_ENOUGH)
        until(lambda: not _is_running(child))


def _is_running(process: str) -> bool:
    """Return True if a process runs. A process that ended without a wait for it does not."""
    try:
        return " (zombie)" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("kind", "limit", "option"), [(resource.RLIMIT_AS, 8 << 30, "ulimit -v"), (resource.RLIMIT_NOFILE, 12, "ulimit -n")]
)
def test_page_without_the_engine_s_memory_reports_it(tmp_path: Path, kind: int, limit: int, option: str) -> None:
    """Batch systems set such limits. The engine reserves terabytes that it does not use, and aborts without them;
    with too few open files it panics."""

    def analyse(output: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "goodput_cli", "analyze", str(SAMPLE), "-q", "-o", str(tmp_path / output)],
            capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
        )  # fmt: skip

    said = analyse("run.html")
    assert (said.returncode, said.stderr) == (0, "")
    page = (tmp_path / "run.html").read_text()
    assert "charts cannot be drawn" in page
    assert "50.00" in page
    picture = analyse("run.svg")
    assert picture.returncode == GoodputError.exit_code
    assert re.fullmatch(rf"error: charts cannot be drawn: .*{option}.*\ntip: raise the limit\n", picture.stderr)
