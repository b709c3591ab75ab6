"""Targets with a URL: effects of a bad server on the monitor, and where the account in the URL is visible."""

from __future__ import annotations

import signal
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor.monitors import Job, get, monitor, started
from tests.support.commands import until
from tests.support.servers import OddServer


@pytest.fixture(scope="module")
def running() -> Iterator[OddServer]:
    with OddServer() as server:
        yield server


@pytest.fixture
def server(running: OddServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OddServer:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return running


def published(folder: Path, *targets: str) -> int:
    """Publish one update of a job with a failing threshold; return 0 if the targets accepted it."""
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    job.end()
    publish = [option for target in targets for option in ("--publish", target)]
    return monitor(job.path, *publish, "--warn-if", "goodput<100", "--updates", 1, "--grace", 2, "-q")


def asked(server: OddServer, place: str) -> list[list[str]]:
    """Return the requests to a server below a path."""
    return [one for one in server.log() if one[1].startswith(f"/{place}")]


REDIRECTS = (301, 302, 303, 307, 308)


@pytest.mark.parametrize("scheme", ["otlp", "webhook"])
def test_redirect_is_not_a_delivery_and_gets_no_header(
    server: OddServer,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ken")
    with OddServer() as other:
        targets = [f"{scheme}:{server.url}/moved-{status}-http-{other.port}/x" for status in REDIRECTS]
        assert published(folder, *targets) == 1
        said = capsys.readouterr().err
        for status in REDIRECTS:
            assert f"the server answers {status} (redirect to http://127.0.0.1:{other.port})" in said
        assert "SECRET" not in said
        assert other.log() == []


@pytest.mark.parametrize(("place", "code"), [("endless-200", 0), ("endless-403", 1)])
def test_endless_response_is_not_read_to_its_end(server: OddServer, folder: Path, place: str, code: int) -> None:
    """Success is success after some kilobytes; the buffers of the system are larger than that."""
    assert published(folder, f"webhook:{server.url}/{place}") == code
    until(lambda: [one for one in server.log() if one[0] == "taken"])
    assert all(int(one[1]) < 32 << 20 for one in server.log() if one[0] == "taken")


@pytest.mark.parametrize("scheme", ["otlp", "webhook"])
def test_account_in_url_is_basic_authentication(server: OddServer, folder: Path, scheme: str) -> None:
    place = f"good/{scheme}"
    assert published(folder, f"{scheme}:http://ann:p%40ss%3Aw@127.0.0.1:{server.port}/{place}?token=T") == 0
    path = f"/{place}/v1/metrics?token=T" if scheme == "otlp" else f"/{place}?token=T"
    assert {one[1] for one in asked(server, place)} == {path}
    (account,) = {one[2] for one in asked(server, place)}
    assert b64decode(account.removeprefix("Basic ")) == b"ann:p@ss:w"


def test_metrics_and_messages_show_only_the_host(server: OddServer, folder: Path) -> None:
    """Two targets on one host remain two."""
    job = Job(folder / "run.jsonl")
    job.start()
    job.steps(0, 3)
    there = f"u:SECRETPW@127.0.0.1:{server.port}/endless-403/SECRETPATH?token=SECRETTOK"
    targets = [f"otlp:http://{there}", f"otlp:http://{there}2", f"webhook:http://{there}"]
    options = [option for target in ("http://:0", *targets) for option in ("--publish", target)]
    more = ["--interval", "0.1", "--grace", "1", "--warn-if", "goodput<100"]
    with started("run.jsonl", *options, *more, cwd=folder) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        failed = [f'target="{name}"}} 1' for name in ("otlp:127.0.0.1", "otlp:127.0.0.1 (2)", "webhook:127.0.0.1")]
        until(lambda: all(one in get(address)[1] for one in failed))
        page = get(address)[1]
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    text = page + said
    assert "SECRET" not in text
    assert "webhook:127.0.0.1: did not accept the last update" in text


@pytest.mark.parametrize(
    "target",
    [
        "https://hooks.example/services/SECRET",
        "http://hooks.example/services/SECRET",
        "http://u:SECRET@hooks.example:80",
        "webhook:hooks.example/services/SECRET",
        "webhook:http://[x/SECRET",
        "otlp:u:SECRET@collector:4318",
        "otlp:http://u:SECRET/x@collector:4318",
    ],
)
def test_mistyped_target_is_refused_without_its_secret(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    Job(folder / "run.jsonl").start()
    assert monitor("run.jsonl", "--publish", target) == 2
    said = capsys.readouterr().err
    assert "SECRET" not in said
    assert "bug" not in said
