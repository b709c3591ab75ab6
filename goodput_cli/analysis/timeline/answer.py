"""What `goodput timeline --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from goodput_cli.analysis.answer import Answer, Count, Instant, NamedJob, Part, Row, named_job, row_of
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.table import json_rows
from goodput_cli.analysis.timeline.columns import EVENT_COLUMNS, SEGMENT_COLUMNS, event_parts, segment_parts
from goodput_cli.analysis.timeline.rows import SegmentRows
from goodput_cli.arrays import Rows as EventRowNumbers
from goodput_cli.vocabulary.text import iso

EventRows = Sequence[Annotated[Row, row_of("event", "one event of the log, as it is understood", EVENT_COLUMNS)]]


class TimelineWindow(Part):
    start: Instant
    """start of the window"""
    end: Instant
    """end of the window"""
    ns: Count
    """its length"""


class TimelineAnswer(Answer, kw_only=True):
    """goodput timeline --format json"""

    kind: Literal["timeline"] = "timeline"
    job: NamedJob
    window: TimelineWindow
    segments: Sequence[Annotated[Row, row_of("segment", "one segment", SEGMENT_COLUMNS)]]
    """segments touch, do not overlap and cover the window, unless some were filtered out"""
    events: EventRows | UnsetType = UNSET
    """with --events only"""


def timeline_answer(
    analysis: Analysis, rows: SegmentRows, window: tuple[int, int], events: EventRowNumbers | None
) -> TimelineAnswer:
    """The segments of the window [start, end) (ns), and the events where they were asked for."""
    timeline, table = analysis.timeline, analysis.table
    start, end = window
    return TimelineAnswer(
        job=named_job(analysis),
        window=TimelineWindow(start=iso(start), end=iso(end), ns=end - start),
        segments=json_rows(SEGMENT_COLUMNS, len(rows), lambda: segment_parts(timeline, rows)),
        events=UNSET if events is None else json_rows(EVENT_COLUMNS, len(events), lambda: event_parts(table, events)),
    )
