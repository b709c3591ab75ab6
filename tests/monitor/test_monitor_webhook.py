"""`--publish webhook:URL`: one message when a threshold is violated, one when it recovers, to a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from goodput_cli.monitor.targets.base import Health, MonitorContext, open_target, parse_target


class Chat(ThreadingHTTPServer):
    """Receiver of messages; `status` is its response."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.texts: list[str] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/services/secret"


class _Handler(BaseHTTPRequestHandler):
    server: Chat

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.status == 200:
            self.server.texts.append(body["text"])
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Chat]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = Chat()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def log(path: Path, steps: int, job: str = "j") -> Path:
    """Write a job with 100 s of start-up, steps of 10 s, and a clean end."""
    starts = [{"job_name": job, "step_count": n, "step_start_time": 1.7e9 + 100 + 10 * n} for n in range(steps)]
    end = {"job_name": job, "job_end_time": 1.7e9 + 100 + 10 * steps}
    lines = [{"job_name": job, "job_start_time": 1.7e9}, *starts, end]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def publish(path: Path, chat: Chat, grace: int = 60) -> int:
    """Publish one update of a monitor; return its exit code. grace: time (s) of retries after a rejection."""
    asked = ["--publish", f"webhook:{chat.url}", "--fail-if", "goodput<80", "--updates", "1", "--grace", f"{grace}"]
    return run(["monitor", str(path), *asked, "-q"])


def test_violation_and_recovery_send_messages(tmp_path: Path, chat: Chat) -> None:
    """Also over restarts: each update comes from a new monitor."""
    path = tmp_path / "run.jsonl"
    publish(log(path, 10), chat)
    publish(path, chat)
    assert chat.texts == ["j: goodput&lt;80: fell, 50%"]
    publish(log(path, 900), chat)
    publish(path, chat)
    assert chat.texts[1:] == ["j: goodput&lt;80: recovered, 98.9%"]


def test_jobs_are_reported_independently(tmp_path: Path, chat: Chat) -> None:
    """Changes of several jobs at once are one message; each restart knows the last message of each job."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("a", "b", "c"):
        log(logs / f"{name}.jsonl", 900 if name == "c" else 10, name)
    publish(logs, chat)
    assert chat.texts == ["a: goodput&lt;80: fell, 50%\nb: goodput&lt;80: fell, 50%"]
    log(logs / "b.jsonl", 900, "b")
    publish(logs, chat)
    publish(logs, chat)
    assert chat.texts[1:] == ["b: goodput&lt;80: recovered, 98.9%"]


def test_job_name_notifies_no_one_and_is_not_a_link(tmp_path: Path, chat: Chat) -> None:
    publish(log(tmp_path / "run.jsonl", 10, "<!channel> @here <https://evil|ok>&"), chat)
    assert chat.texts == ["&lt;!channel&gt; @\u2060here &lt;https://evil|ok&gt;&amp;: goodput&lt;80: fell, 50%"]


@pytest.mark.parametrize(
    "state", [b"[" * 200_000, b'{"fallen": 5}', b'{"fallen": [[]]}', b"\xff", b'{"fallen": ["x"]}']
)
def test_broken_state_file_is_ignored(tmp_path: Path, chat: Chat, state: bytes) -> None:
    path = log(tmp_path / "run.jsonl", 10)
    publish(path, chat)
    (kept,) = (tmp_path / "state/goodput").iterdir()
    kept.write_bytes(state)
    publish(path, chat)
    assert chat.texts == ["j: goodput&lt;80: fell, 50%"] * 2


def test_healthy_job_sends_no_message(tmp_path: Path, chat: Chat) -> None:
    publish(log(tmp_path / "run.jsonl", 900), chat)
    assert chat.texts == []


def test_undelivered_message_is_sent_again(tmp_path: Path, chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path / "run.jsonl", 10)
    chat.status = 500
    publish(path, chat, grace=3)
    assert chat.texts == []
    error = capsys.readouterr().err
    assert "webhook at 127.0.0.1: the server answers 500" in error
    assert "secret" not in error
    chat.status = 200
    publish(path, chat)
    assert chat.texts == ["j: goodput&lt;80: fell, 50%"]


@pytest.mark.parametrize("place", ["hooks.slack.com/x", "ftp://x", "https://"])
def test_invalid_url_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="webhook: expected a URL"):
        open_target(parse_target(f"webhook:{place}"), MonitorContext(Health(60), 60))
