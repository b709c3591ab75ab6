"""Where one signs in, on loopback: Google's tokens at `/token`, Amazon's STS at `/`; below `/refused` it says no, and
below `/silent` nothing at all.

    python tests/support/sign_in_server.py   prints its port, serves until its standard input ends
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/trainer</Arn><UserId>U</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
_EXPIRED = """<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code></Error>
</ErrorResponse>"""


@contextmanager
def sign_in_server() -> Iterator[str]:
    """The address of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.stdin.close()


class Handler(BaseHTTPRequestHandler):
    """Answers by the path."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        refused, google = self.path.startswith("/refused"), self.path.endswith("/token")
        if self.path.startswith("/silent"):
            time.sleep(60)
        if google and refused:
            self._answer(400, json.dumps({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}))
        elif google:
            self._answer(200, json.dumps({"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}))
        else:
            self._answer(*((403, _EXPIRED) if refused else (200, _IDENTITY)))

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body.startswith("{") else "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
