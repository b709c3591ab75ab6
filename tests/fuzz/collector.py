"""An OpenTelemetry collector that gives a preset answer, byte by byte."""

from __future__ import annotations

import json
import socketserver
import threading
from typing import NoReturn


class Collector(socketserver.ThreadingTCPServer):
    """A collector that listens until the process ends."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answer = b""
        self.wrong = ""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answers(self, answer: bytes) -> None:
        """Set the answer to every later request. The collector closes the connection after it."""
        self.answer = answer

    def complaint(self) -> str:
        """Return the error of a request since the last call, or an empty string."""
        wrong, self.wrong = self.wrong, ""
        return wrong


class _Handler(socketserver.StreamRequestHandler):
    server: Collector
    timeout = 10

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline(65536).strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        try:
            json.loads(self.rfile.read(length), parse_constant=_refused)
        except ValueError as error:
            self.server.wrong = f"a collector got what is no JSON: {error}"
        self.wfile.write(self.server.answer)


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
