"""docs/recipes.md, from first block to last: each block uses the files, views and names of the previous ones.

`UPDATE_DOCS=1 pytest tests/docs/test_recipes.py` writes their output again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from goodput_cli.report.parquet import EVENTS, SEGMENTS
from tests.support.documents import ROOT, Block, blocks, playground, read, run_console, run_session, section, updating

RECIPES = ROOT / "docs" / "recipes.md"


def test_every_recipe_prints_the_documented_output(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(playground(tmp_path))
    printed = list(run_all(tmp_path, programs))
    if updating():
        update_recipes(printed)
    for block, actual in printed:
        assert updating() or actual == block.text, f"{block}: UPDATE_DOCS=1 pytest tests/docs/test_recipes.py"


def run_all(folder: Path, programs: Path) -> Iterator[tuple[Block, str]]:
    """Return every block with a documented output, and its actual output."""
    connection = duckdb.connect()
    names: dict[str, Any] = {}
    found = blocks(RECIPES, "console", "sql", "python", "text")
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "console":
            yield block, run_console(block, folder, programs)
        elif block.language == "python":
            yield block, run_session(block, names)
        elif block.language == "sql":
            rows = connection.sql(block.text)
            if following is not None and following.language == "text":
                lines = rows.df().to_string(index=False).splitlines()
                yield following, "".join(f"{line.rstrip()}\n" for line in lines)


def update_recipes(printed: list[tuple[Block, str]]) -> None:
    lines = read(RECIPES).splitlines(keepends=True)
    for block, actual in reversed(printed):
        first = block.line - 1
        lines[first : first + block.text.count("\n")] = [actual]
    RECIPES.write_text("".join(lines), encoding="utf-8", newline="\n")


@pytest.mark.parametrize(("heading", "schema"), [("Segments", SEGMENTS), ("Events", EVENTS)])
def test_documented_columns_are_those_of_the_files(heading: str, schema: pa.Schema) -> None:
    described = re.findall(r"^- `(\w+)` \(([\w ]+)\): ", section(RECIPES, heading), re.MULTILINE)
    assert described == [(field.name, described_type(field.type)) for field in schema]


def described_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {described_type(kind.value_type)}"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return "text"
    return {"int64": "int64", "double": "double"}[str(kind)]


def test_every_query_shows_its_answer() -> None:
    found = blocks(RECIPES, "sql", "text")
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "sql" and not block.text.startswith("CREATE"):
            assert following is not None, block
            assert following.language == "text", block
