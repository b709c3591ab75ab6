"""From the events of one job to its timeline: the rooms of this folder, in the order of accounting.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import PROGRESS_KINDS, Attempts, find_attempts
from goodput_cli.accounting.attempts.endings import End, Endings, find_endings, last_signs_of_life
from goodput_cli.accounting.attempts.runs import find_runs
from goodput_cli.accounting.claims import claims as claiming
from goodput_cli.accounting.claims.intervals import Intervals, data_intervals, phase_intervals
from goodput_cli.accounting.claims.loading import data_loading, steps_in_flight
from goodput_cli.accounting.columns import Sparse, of_kind, rows_of
from goodput_cli.accounting.ledger import Ledger
from goodput_cli.accounting.order import Ordered, seen_at
from goodput_cli.accounting.rules import Rules
from goodput_cli.accounting.segments import Segments, partition
from goodput_cli.accounting.sweep import ClaimedTime, Claims, join, sweep
from goodput_cli.accounting.training.checkpoints import CheckpointProgress, checkpoint_progress
from goodput_cli.accounting.training.kept import (
    KeptTraining,
    TrainingOutcome,
    apply_lineage,
    auto_reference,
    kept_training_of,
    split_points,
    startup_of,
    with_slowdown,
    with_stalls,
)
from goodput_cli.accounting.training.last_steps import (
    credit_last_step_of_job,
    last_steps_of_dead_attempts,
    leave_in_progress,
    merged,
)
from goodput_cli.accounting.training.lineage import ALL_KEPT, Lineage, trace
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, step_records, step_spans
from goodput_cli.accounting.training.usual_step import UsualStepTimes, usual_step_times_of
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import EventTable, Kind

I64 = NDArray[np.int64]
_MOST_NS = 2.0**62


@dataclass(frozen=True)
class Timeline:
    """One job, accounted for: [start, end) in ns, and every segment of it.

    given: what `table` was made from, with the rows that were left out as duplicates. reference_ns, origin: the
    reference step time in use. loading: intervals of data loading that overlap training. records: of step logs;
    progress: of checkpoint logs. ended: whether the job had ended.
    """

    table: EventTable
    ordered: Ordered
    rules: Rules
    start: int
    end: int
    ended: bool
    attempts: Attempts
    endings: Endings
    phases: Intervals
    loads: Intervals
    records: StepRecordsByAttempt | None
    progress: CheckpointProgress | None
    lineage: Lineage
    training: TrainingOutcome
    usual_step: UsualStepTimes
    reference_ns: Fraction | None
    origin: Literal["given", "auto"] | None
    sign_of_life: I64
    loading: Claims
    segments: Segments

    @cached_property
    def ledger(self) -> Ledger:
        """Running totals of the segments."""
        return Ledger(self.segments)

    @property
    def kept_training(self) -> KeptTraining:
        """Kept training."""
        return self.segments.kept_training

    @cached_property
    def runs(self) -> list[int]:
        """Rows at which runs begin (accounting §10), the first at row 0."""
        return find_runs(self.table, self.attempts)

    @property
    def disruptions(self) -> NDArray[np.intp]:
        """Attempts whose end was a disruption: another one follows, and no believed clean end stands before it."""
        return np.flatnonzero(self.endings.how[:-1] != End.CLEAN)


def is_step_log(table: EventTable) -> bool:
    """Whether the lineage follows steps (accounting §4): any step start makes a step log, whatever `--as-of`."""
    return bool(np.any(table.kind == Kind.STEP))


def build_timeline(ordered: Ordered, rules: Rules, as_of: int | None = None) -> Timeline | None:
    """Account for the job whose events are given. None if they span no time.

    as_of: ns; events after it are not seen, and unless the job had ended by then it is where the window ends.
    """
    step_log = is_step_log(ordered.table)
    table = ordered.table if as_of is None else seen_at(ordered.table, as_of)
    if len(table) == 0:
        return None
    attempts = find_attempts(table, step_log)
    endings = find_endings(table, attempts)
    ended = _has_ended(table, attempts, endings)
    start = job_start(table)
    end = int(table.end.max()) if ended or as_of is None else as_of
    return _account(ordered, table, rules, attempts, endings, ended, (start, end)) if start < end else None


def job_start(table: EventTable) -> int:
    """The first scheduled or start line; the first event of any kind if a step or checkpoint event stands before it,
    or if there is none (accounting §1)."""
    opening = of_kind(table.kind, (Kind.SCHEDULED, Kind.START))
    first = int(np.argmax(opening))
    if not opening.any() or of_kind(table.kind[:first], PROGRESS_KINDS).any():
        return int(table.time[0])
    return int(table.time[first])


def _has_ended(table: EventTable, attempts: Attempts, endings: Endings) -> bool:
    """Whether a clean end or a termination stands, with nothing but stragglers behind it and no crash among it all."""
    opening = rows_of(table.kind, (Kind.SCHEDULED, Kind.START))
    last_alive = max((int(rows.max()) for rows in (opening, attempts.last_progress) if len(rows)), default=-1)
    rows = attempts.closing[attempts.closing > last_alive]
    if len(rows) == 0:
        return False
    clean = endings.how[attempts.of_row[rows[-1]]] == End.CLEAN
    return bool(clean or not np.any(table.kind[rows] == Kind.CRASHED))


def _account(
    ordered: Ordered,
    table: EventTable,
    rules: Rules,
    attempts: Attempts,
    endings: Endings,
    ended: bool,
    window: tuple[int, int],
) -> Timeline:
    start, end = window
    sign_of_life = last_signs_of_life(table, attempts)
    records, progress, lineage, training = _trained(table, attempts, endings, rules, sign_of_life)
    credited = np.flatnonzero(training.credited)
    np.maximum.at(sign_of_life, training.spans.attempt[credited], training.spans.end[credited])
    phases = phase_intervals(table, attempts, sign_of_life, end)
    loads = data_intervals(table, attempts, sign_of_life, end)
    flight = steps_in_flight(table, attempts, training, records, progress, end)
    sync_loads, async_loads = data_loading(attempts, loads, flight, rules.data_blocking)
    down = claiming.downtime(table, attempts, endings, sign_of_life, progress, end)
    parts = (
        claiming.excluded(rules.exclusions),
        claiming.without_stops(down) if rules.exclude_stopped else join([]),
        claiming.phases(table, attempts, phases),
        claiming.saves_and_restores(table, attempts),
        claiming.queued(table, end),
        down,
        *(claiming.checkpoint_log(table, attempts, endings, progress) if progress is not None else ()),
        sync_loads,
    )
    claims, claimed_time, net, usual_step, startup, partial, splits = _split(
        parts, training, attempts, progress, window
    )
    reference, origin = _reference(rules, training, net, attempts.step_log)
    if records is not None and len(attempts):
        credit_last_step_of_job(table, attempts, records, usual_step, claimed_time, training, rules.exclusions)
    del net, parts
    kept_training = kept_training_of(training, partial, splits, startup, claimed_time)
    if reference is not None:
        _check_amount(kept_training, reference)
        kept_training = with_slowdown(kept_training, reference)
    elif records is not None:
        kept_training = with_stalls(kept_training, usual_step, training.credited, rules.stall_factor)
    return Timeline(
        table=table,
        ordered=ordered,
        rules=rules,
        start=start,
        end=end,
        ended=ended,
        attempts=attempts,
        endings=endings,
        phases=phases,
        loads=loads,
        records=records,
        progress=progress,
        lineage=lineage,
        training=training,
        usual_step=usual_step,
        reference_ns=reference,
        origin=origin,
        sign_of_life=sign_of_life,
        loading=async_loads,
        segments=partition(claims, claimed_time, kept_training, _dead_time(attempts, training), start, end),
    )


def _trained(
    table: EventTable, attempts: Attempts, endings: Endings, rules: Rules, sign_of_life: I64
) -> tuple[StepRecordsByAttempt | None, CheckpointProgress | None, Lineage, TrainingOutcome]:
    """Spans of training and what the lineage keeps of each; last steps of dead attempts included."""
    if not attempts.step_log:
        progress = checkpoint_progress(table, attempts, rules.async_saves)
        lineage = _crash_cut(trace(progress.began, progress.last, lambda _: 0), progress, endings)
        return None, progress, lineage, apply_lineage(progress.spans, lineage, rules)
    records = step_records(table, attempts)
    lineage = trace(records.began, records.last, records.stride)
    spans, last_of_attempt = step_spans(records, int(attempts.first_ending[-1]) if len(attempts) else -1)
    training = apply_lineage(spans, lineage, rules)
    training.sample[last_of_attempt] = False
    gross_step = usual_step_times_of(spans, spans.end - spans.start, training.sample, len(attempts))
    last = last_steps_of_dead_attempts(table, attempts, records, lineage, gross_step, sign_of_life, rules.exclusions)
    training = merged(training, last, last_of_attempt[: len(last.spans)])
    if len(attempts) and records.has[-1]:
        leave_in_progress(training)
    return records, None, lineage, training


def _crash_cut(lineage: Lineage, progress: CheckpointProgress, endings: Endings) -> Lineage:
    """A checkpoint log's last attempt that ended in `job_crashed` keeps what it had saved, no more."""
    last = np.flatnonzero(lineage.limit == ALL_KEPT)
    crashed = last[endings.how[last] == End.CRASHED]
    limit = lineage.limit.copy()
    limit[crashed] = np.maximum(progress.last_save[crashed], progress.began[crashed])
    return replace(lineage, limit=limit)


