"""A tracking server of MLflow with its REST interface: pages, experiments, an account."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import goodput_cli
from goodput_cli.errors import SourceError, UsageError

BEGIN = 1_772_359_200_000
ROWS = [{"key": "loss", "value": 1.0, "timestamp": BEGIN + 2000 * n, "step": n} for n in range(1, 31)]
ROWS += [{"key": "loss", "value": 1.0, "timestamp": BEGIN + 100_000 + 2000 * n, "step": 20 + n} for n in range(1, 21)]
ABOUT = {"run_id": "a1", "run_name": "kind-owl", "status": "FINISHED", "start_time": BEGIN, "end_time": BEGIN + 141_000,
         "lifecycle_stage": "active"}  # fmt: skip


class Server(BaseHTTPRequestHandler):
    """A server with two experiments and one run, whose history has pages of 20 rows."""

    asked: list[str]
    answer: bytes | None = None

    def do_GET(self) -> None:
        question = parse_qs(urlsplit(self.path).query)
        at = int(question.get("page_token", ["0"])[0])
        rows = ROWS if question["metric_key"] == ["loss"] else []
        more = {"next_page_token": str(at + 20)} if at + 20 < len(rows) else {}
        self._answer({"metrics": rows[at : at + 20], **more})

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("experiments/search"):
            self._answer({"experiments": [{"experiment_id": str(n), "name": f"llm-{n}"} for n in range(2)]})
        elif question["experiment_ids"] == ["1"]:
            self._answer({"runs": [{"info": ABOUT, "data": {"metrics": [{"key": "loss"}, {"key": "system/cpu"}]}}]})
        else:
            self._answer({})

    def _answer(self, answer: dict[str, Any]) -> None:
        type(self).asked.append(self.headers.get("Authorization", ""))
        data = json.dumps(answer).encode() if self.answer is None else self.answer
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(answer: bytes | None = None) -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (Server,), {"asked": [], "answer": answer})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"mlflow+http://127.0.0.1:{server.server_port}", handler.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_runs_of_all_pages_are_read() -> None:
    with served() as (uri, _):
        analysis = goodput_cli.analyze(uri)
    assert (analysis.job.name, analysis.job.attempts, analysis.job.kept_steps) == ("a1", 2, 40)
    assert analysis.job.ending == "clean"
    (one,) = analysis.disruptions
    assert one.steps_lost == 10


def test_experiment_is_selected_by_name() -> None:
    with served() as (uri, _):
        assert goodput_cli.analyze(f"{uri}/?experiment=llm-1").job.name == "a1"
        with pytest.raises(SourceError, match="no such experiment x; available: llm-0, llm-1"):
            goodput_cli.analyze(f"{uri}?experiment=x")
        with pytest.raises(UsageError, match=r"only [?]experiment=NAME"):
            goodput_cli.analyze(f"{uri}?run=x")


def test_account_is_that_of_the_mlflow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
    with served() as (uri, asked):
        goodput_cli.analyze(uri)
        assert set(asked) == {"Bearer t0ken"}
        asked.clear()
        analysis = goodput_cli.analyze(uri.replace("//", "//ann:pass@"))
    assert {b64decode(one.removeprefix("Basic ")) for one in asked} == {b"ann:pass"}
    assert "pass" not in repr(analysis.diagnostics)


@pytest.mark.parametrize(
    "answer", [b"<html>sign in</html>", b"[]", b'{"experiments": 3}', b'{"experiments": [7, null]}']
)
def test_other_responses_are_reported(answer: bytes) -> None:
    with served(answer) as (uri, _), pytest.raises(goodput_cli.GoodputError):
        goodput_cli.analyze(uri)


def test_missing_server_is_an_error() -> None:
    with served() as (uri, _):
        pass
    with pytest.raises(SourceError, match="no answer"):
        goodput_cli.analyze(uri)
