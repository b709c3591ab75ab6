"""The notebook of the documents shows the results of its cells; `UPDATE_DOCS=1` writes the outputs again."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import ROOT, playground, updating

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_notebook_shows_the_results_of_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(playground(tmp_path))
    text = NOTEBOOK.read_text(encoding="utf-8")
    notebook = json.loads(text)
    names: dict[str, Any] = {"__name__": "__notebook__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        cell["execution_count"] = number
        cell["outputs"] = outputs("".join(cell["source"]), names, number)
    executed = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if updating():
        NOTEBOOK.write_text(executed, encoding="utf-8")
    assert executed == text or updating()


def outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the output of a cell and the display of its last expression, in a kernel's format."""
    body = ast.parse(source).body
    last = body[-1] if isinstance(body[-1], ast.Expr) else None
    before = body[:-1] if last is not None else body
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(before, []), NOTEBOOK.name, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
    noted: list[dict[str, Any]] = []
    if printed.getvalue():
        noted.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": lines(value._repr_html_()), **data}
        noted.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return noted


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
