"""`gcm:PROJECT`: Google Cloud Monitoring, with `timeSeries.create` over HTTPS.

An update becomes time series with the metric types and labels of ml-goodput-measurement. Only badput sources for
unknown categories are added, so that goodput / (goodput + badput) of its dashboards is our goodput.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.results import WindowRow
from goodput_cli.arrays import F64
from goodput_cli.monitor.snapshot import Snapshot, SnapshotAmount, Update, badput_of, badput_of_window
from goodput_cli.monitor.targets.base import (
    Address,
    MonitorContext,
    TargetFailedError,
    keep_state,
    kept_number,
    load_state,
    state_folder,
)
from goodput_cli.record.queues import UnavailableError
from goodput_cli.record.sinks.http import Identity, RequestRefusedError, metadata, post
from goodput_cli.vocabulary.categories import OVERLAPPED
from goodput_cli.vocabulary.text import iso_of_nine_digits, seconds_text

PREFIX = "compute.googleapis.com/workload"
_RECENT, _BASE, _SPIKE = 100, 1000, 90
"""Numbers of recent and earlier deviations, and the percentile of the recent ones."""
_MOST_LABEL = 1024

Series = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """The workload of the series."""

    location: str
    accelerator: str
    replica: str = "0"
    cluster: str = ""
    prefix: str = PREFIX
    """The prefix of metric types; a different one is used with the resource `generic_task`."""
    totals: bool = True
    windows: bool = True
    step_deviation: bool = True
    slices: bool = True
    """Selection of published series."""


def series_of(snapshot: Snapshot, workload: Workload, end_time: str) -> list[Series]:
    """Return every series of an update, each with one point. end_time: RFC 3339."""
    job, kind = snapshot.analysis.job.name, "generic_task"
    whose = {"location": workload.location, "namespace": job, "job": job, "task_id": workload.replica}
    if workload.prefix == PREFIX:
        kind = "compute.googleapis.com/Workload"
        whose = {"location": workload.location, "workload_id": job, "replica_id": workload.replica}
    return [
        {
            "metric": {"type": f"{workload.prefix}/{name}", "labels": dict(labels)},
            "resource": {"type": kind, "labels": whose},
            "metricKind": "GAUGE",
            "valueType": "INT64" if isinstance(value, int) else "DOUBLE",
            "points": [
                {
                    "interval": {"endTime": end_time},
                    "value": {"int64Value": str(value)} if isinstance(value, int) else {"doubleValue": value},
                }
            ],
        }
        for name, value, labels in _gauges(snapshot, workload)
    ]


_Gauge = tuple[str, float, Mapping[str, str]]
"""Name, value (an int is sent as INT64), labels."""


def _gauges(snapshot: Snapshot, workload: Workload) -> Iterator[_Gauge]:
    common = {"accelerator_type": workload.accelerator}
    if workload.cluster:
        common["cluster_name"] = workload.cluster
    if workload.totals and snapshot.whole:
        yield from _of_job(snapshot, common)
    if workload.step_deviation and len(away := snapshot.deviations[1]):
        yield "step_time_deviation", step_time_deviation(away), common
    if workload.windows:
        for row in () if snapshot.analysis.rolling is None else snapshot.analysis.rolling.rows():
            yield from _of_window(row, snapshot.analysis, common)
    if workload.slices:
        yield from _of_slices(snapshot, workload, common)


def _of_job(snapshot: Snapshot, common: Mapping[str, str]) -> Iterator[_Gauge]:
    analysis, cumulative = snapshot.analysis, {**common, "window_type": "cumulative"}
    if not analysis.goodput_unknown:
        yield "goodput_time", analysis.goodput.seconds, {**common, "goodput_source": "TOTAL"}
    for source, amount in _sources(badput_of(analysis)).items():
        yield "badput_time", amount[0], {**common, "badput_source": source}
    yield "disruptions", analysis.job.disruptions, cumulative
    yield "max_productive_steps", int(analysis.job.kept_range[1]) if analysis.job.kept_range else 0, common
    yield "total_elapsed_time", analysis.window.counted_ns / 1e9, cumulative
    ideal = snapshot.ideal_step_seconds or analysis.steps.ideal_seconds
    if ideal is not None:
        yield "performance", float(ideal), {}


def _of_window(row: WindowRow, analysis: Analysis, common: Mapping[str, str]) -> Iterator[_Gauge]:
    if row.percent is None:
        return
    labels = {**common, "rolling_window_size": seconds_text(row.window_ns)}
    yield "interval_goodput", row.percent, {**labels, "goodput_source": "TOTAL"}
    for source, amount in _sources(badput_of_window(row, analysis)).items():
        yield "interval_badput", amount[1], {**labels, "badput_source": source}


def _of_slices(snapshot: Snapshot, workload: Workload, common: Mapping[str, str]) -> Iterator[_Gauge]:
    analysis = snapshot.analysis
    whole = {**common, "window_type": "CUMULATIVE", "rolling_window_size": "0"}
    shares = {"stepping": analysis.elastic.stepping, "available": analysis.elastic.available}
    for name, share in shares.items() if snapshot.whole and workload.totals else ():
        if share is not None:
            yield f"{name}_slice_efficiency", float(share), whole
    for row in analysis.rolling.rows() if analysis.rolling is not None and workload.windows else ():
        if row.stepping is not None:
            size = {"window_type": "INTERVAL", "rolling_window_size": seconds_text(row.window_ns)}
            yield "stepping_slice_efficiency", float(row.stepping), {**common, **size}


def _sources(amounts: Sequence[SnapshotAmount]) -> dict[str, tuple[float, float]]:
    """Return seconds and percent by `badput_source`, in upper case. Labels that become equal are merged, because two
    points of a series in one request are rejected. Overlapped data loading is not sent, as in the original."""
    sums: dict[str, int] = {}
    for amount in amounts:
        if amount.category != OVERLAPPED:
            name = amount.category if amount.label is None else f"{amount.category}.{amount.label}"
            source = name.upper()[:_MOST_LABEL]
            sums[source] = sums.get(source, 0) + amount.ns
    counted = amounts[0].counted_ns if amounts else 1
    return {source: (ns / 1e9, 100 * ns / counted) for source, ns in sums.items()}


def step_time_deviation(away: F64) -> float:
    """Return the deviation of the last steps (s, in order) from the ideal one: the mean of fewer than 100, otherwise
    the 90th percentile of the last 100, minus the median of the 1000 before if there are that many."""
    if len(away) < _RECENT:
        return float(away.mean())
    spike = float(np.percentile(away[-_RECENT:], _SPIKE))
    if len(away) < _RECENT + _BASE:
        return spike
    return spike - float(np.median(away[-_RECENT - _BASE : -_RECENT]))


ENDPOINT_VARIABLE = "GOODPUT_MONITORING_ENDPOINT"
"""Another server, for tests; it gets no credentials."""
_ENDPOINT = "https://monitoring.googleapis.com"
MOST_SERIES = 200
"""Maximum number of series per request."""
APART_NS = 10 * 10**9
"""Minimum time between two points of a series; the limit is 5 s."""
_LAST_APART_NS = 6 * 10**9
"""Minimum time between the last point and the one before."""
_NOT_NOW = (401, 403, 404)
_UNKNOWN = "UNKNOWN"
_ACCELERATORS = {
    "tpu7x": "TPU-7x",
    "ct6e": "TPU-v6e",
    "ct5p": "TPU-v5p",
    "ct5lp": "TPU-v5e",
    "ct5l": "TPU-v5e",
    "ct4p": "TPU-v4p",
    "ct3p": "TPU-v3",
    "ct3": "TPU-v3",
    "a3-edgegpu": "NVIDIA-H100",
    "a3-highgpu": "NVIDIA-H100",
    "a3-megagpu": "NVIDIA-H100",
    "a3-ultragpu": "NVIDIA-H200",
    "a2": "NVIDIA-A100",
}
"""Accelerators by prefix of the machine type, as in ml-goodput-measurement."""


class CloudMonitoring:
    """Gauges of the whole job: during an outage of the service only the latest values wait, so that only points of a
    curve are lost. clock: ns since 1970 UTC; sleep: waits for the given seconds."""

    def __init__(
        self,
        address: Address,
        place: MonitorContext,
        clock: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._project = address.place
        self._address = address
        self._labels = place.labels
        self._endpoint = os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/")
        self._identity = Identity()
        self._workload: Workload | None = None
        self._clock = clock
        self._sleep = sleep
        self._sent: dict[str, int] = {}
        """The time of the last point by job, ns."""

    def publish(self, update: Update, final: bool) -> None:
        """Publish (see `Target`). Updates that follow too quickly are left out, except the last one. If one job is
        rejected, the others are still sent."""
        failure: TargetFailedError | None = None
        for snapshot in update:
            try:
                self._publish(snapshot, final)
            except TargetFailedError as error:
                failure = failure or error
        self._sent = {one.analysis.job.name: self._sent.get(one.analysis.job.name, 0) for one in update}
        if failure is not None:
            raise failure

    def _publish(self, snapshot: Snapshot, final: bool) -> None:
        """Publish an update of one job. Raises TargetFailedError."""
        try:
            state = self._prepare(snapshot.analysis.job.name)
            if self._in_time(self._sent[snapshot.analysis.job.name], final):
                self._send(snapshot, state)
        except RequestRefusedError as error:
            if error.status == 401:
                self._identity.forget()
            raise TargetFailedError(_reason(error), lasting=error.status in _NOT_NOW, wait=APART_NS / 1e9) from error
        except UnavailableError as error:
            raise TargetFailedError(str(error), lasting=error.lasting, wait=APART_NS / 1e9) from error
        except OSError as error:
            raise TargetFailedError(f"cannot save the state: {error.strerror or error}") from error

    def close(self) -> None:
        """Close (see `Target`)."""

    def _prepare(self, job: str) -> Path:
        """Look up the environment and the last sent update, once; return the path of the saved state. Raises
        Unavailable, OSError, TargetFailedError."""
        self._project = self._project or self._identity.project()
        if self._workload is None:
            self._workload = self._find_workload()
        key = "\0".join((self._project, job, self._workload.replica, self._workload.prefix))
        name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]
        state = state_folder() / f"gcm-{name}.json"
        if not self._sent.get(job):
            self._sent[job] = kept_number(load_state(state), "end_ns", 0)
        return state

    def _find_workload(self) -> Workload:
        given, parameters = self._labels, self._address.parameters
        location = given.get("location") or _of_machine("zone")
        if not location:
            raise TargetFailedError("the zone of this machine is unknown: pass it with --gcm-location", lasting=True)
        return Workload(
            location=location,
            accelerator=given.get("accelerator") or accelerator_of(_of_machine("machine-type")),
            replica=given.get("replica", "0"),
            cluster=given.get("cluster", ""),
            prefix=parameters.get("prefix", PREFIX).rstrip("/"),
            **{name: self._address.switch(name) for name in ("totals", "windows", "step_deviation", "slices")},
        )

    def _in_time(self, last_end: int, final: bool) -> bool:
        """Return True if a point may be sent now; wait for the last one. A clock that was set back does not stop
        sending."""
        since = self._clock() - last_end
        if since < 0:
            return True
        if not final:
            return since >= APART_NS
        if since < _LAST_APART_NS:
            self._sleep((_LAST_APART_NS - since) / 1e9)
        return True

    def _send(self, snapshot: Snapshot, state: Path) -> None:
        assert self._workload is not None
        now, last_end = self._clock(), self._sent[snapshot.analysis.job.name]
        end = now if now > last_end else last_end + APART_NS
        self._sent[snapshot.analysis.job.name] = end
        keep_state(state, {"end_ns": end})  # saved before sending, so that a sent point is never forgotten
        series = series_of(snapshot, self._workload, iso_of_nine_digits(end))
        url = f"{self._endpoint or _ENDPOINT}/v3/projects/{self._project}/timeSeries"
        failure: RequestRefusedError | None = None
        for first in range(0, len(series), MOST_SERIES):
            body = json.dumps({"timeSeries": series[first : first + MOST_SERIES]}).encode()
            token = "" if self._endpoint else self._identity.token()
            try:
                post(url, body, "application/json", token)
            except RequestRefusedError as error:  # the other requests may be valid
                failure = failure or error
        if failure is not None:
            raise failure


def _of_machine(what: str) -> str:
    """Return a value from the metadata server; "" without a server."""
    try:
        return metadata(f"instance/{what}", seconds=1).decode().rsplit("/", 1)[-1]
    except UnavailableError:
        return ""


def accelerator_of(machine: str) -> str:
    """Return the accelerator of a machine type."""
    names = (name for prefix, name in _ACCELERATORS.items() if machine.lower().startswith(prefix))
    return next(names, _UNKNOWN)


def _reason(error: RequestRefusedError) -> str:
    """Return the error message of the server."""
    try:
        said = str(json.loads(error.body)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return str(error)
    return f"{error}: {said[:300]}"
