"""Removed options and inputs: one sentence names the replacement."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import UsageError
from goodput_cli.cli.main import run
from tests.support.documents import ROOT

NIGHT = str(ROOT / "sample_logs" / "llm-pretrain.jsonl")
REMOVED = [
    (["advise", NIGHT, "--what-if", "save-every=100"], "--what-if was removed\ntip: `goodput advise LOG` ranks the"),
    (["doctor", "--online"], "--online was removed\ntip: to test credentials, read a log"),
    (
        ["postgresql+psycopg://ann:secret@db/mlflow"],
        "postgresql+psycopg://ann@db/mlflow: MLflow runs are no",
    ),
    ([NIGHT, "--mapping", "profile.yaml"], "profile.yaml: LogProfile YAML is no longer read as a mapping: write"),
]


@pytest.mark.parametrize(("line", "sentence"), REMOVED)
def test_removed_input_names_its_replacement(
    line: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.yaml").write_text("kind: LogProfile\n")
    assert run(line) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_removed_keyword_names_its_replacement() -> None:
    with pytest.raises(UsageError, match="--what-if was removed"):
        goodput_cli.advise(NIGHT, what_if=["save-every=100"])  # type: ignore[call-arg]


def test_password_in_options_of_an_address_is_hidden() -> None:
    with pytest.raises(UsageError) as caught:
        goodput_cli.analyze("mysql://ann@db.example/mlflow?sslpassword=hidden&password=hidden&options=-csearch_path")
    assert "hidden" not in str(caught.value)
    assert "search_path" in str(caught.value)
