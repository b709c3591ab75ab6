"""Event files of the monitor in TensorBoard itself, in a real browser."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.monitor.monitors import ended, monitor
from tests.support.commands import until


def test_tensorboard_shows_the_tags(browser: Any, tmp_path: Path) -> None:
    log = ended(tmp_path / "run.jsonl", 30)
    assert monitor(log, "--publish", f"tensorboard:{tmp_path}/tb", "--window", "1m", "-q") == 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    arguments = ["--logdir", str(tmp_path / "tb"), "--host", "127.0.0.1", "--port", str(port), "--load_fast=false"]
    command = [sys.executable, "-m", "tensorboard.main", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _answers(url))
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.goto(f"{url}#timeseries")
            for tag in ("goodput", "step_deviation", "badput", "goodput_window"):
                page.get_by_text(tag, exact=True).first.wait_for(timeout=60_000)
            assert page.locator("scalar-card").count() > 0
            page.close()
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}data/runs", timeout=5) as answer:
            return b"goodput" in answer.read()
    except OSError:
        return False
