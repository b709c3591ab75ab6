"""One heading for one thing: whatever a table shows to people is in the vocabulary, and nothing else is."""

from __future__ import annotations

from goodput_cli.analysis.table import TITLES
from tests.support.table_titles import headings


def test_every_heading_is_declared_and_used() -> None:
    assert sorted(headings()) == sorted(TITLES)


def test_they_are_in_order() -> None:
    assert list(TITLES) == sorted(TITLES)


def test_what_several_commands_show_has_one_heading() -> None:
    places = headings()
    assert places["category"] == {"compare", "compat", "fleet", "timeline_sheet"}
    assert places["ended"] == {"disruptions", "fleet", "jobs"}
    assert places["accelerator h"] == {"advice", "disruptions", "fleet"}
    assert places["start"] == {"compare", "fleet", "jobs", "step_statistics", "step_times", "timeline_rows"}


def test_headings_are_lower_case_but_for_names() -> None:
    assert {one for one in TITLES if one != one.lower()} == {"ETTR", "MTTF"}
