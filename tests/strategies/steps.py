"""Stories of jobs that record their steps."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .pen import Pen, Record

_MAX_ATTEMPTS, _MAX_STEPS = 4, 8


@dataclass
class _Job:
    """Constants of all attempts of one job, and the last step recorded so far."""

    pen: Pen
    stride: int
    step_seconds: int
    busy: int  # percent of steps with something inside
    elastic: bool
    host_lag: int  # seconds by which a second host reports; 0: one host
    resiliency: bool  # starts and ends are written by a resiliency library
    writers: int = 1  # processes that all write their own recorder lines, without a rank
    last_step: int = -1


@st.composite
def step_stories(draw: st.DrawFn, resiliency: bool = False) -> list[Record]:
    """Return records of a job that logs its steps; with `resiliency`, starts, ends and checkpoints come as format C."""
    pen = Pen(draw)
    job = _Job(
        pen=pen,
        stride=pen.choice((1, 1, 1, 2, 5, 10)),
        step_seconds=pen.number(1, 20),
        busy=pen.choice((10, 40, 0)),
        elastic=pen.maybe(15),
        host_lag=0,
        resiliency=resiliency,
    )
    if not resiliency and pen.maybe(20):
        job.writers = pen.number(2, 4)
    if pen.maybe(12):
        job.host_lag = pen.number(1, 4 * job.step_seconds)
    for index in range(pen.number(1, _MAX_ATTEMPTS)):
        _attempt(job, index)
    return pen.records


def _attempt(job: _Job, index: int) -> None:
    pen = job.pen
    in_process = index > 0 and job.elastic and pen.maybe(60)
    if in_process:
        _elastic(job)
    elif pen.maybe(85):
        _start_lines(job)
        _start_up(job)
    elif pen.maybe(50):
        _start_up(job)  # the start line was lost
    if index > 0 and pen.maybe(10):
        pen.wait(0, 40)  # a start without a step
        return
    _training(job, index)
    _ending(job)
    pen.clock += pen.choice((pen.number(0, 40), pen.number(0, 300)))


def _start_lines(job: _Job) -> None:
    pen = job.pen
    if not job.resiliency:
        pen.fact(job_start_time=pen.clock)
        for _ in range(job.writers - 1):
            pen.wait(0, pen.choice((2, 2, 40)))
            pen.fact(job_start_time=pen.clock)
    else:
        if pen.maybe(20):
            pen.event("user_scheduled")
            pen.wait(0, 30)
        for rank in range(pen.number(1, 3)):
            pen.event("job_started", node_rank=rank)
            pen.wait(0, 2)
    if job.elastic:
        pen.slices(4, 4)


def _start_up(job: _Job) -> None:
    """Write initialization, preparation with or without a restore, a blocking load, an initial save: some of them."""
    pen = job.pen
    pen.wait(0, 3)
    if pen.maybe(50):
        start = pen.clock
        pen.wait(0, 20)
        _by_each(job, "tpu_init", start, pen.clock)
    if pen.maybe(50):
        start = pen.clock
        pen.wait(1, 25)
        _by_each(job, "training_prep", start, pen.clock)
        if pen.maybe(50):
            inside = pen.number(start, pen.clock)
            pen.restore(max(0, job.last_step), inside, pen.number(0, pen.clock - inside + 5))
    if pen.maybe(15):
        start = pen.clock
        pen.wait(0, 8)
        pen.phase("data_loading", start, pen.clock)
    if pen.maybe(8):
        pen.save(0, pen.clock, pen.number(1, 5))
        pen.wait(0, 6)


def _by_each(job: _Job, phase: str, start: int, end: int) -> None:
    """Write a phase of every process, a little apart: the slowest may end it after the first step."""
    for writer in range(job.writers):
        late = job.pen.number(0, 3) if writer else 0
        job.pen.phase(phase, start + late, end + late)


def _elastic(job: _Job) -> None:
    """Write a wait for slices and a re-initialization in the same process."""
    pen = job.pen
    kind = pen.choice(("slice_down", "Scale_Up"))
    pen.slices(3, 3)
    if pen.maybe(80):
        start = pen.clock
        pen.wait(0, 40)
        pen.phase("elastic_wait", start, pen.clock, elastic_wait_event_type=kind)
    if pen.maybe(80):
        start = pen.clock
        _start_up(job)
        _by_each(job, "elastic_reinit", start, pen.clock)
    pen.slices(4 if kind != "slice_down" else 3, 4)


def _training(job: _Job, index: int) -> None:
    pen = job.pen
    step = _first_step(job, index)
    for position in range(pen.number(0 if index else 1, _MAX_STEPS)):
        _step(job, step, compiles=position == 0)
        job.last_step = step
        step += job.stride if not pen.maybe(3) else job.stride * 2


def _first_step(job: _Job, index: int) -> int:
    pen, last = job.pen, max(job.last_step, 0)
    if index == 0:
        return pen.choice((0, 0, 0, pen.number(0, 50)))
    back = min(last, job.stride * pen.number(0, 3))
    return pen.choice((last + job.stride, last - back, last - back, pen.number(0, last), last + 1, 0))


def _step(job: _Job, step: int, compiles: bool) -> None:
    pen = job.pen
    begin = pen.clock
    pen.fact(step_count=step, step_start_time=begin)
    if job.host_lag and not pen.maybe(10):
        pen.fact(step_count=step, step_start_time=begin + max(0, job.host_lag - pen.number(0, 1)))
    for _ in range(job.writers - 1):
        pen.fact(step_count=step, step_start_time=begin + pen.number(0, 1))
    length = job.step_seconds
    if pen.maybe(15):
        length = max(1, length + pen.number(-3, 3))
    if compiles and pen.maybe(60):
        length += pen.number(0, 60)
    if pen.maybe(3):
        length += pen.number(4, 20) * job.step_seconds  # a hang
    if job.resiliency and pen.maybe(4):
        pen.event("job_terminated", node_rank=pen.number(0, 2))  # one rank leaves, the others go on
    if pen.maybe(job.busy):
        length += _inside(job, step, begin, length)
    pen.clock = begin + length


def _inside(job: _Job, step: int, begin: int, length: int) -> int:
    """Write an event inside a step; return by how many seconds it makes the step longer."""
    pen = job.pen
    start = begin + pen.number(0, length)
    seconds = pen.number(0, 15)
    match pen.choice(("save", "eval", "load", "nested", "across", "orphan")):
        case "save":
            for _ in range(pen.choice((1, 1, 3))):
                pen.save(step, start, max(0, seconds - pen.number(0, 3)))
            if job.resiliency:
                pen.event("checkpoint_saved", at=start + seconds, step=step)
        case "eval":
            pen.custom(start, start + seconds)
        case "load":
            waits = {"between_steps": True} if pen.maybe(30) else {}
            pen.phase("data_loading", start, start + min(seconds, length), **waits)
            return 0
        case "nested":
            pen.custom(start, start + seconds)
            pen.custom(start + seconds // 3, start + seconds // 2)
        case "across":
            pen.custom(start, start + seconds + length)
            return 0
        case _:
            pen.phase(pen.choice(("tpu_init", "training_prep", "elastic_reinit")), start, start + seconds)
    return seconds


def _ending(job: _Job) -> None:
    pen = job.pen
    if pen.maybe(8):
        start = pen.clock
        pen.wait(0, 20)
        pen.custom(start, pen.clock)  # a last eval
    if pen.maybe(5):
        pen.wait(10, 200)  # a hang after the last step
    if pen.maybe(10):
        _lose_the_last_lines(job)
    if not pen.maybe(60):
        return
    pen.wait(0, 4)
    if not job.resiliency:
        pen.fact(job_end_time=pen.clock)
    else:
        _resiliency_end(job)
    if pen.maybe(6):
        pen.wait(0, 5)
        pen.custom(pen.clock, pen.clock + 2)  # stragglers
    if pen.maybe(4):
        pen.fact(job_end_time=pen.clock)


def _lose_the_last_lines(job: _Job) -> None:
    """Drop the last lines, as a kill before a writer flushed them does. The step it reached was saved."""
    lost = job.pen.number(1, 4 * job.writers)
    keep = max(len(job.pen.records) - lost, 1)
    del job.pen.records[keep:]


def _resiliency_end(job: _Job) -> None:
    pen = job.pen
    event = pen.choice(("job_terminated", "job_crashed", "user_terminated", "job_finished"))
    for rank in range(pen.number(1, 3)):
        pen.event(event, node_rank=rank)
        pen.wait(0, 2)
