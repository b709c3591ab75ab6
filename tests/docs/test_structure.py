"""The limits that keep the code readable: files that one reads at once, folders that one sees at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.analysis.advice.from_timeline.amounts import PARTS
from goodput_cli.vocabulary.categories import Category, in_group

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "goodput_cli"
FOLDERS = sorted({path.parent for path in PACKAGE.rglob("*.py")})
MOST_LINES, MOST_MODULES = 300, 20


@pytest.mark.parametrize(
    "top", [PACKAGE, ROOT / "tests", ROOT / "loggen", ROOT / "benchmarks"], ids=lambda top: top.name
)
def test_no_file_is_longer_than_one_reads_at_once(top: Path) -> None:
    lengths = {path: path.read_bytes().count(b"\n") for path in top.rglob("*.py")}
    assert {path.relative_to(ROOT).as_posix(): size for path, size in lengths.items() if size > MOST_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_no_folder_shows_more_modules_than_one_sees_at_once(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES


def test_advice_has_a_lever_for_every_category_between_two_attempts() -> None:
    """What is planned, or cannot be told apart, is no lever's."""
    between = {*in_group("down"), *in_group("starting")}
    assert between - {category for part in PARTS.values() for category in part} == {
        Category.STOPPED,
        Category.UNDETERMINED,
    }
