"""Progress (accounting §4): from the events of a job to its training, with what the lineage keeps of it. The last steps
of step logs are among it, whose end nothing says, and training spans of step-end logs, which end where their steps were
done.

The reference step time (accounting §6): given, found in the log, or none, and the slowdown it makes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.claims import lost_steps
from goodput_cli.accounting.columns import owner_type
from goodput_cli.accounting.intervals import Priority, reinitialised
from goodput_cli.accounting.options import AccountingOptions
from goodput_cli.accounting.sweep import ClaimedTime, Claims, claim
from goodput_cli.accounting.training.checkpoints import CheckpointProgress, checkpoint_progress
from goodput_cli.accounting.training.kept import (
    ALL_KEPT,
    NOTHING_KEPT,
    KeptTraining,
    Lineage,
    TrainingOutcome,
    apply_lineage,
    scaled,
    share_outside,
    trace,
)
from goodput_cli.accounting.training.spans import (
    StepRecordsByAttempt,
    TrainingSpans,
    UsualStepTimes,
    first_behind,
    step_records,
    step_spans,
    usual_step_times_of,
)
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import NONE, EventTable
from goodput_cli.vocabulary.categories import Category

MOST_UNRECORDED_NS = 300 * 10**9
"""What a writer that buffers may lose at a kill: above it, a whole attempt is missing."""
_MOST_NS = 2.0**62


class Progress(Struct, frozen=True):
    """The progress of a job."""

    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    checkpoints: CheckpointProgress | None
    """None in step logs."""
    lineage: Lineage
    training: TrainingOutcome
    """All training, last steps of dead attempts included."""

    def may_start(self, attempts: Attempts) -> Mask:
        """Whether the start-up of each attempt may be inferred: not where the log begins in the middle of a run, not
        behind a rollback, and not beside asynchronous saves, which overlap the first span."""
        if self.checkpoints is not None and self.checkpoints.asynchronous:
            return np.zeros(len(attempts), dtype=bool)
        return attempts.started | (~attempts.rolled_back & (np.arange(len(attempts)) > 0))


def find_progress(
    table: EventTable, attempts: Attempts, endings: Endings, rules: AccountingOptions, sign_of_life: I64
) -> Progress:
    """Training of a job, and what is kept of it. sign_of_life: ns, one an attempt."""
    if attempts.step_log:
        return _of_steps(table, attempts, rules, sign_of_life)
    return _of_checkpoints(table, attempts, endings, rules)


def _of_steps(table: EventTable, attempts: Attempts, rules: AccountingOptions, sign_of_life: I64) -> Progress:
    records = step_records(table, attempts)
    lineage = trace(records.began, records.last, records.stride)
    ending = int(attempts.first_ending[-1]) if len(attempts) else -1
    again = reinitialised(table, attempts, sign_of_life)
    if attempts.step_ends:
        spans, last_of_attempt = end_spans(table, records, ending, again)
    else:
        spans, last_of_attempt = step_spans(records, ending, again)
    training = apply_lineage(spans, lineage, rules, lost_steps(table))
    sample = training.sample
    sample[last_of_attempt] = False
    gross_step = cache(lambda: usual_step_times_of(spans, None, sample, len(attempts)))  # few jobs need it
    dead = DeadAttempts(table, attempts, records, lineage, gross_step, sign_of_life)
    last = dead.last_steps(rules.exclusions)
    training = with_last_steps(training, last, last_of_attempt[: len(last.spans)], rules.exclusions)
    if len(attempts) and records.has[-1]:  # its last step is credited with nothing while nothing says that it ended
        training.kept_steps[-1], training.credited[-1] = 0, True
    return Progress(records, None, lineage, training)


def _of_checkpoints(table: EventTable, attempts: Attempts, endings: Endings, rules: AccountingOptions) -> Progress:
    checkpoints = checkpoint_progress(table, attempts, rules.method.async_saves)
    lineage = _cut_by_crash(trace(checkpoints.began, checkpoints.last, lambda _: 0), checkpoints, endings)
    return Progress(None, checkpoints, lineage, apply_lineage(checkpoints.spans, lineage, rules))


def _cut_by_crash(lineage: Lineage, checkpoints: CheckpointProgress, endings: Endings) -> Lineage:
    """A checkpoint log's last attempt that ended in `job_crashed` keeps what it had saved, no more."""
    last = np.flatnonzero(lineage.limit == ALL_KEPT)
    crashed = last[endings.how[last] == End.CRASHED]
    limit = lineage.limit.copy()
    limit[crashed] = np.maximum(checkpoints.last_save[crashed], checkpoints.began[crashed])
    return structs.replace(lineage, limit=limit)


