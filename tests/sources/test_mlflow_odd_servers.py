"""Servers that are not MLflow, broken servers, and redirects: an error message, and no account is sent to other
hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.cli.main import run
from tests.support.clouds import goodput
from tests.support.servers import ODD_RUNS, RAW, OddServer, make_certificate


@pytest.fixture(scope="module")
def server() -> Iterator[OddServer]:
    with OddServer() as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("kind", [*RAW, *ODD_RUNS, "rows-number"])
def test_odd_response_is_one_sentence(server: OddServer, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert run(["analyze", f"mlflow+http://127.0.0.1:{server.port}/{kind}"]) == 1
    said, tip = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: mlflow+http://127.0.0.1:{server.port}/{kind}: ")
    assert tip.startswith("tip: check the address of the MLflow server")
    assert "bug" not in said


@pytest.mark.parametrize("address", ["mlflow+http://[x", "mlflow+http://h:99999", "mlflow+http:///x"])
def test_invalid_address_is_a_usage_error(capsys: pytest.CaptureFixture[str], address: str) -> None:
    assert run(["analyze", address]) == 2
    assert "no host\ntip: use an address" in capsys.readouterr().err


def test_history_of_10_mb_is_read(server: OddServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", f"mlflow+http://127.0.0.1:{server.port}/large"]) == 0
    assert "30 steps kept" in capsys.readouterr().out


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["", "-GET"])
def test_redirect_is_an_error_naming_the_new_host(
    server: OddServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: int, method: str
) -> None:
    """The new host gets no request, with or without the account."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
    with OddServer() as other:
        here = f"mlflow+http://127.0.0.1:{server.port}/moved-{status}-http-{other.port}{method}"
        assert run(["analyze", here]) == 1
        said = capsys.readouterr().err
        assert f"the server answers {status} (redirect to http://127.0.0.1:{other.port})\n" in said
        assert "SECRET" not in said
        assert other.log() == []


def test_redirect_to_https_is_followed_for_get_only(server: OddServer, certificate: tuple[Path, Path]) -> None:
    trusting = {**os.environ, "SSL_CERT_FILE": str(certificate[0])}
    with OddServer(certificate) as other:
        here = f"mlflow+http://127.0.0.1:{server.port}/moved-308-https-{other.port}"
        followed = goodput(["analyze", f"{here}-GET"], trusting)
        assert (followed.returncode, "30 steps kept" in followed.stdout) == (0, True)
        refused = goodput(["analyze", here], trusting)
        assert refused.returncode == 1
        assert f"(redirect to https://127.0.0.1:{other.port})\n" in refused.stderr
