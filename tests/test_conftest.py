"""Examples of generated tests are the same in every run, whichever tests run together."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st


def drawn_integers() -> list[int]:
    numbers: list[int] = []

    @given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


def test_examples_do_not_depend_on_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn_integers()
    path = tmp_path / "many_constants.py"
    path.write_text(f"NUMBERS = {list(range(10**6, 10**6 + 400))}\n", encoding="utf-8")
    module = ModuleType("many_constants")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert drawn_integers() == before
