"""Last steps of step logs (accounting §4): nothing says when they ended, so the rules do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.kept import TrainingOutcome, share_outside
from goodput_cli.accounting.training.kept_steps import KeptSteps
from goodput_cli.accounting.training.lineage import ALL_KEPT, NOTHING_KEPT, Lineage
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, TrainingSpans
from goodput_cli.accounting.training.usual_step import UsualStepTimes
from goodput_cli.arrays import I64
from goodput_cli.events.schema import EventTable

MOST_UNRECORDED_NS = 300 * 10**9
"""What a writer that buffers may lose at a kill: above it, a whole attempt is missing."""


def last_steps_of_dead_attempts(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    lineage: Lineage,
    gross_step: UsualStepTimes,
    sign_of_life: I64,
    exclusions: tuple[tuple[int, int], ...],
) -> TrainingOutcome:
    """The last step of every attempt that another one follows.

    If the lineage resumed from it behind its last step: credited with usual (gross) step times, at most to its logged
    termination, else to the next start; if that cuts it, its steps count in proportion. Where it did not reach the
    step resumed from, with all the missing ones if they fit, else with one. Otherwise wasted up to the last sign of
    life.
    """
    made = [
        _last_step(table, attempts, records, lineage, gross_step, sign_of_life, attempt)
        for attempt in np.flatnonzero(records.has[:-1]).tolist()
    ]
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
    whole = kept > 0
    kept_steps = KeptSteps(spans, whole)
    kept_steps[np.arange(len(made))] = kept
    outside = share_outside(spans.start, spans.end, exclusions)
    return TrainingOutcome(spans, kept_steps, credited.astype(bool), whole, outside)


def _last_step(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    lineage: Lineage,
    gross_step: UsualStepTimes,
    sign_of_life: I64,
    attempt: int,
) -> tuple[int, int, int, int, int, int, float, bool]:
    """start, end (ns), first step, stop step, attempt, row, kept steps, credited."""
    row = int(records.last_row[attempt])
    start, step = int(table.time[row]), int(records.last[attempt])
    next_start = int(attempts.begin[attempt + 1])
    resumed = int(lineage.limit[attempt])
    if resumed in (ALL_KEPT, NOTHING_KEPT) or resumed <= step:
        if attempts.step_ends:  # what it was at, and for how long it lived on, is no step of its own: `lost_behind`
            return start, start, step, step, attempt, row, 0.0, False
        end = max(start, min(int(sign_of_life[attempt]), next_start))
        return start, end, step, step + 1, attempt, row, 0.0, False
    usual_step = gross_step.of_last_step(attempt)
    ending = int(attempts.first_ending[attempt])
    limit = int(table.time[ending]) if ending >= 0 else next_start
    steps = resumed - step
    credit = _credit(usual_step, steps)
    if not lineage.reached[attempt] and credit > min(MOST_UNRECORDED_NS, limit - start):
        steps = 1
        credit = _credit(usual_step, steps)
    length = max(min(credit, limit - start), 0)
    kept = steps * (length / credit) if length < credit else float(steps)
    return start, start + length, step, step + steps, attempt, row, kept if credit else 0.0, True


def _credit(usual_step: float, steps: int) -> int:
    """So many usual step times (ns); 0 where the job shows none."""
    return 0 if np.isnan(usual_step) else int(np.rint(usual_step * steps))


def with_last_steps(
    training: TrainingOutcome, last_steps: TrainingOutcome, places: NDArray[np.intp]
) -> TrainingOutcome:
    """`training` with the last steps at their places (see `step_spans`); the columns of `training` are filled in."""
    spans, last = training.spans, last_steps.spans
    spans.end[places], spans.stop[places] = last.end, last.stop
    training.kept_steps[places], training.credited[places], training.whole[places] = (
        last_steps.kept_steps[:],
        last_steps.credited,
        last_steps.whole,
    )
    if training.outside.flags.writeable:  # no exclusion: all is outside
        training.outside[places] = last_steps.outside
    return training


def leave_in_progress(training: TrainingOutcome) -> None:
    """The last step of the job: credited with nothing as long as nothing says that it ended."""
    training.kept_steps[-1], training.credited[-1] = 0, True


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
    if training.outside.flags.writeable:
        training.outside[-1:] = share_outside(start, stop, exclusions) if np.isnan(usual_time) else 1