def _split(
    parts: tuple[Claims, ...],
    training: TrainingOutcome,
    attempts: Attempts,
    progress: CheckpointProgress | None,
    window: tuple[int, int],
) -> tuple[Claims, ClaimedTime, I64, UsualStepTimes, Sparse, NDArray[np.intp], I64]:
    """Sweep the claims, and cut the spans that are kept in part: their wasted rest is one more claim.

    parts: the other claims. Returns all of them with the wasted ones, their cover, the net time of each span before
    the cut, the usual step times, start-ups, and which spans are cut and where.
    """
    spans = training.spans
    none = np.zeros(0, dtype=np.intp)
    whole = join((*parts, claiming.wasted(training, none, none.astype(np.int64))))
    claimed_time = sweep(whole, *window)
    net = claimed_time.net_between(spans.start, spans.end)
    usual_step = usual_step_times_of(spans, net, training.sample, len(attempts))
    may_start = attempts.started | (np.arange(len(attempts)) > 0)
    if progress is not None and progress.asynchronous:
        may_start = np.zeros(len(attempts), dtype=bool)
    startup = startup_of(training, net, usual_step, may_start)
    partial, splits = split_points(training, net, startup, claimed_time)
    if len(partial):
        whole = join((*parts, claiming.wasted(training, partial, splits)))
        claimed_time = sweep(whole, *window)
    return whole, claimed_time, net, usual_step, startup, partial, splits


