"""Servers on loopback in separate processes: starting one, serving HTTP, and three servers for tests.

A server is a module that is run as a program: it prints its port, and serves until its standard input ends, so it
stops with the test run however that ends. `python -m tests.support.servers KIND ...` serves one of these: `odd
[CERTIFICATE KEY]`, HTTP with faulty behavior, selected by the first part of the path; `comments FILE`, GitHub's
comments of pull request 7 of o/r, kept in a file, for the token `t0ken`; `logging`, Cloud Logging over gRPC,
controlled through a pipe.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

_ROOT = Path(__file__).parent.parent.parent


class ServerProcess:
    """A server, for as long as the context lasts. module: its name. arguments: those of the program."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", module, *arguments]

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True, cwd=_ROOT)
        self.port = int(self.read_line())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=120)  # its standard input ends, and with it the process

    def renew(self) -> Self:
        """Another server in the same process, which has received nothing: requests that come late reach the old one."""
        self.write_line("another")
        self.port = int(self.read_line())
        return self

    @property
    def url(self) -> str:
        """Return the address of an HTTP server."""
        return f"http://127.0.0.1:{self.port}"

    def write_line(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read_line(self) -> str:
        """Read a line from its standard output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, made in a folder."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", made], check=True, capture_output=True)
    return made, key


class QuietHandler(BaseHTTPRequestHandler):
    """Handler that answers requests without logging."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""

    def answer(
        self, status: int, content: dict[str, Any] | str, kind: str = "application/json", **headers: str
    ) -> None:
        """A JSON object, or text of a kind."""
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


def serve_until_input_ends(
    handler: type[BaseHTTPRequestHandler], certificate: str = "", key: str = "", *, state: Callable[[], object] = object
) -> None:
    """Print the port and serve; with TLS where there is a certificate. Each line of standard input asks for another
    server. state: makes the `state` of a server's handlers."""
    for _ in itertools.chain([""], sys.stdin):
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"state": state()}))
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)


# --- A server on loopback with faulty behavior.

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
        super().__init__("tests.support.servers", "odd", *map(str, certificate))

    def log(self) -> list[list[str]]:
        """Return the requests: method, path, account; for an endless answer also the bytes that were read."""
        with urllib.request.urlopen(f"{self.url}/log", timeout=60) as answer:
            found: list[list[str]] = json.load(answer)
            return found


class OddHandler(QuietHandler):
    """One connection."""

    asked: list[list[str]]

    def do_GET(self) -> None:
        if self.path == "/log":
            self.answer(200, json.dumps(self.asked))
            return
        self._do()

    def do_POST(self) -> None:
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


def serve_oddly(*certificate: str) -> None:
    """Serve until standard input ends. certificate: its file and that of its key, for TLS."""
    OddHandler.asked = []
    serve_until_input_ends(OddHandler, *certificate)


# --- GitHub's comments of pull request 7 of o/r on loopback.

_COMMENTS = "/repos/o/r/issues/7/comments"
_PAGE = "https://github.com/o/r/pull/7#issuecomment-"
_BOT = {"type": "Bot", "login": "github-actions[bot]"}


@contextmanager
def github_server(kept: Path) -> Iterator[str]:
    """Yield the address of a server in a separate process. kept: the file of the comments, a list."""
    with ServerProcess("tests.support.servers", "comments", str(kept)) as server:
        yield server.url


