"""Columns about hangs in the table of disruptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.hangs.hang import Hang, hangs_of_timeline, ranges
from goodput_cli.analysis.sheet import Audience, Column
from goodput_cli.analysis.table import DisruptionFacts

_NAME = "hangs"


def _hangs(timeline: Timeline, _: AttemptCosts, attempts: Sequence[int]) -> Sequence[Hang | None]:
    found = hangs_of_timeline(timeline)
    return tuple(map(found.get, attempts))


def _of(value: Callable[[Hang], Any]) -> Callable[[Any], list[Any]]:
    """Return the values of a column; None without a wait."""
    return lambda part: [None if one is None else value(one) for one in part.facts[_NAME]]


def _json(hang: Hang) -> Any:
    from goodput_cli.analysis.to_json import json_type  # Few logs contain waits.

    return json_type(Hang).write(hang)


HANG_FACTS = DisruptionFacts(
    name=_NAME,
    of=_hangs,
    columns=(
        Column(
            "hang", "text", Audience.JSON, _of(_json), "who held the job up when ranks waited (docs/hangs.md), as "
            "last_end.hang of goodput analyze; null without a wait",
            json={"type": ["object", "null"]}, json_values=_of(_json), later=True,
        ),
        Column(
            "hang_verdict", "text", Audience.TABLES, _of(lambda one: one.verdict),
            "verdict about the wait; null without a wait", nullable=True,
        ),
        Column(
            "blocked_by_ranks", "text", Audience.TABLES, _of(lambda one: ranges(one.ranks) or None),
            "ranks that held the job up, as ranges; null if none is named", nullable=True,
        ),
        Column(
            "blocked_by_host", "text", Audience.TABLES, _of(lambda one: " ".join(one.hosts) or None),
            "their hosts; null if not logged", nullable=True,
        ),
    ),
)  # fmt: skip
