"""Set-up that all tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from goodput_cli.report.html import drawing_process

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: the tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_leave = subprocess.Popen.__exit__


def _leave_or_end(process: subprocess.Popen[Any], kind: type[BaseException] | None, *rest: Any) -> None:
    """`with Popen(…)` waits for its process, also when the test has failed: then that may never end."""
    if kind is not None:
        process.kill()
    _leave(process, kind, *rest)


subprocess.Popen.__exit__ = _leave_or_end  # type: ignore[method-assign]

# Machines are shared and noisy: no test may fail because it took long. The examples are the same in every run, so that
# a change is judged by what it changes; GOODPUT_EXPLORE=1 looks for new ones, GOODPUT_EXPLORE=5000 for that many.
_explore = int(os.environ.get("GOODPUT_EXPLORE", "0") or 0)
settings.register_profile(
    "goodput",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not _explore,
    max_examples=max(_explore, 100),
)
settings.load_profile("goodput")
# Hypothesis also draws constants that it finds in the modules loaded so far. Examples would then depend on which tests
# run together, and a full run would hide a failure that the file alone shows. Older versions draw none.
if hasattr(providers, "_get_local_constants"):
    from hypothesis.internal.constants_ast import Constants

    providers._get_local_constants = Constants


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who explores waits as long as it takes."""
    for item in items if _explore else ():
        item.add_marker(pytest.mark.timeout(0))


OF_WHO_RUNS_THEM = ("GOODPUT_", "_GOODPUT_", "GOOGLE_", "GCLOUD_", "AWS_", "STORAGE_EMULATOR_HOST", "NO_COLOR", "CI")
CHECKOUT = Path(__file__).parent.parent
OF_TOOLS = {".hypothesis", ".benchmarks", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
FOR_THE_TESTS = ("GOODPUT_EXPLORE", "GOODPUT_CHROMIUM")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test, and no command that it starts, sees the settings and logins of who runs it; a terminal is 80 wide."""
    for name in [name for name in os.environ if name.startswith(OF_WHO_RUNS_THEM) and name not in FOR_THE_TESTS]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def clean_checkout() -> Iterator[None]:
    """No test leaves anything in the checkout. Of tests that run beside each other, both fail."""
    before = set(os.listdir(CHECKOUT))
    yield
    assert set(os.listdir(CHECKOUT)) - before <= OF_TOOLS


@pytest.fixture(autouse=True)
def at_one_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """`goodput monitor` gives way to the job that it follows: in this process every later test would, for good, and
    wait for whatever else the machine does."""
    monkeypatch.setattr(os, "nice", lambda _: 0)


@pytest.fixture(autouse=True)
def charts_are_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that draws charts is started once for all tests of a process, not in a process for each."""
    monkeypatch.setattr(drawing_process, "start", lambda: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
