"""`goodput doctor`: its checks, and that it connects to nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from goodput_cli.cli.commands.doctor import EXTRAS
from goodput_cli.cli.main import run
from tests.support.documents import ROOT

Said = pytest.CaptureFixture[str]
NOT_FOR_USERS = {"browser", "dev", "docs", "frameworks", "trackers"}


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the credentials of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def line(capsys: Said, what: str) -> str:
    """Return the line of the answer about one thing: its state and the rest."""
    found = [one for one in capsys.readouterr().out.splitlines() if one[10:].startswith(what)]
    assert len(found) == 1, what
    return " ".join(found[0].replace(what, "", 1).split())


def test_doctor_connects_to_nothing(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("connects"))
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    for words in ("goodput-cli", "python", "Google credentials", "Amazon credentials", "settings", "terminal"):
        assert words in shown
    assert all(f"ok       extra {extra} " in shown for extra in EXTRAS)


def test_doctor_knows_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - NOT_FOR_USERS


def test_missing_key_file_is_broken(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/key.json")
    assert run(["doctor"]) == 1
    said = line(capsys, "Google credentials")
    assert said == "broken GOOGLE_APPLICATION_CREDENTIALS=/no/such/key.json: no such file"


def test_missing_credentials_are_not_an_error(capsys: Said) -> None:
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    google = "not set  Google credentials    no key file; create one with `gcloud auth application-default login`; VMs"
    amazon = "not set  Amazon credentials    no AWS_… variables and no ~/.aws/credentials; create them with `aws"
    assert google in shown
    assert amazon in shown


def test_credentials_are_found_but_not_tested(capsys: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (key := tmp_path / "key.json").write_text("{}")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert f"{key} (not tested: doctor does not connect)\n" in shown
    assert "AWS_ACCESS_KEY_ID (not tested: doctor does not connect)\n" in shown
