"""One heading per concept: docs/glossary.md lists every heading that tables show, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.markdown_docs import section
from tests.support.table_titles import headings

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
HEADINGS = section(GLOSSARY, "Headings of tables")
DEFINED = re.findall(r"^- \*(.+?)\*: .", HEADINGS, re.MULTILINE)
SELF_EXPLANATORY = re.findall("`([^`]+)`", HEADINGS.partition("Without a definition below:")[2].partition("\n\n")[0])
TITLES = DEFINED + SELF_EXPLANATORY


def test_every_heading_is_declared_and_used() -> None:
    assert sorted(headings()) == sorted(TITLES)


def test_headings_are_in_order() -> None:
    assert sorted(DEFINED) == DEFINED
    assert sorted(SELF_EXPLANATORY) == SELF_EXPLANATORY


def test_shared_column_has_one_heading() -> None:
    places = headings()
    assert places["category"] == {"compare", "compat", "fleet", "steps", "timeline"}
    assert places["ended"] == {"disruptions", "fleet", "jobs"}
    assert places["accelerator h"] == {"advice", "disruptions", "fleet"}
    assert places["start"] == {"compare", "fleet", "jobs", "processes", "steps", "timeline"}


def test_headings_are_lower_case_except_names() -> None:
    assert {one for one in TITLES if one != one.lower()} == {"ETTR", "MTTF", "MTTR", "kWh", "kWh lost"}
