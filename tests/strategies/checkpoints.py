"""Stories of jobs that record their checkpoints only."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .pen import Pen, Record

_MAX_ATTEMPTS, _MAX_SAVES = 4, 5


@dataclass
class _Job:
    """Constants of all attempts of one job, and the current step of training."""

    pen: Pen
    ranks: int  # 0: no line carries a rank
    every: int  # steps between checkpoints
    step_seconds: int
    finished: int  # percent of checkpoints with a step_finished line
    saves_async: bool
    phases: bool  # recorder and Orbax lines between
    saved: int = 0


@st.composite
def checkpoint_stories(draw: st.DrawFn, phases: bool = False) -> list[Record]:
    """Return records of a job that logs starts and checkpoints; with `phases`, recorder and Orbax phases between
    them."""
    pen = Pen(draw)
    job = _Job(
        pen=pen,
        ranks=pen.choice((0, 1, 2, 3)),
        every=pen.choice((1, 5, 20)),
        step_seconds=pen.number(1, 4),
        finished=pen.choice((0, 50, 100)),
        saves_async=pen.maybe(12),
        phases=phases,
    )
    for index in range(pen.number(1, _MAX_ATTEMPTS)):
        _attempt(job, index)
    return pen.records


def _attempt(job: _Job, index: int) -> None:
    pen = job.pen
    if pen.maybe(20):
        pen.event("user_scheduled")
        pen.wait(0, 60)
    if pen.maybe(88):
        _starts(job, index)
    if job.phases:
        _start_up(job)
    pen.wait(0, 20)
    if index > 0 and pen.maybe(12):
        return  # a start without a step
    step = _load(job, index)
    _checkpoints(job, step)
    _ending(job)
    pen.clock += pen.choice((pen.number(0, 30), pen.number(0, 300)))


def _starts(job: _Job, index: int) -> None:
    """Write one start per rank, in any order; sometimes one is missing, or a rank of the previous attempt ends only
    now."""
    pen = job.pen
    if not job.ranks:
        pen.event("job_started")
        return
    first = pen.number(0, job.ranks - 1)
    for turn in range(job.ranks):
        rank = (first + turn) % job.ranks
        if index > 0 and job.ranks > 1 and pen.maybe(5):
            pen.event("job_terminated", node_rank=rank)
        if turn == 0 or not pen.maybe(6):
            pen.event("job_started", node_rank=rank)
        if job.ranks > 1 and pen.maybe(8):
            pen.event("checkpoint_loaded", step=job.saved)  # one rank is quick, or clocks are apart
            pen.wait(0, pen.choice((5, 90, 700)))
        pen.wait(0, 3)


def _start_up(job: _Job) -> None:
    pen = job.pen
    start = pen.clock
    pen.wait(0, 15)
    pen.phase(pen.choice(("tpu_init", "training_prep")), start, pen.clock)
    if pen.maybe(40):
        pen.restore(job.saved, start, pen.clock - start)


def _load(job: _Job, index: int) -> int:
    """Return the step that training goes on from, with or without a line that states it."""
    pen = job.pen
    older = max(0, job.saved - job.every * pen.number(1, 2))
    step = pen.choice((job.saved, job.saved, job.saved, older, pen.number(0, job.saved)))
    if index == 0:
        step = pen.choice((0, 0, pen.number(0, 40)))
    if pen.maybe(80):
        for _ in range(pen.choice((1, 1, max(1, job.ranks)))):
            pen.event("checkpoint_loaded", step=step)
            pen.wait(0, 3)
    return step


def _checkpoints(job: _Job, step: int) -> None:
    pen = job.pen
    for position in range(pen.number(0, _MAX_SAVES)):
        step += job.every
        pen.clock += job.every * job.step_seconds + pen.choice((0, pen.number(0, 5)))
        if position == 0 and pen.maybe(50):
            pen.wait(0, 60)  # warm-up
        if job.phases and pen.maybe(20):
            pen.custom(pen.clock - pen.number(0, 10), pen.clock)
        _checkpoint(job, step)
        if job.ranks > 1 and pen.maybe(4):
            pen.event("job_terminated", node_rank=pen.number(0, job.ranks - 1))  # the others go on
        if pen.maybe(4):
            # In the same process, back to the step it loaded or saved.
            step = max(0, step - job.every * pen.number(0, 2))
            pen.event("checkpoint_loaded", step=step)


def _checkpoint(job: _Job, step: int) -> None:
    pen = job.pen
    finished, saved = pen.maybe(job.finished), not pen.maybe(10)
    if finished:
        pen.event("step_finished", step=step)
        if pen.maybe(5):
            pen.event("step_finished", step=step)
    if not saved:
        return
    blocking = pen.number(0, 10)
    if job.phases and pen.maybe(20):
        pen.save(step, pen.clock, blocking)
    if job.saves_async:
        # Written while training goes on; the line may come after the next step_finished.
        pen.event("checkpoint_saved", at=pen.clock + pen.number(0, 2 * job.every * job.step_seconds), step=step)
    else:
        pen.clock += blocking
        for _ in range(pen.choice((1, 1, 1, max(1, job.ranks)))):
            pen.event("checkpoint_saved", step=step)
            pen.wait(0, 1)
    job.saved = step


def _ending(job: _Job) -> None:
    pen = job.pen
    pen.wait(0, 25)
    event = pen.choice(("", "", "job_terminated", "job_crashed", "user_terminated", "job_finished"))
    if not event:
        return
    if event == "job_terminated" and job.ranks:
        for rank in range(pen.number(1, job.ranks)):
            pen.event(event, node_rank=rank)
            pen.wait(0, 3)
    else:
        pen.event(event)
    if pen.maybe(8):
        pen.wait(0, 5)
        pen.event(pen.choice(("job_terminated", "job_crashed", "job_finished")))
