"""A Cloud Logging server for tests: gRPC on loopback, in a separate process, controlled through a pipe.

It implements `google.logging.v2.LoggingServiceV2.ListLogEntries`: filters (clauses joined by AND; anything else is
INVALID_ARGUMENT, as a name that escaped from its quotes would be), ascending order, page tokens bound to their filter.
It ends by itself when the pipe closes. `LoggingServer` is the handle for tests.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from concurrent import futures
from typing import Any

from tests.support.server_process import ServerProcess

T0 = 1_767_225_600
"""2026-01-01T00:00:00 UTC, in epoch seconds."""
PROJECT = "test-project"

Entry = dict[str, Any]


class LoggingServer(ServerProcess):
    """Starts the server; use as a context manager. `endpoint` is HOST:PORT."""

    def __init__(self) -> None:
        super().__init__("tests.support.logging_server")

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


def _main() -> None:
    import threading

    service = _Service()
    server, port = _serve(service, 0)
    threading.Thread(target=_watch, args=(service, server, port), daemon=True).start()
    print(port, flush=True)
    for line in sys.stdin:
        print(json.dumps(_obey(service, json.loads(line))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _main()
