"""A server on loopback for data that the monitor sends to Cloud Monitoring, in a separate process. It rejects what
Google's documents describe as rejected; this was not tried with the real service.

python -m tests.monitor.monitoring_server    prints its port

POST /control orders a fault (JSON) or resets it, GET /control returns the received data. It is also the metadata server
of a machine.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from datetime import datetime
from typing import Any

from tests.support.servers import QuietHandler, ServerProcess, serve_until_input_ends

MOST_SERIES, APART_SECONDS, AHEAD_SECONDS, BEHIND_SECONDS = 200, 5.0, 300.0, 25 * 3600.0
TYPES = {
    "goodput_time": ("DOUBLE", {"goodput_source"}),
    "badput_time": ("DOUBLE", {"badput_source"}),
    "disruptions": ("INT64", {"window_type"}),
    "max_productive_steps": ("INT64", set()),
    "total_elapsed_time": ("DOUBLE", {"window_type"}),
    "step_time_deviation": ("DOUBLE", set()),
    "performance": ("DOUBLE", set()),
    "interval_goodput": ("DOUBLE", {"goodput_source", "rolling_window_size"}),
    "interval_badput": ("DOUBLE", {"badput_source", "rolling_window_size"}),
    "stepping_slice_efficiency": ("DOUBLE", {"window_type", "rolling_window_size"}),
    "available_slice_efficiency": ("DOUBLE", {"window_type", "rolling_window_size"}),
}
METADATA = {
    "": "",
    "project/project-id": "meta-project",
    "instance/zone": "projects/1/zones/europe-west4-a",
    "instance/machine-type": "projects/1/machineTypes/ct5p-hightpu-4t",
    "universe/universe-domain": "googleapis.com",
    "instance/service-accounts/default": '{"email": "m@x.iam", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}',
    "instance/service-accounts/default/token": '{"access_token": "t", "expires_in": 3600, "token_type": "Bearer"}',
}
COMMON = {"accelerator_type", "cluster_name"}
RESOURCES = {
    "compute.googleapis.com/Workload": {"location", "workload_id", "replica_id"},
    "generic_task": {"location", "namespace", "job", "task_id"},
}


class Server(ServerProcess):
    """Starter of the server, a context manager."""

    def __init__(self) -> None:
        super().__init__("tests.monitor.monitoring_server")

    def fault(self, kind: str = "", times: int = -1) -> None:
        """Answer `times` requests (-1: all) with a status such as "503", "hang", or "lose" (accepted, but not answered)
        from now on; "": no fault."""
        self._ask({"kind": kind, "times": times})

    def forget(self) -> None:
        """Reset the server to its initial state."""
        self._ask({"forget": True})

    def projects(self) -> list[str]:
        """Return the projects of the received points."""
        return list(self._ask(None)["projects"])

    def points(self) -> list[dict[str, Any]]:
        """Return every accepted point: metric, labels, resource, end (s), value."""
        return list(self._ask(None)["points"])

    def refusals(self) -> list[str]:
        """Return why series were rejected."""
        return list(self._ask(None)["refusals"])

    def requests(self) -> int:
        """Return the number of requests."""
        return int(self._ask(None)["requests"])

    def _ask(self, order: dict[str, Any] | None) -> dict[str, Any]:
        body = None if order is None else json.dumps(order).encode()
        with urllib.request.urlopen(f"{self.url}/control", data=body, timeout=120) as answer:
            content: dict[str, Any] = json.loads(answer.read())
            return content


class _State:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self.points: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.last: dict[str, float] = {}
        self.kinds: dict[str, str] = {}
        self.requests = 0
        self.projects: set[str] = set()
        self.fault: dict[str, Any] = {"kind": "", "times": 0}

    def take(self, series: list[dict[str, Any]]) -> list[str]:
        """Keep valid series; return why the others are rejected."""
        if len(series) > MOST_SERIES:
            return [f"{len(series)} series in one request"]
        refused, seen = [], set()
        for one in series:
            key = json.dumps([one["metric"], one["resource"]], sort_keys=True)
            why = "twice in one request" if key in seen else self._wrong(one, key)
            seen.add(key)
            if why:
                refused.append(f"{one['metric']['type']}: {why}")
            else:
                self._keep(one, key)
        return refused

    def _wrong(self, one: dict[str, Any], key: str) -> str:
        metric, resource, points = one["metric"], one["resource"], one["points"]
        labels = {**metric.get("labels", {}), **resource["labels"]}
        if one.get("metricKind") != "GAUGE" or len(points) != 1:
            return "not one point of a gauge"
        if not all(isinstance(text, str) and len(text) <= 1024 for text in labels.values()):
            return "a label that is no text"
        return self._wrong_type(one) or self._wrong_time(points[0]["interval"], key)

    def _wrong_type(self, one: dict[str, Any]) -> str:
        prefix, _, name = one["metric"]["type"].rpartition("/")
        resource, labels = one["resource"], set(one["metric"].get("labels", {}))
        if RESOURCES.get(resource["type"]) != set(resource["labels"]):
            return "an unknown resource, or other labels than it has"
        (held,) = one["points"][0]["value"]
        if {"DOUBLE": "doubleValue", "INT64": "int64Value"}.get(one["valueType"]) != held:
            return "a value of another type"
        number = one["points"][0]["value"][held]
        if isinstance(number, str) != (held == "int64Value"):
            return "a value that is written wrongly"
        if prefix == "compute.googleapis.com/workload":
            kind, own = TYPES.get(name, ("", set()))
            if kind != one["valueType"]:
                return "an unknown metric, or of another type"
            return "" if own <= labels <= own | COMMON or (name == "performance" and not labels) else "other labels"
        if not prefix.startswith("custom.googleapis.com"):
            return "an unknown metric"
        return "" if self.kinds.setdefault(one["metric"]["type"], one["valueType"]) == one["valueType"] else "a type"

    def _wrong_time(self, interval: dict[str, str], key: str) -> str:
        end = _seconds(interval["endTime"])
        if "startTime" in interval and _seconds(interval["startTime"]) != end:
            return "a start that is not the end: it is a gauge"
        if not -BEHIND_SECONDS < end - time.time() < AHEAD_SECONDS:
            return "an end too far from now"
        last = self.last.get(key)
        if last is not None and end <= last:
            return "an end that is not after the last one"
        return "sooner after the last one than 5 s" if last is not None and end - last < APART_SECONDS else ""

    def _keep(self, one: dict[str, Any], key: str) -> None:
        (value,) = one["points"][0]["value"].values()
        end = _seconds(one["points"][0]["interval"]["endTime"])
        self.last[key] = end
        self.points.append(
            {
                "metric": one["metric"]["type"],
                "labels": one["metric"].get("labels", {}),
                "resource": one["resource"],
                "end": end,
                "value": float(value),
            }
        )


def _seconds(text: str) -> float:
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")


class _Handler(QuietHandler):
    state: _State

    def do_GET(self) -> None:  # noqa: N802
        state = self.state
        if not self.path.startswith("/control"):
            self._metadata(self.path.partition("?")[0].removeprefix("/computeMetadata/v1").strip("/"))
            return
        with state.lock:
            self.answer(
                200,
                {
                    "points": state.points,
                    "refusals": state.refusals,
                    "requests": state.requests,
                    "projects": sorted(state.projects),
                },
            )

    def do_POST(self) -> None:  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state = self.state
        with state.lock:
            if self.path == "/control":
                self._order(body)
                return
            kind = self._fault()
            state.projects.add(self.path.split("/")[3])
            refused = [] if kind not in ("", "lose") else state.take(body["timeSeries"])
            state.refusals += refused
        if kind == "hang":
            time.sleep(600)
        elif kind == "lose":
            self.connection.close()
        elif kind or not self.path.startswith("/v3/projects/"):
            self.answer(int(kind or 404), {"error": {"message": "out of order"}})
        elif refused:
            self.answer(400, {"error": {"message": "; ".join(refused)[:1000]}})
        else:
            self.answer(200, {})

    def _metadata(self, what: str) -> None:
        """Send a value of Google's metadata server."""
        body = METADATA.get(what, "")
        kind = "application/json" if body.startswith("{") else "text/plain"
        self.answer(200 if what in METADATA else 404, body, kind, Metadata_Flavor="Google")

    def _order(self, order: dict[str, Any]) -> None:
        if order.get("forget"):
            self.state.forget()
        else:
            self.state.fault = order
        self.answer(200, {})

    def _fault(self) -> str:
        self.state.requests += 1
        fault = self.state.fault
        if fault["times"] == 0:
            return ""
        fault["times"] -= fault["times"] > 0
        return str(fault["kind"])


if __name__ == "__main__":
    serve_until_input_ends(_Handler, state=_State)
