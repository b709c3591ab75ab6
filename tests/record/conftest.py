"""Fixtures of the tests of the recorder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.record import writer
from tests.record.record_server import Server
from tests.support.servers import make_certificate


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Server]:
    """Start the server process of all tests."""
    with Server() as running:
        yield running


@pytest.fixture
def server(plain_server: Server) -> Server:
    """Return a server without received data and faults."""
    return plain_server.renew()


@pytest.fixture
def tls_server(certificate: tuple[Path, Path]) -> Iterator[Server]:
    """Start the same server over TLS."""
    with Server(*certificate) as running:
        yield running


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate for 127.0.0.1 and its key, created for this run."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def outside_of_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the cloud, the scheduler and the folder of the machine from all tests."""
    for name in ("GOODPUT_RECORDER_TO", "GOODPUT_RECORDER_DIR", "GOODPUT_RECORDER_RANK", "GOODPUT_RECORDER_EXTRA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name in ("RANK", "SLURM_PROCID", "SLURM_JOB_NAME", "JOB_IDENTIFIER", "GOODPUT_USE_FILE_TRACKING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def nothing_goes_on(outside_of_everything: None) -> Iterator[None]:
    """Close recorders that a test left open while its folder is current: at the exit of the process they would write
    elsewhere."""
    yield
    for left in list(writer._live):
        left.close(0)
