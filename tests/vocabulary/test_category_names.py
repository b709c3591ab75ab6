"""Category names in tables: any of them can be copied into an option."""

from __future__ import annotations

import pytest

from goodput_cli.vocabulary.categories import CATEGORIES, Category, brief_name, category_named, full_name


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_name_in_a_table_names_its_category(category: str) -> None:
    for name in (category, brief_name(category), category.upper(), f" {brief_name(category)} "):
        assert category_named(name) == (Category[_member(category)], None)


def _member(category: str) -> str:
    return next(one.name for one in Category if one.id == category)


@pytest.mark.parametrize("name", ["custom_badput_events:EVAL STEP", "custom:EVAL STEP", "Custom: eval step"])
def test_label_is_part_of_a_category_name(name: str) -> None:
    assert category_named(name) == (Category.CUSTOM, "EVAL STEP")


def test_label_of_evaluations_has_a_name_of_its_own() -> None:
    assert category_named("evaluation") == category_named("custom:eval_step") == (Category.CUSTOM, "EVAL_STEP")
    assert brief_name("custom_badput_events:EVAL_STEP") == "evaluation"


@pytest.mark.parametrize("name", ["", "custom:", "wasted", "productive:X", "nothing"])
def test_unknown_name_gives_no_category(name: str) -> None:
    assert category_named(name) is None


def test_short_names_keep_signs_and_labels() -> None:
    assert full_name("custom_badput_events", "EVAL") == "custom_badput_events:EVAL"
    assert brief_name("custom_badput_events:EVAL") == "custom:EVAL"
    assert brief_name("+ wasted_progress_from_disruption") == "+ wasted progress"
    assert brief_name("- custom_badput_events:A B") == "- custom:A B"
    assert brief_name("goodput") == "goodput"
