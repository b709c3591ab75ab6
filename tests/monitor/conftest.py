"""Fixtures of the tests of the monitor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor.monitoring_server import Server


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """Start the server process of all tests."""
    with Server() as running:
        yield running


@pytest.fixture
def server(one_server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return Cloud Monitoring on loopback without received points, without a metadata server, and with a folder for
    state."""
    one_server.renew()
    monkeypatch.setenv("GOODPUT_MONITORING_ENDPOINT", one_server.url)
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return one_server
