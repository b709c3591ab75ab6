"""Metrics over HTTP: the metrics of `goodput monitor` in addition to those of a report (docs/monitoring.md lists them),
and their two targets.

`http://HOST:PORT`: the metrics of the last update for Prometheus, and the health of the monitor. A scrape never starts
an analysis, and a slow reader delays no update: each connection has a separate thread, for at most five seconds.

`otlp:URL`: an update as gauges of OpenTelemetry, one resource per job, to a collector's HTTP receiver (`POST
URL/v1/metrics`, as JSON), with the same names and labels. Headers for the collector come from the environment, as in
OpenTelemetry's own exporters: OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from goodput_cli import __version__
from goodput_cli.analysis.goodput.document import AnalysisDocument
from goodput_cli.analysis.results import Rolling
from goodput_cli.analysis.sheet import Family, Labels
from goodput_cli.monitor.snapshot import Snapshot, Update
from goodput_cli.monitor.targets.base import Address, Health, MonitorContext, TargetFailedError, host_and_port
from goodput_cli.record.queues import UnavailableError
from goodput_cli.record.sinks.http import post
from goodput_cli.report.openmetrics import END, exposition, families
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import exact, safe, seconds_text


def update_text(update: Update) -> str:
    """Return the metrics of an update, without the end marker of the text."""
    return exposition(*(({"job_name": one.shown}, families_of(one)) for one in update))


def families_of(snapshot: Snapshot) -> list[Family]:
    """Return the metrics of a job."""
    whole = families(AnalysisDocument(snapshot.analysis)) if snapshot.whole else iter(())
    return [*whole, *_of_windows(snapshot.analysis.rolling), *_of_now(snapshot)]


def health_text(health: Health, job_name: str | None) -> str:
    """Return the metrics of the monitor itself, and the end marker of the text. job_name: the only job; None for
    several."""
    return exposition(({} if job_name is None else {"job_name": job_name}, _of_monitor(health))) + END


def only_job(update: Update) -> str | None:
    """Return the name of the job in labels, if there is only one."""
    return update[0].shown if len(update) == 1 else None


def _of_windows(rolling: Rolling | None) -> Iterator[Family]:
    ratios: list[tuple[Labels, str]] = []
    amounts: list[tuple[Labels, str]] = []
    least: list[tuple[Labels, str]] = []
    most: list[tuple[Labels, str]] = []
    for row in () if rolling is None else rolling.rows():
        window = {"window": seconds_text(row.window_ns)}
        seconds: dict[tuple[str, str], int] = {}
        if row.productive_ns is not None:
            counted = row.end_ns - row.start_ns - row.excluded_ns
            if counted:
                ratios.append((window, exact(float(Fraction(row.productive_ns, counted)))))
            seconds = {(Category.PRODUCTIVE.id, ""): row.productive_ns}
        elif row.at_least_percent is not None and row.at_most_percent is not None:
            least.append((window, exact(row.at_least_percent / 100)))
            most.append((window, exact(row.at_most_percent / 100)))
        for part in row.badput:
            if row.is_bounded and part.category == Category.SLOWDOWN.id:
                continue
            key = part.category, safe(part.label or "")
            seconds[key] = seconds.get(key, 0) + part.ns
        amounts += [
            (window | {"category": category, "label": label}, seconds_text(ns))
            for (category, label), ns in seconds.items()
        ]
    yield Family(
        "goodput_rolling_ratio", "Productive share of the rolling window (label `window`, in seconds).", ratios
    )
    for name, samples in (("least", least), ("most", most)):
        meaning = (
            f"Productive share of the rolling window is at {name} this value; the log does not determine it exactly."
        )
        yield Family(f"goodput_rolling_at_{name}_ratio", meaning, samples)
    yield Family("goodput_rolling_category_seconds", "Time in the rolling window by category.", amounts)


def _of_now(snapshot: Snapshot) -> Iterator[Family]:
    """Return the seconds since the last event and the last step, where a hang appears first; never negative, for any
    clock."""
    now = max(snapshot.at_ns, snapshot.last_event_ns)
    ages = {"event": snapshot.last_event_ns, "step": snapshot.last_step_ns}
    for name, last in ages.items():
        samples: list[tuple[Labels, str]] = [] if last is None else [({}, seconds_text(now - last))]
        yield Family(
            f"goodput_seconds_since_last_{name}",
            f"Seconds between the last {name} and the latest read of the log.",
            samples,
        )
    yield Family("goodput_job_ended", "1 after an accepted clean end.", [({}, str(int(snapshot.ended)))])


def _of_monitor(health: Health) -> Iterator[Family]:
    failing, looked_at, targets = health.state()
    looks: list[tuple[Labels, str]] = [] if looked_at is None else [({}, exact(round(looked_at, 3)))]
    yield Family("goodput_monitor_source_failing", "1 while a source cannot be read.", [({}, str(int(failing)))])
    yield Family(
        "goodput_monitor_last_look_timestamp_seconds",
        "Time when all sources could last be read, in seconds since 1970 UTC.",
        looks,
    )
    yield Family(
        "goodput_monitor_last_success_timestamp_seconds",
        "Time of the target's last successful update, in seconds since 1970 UTC.",
        [({"target": name}, exact(round(at, 3))) for name, (at, _) in targets.items() if at is not None],
    )
    yield Family(
        "goodput_monitor_failures",
        "Updates that the target failed to accept.",
        [({"target": name}, str(failures)) for name, (_, failures) in targets.items()],
    )


CONNECTIONS = 16
SECONDS = 5.0
"""Time limit of one connection, from its first byte to its last."""
_OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Endpoint:
    """HTTP server for `GET /metrics` and `GET /healthz`."""

    def __init__(self, address: Address, place: MonitorContext) -> None:
        self._server = _MetricsServer(host_and_port(address.place, address.text), place)
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        place.say(f"Metrics at http://{shown}:{port}/metrics")

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - the last one stays until the end
        """Publish (see `Target`)."""
        self._server.page = update_text(update), only_job(update)

    def close(self) -> None:
        """Close (see `Target`)."""
        self._server.shutdown()
        self._server.server_close()


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, where: tuple[str, int], place: MonitorContext) -> None:
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self.health: Health = place.health
        self.page: tuple[str, str | None] = ("", place.job_name)
        """The text of the last update, and the name of the only job."""
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(where, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection; close one beyond the limit at once."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer within the time limit."""
        limit = threading.Timer(SECONDS, _cut, (request,))
        limit.daemon = True
        limit.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            limit.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: the client has disconnected, or was too slow."""


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _MetricsServer
    server_version = "goodput"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature of its base
        """Log nothing: scrapes are frequent."""

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            text, job_name = self.server.page
            wanted = _OPEN_METRICS if "application/openmetrics-text" in self.headers.get("Accept", "") else _TEXT
            self._answer(200, wanted, text + health_text(self.server.health, job_name))
        elif path == "/healthz":
            well = self.server.health.is_well()
            self._answer(200 if well else 503, _TEXT, "ok\n" if well else "the sources have not been read recently\n")
        else:
            self._answer(404, _TEXT, "not found; use /metrics or /healthz\n")

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: int, content_type: str, text: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
_PATH = "/v1/metrics"


class OpenTelemetry:
    """Sender of each update as gauges, with the time of the analysis."""

    def __init__(self, address: Address, place: MonitorContext) -> None:  # noqa: ARG002 - a target's signature
        parts = address.url
        path = parts.path.rstrip("/")
        self._url = parts._replace(path=path if path.endswith(_PATH) else path + _PATH).geturl()
        self._host = parts.hostname or ""

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - each update is a point
        """Publish (see `Target`)."""
        body = json.dumps({"resourceMetrics": [resource_metrics(one) for one in update]}, allow_nan=False).encode()
        try:
            post(self._url, body, "application/json", "", headers())
        except UnavailableError as error:
            raise TargetFailedError(f"the collector at {safe(self._host)}: {error}", lasting=error.lasting) from error

    def close(self) -> None:
        """Close (see `Target`)."""


def headers() -> dict[str, str]:
    """Return the headers in `name=value` pairs separated by commas, percent-encoded."""
    pairs = (part.partition("=") for part in os.environ.get(HEADERS_VARIABLE, "").split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, equals, value in pairs if equals and name.strip()}


def resource_metrics(snapshot: Snapshot) -> dict[str, Any]:
    """Return a job's part of an `ExportMetricsServiceRequest` in the JSON of OTLP, in which 64-bit integers are
    strings."""
    time = str(snapshot.at_ns)
    job = {"service.name": "goodput", "job_name": snapshot.shown}
    metrics = list(_metrics(families_of(snapshot), time))
    scope = {"scope": {"name": "goodput_cli", "version": __version__}, "metrics": metrics}
    return {"resource": {"attributes": _attributes(job)}, "scopeMetrics": [scope]}


def _metrics(families: Iterable[Family], time: str) -> Iterator[dict[str, Any]]:
    for family in families:
        points = [
            {"attributes": _attributes(labels), "timeUnixNano": time, "asDouble": float(value)}
            for labels, value in family.samples
        ]
        if points:
            yield {"name": family.name, "description": family.meaning, "gauge": {"dataPoints": points}}


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]
