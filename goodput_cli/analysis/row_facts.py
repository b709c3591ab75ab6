"""Facts of a capability about the rows of a table: columns of disruptions, of jobs, and fields of an answer.

They are apart from the hooks (`capability.py`): results and their tables are made from these lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.sheet import Column

Facts = Mapping[str, Any]
"""Facts of a row by the name of the capability."""


@dataclass(frozen=True, kw_only=True)
class DisruptionFacts:
    """Columns of one capability in the table of disruptions."""

    name: str
    """Name of the capability."""
    columns: tuple[Column, ...]
    """Columns; their parts have `facts(name)`, a fact per row."""
    of: Callable[[Timeline, AttemptCosts, Sequence[int]], Sequence[Any]]
    """Returns the fact about each of some attempts that ended."""


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """Columns of one capability in the tables of jobs and of the runs of a fleet."""

    name: str
    """Name of the capability."""
    columns: tuple[Column, ...]
    """Columns; their rows have `facts`, with the name of the capability as the key."""
    of: Callable[[Timeline], Any]
    """Returns the fact about a job, of plain values: a fleet stores it."""
