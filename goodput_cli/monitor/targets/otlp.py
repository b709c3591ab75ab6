"""`otlp:URL`: an update as gauges of OpenTelemetry, a resource a job, to a collector's HTTP receiver (`POST
URL/v1/metrics`, as JSON).

The names and labels are those that Prometheus gets. A header that the collector wants is taken from the environment, as
OpenTelemetry's own exporters do: OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from goodput_cli import __version__
from goodput_cli.analysis.sheet import Family
from goodput_cli.monitor.snapshot import Snapshot, Update
from goodput_cli.monitor.targets.base import Address, MonitorContext, TargetFailed
from goodput_cli.monitor.targets.http import families_of
from goodput_cli.record.queues import Unavailable
from goodput_cli.record.sinks.http import post
from goodput_cli.vocabulary.text import safe

HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
_PATH = "/v1/metrics"


class OpenTelemetry:
    """Sends each update as it is: gauges, with the moment of the answer as their time."""

    def __init__(self, address: Address, place: MonitorContext) -> None:  # noqa: ARG002 - a target's signature
        parts = address.url
        path = parts.path.rstrip("/")
        self._url = parts._replace(path=path if path.endswith(_PATH) else path + _PATH).geturl()
        self._host = parts.hostname or ""

    def publish(self, update: Update, final: bool) -> None:  # noqa: ARG002 - each update is a point
        """See `Target`."""
        body = json.dumps({"resourceMetrics": [resource_metrics(one) for one in update]}, allow_nan=False).encode()
        try:
            post(self._url, body, "application/json", "", headers())
        except Unavailable as error:
            raise TargetFailed(f"the collector at {safe(self._host)}: {error}", lasting=error.lasting) from error

    def close(self) -> None:
        """See `Target`."""


def headers() -> dict[str, str]:
    """`name=value` with commas between, percent-encoded."""
    pairs = (part.partition("=") for part in os.environ.get(HEADERS_VARIABLE, "").split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, equals, value in pairs if equals and name.strip()}


def resource_metrics(snapshot: Snapshot) -> dict[str, Any]:
    """A job's part of an `ExportMetricsServiceRequest` in the JSON of OTLP, where 64-bit integers are texts."""
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
