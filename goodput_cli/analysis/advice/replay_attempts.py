"""The record of attempts of a job, from its accounting (docs/advice.md, *How the interval is chosen*): when attempts
ended, which part of that was a hang, and how they ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.advice.amounts import JobTimeline, amounts_of
from goodput_cli.analysis.advice.record import (
    Ending,
    EndKind,
    JobRecord,
    LinearTotal,
    ReplayAttempt,
    SaveColumns,
    half,
    latest_extra,
    linear_total,
    median_share,
    sparse_linear_total,
)
from goodput_cli.analysis.advice.replay import AttemptReplay, RecordedSaves
from goodput_cli.analysis.advice.training import NEVER, JobTraining, SaveLog
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.question import Death
from goodput_cli.arrays import I64
from goodput_cli.errors import NotEnoughData
from goodput_cli.vocabulary.categories import Category


@dataclass(frozen=True)
class DeathEvidence:
    """Evidence of the end of an attempt, counted ns.

    seen: end of its last complete step or save. blocked: time after that in which completed saves blocked. death: when
    it ended; None if not logged. alive: until then it surely ran. next_begin: when the next attempt began. in_flight: a
    step had begun. progressed: it completed a step. stride: steps between two of its records.
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
    """Facts about the whole job. saved: the positions at which it saved, rising. end: the end position. extra: evals by
    position. startup: usual start-up of attempts (ns)."""

    step_log: bool
    saved: Sequence[int]
    end: int
    extra: LinearTotal
    startup: int
    choice: Death


def completed_attempt(life: ReplayAttempt, evidence: DeathEvidence, context: JobContext) -> ReplayAttempt:
    """Return the attempt with its start-up, budget and hang."""
    if life.resumed is None:
        behind = evidence.alive - evidence.seen - evidence.blocked if evidence.in_flight else 0
        return replace(life, budget=life.trained + life.saves.step_total.total_at(life.stop) + behind)
    if context.step_log:
        assert evidence.death is not None
        hang = evidence.death - evidence.seen - evidence.blocked
        if evidence.in_flight:  # under the record an attempt must not complete the step that was in flight
            step = max(life.usual + context.extra.total_at(life.stop + 1) - context.extra.total_at(life.stop), 1)
            hang = max(hang - (step - 1), 0)
        return _with_death(life, evidence.death, hang)
    return _from_checkpoints(life, evidence, context)


def _with_death(life: ReplayAttempt, death: int, hang: int) -> ReplayAttempt:
    return replace(life, hang=hang, budget=death - life.begin - life.startup - hang)


def _from_checkpoints(life: ReplayAttempt, evidence: DeathEvidence, context: JobContext) -> ReplayAttempt:
    """Had it lived longer, one more save would have been seen."""
    room = life.usual * _steps_ahead(life, evidence, context) + (0 if evidence.progressed else context.startup)
    death, unseen = evidence.death, evidence.death is None
    if death is None:
        latest = max(min(evidence.next_begin, evidence.seen + room - 1), evidence.seen)
        between = {"earliest": evidence.seen, "middle": half(evidence.seen + latest), "latest": latest}
        death = max(between[context.choice], evidence.alive)
    if not evidence.progressed:
        life = replace(life, startup=min(context.startup, death - life.begin))
    behind = death - evidence.seen - evidence.blocked
    undetermined = death - evidence.seen if unseen else 0
    life = replace(life, undetermined=undetermined, unseen_death=unseen)
    return _with_death(life, death, max(behind - (room - 1), 0))


def _steps_ahead(life: ReplayAttempt, evidence: DeathEvidence, context: JobContext) -> int:
    """Return the steps to the next position at which the job saved; if it never did, to the next line of
    this attempt."""
    place = bisect_right(context.saved, life.stop)
    if place < len(context.saved):
        return context.saved[place] - life.stop
    left = context.end - life.stop
    return max(min(evidence.stride, left) if left > 0 else evidence.stride, 1)


def with_endings(record: JobRecord) -> JobRecord:
    """The record with `ends` filled in."""
    policy = RecordedSaves(record)
    usable = [record.lives[0].first]
    ends: list[Ending] = []
    for index, life in enumerate(record.lives):
        if life.resumed is None:
            ends.append(Ending(EndKind.END, life.stop, life.first, None))
            continue
        run = AttemptReplay(record, policy, index, 0, life.first)
        died = run.within(life.budget, max(record.end, life.stop)).position
        stored = [int(made) + record.shift for made in _completed(life, run)]
        stored = [position for position in stored if position <= died + 1]
        usable += [position for position in stored if position > life.first]
        newest = max([life.first, *stored])
        while usable and usable[-1] > life.resumed:  # checkpoints above it are forgotten
            usable.pop()
        ends.append(Ending(_kind(life, newest), died, newest, usable[-1] if usable else None))
        usable.append(life.resumed)
    return replace(record, ends=tuple(ends))


