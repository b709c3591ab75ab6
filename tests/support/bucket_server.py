"""A bucket on loopback that can fail: Cloud Storage's JSON API as far as reading goes, with faults on order.

    python tests/support/bucket_server.py   prints its port, serves until its standard input ends

Besides the API (listing in pages, metadata, downloads pinned to a generation, ranges; S3's at `/s3`) it takes orders:
PUT /control/object/BUCKET/NAME stores the body; DELETE removes it; POST /control/fault takes a `Fault` as JSON;
POST /control/reset forgets everything; GET /control/log gives what was asked, one string a request.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import google_crc32c

PAGE = 100
"""Objects in a page of a listing."""


@dataclass
class Fault:
    """Failure of requests whose path and query match.

    match: a regular expression. times: how often; -1 forever. after: number of successful requests before. kind:
    `status` (answer with it), `reset` (drop the connection), `cut` (half of the body), `slow` (wait `seconds`), `flip`
    (one wrong byte), `blanks` (`size` of them), `replace` and `delete` (change the object, then continue).
    """

    match: str
    kind: str
    times: int = 1
    after: int = 0
    status: int = 503
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    content: str = ""
    size: int = 0


@dataclass
class State:
    """State of the server: content and generation by bucket and name."""

    buckets: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    generation: int = 1_700_000_000_000_000
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, bucket: str, name: str, content: bytes) -> None:
        self.generation += 1
        self.buckets.setdefault(bucket, {})[name] = (content, self.generation)

    def fault_for(self, request: str) -> Fault | None:
        for fault in self.faults:
            if fault.times == 0 or not re.search(fault.match, request):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            fault.times -= 1
            return fault
        return None


STATE = State()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing: tests read the log by request."""

    def do_GET(self) -> None:
        if self.path == "/control/log":
            return self._json(200, STATE.log)
        request = unquote(self.path)
        with STATE.lock:
            STATE.log.append(f"{request} {self.headers.get('Range', '')}".rstrip())
            fault = STATE.fault_for(request)
        if fault is not None and self._fails(fault):
            return None
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path.startswith("/s3/"):
            return self._amazon(*unquote(url.path).removeprefix("/s3/").partition("/")[::2], query, fault)
        match = re.fullmatch(r"(?:/download)?/storage/v1/b/([^/]+)/o(?:/(.+))?", url.path)
        if match is None:
            return self._error(404, "no such path")
        bucket, name = match[1], match[2]
        if bucket not in STATE.buckets:
            return self._error(404, "The specified bucket does not exist.")
        if name is None:
            return self._list(bucket, query)
        return self._object(bucket, unquote(name), query, fault)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _amazon(self, bucket: str, name: str, query: dict[str, str], fault: Fault | None) -> None:
        """Answer as S3 for the same bucket: an ETag instead of a generation, XML instead of JSON."""
        if bucket not in STATE.buckets:
            return self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>", {})
        held = STATE.buckets[bucket]
        if not name:
            return self._answer(200, _amazon_list(held, query).encode(), {"Content-Type": "application/xml"})
        if name not in held:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
        content, generation = held[name]
        if self.headers.get("If-Match", f'"{generation}"') != f'"{generation}"':
            return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>", {})
        return self._content(content, {"ETag": f'"{generation}"'}, fault)

    def do_PUT(self) -> None:
        bucket, name = unquote(self.path.removeprefix("/control/object/")).split("/", 1)
        STATE.put(bucket, name, self._body())
        self._json(200, STATE.generation)

    def do_DELETE(self) -> None:
        bucket, name = unquote(self.path.removeprefix("/control/object/")).split("/", 1)
        STATE.buckets[bucket].pop(name, None)
        self._json(200, None)

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/control/fault":
            STATE.faults.append(Fault(**json.loads(body)))
        else:
            STATE.buckets.clear()
            STATE.faults.clear()
            STATE.log.clear()
        self._json(200, None)

    def _fails(self, fault: Fault) -> bool:
        """Let the fault happen; False if the request is answered all the same."""
        if fault.kind == "status":
            self._error(fault.status, "as ordered", fault.headers)
            return True
        if fault.kind == "reset":
            self.close_connection = True
            self.connection.close()
            return True
        if fault.kind == "blanks":
            self._answer(200, b" " * fault.size, {})
            return True
        if fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault.kind in ("replace", "delete"):
            name = unquote(urlsplit(self.path).path)
            bucket, key = re.sub(r".*/b/([^/]+)/o/|/s3/([^/]+)/", r"\1\2/", name).split("/", 1)
            with STATE.lock:
                STATE.buckets[bucket].pop(key, None)
                if fault.kind == "replace":
                    STATE.put(bucket, key, fault.content.encode())
        return False

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        after = query.get("pageToken", "")
        prefix = query.get("prefix", "")
        held = STATE.buckets[bucket]
        names = sorted(name for name in held if name.startswith(prefix) and name > after)
        page = names[:PAGE]
        items = [self._metadata(name, *held[name]) for name in page]
        answer: dict[str, Any] = {"items": items} if items else {}
        if len(names) > PAGE:
            answer["nextPageToken"] = page[-1]
        self._json(200, answer)

    def _metadata(self, name: str, content: bytes, generation: int) -> dict[str, str]:
        return {"name": name, "size": str(len(content)), "generation": str(generation)}

    def _object(self, bucket: str, name: str, query: dict[str, str], fault: Fault | None) -> None:
        content, generation = STATE.buckets[bucket].get(name, (b"", 0))
        if not generation or query.get("generation", str(generation)) != str(generation):
            return self._error(404, f"No such object: {bucket}/{name}")
        if query.get("alt") != "media":
            return self._json(200, self._metadata(name, content, generation))
        return self._content(content, {"X-Goog-Generation": str(generation), "X-Goog-Hash": _hashes(content)}, fault)

    def _content(self, content: bytes, headers: dict[str, str], fault: Fault | None) -> None:
        status, part = 200, content
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is not None:
            status, part = 206, content[int(span[1]) : int(span[2]) + 1]
            headers["Content-Range"] = f"bytes {span[1]}-{int(span[1]) + len(part) - 1}/{len(content)}"
        if fault is not None and fault.kind == "flip":
            part = part[:-1] + bytes([part[-1] ^ 1])
        self._answer(status, part, headers, cut=fault is not None and fault.kind == "cut")

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        body = {"error": {"code": status, "message": message, "errors": [{"message": message}]}}
        self._answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _json(self, status: int, value: Any) -> None:
        self._answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.wfile.flush()
        if cut:
            self.close_connection = True


def _amazon_list(held: dict[str, tuple[bytes, int]], query: dict[str, str]) -> str:
    after, prefix = query.get("continuation-token", ""), query.get("prefix", "")
    names = sorted(name for name in held if name.startswith(prefix) and name > after)
    rows = "".join(
        f"<Contents><Key>{quote(name)}</Key><Size>{len(held[name][0])}</Size>"
        f"<ETag>&quot;{held[name][1]}&quot;</ETag></Contents>"
        for name in names[:PAGE]
    )
    more = f"<NextContinuationToken>{escape(names[PAGE - 1])}</NextContinuationToken>" if len(names) > PAGE else ""
    truncated = str(bool(more)).lower()
    return (
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>'
        f"<IsTruncated>{truncated}</IsTruncated>{more}{rows}</ListBucketResult>"
    )


def _hashes(content: bytes) -> str:
    checksum: int = google_crc32c.value(content)
    return "crc32c=" + base64.b64encode(checksum.to_bytes(4, "big")).decode()


class Server(ThreadingHTTPServer):
    """Server for many clients at once that does not wait for them at the end."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected."""


def serve() -> None:
    """Serve until standard input ends: whoever started this process need only go away."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
