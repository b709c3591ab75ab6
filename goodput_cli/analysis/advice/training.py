"""The training of a job in columns: the time of each span, and which part of it was saves, evals and start-up.

Saves as intervals of an attempt, and the time they block: overlapping time counts once, for the save that began first.

Log lines of saves: which saves were made, how often, and which position each stores.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import distinct, run_heads, without
from goodput_cli.accounting.intervals import Priority
from goodput_cli.accounting.sweep import sweep
from goodput_cli.analysis.advice.amounts import JobTimeline
from goodput_cli.analysis.goodput.findings import CoveredTime
from goodput_cli.analysis.saves import (
    Completion,
    JudgedSaves,
    add_distances_from_start,
    joined,
    judge_saves,
    left_open,
    steps_of_saves,
)
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import NO_STEP, Edge, Kind

NEVER = 1 << 62
"""Time (ns) at which a save that was never complete can be used."""


@dataclass(frozen=True)
class SavedLines:
    """Saves in the log, one row per line or pair of lines; times in counted ns.

    attempt, step: of the save. start, end: the time it blocked. usable: when it could be used. completed: whether its
    end was logged. measured: whether the lines show how long it blocked.
    """

    attempt: I64
    step: I64
    start: I64
    end: I64
    usable: I64
    completed: Mask
    measured: Mask

    def __len__(self) -> int:
        return len(self.attempt)

    def take(self, chosen: Mask | NDArray[np.intp]) -> SavedLines:
        """The chosen rows."""
        return SavedLines(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def within(self, first: I64, stop: I64, begin: I64, end: I64, behind: int) -> SavedLines:
        """Return the saves that an attempt made and completed. By attempt: first and stop position, begin and end (ns);
        behind: offset from a step to the position at which it is saved. A save that one host did not complete does not
        count."""
        made, owner = self.step + behind, self.attempt
        inside = (made > first[owner]) & (made <= stop[owner]) & (self.start >= begin[owner])
        whole = self.completed & (self.end <= end[owner])
        order = np.lexsort((self.step, owner))
        if len(order) == 0:
            return self
        heads = run_heads(owner[order]) | run_heads(self.step[order])
        all_whole = np.logical_and.reduceat(whole[order], np.flatnonzero(heads))
        kept = np.empty(len(order), dtype=bool)
        kept[order] = all_whole[np.cumsum(heads) - 1]
        chosen = np.flatnonzero(inside & kept)
        return self.take(chosen[np.lexsort((self.end[chosen], self.start[chosen]))])


@dataclass(frozen=True)
class TimedSaves:
    """Saves by attempt and step, sorted by both. cost: ns, counted once. end: when it no longer blocked. usable: ns.
    measured: as in the lines."""

    attempt: I64
    step: I64
    start: I64
    end: I64
    cost: I64
    usable: I64
    measured: Mask


class SaveLog:
    """The lines of saves of a job."""

    def __init__(self, job: JobTimeline) -> None:
        self._job = job

    @cached_property
    def lines(self) -> SavedLines:
        """Return all lines of saves: Orbax intervals; pairs of finished and saved; and saved lines that show no
        beginning."""
        timeline, table = self._job.timeline, self._job.timeline.table
        owner = timeline.attempts.of_row
        orbax = np.flatnonzero((table.kind == Kind.SAVE) & (owner >= 0))
        pairs = timeline.progress.saves if timeline.progress is not None else np.zeros((0, 2), dtype=np.intp)
        alone = self._unmatched_saves(orbax, pairs)
        first = np.concatenate((orbax, pairs[:, 0], alone))
        saved = np.concatenate((orbax, pairs[:, 1], alone))
        start, end = self._job.counted(table.time[first]), self._job.counted(table.end[saved])
        start[len(orbax) + len(pairs) :] = end[len(orbax) + len(pairs) :]
        seen = (timeline.ordered.table.end[orbax] == table.end[orbax]) & ~left_open(timeline, orbax)
        completed, measured = np.ones(len(first), dtype=bool), np.ones(len(first), dtype=bool)
        completed[: len(orbax)], measured[len(orbax) + len(pairs) :] = seen, False
        measured[: len(orbax)] = table.edge[orbax] == Edge.INTERVAL
        step = steps_of_saves(timeline, first)
        step = np.where(table.step[saved] == NO_STEP, step, table.step[saved])
        usable = end.copy()
        if self._job.step_log and len(orbax):
            whole = self._usable_from(owner[orbax], step[: len(orbax)], end[: len(orbax)])
            usable[: len(orbax)] = np.maximum(whole, end[: len(orbax)])
        return SavedLines(owner[saved].astype(np.int64), step, start, end, usable, completed, measured)

    @cached_property
    def _judged(self) -> JudgedSaves:
        return judge_saves(self._job.timeline)

    @property
    def states_completion(self) -> bool:
        """Return True if completions have their own lines, after those of the parts that block training."""
        return bool(self._judged.is_apart.any())

    def _usable_from(self, owner: Rows, step: I64, end: I64) -> I64:
        """Return when (counted ns) saves can be used; `NEVER` for unfinished ones. One of unknown completion counts
        from where it no longer blocked (`save_latency_unknown`)."""
        saves = self._judged
        complete, unfinished = saves.is_apart & saves.are(Completion.COMPLETE), saves.are(Completion.UNFINISHED)
        usable = np.where(unfinished, NEVER, self._job.counted(np.where(complete, saves.complete, 0)))
        chosen = np.flatnonzero(complete | unfinished)
        keys = zip(saves.owner[chosen].tolist(), saves.step[chosen].tolist(), strict=True)
        known = dict(zip(keys, usable[chosen].tolist(), strict=True))
        lines = zip(owner.tolist(), step.tolist(), end.tolist(), strict=True)
        return np.array([known.get((attempt, number), at) for attempt, number, at in lines], dtype=np.int64)

    def _unmatched_saves(self, orbax: NDArray[np.intp], pairs: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first `checkpoint_saved` of each step and attempt that no other line shows."""
        table, owner = self._job.timeline.table, self._job.timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.SAVED) & (owner >= 0))
        known = {(int(owner[row]), int(table.step[row])) for row in (*orbax.tolist(), *pairs[:, 1].tolist())}
        alone: list[int] = []
        for row, attempt, step in zip(rows.tolist(), owner[rows].tolist(), table.step[rows].tolist(), strict=True):
            if (attempt, step) not in known:
                known.add((attempt, step))
                alone.append(row)
        return np.array(alone, dtype=np.intp)

    @cached_property
    def finished(self) -> dict[tuple[int, int], int]:
        """Return the counted ns at which each attempt first finished each step."""
        table, owner = self._job.timeline.table, self._job.timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.FINISHED) & (owner >= 0))[::-1]
        time = self._job.counted(table.time[rows])
        return dict(zip(zip(owner[rows].tolist(), table.step[rows].tolist(), strict=True), time.tolist(), strict=True))

    @cached_property
    def saved_steps(self) -> NDArray[np.int64]:
        """Distinct steps of the saves that came to an end."""
        return distinct(self.lines.step[self.lines.completed])

    def interval(self, origin: int) -> int | None:
        """Return today's interval: the number of steps between saves, or from the first step to the only save."""
        lines = self.lines.take(self.lines.completed)
        saves = joined(lines.attempt, lines.step, lines.step, lines.start, lines.end)
        apart = add_distances_from_start(self._job.timeline, saves).apart_steps
        steps = self.saved_steps
        return apart if apart is not None or len(steps) == 0 else max(int(steps[0]) - origin, 1)

    @cached_property
    def shift(self) -> int:
        """Offset from the position at which a save is made to the one it stores, as restores of saved steps show. A
        restore of a step that was never saved is a beginning from somewhere else."""
        if not self._job.step_log:
            return 0
        table, attempts = self._job.timeline.table, self._job.timeline.attempts
        offsets: list[int] = []
        saved = np.isin(table.step, self.lines.step[self.lines.completed])
        restores = np.flatnonzero((table.kind == Kind.RESTORE) & (attempts.of_row >= 0) & saved)
        owner, begin = attempts.of_row[restores], self._job.timeline.training.spans.start
        for attempt in self._job.lived:
            before = restores[(owner == attempt) & (table.time[restores] <= begin[self._job.bounds[attempt]])]
            if len(before):
                offsets.append(int(self._job.began[attempt] - table.step[before[-1]]))
        if not offsets:
            return 0
        return min(offsets, key=lambda offset: (-offsets.count(offset), offset)) - self._job.behind


