"""The endpoint: both formats, health, and clients that are slow or many."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.api.watch import WatchedLog
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets import http
from goodput_cli.monitor.targets.base import Health, MonitorContext, parse_target
from tests.monitor.monitors import OPEN_METRICS, ended, get, samples, value


@pytest.fixture
def snapshot(folder: Path) -> Snapshot:
    """Return the snapshot of a job that ended."""
    watched = WatchedLog(str(ended(folder / "run.jsonl")))
    watched.look()
    analysis = watched.analysis(None)
    watched.close()
    return Snapshot(analysis, analysis.window.end_ns + 5 * 10**9)


@pytest.fixture
def health() -> Health:
    """Return the health of a monitor that polls every minute."""
    return Health(60)


@pytest.fixture
def printed() -> list[str]:
    """Return the messages of the endpoint."""
    return []


@pytest.fixture
def endpoint(health: Health, snapshot: Snapshot, printed: list[str]) -> Iterator[http.Endpoint]:
    """Return an endpoint with one update."""
    endpoint = http.Endpoint(parse_target("http://:0"), MonitorContext(health, 60, say=printed.append))
    endpoint.publish((snapshot,), False)
    yield endpoint
    endpoint.close()


@pytest.fixture
def url(endpoint: http.Endpoint, printed: list[str]) -> str:
    """Return its address."""
    return printed[0].removeprefix("Metrics at ").removesuffix("/metrics")


def test_both_formats_have_the_same_metrics(url: str) -> None:
    _, open_text, open_type = get(f"{url}/metrics", OPEN_METRICS)
    _, text, plain_type = get(f"{url}/metrics?x=1")
    assert open_type.startswith("application/openmetrics-text; version=1.0.0")
    assert plain_type.startswith("text/plain; version=0.0.4")
    assert samples(open_text) == samples(text)
    assert value(samples(text), "goodput_seconds_since_last_event") == 5
    assert value(samples(text), "goodput_seconds_since_last_step") == 15
    assert {dict(pairs).get("job_name") for _, pairs in samples(text)} == {"job"}


def test_health_is_that_of_the_last_poll(url: str, health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get(f"{url}/healthz")[0] == 503  # nothing was polled yet
    health.looked(failing=False)
    assert get(f"{url}/healthz")[:2] == (200, "ok\n")
    assert health._looked is not None
    health._looked -= 181  # a source that hangs: three intervals of a minute
    assert get(f"{url}/healthz")[0] == 503
    assert get(f"{url}/other")[0] == 404


def test_slow_or_excess_clients_delay_nothing(
    endpoint: http.Endpoint, url: str, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SECONDS", 0.3)
    host, port = url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=120) for _ in range(http.CONNECTIONS)]
    for client in slow:
        client.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
    endpoint.publish((snapshot,), False)  # no update waits for them
    one_too_many = socket.create_connection((host, int(port)), timeout=120)
    assert _ended(one_too_many)
    assert all(_ended(client) for client in slow)
    assert get(f"{url}/metrics")[0] == 200


def _ended(client: socket.socket) -> bool:
    """Return True if the connection ends without a response."""
    with client:
        try:
            return client.recv(1) == b""
        except ConnectionResetError:
            return True