class ReferenceStepTime(Struct, frozen=True):
    """The reference step time in use."""

    ns: Fraction
    origin: Literal["given", "auto"]
    alike: float = 1.0
    """Of `auto`: how many times the reference the pace of a span may be and still be as fast."""


def reference_step_time(
    rules: AccountingOptions, training: TrainingOutcome, claimed_time: ClaimedTime, step_log: bool
) -> ReferenceStepTime | None:
    """Return the reference step time in use; None without one.

    claimed_time: what training cannot have. Checkpoint logs take "auto" where nothing is given.
    """
    if isinstance(rules.reference_ns, Fraction):
        return ReferenceStepTime(rules.reference_ns, "given")
    return auto_reference(training, claimed_time) if rules.reference_ns == "auto" or not step_log else None


def auto_reference(training: TrainingOutcome, claimed_time: ClaimedTime) -> ReferenceStepTime | None:
    """The usual pace of the fastest spans (`usual_pace`): net time per step (ns) over wholly kept, untouched spans that
    are not an attempt's first; if there are none, over the first ones; None if there are none either, or if it is 0:
    clocks of whole seconds show no time for most of many steps a second (accounting §6)."""
    spans = training.spans
    for chosen in (training.sample & ~spans.opening, training.sample & spans.opening):
        if chosen.any():
            net = claimed_time.net_between(spans.start[chosen], spans.end[chosen])
            pace, alike = usual_pace(net, spans.steps[chosen])
            return ReferenceStepTime(pace, "auto", alike) if pace else None
    return None


_ALIKE, _OF_NOISE = 0.1, 3.0
_NORMAL = 0.6744897501960817 * 2**0.5
"""The median distance of two values of a standard normal distribution."""
_TIED = 1 + 1e-9


def usual_pace(net: I64, steps: I64) -> tuple[Fraction, float]:
    """What a step usually takes (ns) where the job runs as fast as it does (accounting §6): from the 10th percentile
    on, the median of the values that are above it by at most a tenth, or by three times the noise of neighbours, until
    it stays; then the mean of these, so that nothing is slow where all of them are alike. And how many times that a
    pace may be and still be alike. net: ns of spans, in time order; steps: how many each has."""
    rate = net / steps
    pace = float(np.percentile(rate, 10))
    if pace <= 0:
        return Fraction(0), 1.0
    logs = np.log(rate[rate > 0])
    noise = float(np.median(np.abs(np.diff(logs)))) / _NORMAL if len(logs) > _FEW else 0.0
    ordered, most = np.sort(rate), (1 + max(_ALIKE, _OF_NOISE * noise)) * _TIED
    before = 0.0
    while pace > before:  # it only grows, and there are so many values
        before, pace = pace, float(np.median(ordered[: np.searchsorted(ordered, pace * most, side="right")]))
    return _exact_mean(net, steps, rate <= max(before, pace) * most), most


def _exact_mean(net: I64, steps: I64, chosen: Mask) -> Fraction:
    """The mean of net / steps (ns): exact, so that a job in which all are alike has no slowdown of a ns; to the
    precision of floating point where spans have very many different numbers of steps."""
    sizes, which = np.unique(steps[chosen], return_inverse=True)
    if len(sizes) > _MANY_SIZES:
        return Fraction(float((net[chosen] / steps[chosen]).mean()))
    sums = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(sums, which, net[chosen])
    total = sum((Fraction(ns, size) for ns, size in zip(sums.tolist(), sizes.tolist(), strict=True)), Fraction(0))
    return total / int(np.count_nonzero(chosen))


_MANY_SIZES = 64
_FEW = 2


def with_slowdown(kept_training: KeptTraining, reference_ns: Fraction) -> KeptTraining:
    """With a reference R: kept steps x R are productive, the rest of the net time (less start-up) is slowdown.

    The sum over the job is rounded once: each span takes the difference of two running totals. `UsageError` if that is
    more than can be counted.
    """
    _check_amount(kept_training, reference_ns)
    total = scaled(np.cumsum(kept_training.counted_steps), reference_ns)
    slowdown = kept_training.trained(0, len(kept_training)) - np.diff(total, prepend=0)
    slowdown[kept_training.kept_steps <= 0] = 0
    return structs.replace(kept_training, slowdown=slowdown)


def _check_amount(kept_training: KeptTraining, reference_ns: Fraction) -> None:
    """UsageError if kept steps x reference is more than can be counted in ns (292 years): a mistyped reference, or
    step numbers that are no steps."""
    steps = float(kept_training.counted_steps.sum())
    if steps * float(reference_ns) > _MOST_NS:
        raise UsageError(
            f"{steps:g} kept steps at a reference step time of {float(reference_ns) / 1e9:g} s exceed 292 years: "
            "check --reference-step-time, and whether the log counts steps"
        )


