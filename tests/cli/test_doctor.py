"""What an installation has: nothing is connected to without --online, and with it real servers are asked."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from goodput_cli.cli.commands import doctor as doctor_online
from goodput_cli.cli.commands.doctor import EXTRAS
from goodput_cli.cli.main import run
from tests.support.logging_server import LoggingServer
from tests.support.markdown_docs import ROOT
from tests.support.sign_in_server import sign_in_server

Said = pytest.CaptureFixture[str]
NOT_FOR_USERS = {"browser", "dev", "docs", "frameworks", "trackers"}
CLOSED = "127.0.0.1:9"
"""Where nothing listens."""


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any, and without a cloud's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture(scope="module")
def sign_in() -> Iterator[str]:
    with sign_in_server() as address:
        yield address


@pytest.fixture(scope="module")
def logging_server() -> Iterator[LoggingServer]:
    with LoggingServer() as started:
        yield started


def line(capsys: Said, what: str) -> str:
    """The line of the answer on one thing: its state and the rest."""
    found = [one for one in capsys.readouterr().out.splitlines() if one[10:].startswith(what)]
    assert len(found) == 1, what
    return " ".join(found[0].replace(what, "", 1).split())


def key_file(folder: Path, token_uri: str) -> str:
    """A service account's key of one's own making."""
    key = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "key.json"
    account = {"type": "service_account", "client_email": "a@b.iam", "token_uri": token_uri, "private_key_id": "1"}
    file.write_text(json.dumps({**account, "private_key": key.decode()}))
    return str(file)


def amazon(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """An account, and where it signs in."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)


def test_it_connects_to_nothing(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("connects"))
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    for words in ("goodput-cli", "python", "Google credentials", "Amazon credentials", "settings", "terminal"):
        assert words in shown
    assert all(f"ok       extra {extra} " in shown for extra in EXTRAS)


def test_it_knows_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - NOT_FOR_USERS


def test_a_key_file_that_is_gone(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/key.json")
    for command in (["doctor"], ["doctor", "--online"]):
        assert run(command) == 1
        assert "broken" in (said := line(capsys, "Google credentials"))
        assert "names /no/such/key.json, which is no file" in said


def test_no_credentials_are_no_fault(capsys: Said) -> None:
    assert run(["doctor", "--online"]) == 0
    shown = capsys.readouterr().out
    assert "none     Google credentials      none found; gcloud auth application-default login makes them\n" in shown
    assert "none     Cloud Logging           not asked: no credentials\n" in shown
    assert "none     Amazon credentials      none found; `aws configure` makes them\n" in shown


def test_cloud_logging_answers(capsys: Said, monkeypatch: pytest.MonkeyPatch, logging_server: LoggingServer) -> None:
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", logging_server.endpoint)
    logging_server.requests()
    assert run(["doctor", "--online"]) == 0
    where = f"at {logging_server.endpoint} (GOODPUT_LOGGING_ENDPOINT)"
    assert line(capsys, "Cloud Logging") == f"ok project test-project can be read, {where}"
    (asked,) = logging_server.requests()
    assert asked["size"] == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("PERMISSION_DENIED", "no permission to read log entries; ask for the role roles/logging.viewer"),
        ("UNAUTHENTICATED", "the credentials are not accepted; run `gcloud auth application-default login`"),
        ("UNAVAILABLE", "project test-project: no answer (UNAVAILABLE): check the network, or the proxy"),
    ],
)
def test_cloud_logging_refuses(
    code: str, said: str, capsys: Said, monkeypatch: pytest.MonkeyPatch, logging_server: LoggingServer
) -> None:
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", logging_server.endpoint)
    logging_server.fault(code)
    assert run(["doctor", "--online"]) == 1
    shown = line(capsys, "Cloud Logging")
    assert shown.startswith("broken")
    assert shown.endswith(said)


def test_nobody_there(capsys: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOODPUT_LOGGING_ENDPOINT", CLOSED)
    amazon(monkeypatch, f"http://{CLOSED}")
    assert run(["doctor", "--online"]) == 1
    shown = capsys.readouterr().out
    assert "no answer (UNAVAILABLE): check the network, or the proxy\n" in shown
    assert "broken   Amazon credentials      no answer (Could not connect to the endpoint URL" in shown
    monkeypatch.delenv("GOODPUT_LOGGING_ENDPOINT")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file(tmp_path, f"http://{CLOSED}/token"))
    assert run(["doctor", "--online"]) == 1
    assert "the server that gives credentials does not answer; check the network" in line(capsys, "Google credentials")


def test_somebody_who_says_nothing(capsys: Said, monkeypatch: pytest.MonkeyPatch, sign_in: str) -> None:
    monkeypatch.setattr(doctor_online, "_SECONDS", 1.0)
    amazon(monkeypatch, f"{sign_in}/silent")
    assert run(["doctor", "--online"]) == 1
    assert line(capsys, "Amazon credentials") == "broken no answer within 1 s: check the network, or the proxy"


def test_credentials_that_work(capsys: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sign_in: str) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file(tmp_path, f"{sign_in}/token"))
    amazon(monkeypatch, sign_in)
    assert run(["doctor", "--online"]) == 0
    shown = capsys.readouterr().out
    assert "ok       Google credentials      accepted; project not named: set GOOGLE_CLOUD_PROJECT\n" in shown
    assert "none     Cloud Logging           not asked: no project is named; set GOOGLE_CLOUD_PROJECT\n" in shown
    assert "ok       Amazon credentials      accepted; arn:aws:iam::123456789012:user/trainer\n" in shown


def test_credentials_that_are_refused(
    capsys: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sign_in: str
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file(tmp_path, f"{sign_in}/refused/token"))
    amazon(monkeypatch, f"{sign_in}/refused")
    assert run(["doctor", "--online"]) == 1
    shown = capsys.readouterr().out
    assert "broken   Google credentials      Google Cloud: the credentials are not accepted any more; run" in shown
    refused = "broken   Amazon credentials      not accepted (ExpiredToken); run `aws sso login` or `aws configure`\n"
    assert refused in shown
