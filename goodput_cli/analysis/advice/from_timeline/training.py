"""The training of a job in columns: what each span of it took, and what of that were saves, evals and start-up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.claims.priority import Priority
from goodput_cli.accounting.sweep import sweep
from goodput_cli.analysis.advice.from_timeline.job import JobTimeline
from goodput_cli.analysis.advice.from_timeline.saved_intervals import Covered, SavedLines, Saves, saves_of
from goodput_cli.analysis.advice.from_timeline.saves import SaveLog
from goodput_cli.arrays import I64, Mask
from goodput_cli.events.schema import Kind


@dataclass(frozen=True)
class TrainingColumns:
    """Training spans in counted ns, with their bounds by attempt. complete: whether the last step's end was
    seen. kept: steps kept; all: whether all of its time is. start-up: u."""

    start: I64
    end: I64
    first: I64
    stop: I64
    attempt: I64
    complete: Mask
    kept: I64
    bounds: NDArray[np.intp]


class JobTraining:
    """The training of a job. save_ns: what a save blocks, if the log does not show it. Columns have an item for each
    training span, in ns."""

    def __init__(self, job: JobTimeline, log: SaveLog, save_ns: int | None) -> None:
        self._job, self._log, self._save_ns = job, log, save_ns

    @cached_property
    def own_lines(self) -> SavedLines:
        """Lines of the saves that count: of a step that the life trained, completed in it."""
        count = len(self._job.timeline.attempts)
        spans, bounds = self.spans, self._job.bounds
        stop, begin = self._job.began.copy(), np.full(count, np.iinfo(np.int64).max)
        for attempt in self._job.lived:
            some = slice(*bounds[attempt : attempt + 2].tolist())
            complete = np.flatnonzero(spans.complete[some])
            stop[attempt] = spans.stop[some][complete[-1]] if len(complete) else self._job.began[attempt]
            begin[attempt] = self._job.begin[attempt]
        return self._log.lines.within(self._job.began, stop, begin, self._job.alive_until, self._job.behind)

    @cached_property
    def spans(self) -> TrainingColumns:
        training = self._job.timeline.training
        own = training.spans
        start, end = self._job.clock.counted(own.start), self._job.clock.counted(np.asarray(own.end))
        complete = np.ones(len(own), dtype=bool)
        some = np.floor(training.kept_steps[:])
        kept = np.where(training.credited | training.whole, own.stop - own.first, some).astype(np.int64)
        kept[~training.kept_steps.some] = 0
        if self._job.step_log:
            last = self._job.bounds[1:][self._job.bounds[1:] > self._job.bounds[:-1]] - 1
            complete[last] = training.credited[last]
            self._seen_by_its_save(last[own.attempt[last] < len(self._job.bounds) - 2], start, end, complete)
        return TrainingColumns(
            start, end, own.first.astype(np.int64), np.array(own.stop, dtype=np.int64), own.attempt.astype(np.int64),
            complete, kept, self._job.bounds,
        )  # fmt: skip

    def _seen_by_its_save(self, last: NDArray[np.intp], start: I64, end: I64, complete: Mask) -> None:
        """The last step of a dead attempt, whose end nothing else shows, was complete when its save began, if that was
        completed; what came before that, an eval for one, belongs to it."""
        own, lines = self._job.timeline.training.spans, self._log.lines
        for place in last.tolist():
            attempt = int(own.attempt[place])
            mine = np.flatnonzero((lines.attempt == attempt) & (lines.step == own.stop[place] - 1) & lines.completed)
            mine = mine[(lines.start[mine] >= start[place]) & (lines.end[mine] <= self._job.alive_until[attempt])]
            if len(mine):
                complete[place], end[place] = True, lines.start[mine].min()

    @cached_property
    def saved_covered(self) -> Covered:
        return Covered(self.own_lines.start, self.own_lines.end)

    @cached_property
    def extra(self) -> I64:
        """Evals (custom events) of each training span, as far as no save covers them."""
        table, phases = self._job.timeline.table, self._job.timeline.phases
        custom = table.kind[phases.row] == Kind.CUSTOM
        start, end = self._job.clock.counted(phases.start[custom]), self._job.clock.counted(phases.end[custom])
        lines, own = self.own_lines, self.spans
        both = Covered(np.concatenate((start, lines.start)), np.concatenate((end, lines.end)))
        return both.within(own.start, own.end) - self.saved_covered.within(own.start, own.end)

    @cached_property
    def net(self) -> I64:
        """Net time of each training span, of wasted ones too: what nothing but their being wasted claims."""
        claims, own = self._job.timeline.segments.claims, self._job.timeline.training.spans
        others = claims.take(np.asarray(claims.priority != Priority.WASTED))
        claimed_time = sweep(others, self._job.timeline.start, self._job.timeline.end)
        return claimed_time.net_between(own.start, np.asarray(own.end))

    @cached_property
    def startup(self) -> I64:
        """Start-up time (ns) at the beginning of each training span: the test of accounting §4, for wasted ones too."""
        timeline, training = self._job.timeline, self._job.timeline.training
        startup = np.zeros(len(training.spans), dtype=np.int64)
        if self._job.asynchronous:
            return startup
        first = np.flatnonzero(training.spans.opening & ~training.credited & self.spans.complete)
        first = np.setdiff1d(first, training.spans.restarted)  # those belong to their place in the life
        owner = training.spans.attempt[first]
        seen = timeline.attempts.started[owner] | (owner > 0)
        first, owner = first[seen], owner[seen]
        steps = training.spans.steps[first].astype(np.float64)
        usual, deviation = timeline.usual_step.median[owner], timeline.usual_step.deviation[owner]
        with np.errstate(invalid="ignore"):
            out = self.net[first] / steps > usual + 3 * deviation
        first = first[out]
        startup[first] = self.net[first] - np.rint(usual[out] * steps[out]).astype(np.int64)
        return startup

    @cached_property
    def plain(self) -> I64:
        """Gross time of each training span without saves, start-up and evals."""
        own = self.spans
        saved = self.saved_covered.within(own.start, own.end)
        return own.end - own.start - saved - self.extra - self.startup

    @cached_property
    def taken(self) -> tuple[I64, I64]:
        """What saves of a given cost take, whose time no line shows: of each training span, and for each save (ns)."""
        own, saves = self.spans, self.saves
        of_span, of_save = np.zeros(len(own.start), np.int64), np.where(saves.measured, saves.cost, 0)
        if self._save_ns is None:
            return of_span, of_save
        made = saves.step + self._job.behind
        for save in np.flatnonzero(~saves.measured).tolist():
            low, high = self._job.bounds[saves.attempt[save] : saves.attempt[save] + 2].tolist()
            if self._job.asynchronous:
                place = low + int(np.searchsorted(own.stop[low:high], made[save], "right"))
            else:
                place = low + int(np.searchsorted(own.stop[low:high], made[save], "left"))
            if place < high and own.complete[place]:
                of_save[save] = min(self._save_ns, int(self.plain[place] - of_span[place]))
                of_span[place] += of_save[save]
        return of_span, of_save

    @property
    def taken_lost(self) -> int:
        """The part of it that the ledger calls wasted."""
        return int(self.taken[0][self.spans.kept == 0].sum())

    @cached_property
    def unit(self) -> int:
        """Usual step time (ns) of the job; of wasted training where nothing was kept; 1 where no step was timed."""
        training, timed = self._job.timeline.training, np.ones(len(self._job.timeline.training.spans), dtype=bool)
        if self._job.step_log:
            timed[self._job.bounds[1:][self._job.bounds[1:] > self._job.bounds[:-1]] - 1] = False
        for chosen in (training.sample & ~training.spans.opening & timed, training.sample & timed, timed):
            if chosen.any():
                return max(round(float(np.median(self.net[chosen] / training.spans.steps[chosen]))), 1)
        return 1

    @cached_property
    def saves(self) -> Saves:
        return saves_of(self.own_lines)[0]

    @cached_property
    def delays(self) -> I64:
        """ns of each save from its step's end until it could be used, in asynchronous jobs."""
        saves = self.saves
        if not self._job.asynchronous:
            return np.zeros(len(saves.step), dtype=np.int64)
        finished = self._log.finished
        keys = zip(saves.attempt.tolist(), saves.step.tolist(), saves.usable.tolist(), strict=True)
        return np.array([max(at - finished.get((attempt, step), at), 0) for attempt, step, at in keys], np.int64)
