"""Stories as logs: lists of JSON texts, most of them unchanged, some torn."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import strategies as st

from .changes import move
from .checkpoints import checkpoint_stories
from .ends import step_end_stories, with_heartbeats
from .pen import JOB, Pen, Record
from .steps import step_stories

Logs = st.SearchStrategy[list[str]]


def _written(records: list[Record]) -> list[str]:
    return [json.dumps(record) for record in records]


@st.composite
def _torn(draw: st.DrawFn, stories: st.SearchStrategy[list[Record]]) -> list[Record]:
    """Return a story with a few lines dropped, moved in time, or doubled with another time; at least two are left."""
    records = list(draw(stories))
    pen = Pen(draw)
    for _ in range(pen.number(1, 4)):
        row = pen.number(0, len(records) - 1)
        fate = pen.choice(("drop", "move", "again"))
        if fate == "again":
            records.append(move(records[row], pen.number(-60, 60)))
        elif fate == "move":
            records[row] = move(records[row], pen.number(-120, 120))
        elif len(records) > 2:
            del records[row]
    return records


def _mostly(stories: st.SearchStrategy[list[Record]]) -> Logs:
    """Return four in five stories unchanged, one torn; at least two lines."""
    told = stories.filter(lambda records: len(records) > 1)
    return st.one_of(told, told, told, told, _torn(told)).map(_written)


def step_logs() -> Logs:
    """Return logs of recorder and Orbax lines (formats A and B) with at least one step, unless torn away."""
    return _mostly(step_stories())


def checkpoint_logs() -> Logs:
    """Return logs of resiliency lines (format C)."""
    return _mostly(checkpoint_stories())


def asynchronous_logs() -> Logs:
    """Return logs of resiliency lines with a few asynchronous saves, for tests with the format of
    `support.asynchronous_saves`."""
    return _mostly(_with_asynchronous_saves(checkpoint_stories()))


@st.composite
def _with_asynchronous_saves(draw: st.DrawFn, stories: st.SearchStrategy[list[Record]]) -> list[Record]:
    pen = Pen(draw)
    return [_asynchronous(record) if pen.maybe(20) else record for record in draw(stories)]


def _asynchronous(record: Record) -> Record:
    if record.get("event_type") != "checkpoint_saved":
        return record
    time = datetime.fromisoformat(record["timestamp"]).replace(tzinfo=UTC).timestamp()
    return {"job_name": JOB, "saved_asynchronously": record["step"], "saved_asynchronously_time": time}


def mixed_logs() -> Logs:
    """Return logs of all three formats: step logs with format C starts, ends and saves; checkpoint logs with phases."""
    return _mostly(st.one_of(step_stories(resiliency=True), checkpoint_stories(phases=True)))


def beaten_logs() -> Logs:
    """Return logs of all three formats with heartbeats in between."""
    stories = st.one_of(step_stories(), step_stories(resiliency=True), checkpoint_stories(phases=True))
    return _mostly(stories.flatmap(with_heartbeats))


def step_end_logs() -> Logs:
    """Return logs that count finished steps, for tests with the format of `support.step_end_lines`."""
    return _mostly(step_end_stories())


def any_logs() -> Logs:
    """Return logs of any of these sorts, without step ends."""
    return st.one_of(step_logs(), checkpoint_logs(), mixed_logs(), beaten_logs())


def messy_logs() -> Logs:
    """Return torn logs only."""
    stories = st.one_of(step_stories(), checkpoint_stories(), step_stories(resiliency=True))
    return _torn(stories.filter(lambda records: len(records) > 1)).map(_written)
