"""Signs of a recovery that tests put beside the events of a job."""

from __future__ import annotations

from dataclasses import replace

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.signs import Sign


def with_signs(timeline: Timeline, *signs: Sign) -> Timeline:
    """The timeline of a log that holds these signs, and no others."""
    observed = replace(timeline.table.observed, signs=signs)
    return replace(timeline, table=replace(timeline.table, observed=observed))
