"""A server on loopback for data that the recorder sends: Cloud Logging's `entries:write` and Cloud Storage's uploads,
in a separate process, with faults on demand. It ends when its standard input does.

python -m tests.record.record_server [CERTIFICATE KEY]   prints its port

In addition to the two APIs: POST /control sets the fault (JSON) or resets it, GET /control returns the received data.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.servers import QuietHandler, ServerProcess, serve_until_input_ends


class Server(ServerProcess):
    """Starter of the server, a context manager. `url` is http://127.0.0.1:PORT, or https with a certificate."""

    def __init__(self, certificate: Path | None = None, key: Path | None = None) -> None:
        super().__init__("tests.record.record_server", *(str(path) for path in (certificate, key) if path is not None))
        self._scheme = "http" if certificate is None else "https"
        self._context = None if certificate is None else ssl.create_default_context(cafile=str(certificate))

    @property
    def url(self) -> str:
        """Return its address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def fault(self, kind: str = "", status: int = 503, times: int = -1, refuse: str = "") -> None:
        """Make `times` requests (-1: all) fail from now on. kind: "status" (answer with it), "hang" (no answer), "lose"
        (accept it, then drop the connection), "refuse" (reject the entries whose JSON contains a text); "": no
        fault."""
        body = json.dumps({"kind": kind, "status": status, "times": times, "refuse": refuse}).encode()
        self._ask(body)

    def received(self) -> dict[str, Any]:
        """Return the received data. entries: those of Cloud Logging (an insertId once), in order of arrival; objects:
        bodies by name, as text; requests: their number; bodies: each request for entries, without them."""
        answer: dict[str, Any] = json.loads(self._ask(None))
        return answer

    def payloads(self) -> list[dict[str, Any]]:
        """Return the lines in Cloud Logging."""
        return [entry["jsonPayload"] for entry in self.received()["entries"]]

    def _ask(self, body: bytes | None) -> bytes:
        with urllib.request.urlopen(f"{self.url}/control", data=body, timeout=120, context=self._context) as answer:
            content: bytes = answer.read()
            return content


class _State:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entries: dict[tuple[str, str], dict[str, Any]] = {}
        self.objects: dict[str, str] = {}
        self.bodies: list[dict[str, Any]] = []
        self.requests = 0
        self.fault: dict[str, Any] = {"kind": "", "times": 0}

    def take_fault(self) -> dict[str, Any]:
        with self.lock:
            self.requests += 1
            fault = self.fault
            if not fault["kind"] or fault["times"] == 0:
                return {"kind": ""}
            fault["times"] -= fault["times"] > 0
            return dict(fault)

    def write(self, body: dict[str, Any], refuse: str) -> list[int]:
        """Keep entries; return the positions of rejected ones."""
        with self.lock:
            entries = body.pop("entries")
            self.bodies.append(body)
            refused = [at for at, entry in enumerate(entries) if refuse and refuse in json.dumps(entry)]
            for at, entry in enumerate(entries):
                if at not in refused:
                    self.entries.setdefault((entry["insertId"], entry["timestamp"]), entry)
            return refused


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    state: _State

    def do_GET(self) -> None:  # noqa: N802
        state = self.state
        with state.lock:
            self.answer(
                200,
                {
                    "entries": list(state.entries.values()),
                    "objects": state.objects,
                    "requests": state.requests,
                    "bodies": state.bodies,
                },
            )

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/control":
            with self.state.lock:
                self.state.fault = json.loads(body)
            self.answer(200, {})
            return
        fault = self.state.take_fault()
        if fault["kind"] == "hang":
            time.sleep(600)
        elif fault["kind"] == "status":
            self.answer(fault["status"], {"error": {"code": fault["status"]}})
        elif self.path.startswith("/upload/"):
            self._upload(body, fault)
        else:
            self._write(json.loads(body), fault)

    def _write(self, body: dict[str, Any], fault: dict[str, Any]) -> None:
        refused = self.state.write(body, fault.get("refuse", ""))
        if fault["kind"] == "lose":
            self.close_connection = True
            self.connection.close()
        elif refused:
            errors = {str(at): {"code": 3, "message": "no"} for at in refused}
            self.answer(400, {"error": {"code": 400, "details": [{"@type": "x", "logEntryErrors": errors}]}})
        else:
            self.answer(200, {})

    def _upload(self, body: bytes, fault: dict[str, Any]) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        name = f"{unquote(parts.path.split('/')[-2])}/{query['name'][0]}"
        with self.state.lock:
            exists = name in self.state.objects
            if not exists:
                self.state.objects[name] = body.decode()
        if fault["kind"] == "lose":
            self.close_connection = True
            self.connection.close()
        elif exists and query.get("ifGenerationMatch") == ["0"]:
            self.answer(412, {"error": {"code": 412}})
        else:
            self.answer(200, {"name": name})


if __name__ == "__main__":
    serve_until_input_ends(_Handler, *sys.argv[1:], state=_State)
