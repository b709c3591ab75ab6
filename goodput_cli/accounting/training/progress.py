"""Progress (accounting §4): training of a job from its events, and the part that the lineage keeps. Includes the last
steps of step logs, whose end is not logged, and training spans of step-end logs, which end where their steps were done.

The reference step time (accounting §6), given, found in the log, or none, and the resulting slowdown.
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
from goodput_cli.accounting.intervals import Priority, reinitializations
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
    scale,
    share_outside,
    trace,
)
from goodput_cli.accounting.training.spans import (
    StepRecordsByAttempt,
    TrainingSpans,
    UsualStepTimes,
    first_after,
    step_records,
    step_spans,
    usual_step_times_of,
)
from goodput_cli.arrays import I64, Mask, Rows, sums_by
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import NONE, EventTable
from goodput_cli.vocabulary.categories import Category

MOST_UNRECORDED_NS = 300 * 10**9
"""Most training time that a buffering writer may lose at a kill. Above it, a whole attempt is missing from the log."""
_MOST_NS = 2.0**62


class TrainingProgress(Struct, frozen=True):
    """The progress of a job."""

    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    checkpoints: CheckpointProgress | None
    """None in step logs."""
    lineage: Lineage
    training: TrainingOutcome
    """All training, last steps of dead attempts included."""

    def may_start(self, attempts: Attempts) -> Mask:
        """Return True for each attempt whose start-up may be inferred. Not if the log begins in the middle of a run,
        not after a rollback, and not with asynchronous saves, which overlap the first span."""
        if self.checkpoints is not None and self.checkpoints.asynchronous:
            return np.zeros(len(attempts), dtype=bool)
        return attempts.started | (~attempts.rolled_back & (np.arange(len(attempts)) > 0))


def find_progress(
    table: EventTable, attempts: Attempts, endings: Endings, rules: AccountingOptions, sign_of_life: I64
) -> TrainingProgress:
    """Return the training of a job and its kept part. sign_of_life: ns, one per attempt."""
    if attempts.step_log:
        return _of_steps(table, attempts, rules, sign_of_life)
    return _of_checkpoints(table, attempts, endings, rules)


def _of_steps(table: EventTable, attempts: Attempts, rules: AccountingOptions, sign_of_life: I64) -> TrainingProgress:
    records = step_records(table, attempts)
    lineage = trace(records.began, records.last, records.stride)
    ending = int(attempts.first_ending[-1]) if len(attempts) else -1
    again = reinitializations(table, attempts, sign_of_life)
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
    if len(attempts) and records.has_records[-1]:  # its last step gets no credit while no line states that it ended
        training.kept_steps[-1], training.credited[-1] = 0, True
    return TrainingProgress(records, None, lineage, training)


def _of_checkpoints(
    table: EventTable, attempts: Attempts, endings: Endings, rules: AccountingOptions
) -> TrainingProgress:
    checkpoints = checkpoint_progress(table, attempts, rules.method.async_saves)
    lineage = _limit_to_saves(trace(checkpoints.began, checkpoints.last, lambda _: 0), checkpoints, endings)
    return TrainingProgress(None, checkpoints, lineage, apply_lineage(checkpoints.spans, lineage, rules))


def _limit_to_saves(lineage: Lineage, checkpoints: CheckpointProgress, endings: Endings) -> Lineage:
    """Limit a last attempt of a checkpoint log that ended in `job_crashed` to its saved steps."""
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
    """For `auto`: multiple of the reference up to which the pace of a span counts as equally fast."""


def reference_step_time(
    rules: AccountingOptions, training: TrainingOutcome, claimed_time: ClaimedTime, step_log: bool
) -> ReferenceStepTime | None:
    """Return the reference step time in use; None without one.

    claimed_time: time that training cannot have. Checkpoint logs take "auto" if no reference is given.
    """
    if isinstance(rules.reference_ns, Fraction):
        return ReferenceStepTime(rules.reference_ns, "given")
    return auto_reference(training, claimed_time) if rules.reference_ns == "auto" or not step_log else None


def auto_reference(training: TrainingOutcome, claimed_time: ClaimedTime) -> ReferenceStepTime | None:
    """Return the usual pace of the fastest spans (`usual_pace`): net time per step (ns) over wholly kept, untouched
    spans that are not an attempt's first. If there are none, use the first ones. None if there are none either, or if
    it is 0: clocks of whole seconds show no time for most of many steps per second (accounting §6)."""
    spans = training.spans
    for chosen in (training.sample & ~spans.opening, training.sample & spans.opening):
        if chosen.any():
            net = claimed_time.net_between(spans.start[chosen], spans.end[chosen])
            pace, alike = usual_pace(net, spans.steps[chosen])
            return ReferenceStepTime(pace, "auto", alike) if pace else None
    return None


_ALIKE, _OF_NOISE = 0.1, 3.0
_NORMAL = 0.6744897501960817 * 2**0.5
"""Median distance of two values of a standard normal distribution."""
_TIED = 1 + 1e-9


def usual_pace(net: I64, steps: I64) -> tuple[Fraction, float]:
    """Return the usual time of a step (ns) at full speed (accounting §6), and the factor up to which a pace counts as
    equal. Start at the 10th percentile. Take the median of the values that are above it by at most a tenth, or by three
    times the noise of neighbors, and repeat until it no longer changes. The result is the mean of these values, so that
    nothing is slow if all of them are alike. net: ns of spans, in time order; steps: number of steps of each."""
    rate = net / steps
    pace = float(np.percentile(rate, 10))
    if pace <= 0:
        return Fraction(0), 1.0
    logs = np.log(rate[rate > 0])
    noise = float(np.median(np.abs(np.diff(logs)))) / _NORMAL if len(logs) > _FEW else 0.0
    ordered, most = np.sort(rate), (1 + max(_ALIKE, _OF_NOISE * noise)) * _TIED
    before = 0.0
    while pace > before:  # it only grows, so the loop ends
        before, pace = pace, float(np.median(ordered[: np.searchsorted(ordered, pace * most, side="right")]))
    return _exact_mean(net, steps, rate <= max(before, pace) * most), most


def _exact_mean(net: I64, steps: I64, chosen: Mask) -> Fraction:
    """Return the mean of net / steps (ns). It is exact, so a job of equal steps has no slowdown of a ns. If spans have
    very many different numbers of steps, it has the precision of floating point."""
    sizes, which = np.unique(steps[chosen], return_inverse=True)
    if len(sizes) > _MANY_SIZES:
        return Fraction(float((net[chosen] / steps[chosen]).mean()))
    sums = sums_by(which, net[chosen], len(sizes))
    total = sum((Fraction(ns, size) for ns, size in zip(sums.tolist(), sizes.tolist(), strict=True)), Fraction(0))
    return total / int(np.count_nonzero(chosen))


_MANY_SIZES = 64
_FEW = 2


def with_slowdown(kept_training: KeptTraining, reference_ns: Fraction) -> KeptTraining:
    """Split kept training by a reference R: kept steps x R are productive, the rest of the net time (less start-up) is
    slowdown.

    The sum over the job is rounded once: each span takes the difference of two running totals. Raises `UsageError` if
    that exceeds what can be counted.
    """
    _check_amount(kept_training, reference_ns)
    total = scale(np.cumsum(kept_training.counted_steps), reference_ns)
    slowdown = kept_training.trained(0, len(kept_training)) - np.diff(total, prepend=0)
    slowdown[kept_training.kept_steps <= 0] = 0
    return structs.replace(kept_training, slowdown=slowdown)


def _check_amount(kept_training: KeptTraining, reference_ns: Fraction) -> None:
    """Raise UsageError if kept steps x reference exceeds what can be counted in ns (292 years): a mistyped reference,
    or step numbers that are not steps."""
    steps = float(kept_training.counted_steps.sum())
    if steps * float(reference_ns) > _MOST_NS:
        raise UsageError(
            f"{steps:g} kept steps at a reference step time of {float(reference_ns) / 1e9:g} s exceed 292 years: "
            "check --reference-step-time, and whether the log counts steps"
        )


class DeadAttempts(Struct, frozen=True):
    """Attempts that another one follows, with the facts that show how far their last steps came."""

    table: EventTable
    attempts: Attempts
    records: StepRecordsByAttempt
    lineage: Lineage
    gross_step: Callable[[], UsualStepTimes]
    sign_of_life: I64
    """ns, by attempt."""

    def last_steps(self, exclusions: tuple[tuple[int, int], ...]) -> TrainingOutcome:
        """Return the last step of each attempt.

        If the lineage resumed after the attempt's last recorded step, the steps in between are credited with usual
        (gross) step times, at most to its logged termination, otherwise to the next start. If that cuts them, they
        count in proportion. If the attempt did not reach the step resumed from, all missing steps are credited if they
        fit, otherwise one. In all other cases the time up to the last sign of life is wasted.
        """
        made = [self._last_step(attempt) for attempt in np.flatnonzero(self.records.has_records[:-1]).tolist()]
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
        """Return start, end (ns), first step, stop step, attempt, row, kept steps, credited."""
        attempts, table = self.attempts, self.table
        row = int(self.records.last_row[attempt])
        start, step = int(table.time[row]), int(self.records.last[attempt])
        next_start = int(attempts.begin[attempt + 1])
        resumed = int(self.lineage.limit[attempt])
        if resumed in (ALL_KEPT, NOTHING_KEPT) or resumed <= step:
            # time after the last record is not a step of its own: see `claim_time_after_last_record`
            if attempts.step_ends:
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
    """Return the time (ns) of some usual steps; 0 if the job shows none."""
    return 0 if np.isnan(usual_step) else int(np.rint(usual_step * steps))


def with_last_steps(
    training: TrainingOutcome,
    last_steps: TrainingOutcome,
    places: NDArray[np.intp],
    exclusions: tuple[tuple[int, int], ...],
) -> TrainingOutcome:
    """Return `training` with the last steps at their positions (see `step_spans`). Fills in the columns of
    `training`."""
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
    """Credit the last attempt's last step if a termination or end is logged after it. It is productive up to stride x
    the usual step time, and the rest of its time is unclaimed. If the job shows no usual step time, all of it is
    productive, and its steps count in proportion to its time outside exclusions. Without an end, and in step-end logs,
    the step is in progress.

    Fills in the last span of `training`.
    """
    last = len(attempts) - 1
    ending = int(attempts.first_ending[last])
    if not records.has_records[last] or ending < 0 or attempts.step_ends:
        return
    spans = training.spans
    start, stop = spans.start[-1:], table.time[[ending]]
    clock = claimed_time.net_clock(start)
    time = int((claimed_time.net_clock(stop) - clock)[0])
    stride = records.stride(last)
    usual_time = usual_step.of_last_step(last)
    most = time if np.isnan(usual_time) else int(np.rint(usual_time * stride))
    productive = min(time, most)
    spans.end[-1:] = np.clip(claimed_time.time_at_net(clock + productive), start, stop)
    spans.stop[-1] = spans.first[-1] + stride
    training.kept_steps[-1] = stride * (productive / most) if most else stride
    if exclusions:
        training.outside[-1:] = share_outside(start, stop, exclusions) if np.isnan(usual_time) else 1


_WHOLE_SECONDS_NS = 10**9


def end_spans(
    table: EventTable, records: StepRecordsByAttempt, ending: int, reinitializations: tuple[Rows, I64]
) -> tuple[TrainingSpans, NDArray[np.intp]]:
    """Return one span from record to record, and one from the begin of each attempt to its first record, less the time
    that the means of its steps leave over. As in `step_spans`, a span without length and steps is at the last record of
    each attempt. Also return the positions of these spans."""
    beginnings = records.beginnings
    assert beginnings is not None
    first_record = records.bounds[:-1]
    shown = np.flatnonzero(records.has_records)
    shown = shown[beginnings.step[shown] < records.number[first_record[shown]]]
    before = first_record[shown]
    rows = np.insert(records.rows.astype(np.intp), before, beginnings.row[shown])
    time = np.insert(records.time, before, beginnings.time[shown])
    number = np.insert(records.number.astype(np.int64), before, beginnings.step[shown])
    owner = np.insert(records.owner, before, shown.astype(owner_type(records.attempts)))
    bounds = np.searchsorted(owner, np.arange(records.attempts + 1)).astype(np.intp)
    last = bounds[1:][records.has_records] - 1
    end, stop = np.append(time[1:], time[-1:]), np.append(number[1:], number[-1:])
    end[last], stop[last] = time[last], number[last]
    start = time.copy()
    measured = np.ones(len(rows), dtype=bool)
    measured[bounds[:-1][shown[beginnings.started[shown]]]] = False
    _leave_gaps(table, rows, start, end, stop - number, measured)
    opening = np.zeros(len(rows), dtype=bool)
    opening[bounds[:-1][records.has_records]] = True
    opening[first_after(start, bounds, reinitializations)] = True
    opening[last] = False
    return TrainingSpans(start, end, number, stop, owner, rows, None, opening, ending), last


def _leave_gaps(table: EventTable, rows: Rows, start: I64, end: I64, steps: I64, measured: Mask) -> None:
    """Begin spans later (fills in `start`) if the mean of their steps leaves more than a little time over."""
    chosen = np.flatnonzero(measured & (steps > 0))
    mean = table.step_time[np.append(rows, rows[-1:])[chosen + 1]]
    gap, slack = gaps_of_means(mean, end[chosen], end[chosen] - start[chosen], steps[chosen])
    long = gap > slack
    start[chosen[long]] += gap[long]


def gaps_of_means(mean: I64, end: I64, length: I64, steps: I64) -> tuple[I64, I64]:
    """Return how much longer (ns) stretches between records are than their steps took by their mean (0 without a mean),
    and the tolerance (ns): 1 % of that time, plus two seconds if the record's clock shows whole seconds."""
    fits = steps.astype(np.float64) * mean < _MOST_NS
    took = np.where(fits, steps * np.where(fits, mean, 0), int(_MOST_NS))
    coarse = end % _WHOLE_SECONDS_NS == 0
    slack = took // 100 + np.where(coarse, 2 * _WHOLE_SECONDS_NS, 0)
    return np.where(mean == NONE, 0, length - took), np.where(mean == NONE, 0, slack)


def claim_time_after_last_record(
    table: EventTable,
    attempts: Attempts,
    endings: Endings,
    records: StepRecordsByAttempt,
    sign_of_life: I64,
    trained_to: I64,
) -> Claims:
    """Return the time lost after each attempt's last record or its credited steps, up to its last sign of life. For the
    last attempt: up to a crash. Nothing is lost before a believed clean end.

    trained_to: end (ns) of the last span of each attempt.
    """
    until = attempts.cut_at_next(sign_of_life)
    last = len(attempts) - 1
    crash = int(endings.crash_row[last]) if last >= 0 else -1
    until[-1:] = table.time[crash] if crash >= 0 else trained_to[-1:]
    lost = np.flatnonzero(records.has_records & (endings.how != End.CLEAN) & (until > trained_to))
    return claim(
        trained_to[lost],
        until[lost],
        Priority.WASTED,
        Category.WASTED,
        attempt=lost,
        row=records.last_row[lost],
        end_row=attempts.first_ending[lost],
    )
