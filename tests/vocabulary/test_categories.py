"""The table of categories: codes follow the order of the rows, and no two look alike."""

from __future__ import annotations

import colorsys

from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import CATEGORIES, Category, short_title, title

LOOKS = {category.id: category.look for category in Category}


def test_code_is_the_index_of_the_row() -> None:
    assert [category.value for category in Category] == list(range(len(CATEGORIES)))
    assert CATEGORIES[Category.WASTED] == Category.WASTED.id == "wasted_progress_from_disruption"
    assert Category(Category.WASTED.value) is Category.WASTED


def test_evidence_is_a_kind_of_event() -> None:
    assert {name for category in Category for name in category.row.evidence} <= Kind.__members__.keys()


def test_title_has_the_words_of_the_name_or_is_the_name() -> None:
    assert [title(name) for name in ("step_stall", "stopped", "data_loading_async", "goodput")] == [
        "step stall",
        "stopped",
        "data loading in steps",
        "goodput",
    ]
    assert short_title("custom_badput_events", "EVAL") == "custom:EVAL"


def test_no_two_categories_look_alike() -> None:
    assert len({look.letter for look in LOOKS.values()}) == len(CATEGORIES)
    assert len({look.colour for look in LOOKS.values()}) == len(CATEGORIES)


def test_neighbors_in_a_strip_differ_in_lightness_or_hue() -> None:
    """The most frequent neighbors of productive time differ from it in lightness too, for people with red-green
    blindness."""
    lightness = {name: _lightness(look.colour) for name, look in LOOKS.items()}
    for name in ("infrastructure_recovery_from_disruption", "data_loading_sync", "custom_badput_events", "queued"):
        assert abs(lightness[name] - lightness["productive"]) > 0.1, name


def _lightness(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)[1]
