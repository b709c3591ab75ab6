"""docs/sources.md: every row of a fault matrix names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")


def test_every_row_of_a_fault_matrix_is_a_test() -> None:
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    rows = re.findall(r"^\| (?!-|fault|event|SOURCE).*\|$", PAGE.partition("### Faults of buckets")[2], re.MULTILINE)
    assert len(rows) > 40
    assert [row for row in rows if "`test_" not in row] == []
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert set(named) <= defined


def test_the_widths_of_the_overlap_are_those_of_the_code() -> None:
    from goodput_cli.sources.cloud_logging import CLOCK_MARGIN_NS, OVERLAP_NS

    assert (OVERLAP_NS, CLOCK_MARGIN_NS) == (3600 * 10**9, 600 * 10**9)
    assert "**one hour**" in PAGE
    assert "**ten minutes**" in PAGE