@dataclass(frozen=True)
class TrainingColumns:
    """Training spans in counted ns. complete: whether the last step's end was seen. kept: steps kept."""

    start: I64
    end: I64
    first: I64
    stop: I64
    attempt: I64
    complete: Mask
    kept: I64


class JobTraining:
    """The training of a job. save_ns: time a save blocks, if not logged. Columns have an item for each training span,
    in ns."""

    def __init__(self, job: JobTimeline, log: SaveLog, save_ns: int | None) -> None:
        self._job, self._log, self._save_ns = job, log, save_ns

    @cached_property
    def own_lines(self) -> SavedLines:
        """Lines of the saves that count: of a step that the attempt trained, completed in it."""
        begin = np.full(len(self.stop), np.iinfo(np.int64).max)
        begin[self._job.lived] = self._job.begin[self._job.lived]
        return self._log.lines.within(self._job.began, self.stop, begin, self._job.alive_until, self._job.behind)

    @cached_property
    def stop(self) -> I64:
        """The position after the last complete step of each attempt: where it began, if it completed none."""
        stop, rows = self._job.began.copy(), np.flatnonzero(self.spans.complete)
        stop[self.spans.attempt[rows]] = self.spans.stop[rows]
        return stop

    @cached_property
    def spans(self) -> TrainingColumns:
        training = self._job.timeline.training
        own = training.spans
        start, end = self._job.counted(own.start), self._job.counted(np.asarray(own.end))
        complete = np.ones(len(own), dtype=bool)
        some = np.floor(training.kept_steps)
        kept = np.where(training.credited | training.whole, own.stop - own.first, some).astype(np.int64)
        kept[training.kept_steps <= 0] = 0
        if self._job.step_log:
            last = self._job.bounds[1:][self._job.bounds[1:] > self._job.bounds[:-1]] - 1
            complete[last] = training.credited[last]
            self._complete_last_steps(last[own.attempt[last] < len(self._job.bounds) - 2], start, end, complete)
        return TrainingColumns(
            start, end, own.first.astype(np.int64), np.array(own.stop, dtype=np.int64), own.attempt.astype(np.int64),
            complete, kept,
        )  # fmt: skip

    def _complete_last_steps(self, last: NDArray[np.intp], start: I64, end: I64, complete: Mask) -> None:
        """Mark the last step of a failed attempt without a logged end as complete from when its save began, if that
        save was completed; earlier time, such as an eval, belongs to the step."""
        own, lines = self._job.timeline.training.spans, self._log.lines
        for place in last.tolist():
            attempt = int(own.attempt[place])
            mine = np.flatnonzero((lines.attempt == attempt) & (lines.step == own.stop[place] - 1) & lines.completed)
            mine = mine[(lines.start[mine] >= start[place]) & (lines.end[mine] <= self._job.alive_until[attempt])]
            if len(mine):
                complete[place], end[place] = True, lines.start[mine].min()

    @cached_property
    def saved_covered(self) -> CoveredTime:
        return CoveredTime(self.own_lines.start, self.own_lines.end)

    @cached_property
    def extra(self) -> I64:
        """Evals (custom events) of each training span, as far as no save covers them."""
        table, phases = self._job.timeline.table, self._job.timeline.phases
        custom = table.kind[phases.row] == Kind.CUSTOM
        start, end = self._job.counted(phases.start[custom]), self._job.counted(phases.end[custom])
        lines, own = self.own_lines, self.spans
        both = CoveredTime(np.concatenate((start, lines.start)), np.concatenate((end, lines.end)))
        return both.within(own.start, own.end) - self.saved_covered.within(own.start, own.end)

    @cached_property
    def net(self) -> I64:
        """Net time of each training span, including wasted ones: time claimed by nothing but the waste."""
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
        first = without(first, training.spans.restarted, len(startup))  # those belong to their place in the attempt
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
        """Return the time that saves of a given cost take if no line shows it: of each training span, and for each save
        (ns)."""
        own, saves = self.spans, self.saves
        of_span, of_save = np.zeros(len(own.start), np.int64), np.where(saves.measured, saves.cost, 0)
        if self._save_ns is None:
            return of_span, of_save
        made = saves.step + self._job.behind
        for save in np.flatnonzero(~saves.measured).tolist():
            low, high = self._job.bounds[saves.attempt[save] : saves.attempt[save] + 2].tolist()
            side: Literal["left", "right"] = "right" if self._job.asynchronous else "left"
            place = low + int(np.searchsorted(own.stop[low:high], made[save], side))
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
    def saves(self) -> TimedSaves:
        """Saves, one per row."""
        lines = self.own_lines
        if len(lines) == 0:
            none = np.zeros(0, dtype=np.int64)
            return TimedSaves(none, none, none, none, none, none, none.astype(bool))
        before = np.append(lines.start[:1], np.maximum.accumulate(lines.end)[:-1])
        # in which it does not block an attempt
        alone = lines.end - np.minimum(np.maximum(lines.start, before), lines.end)
        order = np.lexsort((lines.start, lines.step, lines.attempt))
        owner, step = lines.attempt[order], lines.step[order]
        heads = np.flatnonzero(run_heads(owner) | run_heads(step))
        return TimedSaves(
            owner[heads],
            step[heads],
            lines.start[order][heads],
            np.maximum.reduceat(lines.end[order], heads),
            np.add.reduceat(alone[order], heads),
            np.maximum.reduceat(lines.usable[order], heads),
            np.logical_or.reduceat(lines.measured[order], heads),
        )

    @cached_property
    def delays(self) -> I64:
        """ns of each save until it could be used: in asynchronous jobs from its step's end; in logs of steps from when
        it no longer blocked, `NEVER` less that where it never could."""
        saves = self.saves
        if self._job.step_log:
            return saves.usable - saves.end
        if not self._job.asynchronous:
            return np.zeros(len(saves.step), dtype=np.int64)
        finished = self._log.finished
        keys = zip(saves.attempt.tolist(), saves.step.tolist(), saves.usable.tolist(), strict=True)
        return np.array([max(at - finished.get((attempt, step), at), 0) for attempt, step, at in keys], np.int64)
