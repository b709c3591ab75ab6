"""The documents list every measure that a threshold can name, with its units."""

from __future__ import annotations

import re
from collections.abc import Iterator

from goodput_cli.analysis.goodput.thresholds import OF_INTERVAL, UNITS, parse_threshold
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.fleet import thresholds as of_fleets
from goodput_cli.vocabulary.categories import Category
from tests.support.documents import ROOT

CATEGORIES = {category.id for category in Category}
KINDS = {"custom:LABEL": "custom:EVAL", "insight:CODE": "insight:hang"}


def rows() -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Return names and units of each row of the table in docs/cli.md. `the same` repeats the row above."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    table = text.partition("| NAME | unit |")[2].partition("\n\n")[0].splitlines()[2:]
    units: tuple[str, ...] = ()
    for line in table:
        names, said = (cell.strip() for cell in line.strip("|").split(" | "))
        if not said.startswith("the same"):
            units = tuple(re.findall(r"`([^`]+)`", said)) or ("",)
        yield re.findall(r"`([^`]+)`", names), units


def test_every_measure_is_in_the_table_with_its_units() -> None:
    listed = {KINDS.get(name, name): units for names, units in rows() for name in names}
    assert {*MEASURES} - CATEGORIES - {*listed} == set()
    for name, units in listed.items():
        assert UNITS[parse_threshold(f"{name}>1").named.dimension] == units, name


def test_every_measure_of_a_fleet_and_of_advice_is_named() -> None:
    fleet, advice = ((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("fleet", "advice"))
    assert [name for name in of_fleets.MEASURES if f"`{name}`" not in fleet and f"`{name}<" not in fleet] == []
    assert [name for name in OF_INTERVAL if f"`advice.{name}`" not in advice] == []