def _completed(life: ReplayAttempt, run: AttemptReplay) -> list[int]:
    """Return the positions of the saves that could be used before the attempt ended."""
    made, delay = life.saves.made_at.tolist(), life.saves.delay.tolist()
    end = life.budget + life.hang
    return [at for at, later in zip(made, delay, strict=True) if not later or run.done(at) + later <= end]


def _kind(life: ReplayAttempt, newest: int) -> EndKind:
    assert life.resumed is not None
    if life.clean:
        return EndKind.STOP
    if life.resumed == newest:
        return EndKind.NEWEST
    return EndKind.OLDER if life.resumed < newest else EndKind.BEYOND


def record_of(
    timeline: Timeline, name: str, death: Death = "middle", save_ns: int | None = None, every: int | None = None
) -> JobRecord:
    """Return the record of one job.

    death: where an attempt is assumed to have ended if its end was not logged. save_ns: time a save blocks, if not
    logged. every: today's interval in steps, if not logged. Raises `NotEnoughData` without an attempt.
    """
    return _RecordBuilder(timeline, name, death, save_ns, every).record()


class _RecordBuilder:
    """Builder of a job's record from its accounting."""

    def __init__(self, timeline: Timeline, name: str, death: Death, save_ns: int | None, every: int | None) -> None:
        self._job = JobTimeline(timeline)
        self._log = SaveLog(self._job)
        self._training = JobTraining(self._job, self._log, save_ns)
        self._name, self._death, self._save_ns, self._every = name, death, save_ns, every

    def record(self) -> JobRecord:
        """The record of the job."""
        timeline = self._job.timeline
        if not self._job.lived:
            raise NotEnoughData(
                "this job trained no step, so there is nothing to recommend",
                tip="run `goodput analyze` for where its time went",
            )
        start, stop = self._job.counted(np.array([timeline.start, timeline.end])).tolist()
        lives, last, end = self._attempts(), *self._end
        productive = timeline.ledger.in_window(timeline.start, timeline.end, (Category.PRODUCTIVE,))
        cost = self._cost
        return with_endings(
            JobRecord(
                name=self._name,
                window=stop - start,
                productive=productive.get((Category.PRODUCTIVE, -1), 0),
                step_log=self._job.step_log,
                step_ends=timeline.attempts.step_ends,
                shift=self._log.shift,
                every=self._every or self._log.interval(lives[0].first),
                cost=cost,
                cost_given=self._save_ns is not None,
                latency=self._latency,
                asynchronous=self._job.asynchronous or self._log.states_completion,
                unit=self._training.unit,
                start=start,
                lives=tuple(lives),
                end=end,
                last=last,
                kept_steps=int(np.ceil(self._training.spans.kept).sum()),
                amounts=amounts_of(timeline, lives, self._training.taken_lost),
                deaths=self._death,
                background=self._job.background and not self._log.states_completion,
                one_save=self._every is None and len(self._log.saved_steps) == 1,
                failed_last=self._failed_last(lives[-1]),
            )
        )

    def _failed_last(self, life: ReplayAttempt) -> bool:
        timeline = self._job.timeline
        is_last = life.attempt == len(timeline.attempts) - 1
        return is_last and (life.steps > 0 or not self._job.step_log) and last_failure(timeline) is not None

    @cached_property
    def _measured(self) -> I64:
        return self._training.saves.cost[self._training.saves.measured]

    @cached_property
    def _cost(self) -> float | None:
        """Mean time (s) a save blocks."""
        if self._save_ns is not None:
            return self._save_ns / 1e9
        return float(self._measured.mean()) / 1e9 if len(self._measured) else None

    @property
    def _latency(self) -> int:
        """Median ns of asynchronous saves until they could be used: of those that ever could."""
        saves, delays = self._training.saves, self._training.delays
        known = delays[saves.usable < NEVER].tolist()
        return round(median(known)) if known else 0

    @cached_property
    def _end(self) -> tuple[int, int]:
        """Return the last attempt that reaches the end position, and that position."""
        own = self._training.spans
        kept = np.flatnonzero(own.complete & ((own.kept > 0) | (own.end == own.start)))
        kept = kept[(own.kept[kept] > 0) | (kept == len(own.start) - 1)]
        place = {attempt: index for index, attempt in enumerate(self._job.lived)}
        last, end = len(self._job.lived) - 1, int(self._job.began[self._job.lived[-1]])
        if len(kept):
            row = int(kept[-1])
            last = place[int(own.attempt[row])]
            end = int(own.first[row] + (own.kept[row] or own.stop[row] - own.first[row]))
        farthest = self._training.stop[self._job.lived[:last]].tolist()
        if farthest and max(farthest) > end:
            end = max(farthest)
            last = max(index for index, stop in enumerate(farthest) if stop == end)
        return last, end

    def _attempts(self) -> list[ReplayAttempt]:
        """Return all attempts, with how each ended."""
        raw = [self._attempt(place, attempt) for place, attempt in enumerate(self._job.lived)]
        traces = [self._trace(life) for life in raw]
        startups = [life.startup for life, trace in zip(raw, traces, strict=True) if trace.progressed]
        course = JobContext(
            step_log=self._job.step_log,
            saved=distinct(self._training.saves.step + self._job.behind).tolist(),
            end=self._end[1],
            extra=latest_extra(raw),
            startup=round(median(startups)) if startups else 0,
            choice=self._death,
        )
        return [completed_attempt(life, trace, course) for life, trace in zip(raw, traces, strict=True)]

    def _attempt(self, place: int, attempt: int) -> ReplayAttempt:
        own, (low, high) = self._training.spans, self._job.bounds[attempt : attempt + 2].tolist()
        rows = low + np.flatnonzero(own.complete[low:high])
        count, extra = own.stop[rows] - own.first[rows], self._training.extra[rows]
        plain = self._training.plain[rows] - self._training.taken[0][rows]
        usual = median_share(count, plain, True) or median_share(count, plain, False) or self._training.unit
        some = extra > 0
        followed = place + 1 < len(self._job.lived)
        steps = np.maximum(count, 1)  # step-end logs have spans without a step
        return ReplayAttempt(
            attempt=attempt,
            first=int(self._job.began[attempt]),
            stop=int(self._training.stop[attempt]),
            begin=int(self._job.begin[attempt]),
            startup=int(self._training.startup[low]) if low < high else 0,
            budget=0,
            hang=0,
            usual=usual,
            work=linear_total(np.cumsum(count) - count, count, plain, usual),
            extra=sparse_linear_total(own.first[rows][some], own.stop[rows][some], extra[some]),
            saves=self._saves_of(attempt),
            clean=followed and not self._job.timeline.failed[attempt],
            resumed=int(self._job.began[self._job.lived[place + 1]]) if followed else None,
            began_at=self._began_at(attempt),
            kept=int((plain * own.kept[rows] // steps + extra * own.kept[rows] // steps).sum()),
        )

    def _began_at(self, attempt: int) -> str | None:
        progress, low = self._job.timeline.progress, self._job.bounds[attempt]
        row = -1 if progress is None else int(progress.load_row[attempt])
        if row < 0 and low < self._job.bounds[attempt + 1]:
            row = int(self._job.timeline.training.spans.row[low])
        return self._job.timeline.table.where(row) if row >= 0 else None

    def _trace(self, life: ReplayAttempt) -> DeathEvidence:
        timeline, own, attempt = self._job.timeline, self._training.spans, life.attempt
        low, high = self._job.bounds[attempt : attempt + 2].tolist()
        rows = low + np.flatnonzero(own.complete[low:high])
        alive, next_begin = int(self._job.alive_until[attempt]), int(self._job.next_begin[attempt])
        seen = int(own.end[rows[-1]]) if len(rows) else life.begin
        death: int | None = alive
        if timeline.progress is not None:
            seen = int(self._job.counted(timeline.progress.position[[attempt]])[0])
            if timeline.attempts.first_ending[attempt] < 0:
                mine = self._training.saves.usable[self._training.saves.attempt == attempt]
                death, alive = None, max(seen, int(mine.max(initial=seen)))
        in_flight = low < high and not bool(own.complete[high - 1])
        if life.resumed is None and in_flight:
            alive = int(own.end[high - 1])
        blocked = int(self._training.saved_covered.within(np.array([seen]), np.array([death or alive]))[0])
        stride = int(own.stop[rows[-1]] - own.first[rows[-1]]) if len(rows) else 1
        return DeathEvidence(seen, blocked, death, alive, next_begin, in_flight, len(rows) > 0, stride)

    def _saves_of(self, attempt: int) -> SaveColumns:
        saves, cost = self._training.saves, self._training.taken[1]
        mine = slice(*np.searchsorted(saves.attempt, [attempt, attempt + 1]).tolist())
        delay = self._training.delays[mine]
        if self._job.asynchronous:
            delay = np.maximum(delay - cost[mine], 0)
        return SaveColumns(saves.step[mine] + self._job.behind, cost[mine], delay)
