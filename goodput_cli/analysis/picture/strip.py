"""A job in one line: the window cut into equal cells, each with the category that fills most of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.ledger import Ledger
from goodput_cli.analysis.disruptions.rows import Disruption
from goodput_cli.arrays import I64
from goodput_cli.vocabulary.categories import CATEGORIES


@dataclass(frozen=True)
class Strip:
    """[start_ns, end_ns) in `len(categories)` cells of equal length, to the nanosecond."""

    start_ns: int
    """ns since 1970 UTC."""
    end_ns: int
    """ns since 1970 UTC."""
    categories: tuple[str, ...]
    """Per cell, the one with most time in it; of equal ones the first in the fixed order."""
    disruptions: tuple[int, ...]
    """Per cell, how many attempts were disrupted in it (their last sign of life lies there)."""


def strip_of(ledger: Ledger, disruptions: Sequence[Disruption], start: int, end: int, cells: int) -> Strip:
    """The window [start, end) (ns) in at most `cells` cells; fewer where it has fewer nanoseconds."""
    cells = min(cells, end - start)
    bounds = _bounds(start, end, cells)
    amounts: dict[int, I64] = {}
    for (category, _), amount in ledger.between(bounds[:-1], bounds[1:]).items():  # a user's labels are one category
        amounts[category] = amounts[category] + amount if category in amounts else amount
    keys = list(amounts)
    largest = np.argmax(np.array([amounts[key] for key in keys]), axis=0)
    names = tuple(CATEGORIES[keys[row]] for row in largest.tolist())
    marks = np.array([one.last_sign_of_life_ns for one in disruptions], dtype=np.int64)
    inside = marks[(marks >= start) & (marks <= end)]
    places = np.minimum(np.searchsorted(bounds, inside, side="right") - 1, cells - 1)
    return Strip(start, end, names, tuple(np.bincount(places, minlength=cells).tolist()))


def _bounds(start: int, end: int, cells: int) -> NDArray[np.int64]:
    """`cells + 1` instants; Python's integers, because a product of ns and cells may not fit into 64 bits."""
    return np.array([start + (end - start) * cell // cells for cell in range(cells + 1)], dtype=np.int64)
