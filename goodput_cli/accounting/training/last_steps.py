"""Last steps of step logs (accounting §4): nothing says when they ended, so the rules do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.sweep import Cover
from goodput_cli.accounting.training.kept import Judged, share_outside
from goodput_cli.accounting.training.lineage import ALL_KEPT, NOTHING_KEPT, Lineage
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, Stretches
from goodput_cli.accounting.training.typical_step import Usual
from goodput_cli.events.schema import EventTable

I64 = NDArray[np.int64]
MOST_UNRECORDED_NS = 300 * 10**9
"""What a writer that buffers may lose at a kill: above it, a whole attempt is missing."""


def last_steps_of_dead_attempts(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    lineage: Lineage,
    gross: Usual,
    sign_of_life: I64,
    exclusions: tuple[tuple[int, int], ...],
) -> Judged:
    """The last step of every attempt that another one follows.

    If the lineage resumed from it behind its last step: credited with usual (gross) step times, at most to its logged
    termination, else to the next start; if that cuts it, its steps count in proportion. Where it did not reach the
    step resumed from, with all the missing ones if they fit, else with one. Otherwise wasted up to the last sign of
    life.
    """
    made = [
        _last_step(table, attempts, records, lineage, gross, sign_of_life, attempt)
        for attempt in np.flatnonzero(records.has[:-1]).tolist()
    ]
    start, end, first, stop, attempt, row, kept, credited = (
        np.array(column) for column in (zip(*made, strict=True) if made else ([],) * 8)
    )
    stretches = Stretches(
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
    no_sample = np.zeros(len(made), dtype=bool)
    outside = share_outside(stretches.start, stretches.end, exclusions)
    return Judged(stretches, kept, credited.astype(bool), kept > 0, no_sample, outside)


def _last_step(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    lineage: Lineage,
    gross: Usual,
    sign_of_life: I64,
    attempt: int,
) -> tuple[int, int, int, int, int, int, float, bool]:
    """start, end (ns), first step, stop step, attempt, row, kept steps, credited."""
    row = int(records.last_row[attempt])
    start, step = int(table.time[row]), int(records.last[attempt])
    next_start = int(attempts.begin[attempt + 1])
    resumed = int(lineage.limit[attempt])
    if resumed in (ALL_KEPT, NOTHING_KEPT) or resumed <= step:
        end = max(start, min(int(sign_of_life[attempt]), next_start))
        return start, end, step, step + 1, attempt, row, 0.0, False
    usual = gross.of_last_step(attempt)
    ending = int(attempts.first_ending[attempt])
    limit = int(table.time[ending]) if ending >= 0 else next_start
    steps = resumed - step
    credit = _credit(usual, steps)
    if not lineage.reached[attempt] and credit > min(MOST_UNRECORDED_NS, limit - start):
        steps = 1
        credit = _credit(usual, steps)
    length = max(min(credit, limit - start), 0)
    kept = steps * (length / credit) if length < credit else float(steps)
    return start, start + length, step, step + steps, attempt, row, kept if credit else 0.0, True


def _credit(usual: float, steps: int) -> int:
    """So many usual step times (ns); 0 where the job shows none."""
    return 0 if np.isnan(usual) else int(np.rint(usual * steps))


def merged(judged: Judged, more: Judged, places: NDArray[np.intp]) -> Judged:
    """`judged` with what `more` says at these places (see `step_stretches`); its own columns are filled in."""
    stretches, last = judged.stretches, more.stretches
    stretches.end[places], stretches.stop[places] = last.end, last.stop
    judged.kept[places], judged.credited[places], judged.whole[places] = more.kept, more.credited, more.whole
    judged.sample[places] = more.sample
    if judged.outside.flags.writeable:  # no exclusion: all is outside
        judged.outside[places] = more.outside
    return judged


def leave_in_progress(judged: Judged) -> None:
    """The last step of the job: credited with nothing as long as nothing says that it ended."""
    judged.kept[-1], judged.credited[-1], judged.sample[-1] = 0, True, False


def credit_last_step_of_job(
    table: EventTable,
    attempts: Attempts,
    records: StepRecordsByAttempt,
    usual: Usual,
    cover: Cover,
    judged: Judged,
    exclusions: tuple[tuple[int, int], ...],
) -> None:
    """The last attempt's last step, if a termination or end is logged after it: productive up to stride x the
    usual step time (all of it if the job shows none: then its steps count in proportion to its time outside
    exclusions); the rest of its time is nobody's. Without, it is in progress.

    It is the last of the stretches: `judged` is filled in.
    """
    last = len(attempts) - 1
    ending = int(attempts.first_ending[last])
    if not records.has[last] or ending < 0:
        return
    stretches = judged.stretches
    start, stop = stretches.start[-1:], table.time[[ending]]
    clock = cover.net_clock(start)
    time = int((cover.net_clock(stop) - clock)[0])
    stride = records.stride(last)
    usual_time = usual.of_last_step(last)
    most = time if np.isnan(usual_time) else int(np.rint(usual_time * stride))
    productive = min(time, most)
    stretches.end[-1:] = np.clip(cover.when(clock + productive), start, stop)
    stretches.stop[-1] = stretches.first[-1] + stride
    judged.kept[-1] = stride * (productive / most) if most else stride
    if judged.outside.flags.writeable:
        judged.outside[-1:] = share_outside(start, stop, exclusions) if np.isnan(usual_time) else 1