def _check_amount(kept_training: KeptTraining, reference_ns: Fraction) -> None:
    """UsageError if kept steps x reference is more than can be counted in ns (292 years): a mistyped reference, or
    step numbers that are no steps."""
    steps = float(kept_training.counted_steps.sum())
    if steps * float(reference_ns) > _MOST_NS:
        raise UsageError(
            f"{steps:g} kept steps x a reference step time of {float(reference_ns) / 1e9:g} s is longer than any job; "
            "check the reference step time, and whether the log counts steps"
        )


def _reference(
    rules: Rules, training: TrainingOutcome, net: I64, step_log: bool
) -> tuple[Fraction | None, Literal["given", "auto"] | None]:
    """The reference step time in use (ns), and where it came from."""
    if isinstance(rules.reference_ns, Fraction):
        return rules.reference_ns, "given"
    if rules.reference_ns == "auto" or not step_log:
        reference = auto_reference(training, net)
        return reference, None if reference is None else "auto"
    return None, None


def _dead_time(attempts: Attempts, training: TrainingOutcome) -> tuple[I64, I64]:
    """Unclaimed time of attempts that others follow (accounting §4), start and end: from the end of the last span,
    or from the first start of those without any, to the next start."""
    begin, end = training.spans.latest_end(attempts.begin)[:-1], attempts.begin[1:]
    some = begin < end
    return begin[some], end[some]
