"""Set-up that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from goodput_cli.__main__ import GARBAGE_THRESHOLDS
from goodput_cli.report.html import drawing_process

gc.set_threshold(*GARBAGE_THRESHOLDS)  # as in the command

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: the tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_leave = subprocess.Popen.__exit__


def _leave_or_end(process: subprocess.Popen[Any], kind: type[BaseException] | None, *rest: Any) -> None:
    """`with Popen(…)` waits for its process, also when the test has failed: then that may never end."""
    if kind is not None:
        process.kill()
    _leave(process, kind, *rest)


subprocess.Popen.__exit__ = _leave_or_end  # type: ignore[method-assign]

# Machines are shared and noisy, so no test fails because it took long. The examples are the same in every run, so that
# a failure points at the change. GOODPUT_EXPLORE=N draws N new ones for each property.
_explore = int(os.environ.get("GOODPUT_EXPLORE", "0") or 0)
settings.register_profile(
    "goodput",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not _explore,
    max_examples=_explore or 20,
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


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from garbage collection: each search would visit a million objects."""
    gc.collect()
    gc.freeze()


USER_VARIABLES = ("GOODPUT_", "_GOODPUT_", "GOOGLE_", "GCLOUD_", "AWS_", "STORAGE_EMULATOR_HOST", "NO_COLOR", "CI")
CHECKOUT = Path(__file__).parent.parent
OF_TOOLS = {".hypothesis", ".benchmarks", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
TEST_VARIABLES = ("GOODPUT_EXPLORE", "GOODPUT_CHROMIUM")


@pytest.fixture(autouse=True, scope="session")
def isolated_process() -> Iterator[None]:
    """Hide the settings and logins of the user from tests and their commands, and keep work inside this process.

    A terminal is 80 columns wide. `goodput monitor` lowers the priority of its process, which would slow down every
    later test. No file waits for the disk, because no machine crashes. The engine that draws charts starts once per
    process instead of in a process of its own, and draws a chart of many tests once.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(USER_VARIABLES) and name not in TEST_VARIABLES]:
            patch.delenv(name)
        patch.setenv("COLUMNS", "80")
        patch.setattr(os, "nice", lambda _: 0)
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(drawing_process, "start", lambda: None)
        patch.setattr(drawing_process, "_drawn", lru_cache(256)(drawing_process._drawn))
        yield


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty directory. pytest's own keeps a link to the newest one, which takes 3 ms a test."""
    return Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True, scope="module")
def clean_checkout() -> Iterator[None]:
    """Fail the module that leaves a file in the checkout, and those that run at the same time."""
    before = set(os.listdir(CHECKOUT))
    yield
    assert set(os.listdir(CHECKOUT)) - before <= OF_TOOLS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
