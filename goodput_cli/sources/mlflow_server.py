"""A tracking server of MLflow, by its REST interface: `mlflow+https://HOST[/PREFIX][?experiment=NAME]`.

Runs and their metrics become the same lines of JSON as those of a database (`sources.databases`). It only asks; account
or token are those of MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `…_PASSWORD`.
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
"""Between two bytes of an answer, and for all of one."""
_MOST_BYTES = 1 << 28
_PAGE = 1000
_HISTORY = 25_000
"""Rows in one answer; what servers allow."""
_MOST_PAGES = 100_000
_MACHINE = "system/"
_SEARCH = "runs/search"
Part = TypeVar("Part")
_RUN_FIELDS = {"run_name": "name", "status": "status", "start_time": "start_time", "end_time": "end_time",
               "lifecycle_stage": "lifecycle_stage"}  # fmt: skip


class TrackingServerSource:
    """Reads `mlflow+http://…` and `mlflow+https://…`."""

    def read(self, uri: str, context: ReadContext, /) -> Iterator[Batch]:
        """See `Source.read`."""
        return _batches(_Server(uri), context)


class _Server:
    """A server, and which of its experiments are meant."""

    def __init__(self, uri: str) -> None:
        try:
            parts = urlsplit(uri)
            named = bool(parts.hostname) and parts.port != 0
        except ValueError:
            named = False
        if not named:
            scheme = uri.partition(":")[0]
            raise UsageError(f"{scheme}://: no host; use an address such as {scheme}://mlflow.example.com:5000")
        asked = parse_qs(parts.query)
        if set(asked) - {"experiment"}:
            raise UsageError(f"{parts.scheme}://{parts.hostname}: only ?experiment=NAME is allowed after the host")
        self.experiments = asked.get("experiment", [])
        place = parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")
        self.name = f"{parts.scheme}://{place}"
        self._base = f"{parts.scheme.partition('+')[2]}://{place}/api/2.0/mlflow"
        self._headers = {"Content-Type": "application/json", **_account(parts.username, parts.password)}

    def pages(self, path: str, question: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
        """What all pages of an answer hold under a key. A question without a body is asked with GET."""
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
        """A part of an answer, empty where it is left out. Raises SourceError for one of another kind."""
        part = answer.get(key, kind())
        if not isinstance(part, kind):
            raise SourceError(f"{self.name}: {path}: {key!r} in the answer is not as expected from MLflow; {_ADVICE}")
        return part

    def rows(self, path: str, answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        """A part that is a list of objects. Raises SourceError."""
        return [self.part(path, {key: row}, key, dict) for row in self.part(path, answer, key, list)]

    def _ask(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        from goodput_cli.record.queues import Unavailable
        from goodput_cli.record.sinks.http import ask

        url = f"{self._base}/{path}"
        data: bytes | None = orjson.dumps(question)
        if path == "metrics/get-history":
            url += "?" + "&".join(f"{name}={quote(str(value), safe='')}" for name, value in question.items())
            data = None
        try:
            answer = ask(url, data, self._headers, seconds=_SECONDS, most=_MOST_BYTES)
        except Unavailable as error:
            raise SourceError(f"{self.name}: {path}: {error}; {_ADVICE}") from error
        if answer.status != HTTPStatus.OK:
            raise SourceError(f"{self.name}: {path}: HTTP {answer.status}; {_ADVICE}")
        if not answer.whole:
            limits = f"{_MOST_BYTES >> 20} MiB and {_SECONDS} s"
            raise SourceError(f"{self.name}: {path}: the answer is cut off or longer than {limits}; {_ADVICE}")
        try:
            found = orjson.loads(answer.data)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise SourceError(f"{self.name}: {path}: the answer is not a JSON object of MLflow; {_ADVICE}")
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


def _batches(server: _Server, context: ReadContext) -> Iterator[RawBatch]:
    """A batch a run: itself, then the rows of its metrics."""
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
                values = {"timestamp": row.get("timestamp"), "step": row.get("step", 0)}  # 0 is left out by some
                lines.append(orjson.dumps({RUN_KEY: run_id, "key": name, **values}))
        data = b"\n".join(lines) + b"\n"
        context.advance(len(data))
        yield RawBatch(server.name, first_line, data)
        first_line += len(lines)


def _runs(server: _Server) -> Iterator[dict[str, Any]]:
    found = [
        (str(one.get("experiment_id", "")), str(one.get("name", "")))
        for one in server.pages("experiments/search", {"max_results": _PAGE}, "experiments")
    ]
    missing = [name for name in server.experiments if name not in {known for _, known in found}]
    if missing:
        known = ", ".join(name for _, name in found[:8])
        raise SourceError(f"{server.name}: no such experiment {missing[0]}; available: {known}")
    ids = [number for number, name in found if not server.experiments or name in server.experiments]
    for number in ids:  # one by one: servers limit how many may be asked for at once
        yield from server.pages(_SEARCH, {"experiment_ids": [number], "max_results": _PAGE}, "runs")


def _metrics(server: _Server, run: Mapping[str, Any]) -> list[str]:
    """The metrics of a run; of those of the machine one, a sign of life."""
    listed = server.rows(_SEARCH, server.part(_SEARCH, run, "data", dict), "metrics")
    names = sorted({str(one["key"]) for one in listed if one.get("key")})
    machine = [name for name in names if name.startswith(_MACHINE)]
    return [name for name in names if not name.startswith(_MACHINE)] + machine[:1]
