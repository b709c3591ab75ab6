"""Logs that name their writers: Cloud Logging entries, and heartbeats of the recorder."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import strategies as st

from .pen import BASE, JOB, Pen, Record
from .steps import step_stories


@st.composite
def entry_logs(draw: st.DrawFn) -> list[str]:
    """Return stories of steps by named processes; almost every start line is of a new one."""
    told: list[Record] = draw(step_stories(resiliency=draw(st.integers(0, 3)) == 3))
    pen = Pen(draw)
    how = pen.choice(("logger", "pod", "number"))
    count, alive = 0, [0]
    lines = []
    for place, record in enumerate(told):
        starts = "job_start_time" in record or record.get("event_type") == "job_started"
        if starts and pen.maybe(90):
            count += 1
            alive = [*(writer for writer in alive if pen.maybe(50)), count]
        writer = pen.choice(alive)
        lines.append(json.dumps(record if pen.maybe(3) else entry(record, how, writer, place)))
    return lines


@st.composite
def agent_logs(draw: st.DrawFn) -> list[str]:
    """Return stories of steps whose starts and ends come from a few launcher agents, each named or known by its
    file."""
    told: list[Record] = draw(step_stories(resiliency=draw(st.integers(0, 3)) == 3))
    pen = Pen(draw)
    names = ["text: launcher job.log 0", "text: launcher job.log 1", "text: launcher job.log "][pen.choice((0, 2)) :]
    lines = []
    for place, record in enumerate(told):
        is_step = "step_start_time" in record
        labels = {"python_logger": "trainer" if is_step else pen.choice(names)}
        lines.append(json.dumps({**entry(record, "logger", 0, place), "labels": labels}))
    return lines


@st.composite
def beating_logs(draw: st.DrawFn) -> list[str]:
    """Return stories of steps with heartbeats of processes, most of which last from one start line to the next.
    Processes may announce themselves, heartbeats may omit their process, and losses may not be finite."""
    told: list[Record] = draw(step_stories())
    pen = Pen(draw)
    every, silent = pen.choice((5, 10, 70)), pen.maybe(20)
    named, announced, losses = pen.maybe(60), pen.maybe(40), pen.maybe(20)
    records = list(told)
    starts = [float(record["job_start_time"]) for record in told if "job_start_time" in record and pen.maybe(90)]
    end = max((float(record["step_start_time"]) for record in told if "step_start_time" in record), default=BASE) + 20
    for life, (begin, stop) in enumerate(pairwise([*(starts or [float(BASE)]), end])):
        at = begin + pen.number(0, 4)
        while at < stop:
            beat = {"job_name": JOB, "goodput_event": "heartbeat", "goodput_time": at}
            if not (silent and pen.maybe(10)):
                records.append({**beat, "run_id": f"r{life}"} if named else beat)
            if losses and pen.maybe(30):
                records.append({**beat, "goodput_event": "metrics", "step": 1, "loss": "nan"})
            at += every
        if announced and pen.maybe(90):
            records.append({"job_name": JOB, "goodput_event": "attempt", "goodput_time": begin, "run_id": f"r{life}"})
    return [json.dumps(record) for record in records]


def entry(payload: Record, how: str, writer: int, place: int) -> Record:
    """Return an entry of a writer: named by its logger, by its pod, or by the numbers of its entries alone."""
    labels = {"python_logger": f"recorder.{writer}"} if how == "logger" else {}
    resource = {"pod_name": f"pod-{writer}"} if how == "pod" else {}
    insert_id = f"w{writer}-{place}" if how == "number" else f"id{place}"
    return {
        "insertId": insert_id, "jsonPayload": payload, "logName": "projects/p/logs/goodput_j",
        "timestamp": f"2026-02-01T00:00:{place % 60:02d}.{place:06d}Z", "labels": labels,
        "resource": {"type": "global", "labels": {"project_id": "p", **resource}},
    }  # fmt: skip
