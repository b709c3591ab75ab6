"""What the tests of the recorder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goodput_cli.record import writer
from tests.record.record_server import Server
from tests.support.server_process import make_certificate


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Server]:
    """The process of all tests' servers."""
    with Server() as running:
        yield running


@pytest.fixture
def server(plain_server: Server) -> Server:
    """A server that has received nothing and fails in nothing."""
    return plain_server.renew()


@pytest.fixture
def tls_server(certificate: tuple[Path, Path]) -> Iterator[Server]:
    """The same over TLS."""
    with Server(*certificate) as running:
        yield running


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, made for this run."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def outside_of_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the cloud, the scheduler or the folder of the machine it runs on."""
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
    """Recorders that a test left open end with it, where it wrote: at the exit of the process they would write
    elsewhere."""
    yield
    for left in list(writer._live):
        left.close(0)
