"""A tracking server of MLflow, with its REST interface: `mlflow+https://HOST[/PREFIX][?experiment=NAME]`.

Runs and their metrics become the same lines of JSON as those of a database (`sources.databases`). It only reads.
Account or token are those of MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and
`…_PASSWORD`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

import orjson

from goodput_cli.errors import SourceError, UsageError
from goodput_cli.sources.base import Batch, RawBatch, ReadContext
from goodput_cli.sources.layouts import RUN_KEY

_SECONDS = 60
"""Maximum seconds between two bytes of a response, and for all of it."""
_MOST_BYTES = 1 << 28
_PAGE = 1000
_HISTORY = 25_000
"""Rows per response, which servers limit."""
_MOST_PAGES = 100_000
_MACHINE = "system/"
_SEARCH = "runs/search"
Part = TypeVar("Part")
_RUN_FIELDS = {"run_name": "name", "status": "status", "start_time": "start_time", "end_time": "end_time",
               "lifecycle_stage": "lifecycle_stage"}  # fmt: skip


class TrackingServerSource:
    """Source of `mlflow+http://…` and `mlflow+https://…`."""

    def read(self, uri: str, context: ReadContext, /) -> Iterator[Batch]:
        """Read as in `Source.read`."""
        return _batches(_MlflowServer(uri), context)


class _MlflowServer:
    """A server, and the experiments to read."""

    def __init__(self, uri: str) -> None:
        try:
            parts = urlsplit(uri)
            named = bool(parts.hostname) and parts.port != 0
        except ValueError:
            named = False
        if not named:
            scheme = uri.partition(":")[0]
            raise UsageError(f"{scheme}://: no host", tip=f"use an address such as {scheme}://mlflow.example.com:5000")
        asked = parse_qs(parts.query)
        if set(asked) - {"experiment"}:
            raise UsageError(f"{parts.scheme}://{parts.hostname}: only ?experiment=NAME is allowed after the host")
        self.experiments = asked.get("experiment", [])
        place = parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")
        self.name = f"{parts.scheme}://{place}"
        self._base = f"{parts.scheme.partition('+')[2]}://{place}/api/2.0/mlflow"
        self._headers = {"Content-Type": "application/json", **_account(parts.username, parts.password)}

    def pages(self, path: str, question: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
        """Yield the values of a key in all pages of a response. A query without a body uses GET."""
        token = ""
        for _ in range(_MOST_PAGES):
            answer = self._ask(path, {**question, **({"page_token": token} if token else {})})
            yield from self.rows(path, answer, key)
            following = answer.get("next_page_token")
            if not isinstance(following, str) or not following or following == token:
                return
            token = following
        raise SourceError(f"{self.name}: {path} has too many pages")

    def part(self, path: str, answer: Mapping[str, Any], key: str, kind: type[Part]) -> Part:
        """Return a part of a response, empty if it is missing. Raises SourceError for one of another type."""
        part = answer.get(key, kind())
        if not isinstance(part, kind):
            raise SourceError(f"{self.name}: {path}: {key!r} in the answer is not as expected from MLflow", tip=_ADVICE)
        return part

    def rows(self, path: str, answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        """Return a part that is a list of objects. Raises SourceError."""
        return [self.part(path, {key: row}, key, dict) for row in self.part(path, answer, key, list)]

    def _ask(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        from goodput_cli.record.queues import UnavailableError
        from goodput_cli.record.sinks.http import ask

        url = f"{self._base}/{path}"
        data: bytes | None = orjson.dumps(question)
        if path == "metrics/get-history":
            url += "?" + "&".join(f"{name}={quote(str(value), safe='')}" for name, value in question.items())
            data = None
        try:
            answer = ask(url, data, self._headers, seconds=_SECONDS, most=_MOST_BYTES)
        except UnavailableError as error:
            raise SourceError(f"{self.name}: {path}: {error}", tip=_ADVICE) from error
        if answer.status != HTTPStatus.OK:
            raise SourceError(f"{self.name}: {path}: HTTP {answer.status}", tip=_ADVICE)
        if not answer.whole:
            limits = f"{_MOST_BYTES >> 20} MiB and {_SECONDS} s"
            raise SourceError(f"{self.name}: {path}: the answer is cut off or longer than {limits}", tip=_ADVICE)
        try:
            found = orjson.loads(answer.data)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise SourceError(f"{self.name}: {path}: the answer is not a JSON object of MLflow", tip=_ADVICE)
        return found


_ADVICE = "check the address of the MLflow server, and set MLFLOW_TRACKING_TOKEN if it needs one"


def _account(name: str | None, password: str | None) -> dict[str, str]:
    from goodput_cli.record.sinks.http import basic

    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    name = unquote(name or "") or os.environ.get("MLFLOW_TRACKING_USERNAME")
    password = unquote(password or "") or os.environ.get("MLFLOW_TRACKING_PASSWORD")
    if name and password:
        return {"Authorization": basic(name, password)}
    return {"Authorization": f"Bearer {token}"} if token else {}


def _batches(server: _MlflowServer, context: ReadContext) -> Iterator[RawBatch]:
    """Yield a batch per run: the run, then the rows of its metrics."""
    first_line = 1
    for run in _runs(server):
        info = server.part(_SEARCH, run, "info", dict)
        run_id = str(info.get("run_id") or info.get("run_uuid") or "")
        if not run_id:
            continue
        about = {ours: info[theirs] for theirs, ours in _RUN_FIELDS.items() if info.get(theirs) is not None}
        lines = [orjson.dumps({RUN_KEY: run_id, **about})]
        for name in _metrics(server, run):
            question = {"run_id": run_id, "metric_key": name, "max_results": _HISTORY}
            for row in server.pages("metrics/get-history", question, "metrics"):
                values = {"timestamp": row.get("timestamp"), "step": row.get("step", 0)}  # some servers omit 0
                lines.append(orjson.dumps({RUN_KEY: run_id, "key": name, **values}))
        data = b"\n".join(lines) + b"\n"
        context.advance(len(data))
        yield RawBatch(server.name, first_line, data)
        first_line += len(lines)


def _runs(server: _MlflowServer) -> Iterator[dict[str, Any]]:
    found = [
        (str(one.get("experiment_id", "")), str(one.get("name", "")))
        for one in server.pages("experiments/search", {"max_results": _PAGE}, "experiments")
    ]
    missing = [name for name in server.experiments if name not in {known for _, known in found}]
    if missing:
        known = ", ".join(name for _, name in found[:8])
        raise SourceError(f"{server.name}: no such experiment {missing[0]}; available: {known}")
    ids = [number for number, name in found if not server.experiments or name in server.experiments]
    for number in ids:  # one by one, because servers limit the number of metrics per query
        yield from server.pages(_SEARCH, {"experiment_ids": [number], "max_results": _PAGE}, "runs")


def _metrics(server: _MlflowServer, run: Mapping[str, Any]) -> list[str]:
    """Return the metrics of a run; of the system metrics only one, as activity."""
    listed = server.rows(_SEARCH, server.part(_SEARCH, run, "data", dict), "metrics")
    names = sorted({str(one["key"]) for one in listed if one.get("key")})
    machine = [name for name in names if name.startswith(_MACHINE)]
    return [name for name in names if not name.startswith(_MACHINE)] + machine[:1]