class CommentsHandler(QuietHandler):
    """Handler that lists, writes and changes comments. As for a token of the runner, it does not return the owner of
    the token."""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == _COMMENTS and self._may():
            query = parse_qs(asked.query)
            size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
            self.answer(200, json.dumps(_kept()[size * (page - 1) : size * page]))
        elif asked.path != _COMMENTS:
            self.answer(403, {"message": "Resource not accessible by integration"})

    def do_POST(self) -> None:
        given = self._given()
        if self.path == _COMMENTS and self._may():
            comments = _kept()
            number = len(comments) + 1
            _keep([*comments, {"id": number, "user": _BOT, **given}])
            self.answer(201, {"html_url": f"{_PAGE}{number}"})

    def do_PATCH(self) -> None:
        given, number = self._given(), int(self.path.removeprefix("/repos/o/r/issues/comments/"))
        if self._may():
            _keep([{**one, **given} if one["id"] == number else one for one in _kept()])
            self.answer(200, {"html_url": f"{_PAGE}{number}"})

    def _given(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _may(self) -> bool:
        if self.headers["Authorization"] == "Bearer t0ken":
            return True
        self.answer(403, {"message": "Resource not accessible by integration"})
        return False


def _kept() -> list[dict[str, Any]]:
    return list(json.loads(Path(sys.argv[2]).read_text()))


def _keep(comments: list[dict[str, Any]]) -> None:
    Path(sys.argv[2]).write_text(json.dumps(comments))


# --- A Cloud Logging server for tests.

T0 = 1_767_225_600
"""2026-01-01T00:00:00 UTC, in epoch seconds."""
PROJECT = "test-project"

Entry = dict[str, Any]


class LoggingServer(ServerProcess):
    """Starts the server; use as a context manager. `endpoint` is HOST:PORT."""

    def __init__(self) -> None:
        super().__init__("tests.support.servers", "logging")

    @property
    def endpoint(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def add(self, *entries: Entry) -> None:
        """Entries as `entry` makes them."""
        self._ask({"add": entries})

    def reset(self) -> None:
        """Delete all entries and faults."""
        self._ask({"reset": True})

    def fault(self, code: str, *, after: int = 0, times: int = 1, details: str = "", seconds: float = 0) -> None:
        """From `after` more requests on, fail `times` requests: a gRPC code, SLOW, GARBAGE (a cut answer), DROP (the
        connection) or FORGET (page tokens)."""
        self._ask({"fault": {"code": code, "after": after, "times": times, "details": details, "seconds": seconds}})

    def requests(self) -> list[dict[str, Any]]:
        """The requests since the last call: filter, size, token."""
        taken: list[dict[str, Any]] = self._ask({"requests": True})["requests"]
        return taken

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        self.write_line(json.dumps(command))
        answer: dict[str, Any] = json.loads(self.read_line())
        return answer


def entry(payload: dict[str, Any], seconds: float, number: int | str = 0, **more: Any) -> Entry:
    """An entry written `seconds` after T0. more: log, received (seconds after T0), labels, text."""
    ns = T0 * 10**9 + round(seconds * 10**9)
    received = T0 * 10**9 + round(more.pop("received", seconds) * 10**9)
    return {"payload": payload, "ns": ns, "received": received, "id": f"id{number}", "log": "goodput_j", **more}


def steps(count: int, job: str = "j", start: int = 0, **more: Any) -> list[Entry]:
    """A job start and steps, one a second, as the recorder logs them."""
    lines = [{"job_name": job, "job_start_time": T0 + start + 0.0}]
    lines += [{"job_name": job, "step_count": at, "step_start_time": T0 + start + 1.5 + at} for at in range(count)]
    return [entry(line, start + at + 0.25, f"{job}-{start}-{at}", **more) for at, line in enumerate(lines)]


# The rest runs in the server's process.

_CLAUSE = re.compile(r'\s*([A-Za-z_][\w.]*)\s*(>=|<=|=|<|>)\s*"((?:[^"\\]|\\.)*)"\s*(?:(AND)\b|$)', re.DOTALL)
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse_filter(text: str) -> list[tuple[str, str, str]] | None:
    """(field, operator, value) of each clause; None if that is not all there is."""
    clauses, at = [], 0
    while at < len(text):
        match = _CLAUSE.match(text, at)
        if match is None:
            return None
        clauses.append((match[1], match[2], _unescape(match[3])))
        at = match.end()
        if match[4] is None:
            break
    return clauses if at == len(text) else None


def _unescape(text: str) -> str:
    unicode = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"\\(.)", lambda match: _UNESCAPED.get(match[1], match[1]), unicode, flags=re.DOTALL)


def _ns(text: str) -> int:
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    return round(moment.timestamp()) * 10**9 + int(fraction.ljust(9, "0") or 0)


def _is_met(held: Entry, clause: tuple[str, str, str]) -> bool:
    field, operator, value = clause
    if field == "logName":
        return bool(f"projects/{PROJECT}/logs/{held['log']}" == value)
    if field in ("timestamp", "receiveTimestamp"):
        left: int = held["ns" if field == "timestamp" else "received"]
        right = _ns(value)
        return left >= right if operator == ">=" else left < right
    if field == "jsonPayload.job_name":
        return str(held["payload"].get("job_name", "")).lower() == value.lower()
    return False


class _Service:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.faults: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.found: dict[str, list[Any]] = {}
        self.restart = False
        self.forgotten = ""

    def reset(self) -> None:
        self.entries.clear()
        self.faults.clear()
        self.found.clear()
        self.requests.clear()
        self.forgotten = ""

    def list_entries(self, request: Any, context: Any) -> bytes:
        self.requests.append({"filter": request.filter, "size": request.page_size, "token": request.page_token})
        cut = self._fail(request, context)
        if request.page_token and request.page_token == self.forgotten:
            self._abort(context, "INVALID_ARGUMENT", "page_token is invalid")
        page = self._page(request, context).SerializeToString()
        return bytes(page[: len(page) // 2] if cut else page)

    def _fail(self, request: Any, context: Any) -> bool:
        for fault in self.faults:
            if fault["after"] > 0:
                fault["after"] -= 1
            elif fault["times"] > 0:
                fault["times"] -= 1
                return self._break(fault, request, context)
        return False

    def _break(self, fault: dict[str, Any], request: Any, context: Any) -> bool:
        if fault["code"] == "GARBAGE":
            return True
        if fault["code"] == "SLOW":
            time.sleep(fault["seconds"])
        elif fault["code"] == "FORGET":
            self.forgotten = request.page_token
        elif fault["code"] == "DROP":
            self.restart = True
            time.sleep(5)
        else:
            self._abort(context, fault["code"], fault["details"])
        return False

    def _abort(self, context: Any, code: str, details: str) -> None:
        import grpc

        context.abort(grpc.StatusCode[code], details)

    def _page(self, request: Any, context: Any) -> Any:
        from google.cloud.logging_v2.types import ListLogEntriesResponse

        token, _, offset = request.page_token.rpartition("|")
        if request.order_by != "timestamp asc" or (request.page_token and token != request.filter):
            self._abort(context, "INVALID_ARGUMENT", "the order or the token does not fit")
        found = self._found(request.filter, context)
        start = int(offset or 0)
        end = start + min(request.page_size or 50, 1000)
        token = f"{request.filter}|{end}" if end < len(found) else ""
        return ListLogEntriesResponse.pb()(entries=found[start:end], next_page_token=token)

    def _found(self, text: str, context: Any) -> list[Any]:
        """The entries that a filter finds, in order, as messages."""
        clauses = parse_filter(text)
        if clauses is None:
            self._abort(context, "INVALID_ARGUMENT", f"cannot be understood: {text}")
            raise AssertionError
        if text not in self.found:
            found = [held for held in self.entries if all(_is_met(held, clause) for clause in clauses)]
            found.sort(key=lambda held: (held["ns"], held["id"]))
            self.found[text] = [_message(held) for held in found]
        return self.found[text]


def _message(held: Entry) -> Any:
    from google.cloud.logging_v2.types import LogEntry

    made = LogEntry.pb()(log_name=f"projects/{PROJECT}/logs/{held['log']}", insert_id=held["id"], severity=200)
    made.timestamp.FromNanoseconds(held["ns"])
    made.receive_timestamp.FromNanoseconds(held["received"])
    made.resource.type = "global"
    made.resource.labels["project_id"] = PROJECT
    if "text" in held:
        made.text_payload = held["text"]
    else:
        made.json_payload.update(held["payload"])
    return made


def _serve(service: _Service, port: int) -> tuple[Any, int]:
    import grpc
    from google.cloud.logging_v2.types import ListLogEntriesRequest

    method = grpc.unary_unary_rpc_method_handler(
        service.list_entries, request_deserializer=ListLogEntriesRequest.pb().FromString, response_serializer=bytes
    )
    handler = grpc.method_handlers_generic_handler("google.logging.v2.LoggingServiceV2", {"ListLogEntries": method})
    server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((handler,))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def _watch(service: _Service, server: Any, port: int) -> None:
    """Break connections when a fault requires it."""
    while True:
        time.sleep(0.05)
        if service.restart:
            service.restart = False
            server.stop(0).wait()
            server, _ = _serve(service, port)


def _obey(service: _Service, command: dict[str, Any]) -> dict[str, Any]:
    if "reset" in command:
        service.reset()
    if "add" in command:
        service.entries += command["add"]
        service.found.clear()
    if "fault" in command:
        service.faults.append(command["fault"])
    taken = list(service.requests)
    if "requests" in command:
        service.requests.clear()
    return {"requests": taken if "requests" in command else []}


def _serve_entries() -> None:
    import threading

    service = _Service()
    server, port = _serve(service, 0)
    threading.Thread(target=_watch, args=(service, server, port), daemon=True).start()
    print(port, flush=True)
    for line in sys.stdin:
        print(json.dumps(_obey(service, json.loads(line))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    if kind == "odd":
        serve_oddly(*arguments)
    elif kind == "comments":
        serve_until_input_ends(CommentsHandler)
    else:
        _serve_entries()
