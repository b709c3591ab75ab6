"""docs/sources.md: every fault in its tables is backed by a test, and its numbers are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from goodput_cli.sources import follow
from goodput_cli.sources.object_store import bucket, gcs, retry

TESTS = Path(__file__).parent
TEXT = (TESTS.parent / "docs" / "sources.md").read_text(encoding="utf-8")


def known_tests() -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.glob("test_*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_of_a_fault_table_names_a_test() -> None:
    known = known_tests()
    rows = [
        row
        for table in re.findall(r"^\|.*\| test \|\n\|[- |]+\n((?:\|.*\n)+)", TEXT, re.M)
        for row in table.splitlines()
    ]
    assert len(rows) > 30
    for row in rows:
        name = re.search(r"`(test_\w+)` \|$", row)
        assert name is not None, row
        assert name[1] in known, row


@pytest.mark.parametrize(
    "claim",
    [
        f"{bucket.WORKERS} at a time",
        f"in parts of {bucket.PART_BYTES >> 20} MiB",
        f"no more than {bucket.HELD_PARTS} parts",
        f"pauses of about {', '.join(f'{retry.FIRST_PAUSE * 2**n:g}' for n in range(retry.TRIES - 2))} and "
        f"{retry.FIRST_PAUSE * 2 ** (retry.TRIES - 2):g} s",
        f"up to {retry.LONGEST_PAUSE:g} s",
        f"{gcs.TIMEOUT[0]:g} s for a connection, {gcs.TIMEOUT[1]:g} s between bytes",
        f"listed every {follow.REMOTE_SECONDS:g} s",
        f"asked every {follow.REMOTE_SECONDS:g} s",
        f"after {follow.MAX_IDLE} looks",
    ],
)
def test_numbers(claim: str) -> None:
    assert claim in " ".join(TEXT.split())
