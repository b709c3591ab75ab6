"""Every category has a look of its own, in the order in which people are shown them."""

from __future__ import annotations

import colorsys

from goodput_cli.vocabulary.categories import CATEGORIES
from goodput_cli.vocabulary.palette import LOOKS


def test_every_category_has_a_look_in_the_fixed_order() -> None:
    assert tuple(LOOKS) == CATEGORIES


def test_no_two_look_alike() -> None:
    assert len({look.letter for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)


def test_neighbours_in_a_strip_differ_in_lightness_or_hue() -> None:
    """What stands beside productive most often is told from it by lightness too, for eyes without red and green."""
    lightness = {name: _lightness(look.colour) for name, look in LOOKS.items()}
    for name in ("infrastructure_recovery_from_disruption", "data_loading_sync", "custom_badput_events", "queued"):
        assert abs(lightness[name] - lightness["productive"]) > 0.1, name


def _lightness(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)[1]
