"""From the accounting of a job to its record of lives (docs/advice.md, *Lives and gaps*). With `timeline_amounts` the
only module of advice that knows how the accounting is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.endings import End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.claims.priority import Priority
from goodput_cli.accounting.columns import search
from goodput_cli.accounting.sweep import sweep
from goodput_cli.analysis.advice.deaths import Course, Trace, settled, usual_startup
from goodput_cli.analysis.advice.endings import with_endings
from goodput_cli.analysis.advice.record import Death, Life, Record, SaveColumns, latest_extra
from goodput_cli.analysis.advice.saved_intervals import Covered, SavedLines, Saves, saves_of
from goodput_cli.analysis.advice.sums import median_share, ramp, sparse_ramp
from goodput_cli.analysis.advice.timeline_amounts import Clock, Span, amounts_of
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.categories import Category

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def record_of(
    timeline: Timeline, name: str, death: Death = "middle", save_ns: int | None = None, every: int | None = None
) -> Record:
    """The record of one job.

    death: where a life is taken to have ended whose end nothing logged. save_ns: what a save blocks, if the log does
    not show it. every: today's interval in steps, if it is not to be read from the log. `NotEnoughData` without a life.
    """
    return _Reader(timeline, name, death, save_ns, every).record()


@dataclass(frozen=True)
class _Stretches:
    """Stretches of training in counted ns, with their bounds by attempt. complete: whether the last step's end was
    seen. kept: steps kept; all: whether all of its time is. start-up: u."""

    start: I64
    end: I64
    first: I64
    stop: I64
    attempt: I64
    complete: Mask
    kept: I64
    bounds: NDArray[np.intp]


class _Reader:
    def __init__(self, timeline: Timeline, name: str, death: Death, save_ns: int | None, every: int | None) -> None:
        self._timeline, self._name, self._death = timeline, name, death
        self._save_ns, self._every = save_ns, every
        self._clock = Clock(timeline)
        self._step_log = timeline.progress is None
        self._behind = 1 if self._step_log else 0

    @cached_property
    def _lived(self) -> list[int]:
        """Attempts that trained: that hold a stretch; in checkpoint logs that loaded or progressed."""
        progress = self._timeline.progress
        if progress is not None:
            return np.flatnonzero(progress.position_row >= 0).tolist()
        bounds = self._bounds
        return np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()

    @cached_property
    def _bounds(self) -> NDArray[np.intp]:
        return search(self._timeline.training.spans.attempt, np.arange(len(self._timeline.attempts) + 1))

    @cached_property
    def _began(self) -> I64:
        source = self._timeline.records or self._timeline.progress
        assert source is not None
        return source.began

    def record(self) -> Record:
        """All of it."""
        timeline = self._timeline
        if not self._lived:
            raise NotEnoughData(
                "nothing was trained in this job, so that nothing can be advised; `goodput analyze` says how it is"
            )
        counted = self._clock.length(timeline.start, timeline.end)
        lives, last, end = self._lives(), *self._end
        ledger = amounts_of(timeline, [Span(life.attempt, life.undetermined) for life in lives], self._taken_lost)
        lives = [replace(life, ledger_startup=ledger.startup[life.attempt]) for life in lives]
        productive = timeline.ledger.between(
            np.array([timeline.start]), np.array([timeline.end]), (Category.PRODUCTIVE,)
        ).get((Category.PRODUCTIVE, -1), np.zeros(1))
        cost = self._cost
        return with_endings(
            Record(
                name=self._name,
                window=counted,
                productive=int(productive[0]),
                step_log=self._step_log,
                shift=self._shift,
                every=self._interval(lives[0].first),
                cost=cost,
                cost_given=self._save_ns is not None,
                latency=self._latency,
                asynchronous=self._asynchronous,
                shows_saves=len(self._lines) > 0,
                unit=self._unit,
                start=int(self._clock.counted(np.array([timeline.start]))[0]),
                lives=tuple(lives),
                end=end,
                last=last,
                kept_steps=int(np.ceil(self._stretches.kept).sum()),
                amounts=ledger.amounts,
                deaths=self._death,
                background=self._background,
            )
        )

    @property
    def _background(self) -> bool:
        """Whether Orbax lines say that saves go on behind their blocking part."""
        table = self._timeline.table
        used = np.unique(table.detail[table.kind == Kind.SAVE])
        return any(("synchronous", False) in table.details[detail] for detail in used[used >= 0].tolist())

    @property
    def _asynchronous(self) -> bool:
        progress = self._timeline.progress
        return progress is not None and progress.asynchronous

    # --- saves

    @cached_property
    def _lines(self) -> SavedLines:
        """All lines of saves: Orbax intervals; pairs of finished and saved; and saved lines that show no beginning."""
        timeline, table = self._timeline, self._timeline.table
        owner = timeline.attempts.of_row
        orbax = np.flatnonzero((table.kind == Kind.SAVE) & (owner >= 0))
        pairs = timeline.progress.saves if timeline.progress is not None else np.zeros((0, 2), dtype=np.intp)
        alone = self._alone(orbax, pairs)
        first = np.concatenate((orbax, pairs[:, 0], alone))
        saved = np.concatenate((orbax, pairs[:, 1], alone))
        start, end = self._clock.counted(table.time[first]), self._clock.counted(table.end[saved])
        start[len(orbax) + len(pairs) :] = end[len(orbax) + len(pairs) :]
        seen = timeline.ordered.table.end[orbax] == table.end[orbax]
        completed, measured = np.ones(len(first), dtype=bool), np.ones(len(first), dtype=bool)
        completed[: len(orbax)], measured[len(orbax) + len(pairs) :] = seen, False
        return SavedLines(owner[saved].astype(np.int64), table.step[saved], start, end, end, completed, measured)

    def _alone(self, orbax: NDArray[np.intp], pairs: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first `checkpoint_saved` of each step and attempt that no other line shows."""
        table, owner = self._timeline.table, self._timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.SAVED) & (owner >= 0))
        known = {(int(owner[row]), int(table.step[row])) for row in (*orbax.tolist(), *pairs[:, 1].tolist())}
        alone: list[int] = []
        for row, attempt, step in zip(rows.tolist(), owner[rows].tolist(), table.step[rows].tolist(), strict=True):
            if (attempt, step) not in known:
                known.add((attempt, step))
                alone.append(row)
        return np.array(alone, dtype=np.intp)

    @cached_property
    def _saves(self) -> Saves:
        return saves_of(self._own_lines)[0]

    @cached_property
    def _own_lines(self) -> SavedLines:
        """Lines of the saves that count: of a step that the life trained, completed in it."""
        count = len(self._timeline.attempts)
        stretches, bounds = self._stretches, self._bounds
        stop, begin = self._began.copy(), np.full(count, np.iinfo(np.int64).max)
        for attempt in self._lived:
            some = slice(*bounds[attempt : attempt + 2].tolist())
            complete = np.flatnonzero(stretches.complete[some])
            stop[attempt] = stretches.stop[some][complete[-1]] if len(complete) else self._began[attempt]
            begin[attempt] = self._begin[attempt]
        return self._lines.within(self._began, stop, begin, self._alive_until, self._behind)

    @cached_property
    def _measured(self) -> I64:
        return self._saves.cost[self._saves.measured]

    @cached_property
    def _cost(self) -> float | None:
        """Mean time (s) a save blocks."""
        if self._save_ns is not None:
            return self._save_ns / 1e9
        return float(self._measured.mean()) / 1e9 if len(self._measured) else None

    @cached_property
    def _finished(self) -> dict[tuple[int, int], int]:
        """When (counted ns) each attempt first finished each step."""
        table, owner = self._timeline.table, self._timeline.attempts.of_row
        rows = np.flatnonzero((table.kind == Kind.FINISHED) & (owner >= 0))[::-1]
        time = self._clock.counted(table.time[rows])
        return dict(zip(zip(owner[rows].tolist(), table.step[rows].tolist(), strict=True), time.tolist(), strict=True))

    @cached_property
    def _delays(self) -> I64:
        """ns of each save from its step's end until it could be used, in asynchronous jobs."""
        saves = self._saves
        if not self._asynchronous:
            return np.zeros(len(saves.step), dtype=np.int64)
        keys = zip(saves.attempt.tolist(), saves.step.tolist(), saves.usable.tolist(), strict=True)
        return np.array([max(at - self._finished.get((attempt, step), at), 0) for attempt, step, at in keys], np.int64)

    @property
    def _latency(self) -> int:
        return round(median(self._delays.tolist())) if self._asynchronous and len(self._delays) else 0

    def _interval(self, origin: int) -> int | None:
        """Today's interval: lower median distance of the steps that were saved."""
        if self._every is not None:
            return self._every
        steps = np.unique(self._lines.step[self._lines.completed])
        if len(steps) < 2:
            return max(int(steps[0]) - origin, 1) if len(steps) else None
        apart = np.sort(np.diff(steps))
        return int(apart[(len(apart) - 1) // 2])

    @cached_property
    def _shift(self) -> int:
        """From the position at which a save is made to the one it stores: what the restores of saved steps show. A
        restore of a step that was never saved is a beginning from somewhere else."""
        if not self._step_log:
            return 0
        table, attempts = self._timeline.table, self._timeline.attempts
        offsets: list[int] = []
        saved = np.isin(table.step, self._lines.step[self._lines.completed])
        restores = np.flatnonzero((table.kind == Kind.RESTORE) & (attempts.of_row >= 0) & saved)
        owner, begin = attempts.of_row[restores], self._timeline.training.spans.start
        for attempt in self._lived:
            before = restores[(owner == attempt) & (table.time[restores] <= begin[self._bounds[attempt]])]
            if len(before):
                offsets.append(int(self._began[attempt] - table.step[before[-1]]))
        if not offsets:
            return 0
        return min(offsets, key=lambda offset: (-offsets.count(offset), offset)) - self._behind

    # --- training

    @cached_property
    def _begin(self) -> I64:
        """When (counted ns) each life began; 0 for attempts that are none."""
        timeline, begin = self._timeline, np.zeros(len(self._timeline.attempts), dtype=np.int64)
        progress, bounds = timeline.progress, self._bounds
        for attempt in self._lived:
            if bounds[attempt] < bounds[attempt + 1]:
                begin[attempt] = timeline.training.spans.start[bounds[attempt]]
            elif progress is not None:
                load = int(progress.load_row[attempt])
                begin[attempt] = timeline.table.time[load] if load >= 0 else progress.position[attempt]
        return self._clock.counted(begin)

    @cached_property
    def _alive_until(self) -> I64:
        """Counted ns until which each attempt surely lived: its logged end, else its last sign of life."""
        timeline = self._timeline
        alive = timeline.attempts.cut_at_next(timeline.sign_of_life)
        if timeline.progress is not None:
            unseen = timeline.attempts.first_ending < 0
            alive[unseen] = np.maximum(alive, timeline.progress.position)[unseen]
        alive[-1:] = timeline.end
        return self._clock.counted(alive)

    @cached_property
    def _stretches(self) -> _Stretches:
        training = self._timeline.training
        own = training.spans
        start, end = self._clock.counted(own.start), self._clock.counted(own.end)
        complete = np.ones(len(own), dtype=bool)
        kept = np.where(training.credited | training.whole, own.stop - own.first, np.floor(training.kept_steps)).astype(
            np.int64
        )
        kept[training.kept_steps <= 0] = 0
        if self._step_log:
            last = self._bounds[1:][self._bounds[1:] > self._bounds[:-1]] - 1
            complete[last] = training.credited[last]
            self._seen_by_its_save(last[own.attempt[last] < len(self._bounds) - 2], start, end, complete)
        return _Stretches(
            start, end, own.first.astype(np.int64), own.stop.astype(np.int64), own.attempt.astype(np.int64),
            complete, kept, self._bounds,
        )  # fmt: skip

    def _seen_by_its_save(self, last: NDArray[np.intp], start: I64, end: I64, complete: Mask) -> None:
        """The last step of a dead attempt, whose end nothing else shows, was complete when its save began, if that was
        completed; what came before that, an eval for one, belongs to it."""
        own, lines = self._timeline.training.spans, self._lines
        for place in last.tolist():
            attempt = int(own.attempt[place])
            mine = np.flatnonzero((lines.attempt == attempt) & (lines.step == own.stop[place] - 1) & lines.completed)
            mine = mine[(lines.start[mine] >= start[place]) & (lines.end[mine] <= self._alive_until[attempt])]
            if len(mine):
                complete[place], end[place] = True, lines.start[mine].min()

    @cached_property
    def _saved_covered(self) -> Covered:
        return Covered(self._own_lines.start, self._own_lines.end)

    @cached_property
    def _extra(self) -> I64:
        """Evals (custom events) of each stretch, as far as no save covers them."""
        table, phases = self._timeline.table, self._timeline.phases
        custom = table.kind[phases.row] == Kind.CUSTOM
        start, end = self._clock.counted(phases.start[custom]), self._clock.counted(phases.end[custom])
        lines, own = self._own_lines, self._stretches
        both = Covered(np.concatenate((start, lines.start)), np.concatenate((end, lines.end)))
        return both.within(own.start, own.end) - self._saved_covered.within(own.start, own.end)

    @cached_property
    def _net(self) -> I64:
        """Net time of each stretch, of wasted ones too: what nothing but their being wasted claims."""
        claims, own = self._timeline.segments.claims, self._timeline.training.spans
        others = claims.take(np.asarray(claims.rank != Priority.WASTED))
        return sweep(others, self._timeline.start, self._timeline.end).net_between(own.start, own.end)

    @cached_property
    def _startup(self) -> I64:
        """Start-up time (ns) at the beginning of each stretch: the test of accounting §4, for wasted ones too."""
        timeline, training = self._timeline, self._timeline.training
        startup = np.zeros(len(training.spans), dtype=np.int64)
        if self._asynchronous:
            return startup
        first = np.flatnonzero(training.spans.opening & ~training.credited & self._stretches.complete)
        owner = training.spans.attempt[first]
        seen = timeline.attempts.started[owner] | (owner > 0)
        first, owner = first[seen], owner[seen]
        steps = training.spans.steps[first].astype(np.float64)
        usual, deviation = timeline.usual_step.median[owner], timeline.usual_step.deviation[owner]
        with np.errstate(invalid="ignore"):
            out = self._net[first] / steps > usual + 3 * deviation
        first = first[out]
        startup[first] = self._net[first] - np.rint(usual[out] * steps[out]).astype(np.int64)
        return startup

    @cached_property
    def _plain(self) -> I64:
        """Gross time of each stretch without saves, start-up and evals."""
        own = self._stretches
        saved = self._saved_covered.within(own.start, own.end)
        return own.end - own.start - saved - self._extra - self._startup

    @cached_property
    def _taken(self) -> tuple[I64, I64]:
        """What saves of a given cost take, whose time no line shows: of each stretch, and for each save (ns)."""
        own, saves = self._stretches, self._saves
        of_stretch, of_save = np.zeros(len(own.start), np.int64), np.where(saves.measured, saves.cost, 0)
        if self._save_ns is None:
            return of_stretch, of_save
        made = saves.step + self._behind
        for save in np.flatnonzero(~saves.measured).tolist():
            low, high = self._bounds[saves.attempt[save] : saves.attempt[save] + 2].tolist()
            if self._asynchronous:
                place = low + int(np.searchsorted(own.stop[low:high], made[save], "right"))
            else:
                place = low + int(np.searchsorted(own.stop[low:high], made[save], "left"))
            if place < high and own.complete[place]:
                of_save[save] = min(self._save_ns, int(self._plain[place] - of_stretch[place]))
                of_stretch[place] += of_save[save]
        return of_stretch, of_save

    @property
    def _taken_lost(self) -> int:
        """The part of it that the ledger calls wasted."""
        return int(self._taken[0][self._stretches.kept == 0].sum())

    @cached_property
    def _unit(self) -> int:
        """Usual step time (ns) of the job; of wasted training where nothing was kept; 1 where no step was timed."""
        training, timed = self._timeline.training, np.ones(len(self._timeline.training.spans), dtype=bool)
        if self._step_log:
            timed[self._bounds[1:][self._bounds[1:] > self._bounds[:-1]] - 1] = False
        for chosen in (training.sample & ~training.spans.opening & timed, training.sample & timed, timed):
            if chosen.any():
                return max(round(float(np.median(self._net[chosen] / training.spans.steps[chosen]))), 1)
        return 1

    # --- lives

    @cached_property
    def _end(self) -> tuple[int, int]:
        """The life that comes to the end position last, and that position."""
        own = self._stretches
        kept = np.flatnonzero(own.complete & ((own.kept > 0) | (own.end == own.start)))
        kept = kept[(own.kept[kept] > 0) | (kept == len(own.start) - 1)]
        place = {attempt: index for index, attempt in enumerate(self._lived)}
        last, end = len(self._lived) - 1, int(self._began[self._lived[-1]])
        if len(kept):
            row = int(kept[-1])
            last = place[int(own.attempt[row])]
            end = int(own.first[row] + (own.kept[row] or own.stop[row] - own.first[row]))
        farthest = [self._stop_of(attempt) for attempt in self._lived[:last]]
        if farthest and max(farthest) > end:
            end = max(farthest)
            last = max(index for index, stop in enumerate(farthest) if stop == end)
        return last, end

    def _stop_of(self, attempt: int) -> int:
        own, (low, high) = self._stretches, self._bounds[attempt : attempt + 2].tolist()
        complete = np.flatnonzero(own.complete[low:high])
        return int(own.stop[low + complete[-1]]) if len(complete) else int(self._began[attempt])

    def _lives(self) -> list[Life]:
        """All of them, with what is known of how each ended."""
        raw = [self._life(place, attempt) for place, attempt in enumerate(self._lived)]
        traces = [self._trace(life) for life in raw]
        course = Course(
            step_log=self._step_log,
            saved=np.unique(self._saves.step + self._behind).tolist(),
            end=self._end[1],
            extra=latest_extra(raw),
            startup=usual_startup(raw, traces),
            choice=self._death,
        )
        return [settled(life, trace, course) for life, trace in zip(raw, traces, strict=True)]

    def _life(self, place: int, attempt: int) -> Life:
        own, (low, high) = self._stretches, self._bounds[attempt : attempt + 2].tolist()
        rows = low + np.flatnonzero(own.complete[low:high])
        count, extra = own.stop[rows] - own.first[rows], self._extra[rows]
        plain = self._plain[rows] - self._taken[0][rows]
        usual = median_share(count, plain, True) or median_share(count, plain, False) or self._unit
        some = extra > 0
        followed = place + 1 < len(self._lived)
        return Life(
            attempt=attempt,
            first=int(self._began[attempt]),
            stop=self._stop_of(attempt),
            begin=int(self._begin[attempt]),
            startup=int(self._startup[low]) if low < high else 0,
            budget=0,
            hang=0,
            usual=usual,
            work=ramp(np.cumsum(count) - count, count, plain, usual),
            extra=sparse_ramp(own.first[rows][some], own.stop[rows][some], extra[some]),
            saves=self._saves_of(attempt),
            clean=bool(self._timeline.endings.how[attempt] == End.CLEAN) and followed,
            resumed=int(self._began[self._lived[place + 1]]) if followed else None,
            began_at=self._began_at(attempt),
            kept=int((plain * own.kept[rows] // count + extra * own.kept[rows] // count).sum()),
        )

    def _began_at(self, attempt: int) -> str | None:
        progress, low = self._timeline.progress, self._bounds[attempt]
        row = -1 if progress is None else int(progress.load_row[attempt])
        if row < 0 and low < self._bounds[attempt + 1]:
            row = int(self._timeline.training.spans.row[low])
        return self._timeline.table.where(row) if row >= 0 else None

    def _trace(self, life: Life) -> Trace:
        timeline, own, attempt = self._timeline, self._stretches, life.attempt
        low, high = self._bounds[attempt : attempt + 2].tolist()
        rows = low + np.flatnonzero(own.complete[low:high])
        alive, next_begin = int(self._alive_until[attempt]), int(self._next_begin[attempt])
        seen = int(own.end[rows[-1]]) if len(rows) else life.begin
        death: int | None = alive
        if timeline.progress is not None:
            seen = int(self._clock.counted(timeline.progress.position[[attempt]])[0])
            if timeline.attempts.first_ending[attempt] < 0:
                mine = self._saves.usable[self._saves.attempt == attempt]
                death, alive = None, max(seen, int(mine.max(initial=seen)))
        in_flight = low < high and not bool(own.complete[high - 1])
        if life.resumed is None and in_flight:
            alive = int(own.end[high - 1])
        blocked = int(self._saved_covered.within(np.array([seen]), np.array([death or alive]))[0])
        stride = int(own.stop[rows[-1]] - own.first[rows[-1]]) if len(rows) else 1
        return Trace(seen, blocked, death, alive, next_begin, in_flight, len(rows) > 0, stride)

    @cached_property
    def _next_begin(self) -> I64:
        begin = np.append(self._timeline.attempts.begin[1:], self._timeline.end)
        return self._clock.counted(begin)

    def _saves_of(self, attempt: int) -> SaveColumns:
        saves, cost = self._saves, self._taken[1]
        mine = slice(*np.searchsorted(saves.attempt, [attempt, attempt + 1]).tolist())
        delay = np.maximum(self._delays[mine] - cost[mine], 0) if self._asynchronous else self._delays[mine]
        return SaveColumns(saves.step[mine] + self._behind, cost[mine], delay)