class DeadAttempts(Struct, frozen=True):
    """The attempts that another one follows, with what says how far their last steps came."""

    table: EventTable
    attempts: Attempts
    records: StepRecordsByAttempt
    lineage: Lineage
    gross_step: Callable[[], UsualStepTimes]
    sign_of_life: I64
    """ns, by attempt."""

    def last_steps(self, exclusions: tuple[tuple[int, int], ...]) -> TrainingOutcome:
        """The last step of each.

        If the lineage resumed from it behind its last step: credited with usual (gross) step times, at most to its
        logged termination, else to the next start; if that cuts it, its steps count in proportion. Where it did not
        reach the step resumed from, with all the missing ones if they fit, else with one. Otherwise wasted up to the
        last sign of life.
        """
        made = [self._last_step(attempt) for attempt in np.flatnonzero(self.records.has[:-1]).tolist()]
        start, end, first, stop, attempt, row, kept, credited = (
            np.array(column) for column in (zip(*made, strict=True) if made else ([],) * 8)
        )
        spans = TrainingSpans(
            start.astype(np.int64),
            end.astype(np.int64),
            first.astype(np.int64),
            stop.astype(np.int64),
            attempt.astype(np.int32),
            row.astype(np.intp),
            np.full(len(made), -1, dtype=np.intp),
            np.zeros(len(made), dtype=bool),
        )
        kept = kept.astype(np.float64)
        outside = share_outside(spans.start, spans.end, exclusions)
        none_lost = np.zeros(len(made), dtype=bool)
        return TrainingOutcome(spans, kept, credited.astype(bool), kept > 0, outside, none_lost)

    def _last_step(self, attempt: int) -> tuple[int, int, int, int, int, int, float, bool]:
        """start, end (ns), first step, stop step, attempt, row, kept steps, credited."""
        attempts, table = self.attempts, self.table
        row = int(self.records.last_row[attempt])
        start, step = int(table.time[row]), int(self.records.last[attempt])
        next_start = int(attempts.begin[attempt + 1])
        resumed = int(self.lineage.limit[attempt])
        if resumed in (ALL_KEPT, NOTHING_KEPT) or resumed <= step:
            if attempts.step_ends:  # what it was at, and for how long it lived on, is no step of its own: `lost_behind`
                return start, start, step, step, attempt, row, 0.0, False
            end = max(start, min(int(self.sign_of_life[attempt]), next_start))
            return start, end, step, step + 1, attempt, row, 0.0, False
        usual_step = self.gross_step().of_last_step(attempt)
        ending = int(attempts.first_ending[attempt])
        limit = int(table.time[ending]) if ending >= 0 else next_start
        steps = resumed - step
        credit = _credit(usual_step, steps)
        if not self.lineage.reached[attempt] and credit > min(MOST_UNRECORDED_NS, limit - start):
            steps = 1
            credit = _credit(usual_step, steps)
        length = max(min(credit, limit - start), 0)
        kept = steps * (length / credit) if length < credit else float(steps)
        return start, start + length, step, step + steps, attempt, row, kept if credit else 0.0, True


def _credit(usual_step: float, steps: int) -> int:
    """So many usual step times (ns); 0 where the job shows none."""
    return 0 if np.isnan(usual_step) else int(np.rint(usual_step * steps))


def with_last_steps(
    training: TrainingOutcome,
    last_steps: TrainingOutcome,
    places: NDArray[np.intp],
    exclusions: tuple[tuple[int, int], ...],
) -> TrainingOutcome:
    """`training` with the last steps at their places (see `step_spans`); the columns of `training` are filled in."""
    spans, last = training.spans, last_steps.spans
    spans.end[places], spans.stop[places] = last.end, last.stop
    training.kept_steps[places], training.credited[places], training.whole[places] = (
        last_steps.kept_steps,
        last_steps.credited,
        last_steps.whole,
    )
    training.lost_lines[places] = False
    if exclusions:
        training.outside[places] = last_steps.outside
    return training


def credit_last_step_of_job(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    usual_step: UsualStepTimes,
    claimed_time: ClaimedTime,
    training: TrainingOutcome,
    exclusions: tuple[tuple[int, int], ...],
) -> None:
    """The last attempt's last step, if a termination or end is logged after it: productive up to stride x the
    usual step time (all of it if the job shows none: then its steps count in proportion to its time outside
    exclusions); the rest of its time is nobody's. Without, and in step-end logs, it is in progress.

    It is the last of the spans: `training` is filled in.
    """
    last = len(attempts) - 1
    ending = int(attempts.first_ending[last])
    if not records.has[last] or ending < 0 or attempts.step_ends:
        return
    spans = training.spans
    start, stop = spans.start[-1:], table.time[[ending]]
    clock = claimed_time.net_clock(start)
    time = int((claimed_time.net_clock(stop) - clock)[0])
    stride = records.stride(last)
    usual_time = usual_step.of_last_step(last)
    most = time if np.isnan(usual_time) else int(np.rint(usual_time * stride))
    productive = min(time, most)
    spans.end[-1:] = np.clip(claimed_time.when(clock + productive), start, stop)
    spans.stop[-1] = spans.first[-1] + stride
    training.kept_steps[-1] = stride * (productive / most) if most else stride
    if exclusions:
        training.outside[-1:] = share_outside(start, stop, exclusions) if np.isnan(usual_time) else 1


