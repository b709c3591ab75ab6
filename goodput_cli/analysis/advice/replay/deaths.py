"""When lives died, and what of that was a hang (docs/advice.md, *A hang at the end*, *Death in checkpoint logs*).

How lives ended: what the next one began with, against what it could have (docs/advice.md, *How a life ended*).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from goodput_cli.analysis.advice.replay.policy import AsRecorded
from goodput_cli.analysis.advice.replay.record import Death, Ending, JobRecord, Kind, Life, LinearTotal
from goodput_cli.analysis.advice.replay.replay import Run


@dataclass(frozen=True)
class DeathEvidence:
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
class JobContext:
    """What the whole job shows. saved: the positions at which it saved, rising. end: the end position. extra: evals by
    position. startup: usual start-up of lives (ns)."""

    step_log: bool
    saved: Sequence[int]
    end: int
    extra: LinearTotal
    startup: int
    choice: Death


def settled(life: Life, evidence: DeathEvidence, context: JobContext) -> Life:
    """The life with its start-up, budget and hang."""
    if life.resumed is None:
        behind = evidence.alive - evidence.seen - evidence.blocked if evidence.in_flight else 0
        return replace(life, budget=life.trained + life.saves.step_total.upto(life.stop) + behind)
    if context.step_log:
        assert evidence.death is not None
        return _with_death(life, evidence.death, _hang(life, evidence, evidence.death, context))
    return _from_checkpoints(life, evidence, context)


def _with_death(life: Life, death: int, hang: int) -> Life:
    return replace(life, hang=hang, budget=death - life.begin - life.startup - hang)


def _hang(life: Life, evidence: DeathEvidence, death: int, context: JobContext) -> int:
    """Of step logs. Under the record a life must not complete the step that was in flight."""
    behind = death - evidence.seen - evidence.blocked
    if not evidence.in_flight:
        return behind
    step = max(life.usual + context.extra.upto(life.stop + 1) - context.extra.upto(life.stop), 1)
    return max(behind - (step - 1), 0)


def _from_checkpoints(life: Life, evidence: DeathEvidence, context: JobContext) -> Life:
    """Had it lived longer, one more save would have been seen."""
    room = life.usual * _steps_ahead(life, evidence, context) + (0 if evidence.progressed else context.startup)
    death, unseen = evidence.death, evidence.death is None
    if death is None:
        latest = max(min(evidence.next_begin, evidence.seen + room - 1), evidence.seen)
        between = {"earliest": evidence.seen, "middle": _middle(evidence.seen, latest), "latest": latest}
        death = max(between[context.choice], evidence.alive)
    if not evidence.progressed:
        life = replace(life, startup=min(context.startup, death - life.begin))
    behind = death - evidence.seen - evidence.blocked
    undetermined = death - evidence.seen if unseen else 0
    life = replace(life, undetermined=undetermined, unseen_death=unseen)
    return _with_death(life, death, max(behind - (room - 1), 0))


def _steps_ahead(life: Life, evidence: DeathEvidence, context: JobContext) -> int:
    """Steps to the next position at which the job saved; if it never did, to the next line of this life."""
    place = bisect_right(context.saved, life.stop)
    if place < len(context.saved):
        return context.saved[place] - life.stop
    left = context.end - life.stop
    return max(min(evidence.stride, left) if left > 0 else evidence.stride, 1)


def _middle(low: int, high: int) -> int:
    half, odd = divmod(low + high, 2)
    return half + (odd & half & 1)


def usual_startup(lives: Sequence[Life], evidence_of_lives: Sequence[DeathEvidence]) -> int:
    """Median start-up (ns) of the lives that show one."""
    known = [life.startup for life, evidence in zip(lives, evidence_of_lives, strict=True) if evidence.progressed]
    return round(median(known)) if known else 0


def with_endings(record: JobRecord) -> JobRecord:
    """The record with `ends` filled in."""
    policy = AsRecorded(record)
    usable = [record.lives[0].first]
    ends: list[Ending] = []
    for index, life in enumerate(record.lives):
        if life.resumed is None:
            ends.append(Ending(Kind.END, life.stop, life.first, None))
            continue
        died = Run(record, policy, index, 0, life.first).within(life.budget, record.end).position
        stored = [int(made) + record.shift for made in life.saves.made_at]
        stored = [position for position in stored if position <= died + 1]
        usable += [position for position in stored if position > life.first]
        newest = max([life.first, *stored])
        ends.append(Ending(_kind(life, newest), died, newest, _newest_upto(usable, life.resumed)))
        usable.append(life.resumed)
    return replace(record, ends=tuple(ends))


def _kind(life: Life, newest: int) -> Kind:
    assert life.resumed is not None
    if life.clean:
        return Kind.STOP
    if life.resumed == newest:
        return Kind.NEWEST
    return Kind.OLDER if life.resumed < newest else Kind.BEYOND


def _newest_upto(usable: list[int], limit: int) -> int | None:
    """The newest checkpoint not above a position; those above it are forgotten."""
    while usable and usable[-1] > limit:
        usable.pop()
    return usable[-1] if usable else None
