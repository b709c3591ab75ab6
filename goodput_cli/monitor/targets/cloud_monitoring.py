"""`gcm:PROJECT`: Google Cloud Monitoring, by `timeSeries.create` over HTTPS."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.monitor.state import keep_state, load_state, state_folder
from goodput_cli.monitor.targets.base import Address, MonitorContext, TargetFailed
from goodput_cli.monitor.targets.gcm_series import PREFIX, Series, Workload, series_of
from goodput_cli.record.sinks.http import Identity, Refused, metadata, post
from goodput_cli.record.workers import Unavailable
from goodput_cli.vocabulary.text import iso_of_nine_digits

ENDPOINT_VARIABLE = "GOODPUT_MONITORING_ENDPOINT"
"""Another server, for tests; it is not told who we are."""
_ENDPOINT = "https://monitoring.googleapis.com"
MOST_SERIES = 200
"""In one request."""
APART_NS = 10 * 10**9
"""Between two points of a series; the limit is 5 s."""
_LAST_APART_NS = 6 * 10**9
"""Between the last point and the one before."""
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
"""By the beginning of the machine type, as in ml-goodput-measurement."""


class CloudMonitoring:
    """Gauges of the whole job: while the service is down only the newest values wait, and nothing is lost but points of
    a curve. clock: ns since 1970 UTC; sleep: waits so many seconds."""

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
        self._state: Path | None = None
        self._last_end = 0

    def publish(self, snapshot: Snapshot, final: bool) -> None:
        """See `Target`. Updates that come too soon after one another are left out, but not the last one."""
        try:
            self._prepare(snapshot.analysis.job.name)
            if not self._in_time(final):
                return
            self._send(snapshot)
        except Refused as error:
            if error.status == 401:
                self._identity.forget()
            raise TargetFailed(_reason(error), lasting=error.status in _NOT_NOW, wait=APART_NS / 1e9) from error
        except Unavailable as error:
            raise TargetFailed(str(error), lasting=error.lasting, wait=APART_NS / 1e9) from error
        except OSError as error:
            raise TargetFailed(f"the state cannot be kept: {error.strerror or error}") from error

    def close(self) -> None:
        """See `Target`."""

    def _prepare(self, job: str) -> None:
        """Find out, once, where this runs and what was sent before. Raises Unavailable, OSError, TargetFailed."""
        self._project = self._project or self._identity.project()
        if self._workload is None:
            self._workload = self._find_workload()
        if self._state is None:
            key = "\0".join((self._project, job, self._workload.replica, self._workload.prefix))
            name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]
            self._state = state_folder() / f"gcm-{name}.json"
            self._last_end = int(load_state(self._state).get("end_ns", 0))

    def _find_workload(self) -> Workload:
        given, parameters = self._labels, self._address.parameters
        location = given.get("location") or _of_machine("zone")
        if not location:
            raise TargetFailed("the zone of this machine is not known: name it with --gcm-location", lasting=True)
        return Workload(
            location=location,
            accelerator=given.get("accelerator") or accelerator_of(_of_machine("machine-type")),
            replica=given.get("replica", "0"),
            cluster=given.get("cluster", ""),
            prefix=parameters.get("prefix", PREFIX).rstrip("/"),
            totals=self._address.switch("totals"),
            windows=self._address.switch("windows"),
            step_deviation=self._address.switch("step_deviation"),
            slices=self._address.switch("slices"),
        )

    def _in_time(self, final: bool) -> bool:
        """Whether a point may be sent now; the last one is waited for. A clock that was set back stops nothing."""
        since = self._clock() - self._last_end
        if since < 0:
            return True
        if not final:
            return since >= APART_NS
        if since < _LAST_APART_NS:
            self._sleep((_LAST_APART_NS - since) / 1e9)
        return True

    def _send(self, snapshot: Snapshot) -> None:
        assert self._workload is not None
        assert self._state is not None
        now = self._clock()
        end = now if now > self._last_end else self._last_end + APART_NS
        self._last_end = end
        keep_state(self._state, {"end_ns": end})  # before it is sent: what was sent is never forgotten
        series = series_of(snapshot, self._workload, iso_of_nine_digits(end))
        failure: Refused | None = None
        for first in range(0, len(series), MOST_SERIES):
            try:
                self._post(series[first : first + MOST_SERIES])
            except Refused as error:  # what the others hold may be fine
                failure = failure or error
        if failure is not None:
            raise failure

    def _post(self, series: list[Series]) -> None:
        token = "" if self._endpoint else self._identity.token()
        url = f"{self._endpoint or _ENDPOINT}/v3/projects/{self._project}/timeSeries"
        post(url, json.dumps({"timeSeries": series}).encode(), "application/json", token)


def _of_machine(what: str) -> str:
    """What the metadata server says; "" where there is none."""
    try:
        return metadata(f"instance/{what}", seconds=1).decode().rsplit("/", 1)[-1]
    except Unavailable:
        return ""


def accelerator_of(machine: str) -> str:
    """The accelerator of a machine type."""
    names = (name for prefix, name in _ACCELERATORS.items() if machine.lower().startswith(prefix))
    return next(names, _UNKNOWN)


def _reason(error: Refused) -> str:
    """What the server says, in its own words."""
    try:
        said = str(json.loads(error.body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return str(error)
    return f"{error}: {said[:300]}"
