"""When lives died, and what of that was a hang (docs/advice.md, *A hang at the end*, *Death in checkpoint logs*)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from goodput_cli.analysis.advice.replay.record import Death, Life
from goodput_cli.analysis.advice.replay.sums import Ramp


@dataclass(frozen=True)
class Trace:
    """What the log shows of the end of a life, counted ns.

    seen: end of its last complete step or save. blocked: time behind that in which completed saves blocked. death: when
    it ended; None if nothing logged that. alive: until then it surely lived. next_begin: when the next attempt began.
    in_flight: a step had begun. progressed: it completed a step. stride: steps between two of its records.
    """

    seen: int
    blocked: int
    death: int | None
    alive: int
    next_begin: int
    in_flight: bool
    progressed: bool
    stride: int


@dataclass(frozen=True)
class Course:
    """What the whole job shows. saved: the positions at which it saved, rising. end: the end position. extra: evals by
    position. startup: usual start-up of lives (ns)."""

    step_log: bool
    saved: Sequence[int]
    end: int
    extra: Ramp
    startup: int
    choice: Death


def settled(life: Life, trace: Trace, course: Course) -> Life:
    """The life with its start-up, budget and hang."""
    if life.resumed is None:
        behind = trace.alive - trace.seen - trace.blocked if trace.in_flight else 0
        return replace(life, budget=life.trained + life.saves.jumps.upto(life.stop) + behind)
    if course.step_log:
        assert trace.death is not None
        return _with_death(life, trace.death, _hang(life, trace, trace.death, course))
    return _from_checkpoints(life, trace, course)


def _with_death(life: Life, death: int, hang: int) -> Life:
    return replace(life, hang=hang, budget=death - life.begin - life.startup - hang)


def _hang(life: Life, trace: Trace, death: int, course: Course) -> int:
    """Of step logs. Under the record a life must not complete the step that was in flight."""
    behind = death - trace.seen - trace.blocked
    if not trace.in_flight:
        return behind
    step = max(life.usual + course.extra.upto(life.stop + 1) - course.extra.upto(life.stop), 1)
    return max(behind - (step - 1), 0)


def _from_checkpoints(life: Life, trace: Trace, course: Course) -> Life:
    """Had it lived longer, one more save would have been seen."""
    room = life.usual * _steps_ahead(life, trace, course) + (0 if trace.progressed else course.startup)
    death, unseen = trace.death, trace.death is None
    if death is None:
        latest = max(min(trace.next_begin, trace.seen + room - 1), trace.seen)
        between = {"earliest": trace.seen, "middle": _middle(trace.seen, latest), "latest": latest}
        death = max(between[course.choice], trace.alive)
    if not trace.progressed:
        life = replace(life, startup=min(course.startup, death - life.begin))
    behind = death - trace.seen - trace.blocked
    undetermined = death - trace.seen if unseen else 0
    life = replace(life, undetermined=undetermined, unseen_death=unseen)
    return _with_death(life, death, max(behind - (room - 1), 0))


def _steps_ahead(life: Life, trace: Trace, course: Course) -> int:
    """Steps to the next position at which the job saved; if it never did, to the next line of this life."""
    place = bisect_right(course.saved, life.stop)
    if place < len(course.saved):
        return course.saved[place] - life.stop
    left = course.end - life.stop
    return max(min(trace.stride, left) if left > 0 else trace.stride, 1)


def _middle(low: int, high: int) -> int:
    half, odd = divmod(low + high, 2)
    return half + (odd & half & 1)


def usual_startup(lives: Sequence[Life], traces: Sequence[Trace]) -> int:
    """Median start-up (ns) of the lives that show one."""
    known = [life.startup for life, trace in zip(lives, traces, strict=True) if trace.progressed]
    return round(median(known)) if known else 0
