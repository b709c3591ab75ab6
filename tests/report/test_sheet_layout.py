"""A narrow table first leaves out the parts that readers miss least."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.report.base import Page, load_sheet_renderer
from goodput_cli.vocabulary.categories import brief_name

S = 10**9
COLUMNS = (
    Column("category", "text", brief=brief_name),
    Column("steps lost", "count"),
    Column("time", "duration"),
    Column("", "share"),
    Column("accelerator h", "number"),
    Column("length", "duration", title="window"),
    Column("hidden", "text", Audience.PROGRAMS),
)
ROWS = (
    ("wasted_progress_from_disruption", 7, 90 * S, 0.5, 1.25, 60 * S, "x"),
    ("custom_badput_events:EVAL", 12, 3 * S, 1.0, 21.0, 61 * S, "x"),
)


def render_at_width(width: int) -> list[str]:
    text = load_sheet_renderer("table")(Sheet("T", COLUMNS, ROWS), Page(width))
    assert isinstance(text, str)
    return text.splitlines()[2:]


def test_wide_table_has_readable_names_and_aligned_decimals() -> None:
    head, wasted, custom = render_at_width(120)
    assert head.split() == ["category", "steps", "lost", "time", "accelerator", "h", "window"]
    assert wasted.startswith(" wasted progress ")
    assert (wasted.split()[-5], custom.split()[-5]) == ("1.25", "21.00")
    assert custom.count("█") == 30
    assert "hidden" not in head


def test_narrow_table_has_short_names_and_two_line_headings() -> None:
    above, head, wasted, custom = render_at_width(80)
    assert above.strip() == "steps"
    assert head.startswith(" category          lost")
    assert "accelerator h" in head
    assert wasted.startswith(" wasted progress      7")
    assert custom.startswith(" custom:EVAL")
    assert "█" in custom


def test_wide_table_omits_nothing() -> None:
    assert not any(
        "..." in line or "not shown" in line for width in (80, 100, 120, 160) for line in render_at_width(width)
    )
