"""Stories of jobs that count finished steps, some with their mean time; heartbeats between any lines."""

from __future__ import annotations

from hypothesis import strategies as st

from .pen import JOB, Pen, Record
from .steps import step_stories


@st.composite
def step_end_stories(draw: st.DrawFn) -> list[Record]:
    """Return a story of steps with their ends."""
    told: list[Record] = draw(step_stories(resiliency=draw(st.booleans())))
    pen = Pen(draw)
    with_means, mixed = pen.maybe(50), pen.maybe(6)
    before: tuple[int, int] | None = None
    for record in told:
        if "step_count" not in record or (mixed and pen.maybe(50)):
            pen.records.append(record)
            continue
        step, at = record["step_count"], record["step_start_time"]
        pen.fact(steps_done=step, steps_done_time=at)
        if with_means and before is not None and before[0] < step and before[1] < at:
            mean = (at - before[1]) / (step - before[0])
            pen.records[-1]["mean_seconds"] = pen.choice((mean, mean, mean * 0.9, mean * 0.3, mean * 1.4, int(mean)))
        before = step, at
    return draw(with_heartbeats(pen.records))


@st.composite
def with_heartbeats(draw: st.DrawFn, records: list[Record]) -> list[Record]:
    """Return the records with heartbeats, preemption notices, clock changes and lost lines between them, each some
    seconds after the previous line."""
    pen = Pen(draw)
    for record in records:
        pen.records.append(record)
        times = [value for key, value in record.items() if key.endswith("_time")]
        if times and pen.maybe(8):
            kind = pen.choice(("heartbeat", "heartbeat", "heartbeat", "preemption_notice", "clock_step", "dropped"))
            at = times[0] + pen.number(0, 40)
            set_by = {"seconds": pen.number(-20, 20)} if kind == "clock_step" else {}
            lost = {}
            if kind == "dropped":
                begin = times[0] - pen.number(-20, 90)
                lost = {"from": begin, "to": begin + pen.number(0, 60), "lines": 9, "steps": pen.number(0, 3)}
                lost["reason"] = pen.choice(("queue full", "No space left on device", "exit"))
            pen.records.append({"job_name": JOB, "goodput_event": kind, "goodput_time": at} | set_by | lost)
    return pen.records
