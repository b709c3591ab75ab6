"""Signs of a recovery that tests add to the events of a job."""

from __future__ import annotations

from dataclasses import replace

from goodput_cli.accounting.build import Timeline
from goodput_cli.events.signs import RecoveryEvent


def with_signs(timeline: Timeline, *signs: RecoveryEvent) -> Timeline:
    """Return the timeline of a log with these signs, and no others."""
    observed = replace(timeline.table.observed, signs=signs)
    return replace(timeline, table=replace(timeline.table, observed=observed))
