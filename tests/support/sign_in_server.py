"""Where one signs in, on loopback: Google's tokens at `/token`, Amazon's STS at `/`; below `/refused` it says no, and
below `/silent` nothing at all.

    python -m tests.support.sign_in_server   prints its port, serves until its standard input ends
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.server_process import QuietHandler, ServerProcess, serve_until_input_ends

_IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/trainer</Arn><UserId>U</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
_EXPIRED = """<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code></Error>
</ErrorResponse>"""


@contextmanager
def sign_in_server() -> Iterator[str]:
    """The address of a server in a process of its own."""
    with ServerProcess("tests.support.sign_in_server") as server:
        yield server.url


class Handler(QuietHandler):
    """Answers by the path."""

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        refused, google = self.path.startswith("/refused"), self.path.endswith("/token")
        if self.path.startswith("/silent"):
            time.sleep(60)
        if google and refused:
            self.answer(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
        elif google:
            self.answer(200, {"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"})
        else:
            self.answer(*((403, _EXPIRED) if refused else (200, _IDENTITY)), "text/xml")


if __name__ == "__main__":
    serve_until_input_ends(Handler)
