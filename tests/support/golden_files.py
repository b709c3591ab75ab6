"""Comparison of text for people with files in tests/golden; `UPDATE_GOLDEN=1 pytest` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare with tests/golden/`name`, or write it."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text, f"{name} differs: UPDATE_GOLDEN=1 writes it anew"
