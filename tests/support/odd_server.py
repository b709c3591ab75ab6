"""A server on loopback with faulty behavior, selected by the first part of the path, in a separate process.

    python -m tests.support.odd_server [CERTIFICATE KEY]   prints its port, serves until its standard input ends

`/moved-STATUS-SCHEME-PORT[-GET]/` leads to another port (-GET: only that method). Any other path is answered well: with
an empty object, or that of MLflow's server with one run of 30 steps of 2 s. `GET /log` returns the requests.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.server_process import QuietHandler, ServerProcess, serve_until_input_ends

BEGIN = 1_772_359_200_000
_ABOUT = {"run_id": "a1", "status": "FINISHED", "start_time": BEGIN, "end_time": BEGIN + 61_000}
_RUN: dict[str, Any] = {"info": _ABOUT, "data": {"metrics": [{"key": "loss"}]}}
_ROWS = [{"key": "loss", "timestamp": BEGIN + 2000 * n, "step": n} for n in range(1, 31)]
ODD_RUNS: dict[str, Any] = {
    "info-list": {**_RUN, "info": []},
    "info-null": {**_RUN, "info": None},
    "info-text": {**_RUN, "info": "a1"},
    "data-text": {**_RUN, "data": "loss"},
    "metrics-null": {**_RUN, "data": {"metrics": None}},
    "metrics-number": {**_RUN, "data": {"metrics": 7}},
    "metrics-names": {**_RUN, "data": {"metrics": ["loss"]}},
    "run-text": "a1",
}
_RAW = {
    "no-status": b"HTTP/banana\r\n\r\n",
    "no-http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n",
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
    "many-headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(150)) + b"\r\n{}",
}
RAW = tuple(_RAW)
ENDLESS_BYTES = 200 << 20
"""Length at which the endless answer ends, for clients that read all of it."""


class OddServer(ServerProcess):
    """The server, for as long as the context lasts."""

    def __init__(self, certificate: Sequence[Path] = ()) -> None:
        super().__init__("tests.support.odd_server", *map(str, certificate))

    def log(self) -> list[list[str]]:
        """Return the requests: method, path, account; for an endless answer also the bytes that were read."""
        with urllib.request.urlopen(f"{self.url}/log", timeout=60) as answer:
            found: list[list[str]] = json.load(answer)
            return found


class Handler(QuietHandler):
    """One connection."""

    asked: list[list[str]]

    def do_GET(self) -> None:  # noqa: N802
        if self.path == "/log":
            self.answer(200, json.dumps(self.asked))
            return
        self._do()

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._do()

    def _do(self) -> None:
        self.asked.append([self.command, self.path, self.headers.get("Authorization", "")])
        kind, _, rest = self.path[1:].partition("/")
        moved = kind.startswith("moved") and (self.command == "GET" or not kind.endswith("GET"))
        if kind in _RAW:
            self.wfile.write(_RAW[kind])
        elif moved:
            _, status, scheme, port, *_ = kind.split("-")
            self.answer(int(status), "", Location=f"{scheme}://127.0.0.1:{port}/there/{rest}?token=SECRET")
        elif kind.startswith("endless"):
            self._endless(int(kind.partition("-")[2] or 200))
        else:
            self.answer(200, self._of_mlflow(kind) if "/mlflow/" in self.path else {})

    def _endless(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()
        sent = 0
        try:
            while sent < ENDLESS_BYTES:
                self.wfile.write(b"x" * 65536)
                sent += 65536
        except OSError:
            pass
        self.asked.append(["taken", str(sent), ""])

    def _of_mlflow(self, kind: str) -> dict[str, Any]:
        if "get-history" in self.path:
            rows: list[Any] = _ROWS
            if parse_qs(urlsplit(self.path).query).get("metric_key") != ["loss"]:
                rows = []
            if kind == "large":
                rows = [{**row, "tag": "x" * 350_000} for row in rows]
            return {"metrics": 7 if kind == "rows-number" else rows}
        if "experiments" in self.path:
            return {"experiments": [{"experiment_id": "0", "name": "llm"}]}
        return {"runs": [ODD_RUNS.get(kind, _RUN)]}


if __name__ == "__main__":
    Handler.asked = []
    serve_until_input_ends(Handler, *sys.argv[1:])
