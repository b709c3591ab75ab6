"""Training spans (accounting §4) of step logs: the units of training that are kept or wasted.

The usual step time (accounting §4): a median that start-ups, rollbacks and exclusions do not affect.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts, Beginnings, Strides, find_beginnings
from goodput_cli.accounting.columns import owner_type, positions, search, without
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.arrays import F64, I64, Mask, Rows, blocks
from goodput_cli.events.schema import NO_STEP, EventTable

_SHORT = 1 << 30
"""Step numbers below it, their sums and their differences fit into 32 bits. This saves a tenth of the size of a log
that is nearly all steps."""


class TrainingSpans(Struct, frozen=True, dict=True):
    """k spans of training in time order, without overlap: one recorded step, or the steps between two records.

    Columns of length k. Some may be those of step records: do not write to them.
    """

    start: I64
    end: I64
    """ns."""
    first: I64
    stop: I64
    """The steps first <= s < stop that are trained in it."""
    attempt: Rows
    row: Rows
    """Row of the event that begins it: a step's start, or the checkpoint event before it."""
    end_row: Rows | None
    """Row of the event that ends it. None in step logs, where the event that begins the next span ends it."""
    opening: Mask
    """True if it may contain a start-up: the first of its attempt, or the first after an elastic re-initialization."""
    ending: int = -1
    """Step logs: row of the event that ends the job's last span, or -1."""

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def restarted(self) -> Rows:
        """Spans that are `opening` without being the first of their attempt."""
        places = np.flatnonzero(self.opening)
        return np.asarray(places[(places > 0) & (self.attempt[places - 1] == self.attempt[places])])

    @property
    def steps(self) -> I64:
        """Number of steps in each span."""
        return self.stop - self.first

    def take(self, chosen: Mask | Rows) -> TrainingSpans:
        """Return the chosen spans."""
        columns = {name: getattr(self, name) for name in self.__struct_fields__ if name != "ending"}
        return structs.replace(self, **{name: column[chosen] for name, column in columns.items() if column is not None})

    def end_rows(self, chosen: Rows) -> Rows:
        """Return the lines that end the chosen spans; -1 without one."""
        if self.end_row is not None:
            return self.end_row[chosen]
        following = np.minimum(chosen + 1, len(self) - 1)
        ends = np.where(self.attempt[following] == self.attempt[chosen], self.row[following], -1)
        ends[chosen == len(self) - 1] = self.ending
        return ends

    def latest_end(self, otherwise: I64) -> I64:
        """Return the end (ns) of the last span of each attempt; `otherwise` (one per attempt) for those without any, or
        if that is later."""
        bounds = search(self.attempt, np.arange(len(otherwise) + 1))
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        latest = otherwise.copy()
        latest[some] = np.maximum(latest[some], self.end[bounds[1:][some] - 1])
        return latest


class StepRecordsByAttempt(Struct, frozen=True, dict=True):
    """Step records of a step log, by attempt."""

    rows: Rows
    owner: Rows
    """Row and attempt of every record that counts."""
    number: I64
    time: I64
    """Step number and time (ns) of each."""
    bounds: NDArray[np.intp]
    """The records of attempt a are at bounds[a] .. bounds[a + 1] - 1."""
    beginnings: Beginnings | None = None
    """Begin of attempts in step-end logs, where `number` counts finished steps. None if `number` is the step that
    begins."""

    @property
    def attempts(self) -> int:
        """Number of attempts of the job, those without a record included."""
        return len(self.bounds) - 1

    @cached_property
    def has_records(self) -> Mask:
        """True for each attempt that has a record."""
        return self.bounds[1:] > self.bounds[:-1]

    @cached_property
    def began(self) -> I64:
        """First recorded step of each attempt, `NO_STEP` without. In step-end logs: number of steps done at its
        begin."""
        if self.beginnings is not None:
            return self.beginnings.step
        return np.where(self.has_records, self._number_at(self.bounds[:-1]), NO_STEP)

    @cached_property
    def last(self) -> I64:
        """Last recorded step of each attempt; `NO_STEP` without any."""
        return np.where(self.has_records, self._number_at(self.bounds[1:] - 1), NO_STEP)

    @cached_property
    def last_row(self) -> Rows:
        """Row of the last record of each attempt; -1 without any."""
        if len(self.rows) == 0:
            return np.full(self.attempts, -1, dtype=np.intp)
        return np.where(self.has_records, self.rows[np.maximum(self.bounds[1:] - 1, 0)], -1)

    def _number_at(self, places: NDArray[np.intp]) -> I64:
        if len(self.number) == 0:
            return np.full(len(places), NO_STEP, dtype=np.int64)
        return self.number[np.minimum(np.maximum(places, 0), len(self.number) - 1)].astype(np.int64)

    def stride(self, attempt: int) -> int:
        """Return the attempt's usual distance between recorded steps."""
        return self._strides.of(attempt)

    @cached_property
    def _strides(self) -> Strides:
        return Strides(self.number, self.bounds)


def step_records(table: EventTable, attempts: Attempts) -> StepRecordsByAttempt:
    """Return the step records that count, by attempt."""
    rows, bounds = attempts.steps, attempts.step_bounds
    owner = np.repeat(np.arange(len(attempts), dtype=owner_type(len(attempts))), np.diff(bounds))
    beginnings = find_beginnings(table, attempts) if attempts.step_ends else None
    number = table.step[rows]
    if number.min(initial=0) > -_SHORT and number.max(initial=0) < _SHORT:
        number = number.astype(np.int32)
    return StepRecordsByAttempt(rows, owner, number, table.time[rows], bounds, beginnings)


