"""Old names of the attributes of an analysis: they still work for one release, and each warns with the new name."""

from __future__ import annotations

import pytest

from tests.support.story import account, end, start, steps

ANALYSIS = account(start(0), *steps(0, 9, at=0), end(100)).analysis


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("asked", "options"),
        ("known", "work_options"),
        ("drafted", "inferred_rules"),
        ("inside", "step_phases"),
        ("too_short", "is_too_short"),
        ("shows_training", "has_steps"),
        ("why_unknown", "unavailable_reason"),
    ],
)
def test_old_attribute_warns_and_has_the_value_of_the_new_one(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"Analysis.{new}$"):
        value = getattr(ANALYSIS, old)
    assert value == getattr(ANALYSIS, new)


def test_analysis_with_goodput_is_measurable() -> None:
    assert ANALYSIS.is_measurable
