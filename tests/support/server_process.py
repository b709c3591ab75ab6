"""Servers on loopback in separate processes: starting one, and serving HTTP.

A server is a module that is run as a program: it prints its port, and serves until its standard input ends, so it stops
with the test run however that ends.
"""

from __future__ import annotations

import itertools
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

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