_WHOLE_SECONDS_NS = 10**9


def end_spans(
    table: EventTable, records: StepRecordsByAttempt, ending: int, reinitialised: tuple[Rows, I64]
) -> tuple[TrainingSpans, NDArray[np.intp]]:
    """One span from record to record, and one from where each attempt began to its first: what lies between, but for
    what the means of its steps leave over. As `step_spans`, with one span of no length and no step at the last record
    of each attempt, whose positions are returned too."""
    beginnings = records.beginnings
    assert beginnings is not None
    first_record = records.bounds[:-1]
    shown = np.flatnonzero(records.has)
    shown = shown[beginnings.step[shown] < records.number[first_record[shown]]]
    before = first_record[shown]
    rows = np.insert(records.rows.astype(np.intp), before, beginnings.row[shown])
    time = np.insert(records.time, before, beginnings.time[shown])
    number = np.insert(records.number.astype(np.int64), before, beginnings.step[shown])
    owner = np.insert(records.owner, before, shown.astype(owner_type(records.attempts)))
    bounds = np.searchsorted(owner, np.arange(records.attempts + 1)).astype(np.intp)
    last = bounds[1:][records.has] - 1
    end, stop = np.append(time[1:], time[-1:]), np.append(number[1:], number[-1:])
    end[last], stop[last] = time[last], number[last]
    start = time.copy()
    measured = np.ones(len(rows), dtype=bool)
    measured[bounds[:-1][shown[beginnings.started[shown]]]] = False
    _leave_gaps(table, rows, start, end, stop - number, measured)
    opening = np.zeros(len(rows), dtype=bool)
    opening[bounds[:-1][records.has]] = True
    opening[first_behind(start, bounds, reinitialised)] = True
    opening[last] = False
    return TrainingSpans(start, end, number, stop, owner, rows, None, opening, ending), last


def _leave_gaps(table: EventTable, rows: Rows, start: I64, end: I64, steps: I64, measured: Mask) -> None:
    """Begin spans later (`start` is filled in) where the mean of their steps leaves more than a little over."""
    chosen = np.flatnonzero(measured & (steps > 0))
    mean = table.step_time[np.append(rows, rows[-1:])[chosen + 1]]
    gap, slack = gaps_of_means(mean, end[chosen], end[chosen] - start[chosen], steps[chosen])
    long = gap > slack
    start[chosen[long]] += gap[long]


def gaps_of_means(mean: I64, end: I64, length: I64, steps: I64) -> tuple[I64, I64]:
    """How much longer (ns) than their steps took by their mean some stretches between records are (0 without a mean),
    and how much of it says nothing: 1 % of that time, and two seconds where the record's clock shows whole ones."""
    fits = steps.astype(np.float64) * mean < _MOST_NS
    took = np.where(fits, steps * np.where(fits, mean, 0), int(_MOST_NS))
    coarse = end % _WHOLE_SECONDS_NS == 0
    slack = took // 100 + np.where(coarse, 2 * _WHOLE_SECONDS_NS, 0)
    return np.where(mean == NONE, 0, length - took), np.where(mean == NONE, 0, slack)


def lost_behind(
    table: EventTable,
    attempts: Attempts,
    endings: Endings,
    records: StepRecordsByAttempt,
    sign_of_life: I64,
    trained_to: I64,
) -> Claims:
    """What is lost behind the last record of each attempt, or behind what is credited there: in attempts that others
    follow up to the last sign of life, in the last one up to a crash. Nothing before a believed clean end.

    trained_to: where (ns) the last span of each attempt ends.
    """
    until = attempts.cut_at_next(sign_of_life)
    last = len(attempts) - 1
    crash = int(endings.crash_row[last]) if last >= 0 else -1
    until[-1:] = table.time[crash] if crash >= 0 else trained_to[-1:]
    lost = np.flatnonzero(records.has & (endings.how != End.CLEAN) & (until > trained_to))
    return claim(
        trained_to[lost],
        until[lost],
        Priority.WASTED,
        Category.WASTED,
        attempt=lost,
        row=records.last_row[lost],
        end_row=attempts.first_ending[lost],
    )
