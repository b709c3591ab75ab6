"""`--publish otlp:URL`: the data sent to a collector of OpenTelemetry."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from goodput_cli.monitor.targets.base import Health, MonitorContext, open_target, parse_target

PRIMER = Path(__file__).parents[2] / "sample_logs" / "primer-50-percent.jsonl"


class Collector(ThreadingHTTPServer):
    """An HTTP receiver: the posted data, by path, with its headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, dict[str, str], dict[str, Any]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, dict(self.headers.items()), body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_update_becomes_gauges(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1")
    target = f"otlp:http://127.0.0.1:{collector.server_address[1]}"
    asked = ["--reference-step-time", "120", "--updates", "1", "-q"]
    assert run(["monitor", str(PRIMER), "--publish", target, *asked]) == 0
    (path, headers, body), *_ = collector.got
    assert path == "/v1/metrics"
    assert (headers["Content-Type"], headers["Api-Key"], headers["X"]) == ("application/json", "a b", "1")
    (resource,) = body["resourceMetrics"]
    assert {"key": "job_name", "value": {"stringValue": "goodput-primer"}} in resource["resource"]["attributes"]
    (scope,) = resource["scopeMetrics"]
    metrics = {one["name"]: one for one in scope["metrics"]}
    (ratio,) = metrics["goodput_ratio"]["gauge"]["dataPoints"]
    assert ratio["asDouble"] == 0.5
    assert ratio["attributes"] == []
    assert ratio["timeUnixNano"].isdigit()
    points = metrics["goodput_category_seconds"]["gauge"]["dataPoints"]
    assert {"key": "category", "value": {"stringValue": "productive"}} in points[0]["attributes"]


def test_each_job_is_a_resource(collector: Collector, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(PRIMER.read_bytes().replace(b"goodput-primer", name.encode()))
    target = f"otlp:http://127.0.0.1:{collector.server_address[1]}"
    assert run(["monitor", str(tmp_path), "--publish", target, "--updates", "1", "-q"]) == 0
    (_, _, body), *_ = collector.got
    assert [one["resource"]["attributes"][1]["value"]["stringValue"] for one in body["resourceMetrics"]] == ["a", "b"]


@pytest.mark.parametrize("place", ["localhost:4318", "grpc://x:4317"])
def test_invalid_url_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="otlp: expected a URL"):
        open_target(parse_target(f"otlp:{place}"), MonitorContext(Health(60), 60))
