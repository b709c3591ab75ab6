"""Tables of words: diagnostics, causes and kinds of insights. tests/docs/test_docs.py checks that each row is used."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

import goodput_cli
from goodput_cli.analysis.insights.kinds import BY_CODE
from goodput_cli.diagnostics.diagnostic import CODES, DiagnosticCode
from goodput_cli.vocabulary.categories import CAUSES
from goodput_cli.vocabulary.option import TomlRows

PACKAGE = Path(goodput_cli.__file__).parent


@pytest.mark.parametrize(
    ("rows", "file"),
    [(CODES, "diagnostics/codes"), (CAUSES, "vocabulary/causes"), (BY_CODE, "analysis/insights/kinds")],
)
def test_rows_agree_with_the_whole_file(rows: Mapping[str, Any], file: str) -> None:
    """Each row is parsed alone, in the order of the file. A key without a field is a misspelling."""
    tables = tomllib.loads((PACKAGE / f"{file}.toml").read_text(encoding="utf-8"))
    assert list(rows) == list(tables)
    assert len(rows) == len(tables) > 20
    for name, row in rows.items():
        told = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(row).items()}
        assert tables[name].items() <= told.items()
        assert set(tables[name]) <= {field.name for field in fields(row)}


def test_unknown_name_has_no_row() -> None:
    assert "of_nobody" not in CODES
    assert "silent_death.of_formats" not in CODES
    assert CODES.get("of_nobody") is None
    with pytest.raises(KeyError):
        CODES["of_nobody"]


def test_invalid_row_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "codes.toml"
    file.write_text('[a]\nseverity = "grave"\nmeaning = ""\neffect = ""\nadvice = ""\n\n[b]\nseverity = "info"\n')
    rows = TomlRows(file, DiagnosticCode)
    assert list(rows) == ["a", "b"]
    with pytest.raises(msgspec.ValidationError, match="grave"):
        rows["a"]
    with pytest.raises(msgspec.ValidationError, match="meaning"):
        rows["b"]
