"""A fleet that all tests here read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goodput_cli.fleet.passes.read
from tests.support.fleets import make_fleet


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of 6 ordinary jobs and one of each odd kind."""
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    make_fleet(folder, 6)
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The documents that are read, and by `account` the jobs that are accounted for."""
    names: list[str] = []
    original = goodput_cli.fleet.passes.read.read_one

    def counted(task: Any, document: Any, *more: Any) -> Any:
        names.append(document.name)
        return original(task, document, *more)

    monkeypatch.setattr(goodput_cli.fleet.passes.read, "read_one", counted)
    monkeypatch.setattr("goodput_cli.fleet.passes.read.read_one", counted)
    monkeypatch.setattr("goodput_cli.fleet.store._RACY_NS", 0)
    return names