def first_after(time: I64, bounds: NDArray[np.intp], reinitializations: tuple[Rows, I64]) -> list[int]:
    """Return the positions of the first times at or after the end of each elastic re-initialization: attempt and end
    (ns). time: ns, sorted in each attempt a, which has bounds[a] .. bounds[a + 1] - 1."""
    found = []
    for attempt, end in zip(*(column.tolist() for column in reinitializations), strict=True):
        first, after = bounds[attempt : attempt + 2].tolist()
        place = first + int(np.searchsorted(time[first:after], end))
        found += [place] if place < after else []
    return found


def step_spans(
    records: StepRecordsByAttempt, ending: int, reinitializations: tuple[Rows, I64]
) -> tuple[TrainingSpans, NDArray[np.intp]]:
    """Return one span per record: step s runs to the start of the next recorded step of its attempt.

    ending: row of the event that ends the job's last step, or -1. reinitializations: attempt and end (ns) of each
    elastic re-initialization. Also return the positions of the last steps of attempts, which have no length yet,
    because their end is not logged (see `last_steps`). `end` and `stop` are filled in later; all other columns may be
    those of the records.
    """
    last = records.bounds[1:][records.has_records] - 1
    opening = np.zeros(len(records.rows), dtype=bool)
    opening[records.bounds[:-1][records.has_records]] = True
    opening[first_after(records.time, records.bounds, reinitializations)] = True
    opening[last] = False
    end, stop = np.roll(records.time, -1), np.roll(records.number, -1)
    end[last], stop[last] = records.time[last], records.number[last] + 1
    return (
        TrainingSpans(records.time, end, records.number, stop, records.owner, records.rows, None, opening, ending),
        last,
    )


_AT_ONCE = 1 << 17
"""Number of spans per block."""


class UsualStepTimes(Struct, frozen=True):
    """Usual time per step, one value per attempt, in ns; nan if there is none."""

    own: F64
    """Median over the attempt's own spans alone."""
    median: F64
    """The same, with the median over all attempts for those without their own."""
    deviation: F64
    """Median absolute deviation (unscaled) of the spans of `median`."""
    opening: F64
    """Time per step of its own first span, if that is a sample."""
    overall: float
    """Median over all attempts. nan also if every attempt that trained has its own."""

    def of_last_step(self, attempt: int) -> float:
        """Return the usual step time by which a last step is judged: the attempt's own first span precedes other
        attempts' spans."""
        for value in (self.own[attempt], self.opening[attempt], self.overall):
            if not np.isnan(value):
                return float(value)
        return float("nan")


def usual_step_times_of(
    spans: TrainingSpans, claimed_time: ClaimedTime | None, sample: Mask, attempts: int
) -> UsualStepTimes:
    """Return the median of net time (ns) per step, per attempt; of gross time without claims.

    sample: True for spans that may be used: wholly kept and touched by no exclusion. First spans are set aside.
    """
    bounds = search(spans.attempt, np.arange(attempts + 1))
    opening = without(np.flatnonzero(sample & spans.opening), spans.restarted, len(spans))
    first = np.full(attempts, np.nan)
    first[spans.attempt[opening]] = _rates(spans, claimed_time, opening)
    rows = positions(sample & ~spans.opening)
    rate, inside = _rates(spans, claimed_time, rows), np.searchsorted(rows, bounds)
    size = np.diff(inside)
    overall = overall_deviation = float("nan")
    if len(rate) and ((size == 0) & (np.diff(bounds) > 0)).any():  # it is needed only by an attempt without its own
        overall = float(np.median(rate))
        overall_deviation = float(np.median(np.abs(rate - overall)))
    own = np.full(attempts, np.nan)
    deviation = np.full(attempts, overall_deviation)
    for count in np.flatnonzero(np.bincount(size)).tolist():
        if count:
            alike = np.flatnonzero(size == count)
            for begin, stop in blocks(len(alike), max(_AT_ONCE // count, 1)):
                some = alike[begin:stop]
                own[some], deviation[some] = _medians_and_deviations(rate, inside[some], count)
    return UsualStepTimes(own, np.where(np.isnan(own), overall, own), deviation, first, overall)


def _rates(spans: TrainingSpans, claimed_time: ClaimedTime | None, rows: Rows) -> F64:
    """Return the time (ns) per step of some spans. Computed in blocks: whole columns took 200 MB more for 5 x 10^6
    spans."""
    rate = np.empty(len(rows))
    for first, stop in blocks(len(rows)):
        some = rows[first:stop]
        start, end = spans.start[some], spans.end[some]
        ns = end - start if claimed_time is None else claimed_time.net_between(start, end)
        rate[first:stop] = ns / (spans.stop[some] - spans.first[some])
    return rate


def _medians_and_deviations(values: F64, starts: NDArray[np.intp], count: int) -> tuple[F64, F64]:
    """Return the median and unscaled median absolute deviation of several runs of `count` values each. Attempts of one
    length are computed together, because a log may have many. The values of a single run are overwritten, since they
    may be all there are."""
    one = slice(int(starts[0]), int(starts[0]) + count)
    runs = values[starts[:, None] + np.arange(count)] if len(starts) > 1 else values[None, one]
    medians = np.median(runs, axis=1)
    runs -= medians[:, None]
    return medians, np.median(np.abs(runs, out=runs), axis=1)
