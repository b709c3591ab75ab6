"""Amounts of work in the records of a log, by step: the work of one kept step, and the time of its rate.

A record covers the steps since the previous one, never across attempts. Steps after the last record of an attempt, and
steps whose time no record contains, get the values of the record next to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.question import NOTHING_SAID, WorkOptions
from goodput_cli.analysis.steps.times import StatedValues, first_valid_ns
from goodput_cli.arrays import F64, I64, Mask
from goodput_cli.events.schema import NO_STEP, RATE_SECONDS, Edge, Kind, Metric
from goodput_cli.vocabulary.categories import EVAL_LABEL

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.question import Price


_MOST = 1e30
"""Upper limit: a program does not count larger numbers."""
_FAR = 2
"""Multiple of the usual distance: a first record that is farther from 0 covers one usual distance."""
_RATES_SINCE_EVALUATIONS = frozenset({"torchtitan"})
"""Formats whose rates cover the time since the last line of a step or of an evaluation, whichever was later."""


class KeptSteps(NamedTuple):
    """Kept steps of a window: columns with one row per training span that has some."""

    attempt: I64
    """Attempt, from 0."""
    number: I64
    """Last step, in the numbering of the log."""
    end: I64
    """End, ns."""
    inside: F64
    """Number of kept steps inside the window."""
    counted: F64
    """Number of kept steps inside the window, plus those before the first line of the log, whose time is not logged."""


def kept_steps_of(timeline: Timeline, start: int, end: int) -> KeptSteps:
    """Return the kept steps of [start, end) (ns)."""
    kept, ends = timeline.kept_training, timeline.attempts.step_ends
    steps = kept.counted_between(start, end)
    rows = np.flatnonzero(steps > 0)
    spans = kept.spans
    number = spans.stop[rows].astype(np.int64) - (0 if ends else 1)
    attempt, until, inside = spans.attempt[rows].astype(np.int64), kept.end[rows], steps[rows]
    first = _first_line(timeline, start)
    if first is None:
        return KeptSteps(attempt, number, until, inside, inside)
    last, many = first
    return KeptSteps(
        np.append(0, attempt), np.append(last, number), np.append(timeline.start, until), np.append(0.0, inside),
        np.append(many, inside),
    )  # fmt: skip


def _first_line(timeline: Timeline, start: int) -> tuple[int, float] | None:
    """Return the first step and the number of steps that its line covers, if the log begins with the end of a step.
    None for other logs."""
    records, attempts = timeline.records, timeline.attempts
    if start > timeline.start or records is None or not attempts.step_ends or not len(records.rows):
        return None
    if attempts.started[0] or int(records.owner[0]) != 0 or int(records.time[0]) != timeline.start:
        return None
    step, usual = int(records.number[0]), max(records.stride(0), 1)
    many = step if 0 < step < _FAR * usual else usual
    limit = int(timeline.lineage.limit[0])
    return (step, float(many)) if 0 < step <= limit + 1 else None


class Rows(NamedTuple):
    """Values of one metric, by attempt and step, one per step."""

    attempt: I64
    step: I64
    time: I64
    """Time, ns."""
    value: F64

    def take(self, chosen: Mask | I64) -> Rows:
        """Return the chosen rows."""
        return Rows(self.attempt[chosen], self.step[chosen], self.time[chosen], self.value[chosen])


class StepRate(NamedTuple):
    """Value of one step of each kept row, and the seconds of the step that its rate covers."""

    value: F64
    seconds: F64


@dataclass(frozen=True, eq=False)
class WorkRecords:
    """Work that the log and the options report for one job, in a window."""

    timeline: Timeline
    name: str
    """Name of the job."""
    formats: tuple[str, ...]
    """Names of the log's formats."""
    start_ns: int
    end_ns: int
    known: WorkOptions = NOTHING_SAID
    price: Price | None = None

    @staticmethod
    def of(analysis: AnalysisData) -> WorkRecords:
        """Return the records of an analysis."""
        formats = tuple(one.name for one in analysis.job.log_formats)
        window = analysis.window
        return WorkRecords(
            analysis.timeline, analysis.job.name, formats, window.start_ns, window.end_ns, analysis.work_options,
            analysis.price,
        )  # fmt: skip

    @cached_property
    def kept(self) -> KeptSteps:
        """Kept steps of the window."""
        return kept_steps_of(self.timeline, self.start_ns, self.end_ns)

    @cached_property
    def _metrics(self) -> dict[str, list[Metric]]:
        """Metrics of the job, by name."""
        found: dict[str, list[Metric]] = {}
        for one in self.timeline.table.metrics:
            if one.job == self.name:
                found.setdefault(one.name, []).append(one)
        return found

    @property
    def has_metrics(self) -> bool:
        """True if there is any metric."""
        return bool(self._metrics)

    def has_any(self, *names: str) -> bool:
        """Return True if the job has one of these metrics."""
        return any(len(self._rows(name).value) for name in names)

    def _rows(self, name: str) -> Rows:
        """Return the values of a metric that can be amounts: numbers above 0."""
        metrics = self._metrics.get(name, [])
        none = np.zeros(0, dtype=np.int64)
        time = np.concatenate([none, *(one.time for one in metrics)])
        step = np.concatenate([none, *(one.step for one in metrics)])
        value = np.concatenate([np.zeros(0), *(one.value for one in metrics)])
        good = np.isfinite(value) & (value > 0) & (value < _MOST)
        rows = Rows(self._attempt_at(time), step, time, value).take(good)
        return rows.take(np.lexsort((rows.value, rows.time, rows.step, rows.attempt)))

    def _attempt_at(self, time: I64) -> I64:
        found = np.searchsorted(self.timeline.attempts.begin, time, side="right") - 1
        return np.maximum(found, 0).astype(np.int64)

    def unit(self, name: str) -> str:
        """Return the unit of a metric, as written."""
        return next((one.unit for one in self._metrics.get(name, ())), "")

    def values(self, name: str) -> F64:
        """Return all values of a metric."""
        return self._rows(name).value

    def stated(self, names: Iterable[str]) -> Rows | None:
        """Return the first available metric of these; each value applies from its `time` (ns) until the next."""
        for name in names:
            rows = self._rows(name)
            if len(rows.value):
                return self._holding(rows)
        return None

    def _holding(self, rows: Rows) -> Rows:
        """Return values in order of the time (ns) from which each applies, which becomes their time."""
        since = first_valid_ns(self.timeline, rows.time, rows.step)
        return rows._replace(time=since).take(np.lexsort((rows.value, rows.time, since)))

    def at(self, stated: Rows) -> F64:
        """Return the value that applies to each kept row; before the first, the first."""
        return StatedValues(stated.time, stated.value).at(self.kept.end)

    def each(self, name: str) -> F64 | None:
        """Return an amount of one step; None if no record contains it."""
        rows = self._rows(name)
        if not len(rows.value):
            return None
        of_steps = rows.take(rows.step != NO_STEP)
        return self._of_steps(of_steps, of_steps.value) if len(of_steps.value) else self.at(self._holding(rows))

    def differences(self, name: str) -> F64 | None:
        """Return the increase of a running count in one step."""
        rows = _last_of_step(self._rows(name))
        if not len(rows.value):
            return None
        steps, grown = _since_before(rows, rows.step), np.diff(rows.value, prepend=np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(steps > 0, grown / steps, np.nan)
            whole = np.where(rows.step > 0, rows.value / rows.step, np.nan)
        first = np.arange(len(found)) == 0  # The log may begin in the middle, so its count starts at the first step.
        found = np.where(first | ~(found > 0).any(), whole, found)
        good = found > 0
        return self._of_steps(rows.take(good), found[good]) if good.any() else None

    def rate(self, name: str) -> StepRate | None:
        """Return the rate of each kept row, and the seconds of one step that it covers; None if no time is known."""
        rows = _last_of_step(self._rows(name))
        seconds = self._seconds(rows)
        good = (seconds > 0) & np.isfinite(seconds)
        if not good.any():
            return None
        rows, seconds = rows.take(good), seconds[good]
        return StepRate(self._of_steps(rows, rows.value), self._of_steps(rows, seconds))

    def _seconds(self, rows: Rows) -> F64:
        """Return the step time that the rates of some rows cover; NaN if unknown.

        It is the time in the line, otherwise a step time inside it, otherwise the wall time since the previous row.
        """
        own = self._at_same_step(rows, self._rows(RATE_SECONDS))
        timed = self._at_same_step(rows, self._step_times)
        with np.errstate(divide="ignore", invalid="ignore"):
            wall = self._wall_before(rows) / _since_before(rows, rows.step)
        wall = np.where((rows.step == NO_STEP) | (wall <= 0), np.nan, wall)
        return np.where(np.isfinite(own), own, np.where(np.isfinite(timed), timed, wall))

    def _wall_before(self, rows: Rows) -> F64:
        """Return the seconds since the previous row of the same attempt."""
        took = _since_before(rows, rows.time)
        ends = self._evaluation_ends if _RATES_SINCE_EVALUATIONS & {*self.formats} else took[:0]
        if len(ends):
            latest = np.searchsorted(ends, rows.time, side="right") - 1
            since = np.where(latest >= 0, rows.time - ends[np.maximum(latest, 0)], np.inf)
            took = np.minimum(took, since)  # NaN is kept.
        return took / 1e9

    @property
    def _evaluation_ends(self) -> I64:
        """Return the times (ns) at which evaluations ended, in order."""
        table = self.timeline.table
        codes = [code for code, label in enumerate(table.labels) if label == EVAL_LABEL]
        over = (table.kind == Kind.CUSTOM) & (table.edge != Edge.BEGIN) & np.isin(table.label, codes)
        return np.sort(np.asarray(table.end)[over])

    @cached_property
    def _step_times(self) -> Rows:
        """Return the times of one step that step ends contain, in seconds."""
        table = self.timeline.table
        said = np.flatnonzero((table.kind == Kind.STEP) & (table.edge == Edge.END) & (table.step_time > 0))
        time = table.time[said]
        rows = Rows(self._attempt_at(time), table.step[said], time, table.step_time[said] / 1e9)
        return rows.take(np.lexsort((rows.value, rows.time, rows.step, rows.attempt)))

    @staticmethod
    def _at_same_step(rows: Rows, of: Rows) -> F64:
        """Return the value of the same attempt and step; NaN without one."""
        found = np.full(len(rows.step), np.nan)
        if len(of.value):
            keys, others = _keys(of, rows)
            at = np.minimum(np.searchsorted(keys, others, side="left"), len(keys) - 1)
            same = (keys[at] == others) & (of.step[at] == rows.step)
            found[same] = of.value[at][same]
        return found

    def _of_steps(self, rows: Rows, value: F64) -> F64:
        """Return, by kept row, the value of the first row of its attempt at or after its step; without one, of the last
        row before it."""
        kept = self.kept
        keys, others = _keys(rows, Rows(kept.attempt, kept.number, kept.end, kept.inside))
        at = np.searchsorted(keys, others, side="left")
        there = at < len(keys)
        there[there] = rows.attempt[at[there]] == kept.attempt[there]
        return np.asarray(value[np.where(there, at, np.maximum(at - 1, 0))])


def _keys(rows: Rows, others: Rows) -> tuple[I64, I64]:
    """Return sort keys by attempt and step: of rows, and of others among them."""
    steps = np.unique(rows.step)
    width = len(steps) + 1
    mine = rows.attempt * width + np.searchsorted(steps, rows.step)
    return mine, others.attempt * width + np.searchsorted(steps, others.step, side="left")


def _last_of_step(rows: Rows) -> Rows:
    """Return one row per step of an attempt: the last."""
    if len(rows.step) < 2:
        return rows
    more = (rows.step[1:] != rows.step[:-1]) | (rows.attempt[1:] != rows.attempt[:-1])
    return rows.take(np.append(more, True))


def _since_before(rows: Rows, column: I64) -> F64:
    """Return the increase of a column since the previous row of the same attempt; NaN without one."""
    grown = np.full(len(column), np.nan)
    same = rows.attempt[1:] == rows.attempt[:-1]
    grown[1:][same] = (column[1:] - column[:-1])[same]
    return grown


def mean_over(stated: Rows, pieces: Iterable[tuple[int, int]]) -> float | None:
    """Return the time-weighted mean of a stated value; before the first value it is the first. pieces: [start, end) in
    ns."""
    total, weighted = 0, 0.0
    for start, end in pieces:
        inner = stated.time[(stated.time > start) & (stated.time < end)]
        edges = np.concatenate(([start], inner, [end]))
        latest = np.maximum(np.searchsorted(stated.time, edges[:-1], side="right") - 1, 0)
        weighted += float((stated.value[latest] * np.diff(edges)).sum())
        total += end - start
    return weighted / total if total else None
