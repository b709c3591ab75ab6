"""`http://HOST:PORT`: the metrics of the last update for Prometheus, and whether the monitor is well.

A scrape never starts an analysis, and one that reads slowly delays no update: each connection has a thread of its own,
for five seconds at the most.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from goodput_cli.monitor.health import Health
from goodput_cli.monitor.metrics import health_text, snapshot_text
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.targets.base import Address, MonitorContext, host_and_port

CONNECTIONS = 16
SECONDS = 5.0
"""For one connection, from its first byte to its last."""
_OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Endpoint:
    """`GET /metrics` and `GET /healthz`."""

    def __init__(self, address: Address, place: MonitorContext) -> None:
        self._server = _Server(host_and_port(address.place, address.text), place)
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        place.say(f"Metrics at http://{shown}:{port}/metrics")

    def publish(self, snapshot: Snapshot, final: bool) -> None:  # noqa: ARG002 - the last one stays until the end
        """See `Target`."""
        self._server.page = snapshot_text(snapshot), snapshot.analysis.job.name

    def close(self) -> None:
        """See `Target`."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, where: tuple[str, int], place: MonitorContext) -> None:
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self.health: Health = place.health
        self.page: tuple[str, str | None] = ("", place.job_name)
        """The text of the last update, and the job's name."""
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(where, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the connection; one too many is closed at once."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, for a limited time."""
        limit = threading.Timer(SECONDS, _cut, (request,))
        limit.daemon = True
        limit.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone away, or took too long."""


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "goodput"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of its base
        """Nothing: scrapes are many."""

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            text, job_name = self.server.page
            wanted = _OPEN_METRICS if "application/openmetrics-text" in self.headers.get("Accept", "") else _TEXT
            self._answer(200, wanted, text + health_text(self.server.health, job_name))
        elif path == "/healthz":
            well = self.server.health.is_well()
            self._answer(200 if well else 503, _TEXT, "ok\n" if well else "the sources were not read for long\n")
        else:
            self._answer(404, _TEXT, "there are /metrics and /healthz\n")

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: int, content_type: str, text: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
