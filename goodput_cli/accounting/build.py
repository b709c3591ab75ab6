"""Build the timeline of a job from its events: the modules of this package, in the order of accounting.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting import claims
from goodput_cli.accounting.attempts.attempts import Attempts, find_attempts, is_step_log, job_start
from goodput_cli.accounting.attempts.endings import (
    EPOCH_MARKS,
    ElasticTransition,
    End,
    Ending,
    Endings,
    Ends,
    elastic_passages,
    ending_of,
    find_endings,
    find_ends,
    find_runs,
    find_unnamed_epochs,
    has_ended,
    job_end,
    last_activity_ns,
    preempted_saves,
    with_continued_steps,
)
from goodput_cli.accounting.attempts.evidence_of_attempts import (
    Causes,
    cause_without_attempts,
    causes_of,
    with_preemptions,
)
from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.columns import of_kind
from goodput_cli.accounting.intervals import (
    Intervals,
    data_intervals,
    data_loading,
    phase_intervals,
    steps_in_flight,
)
from goodput_cli.accounting.options import (
    EPOCH_OR_RESTART,
    GOODPUT,
    LEAST_POINTS,
    NO_CLOCK,
    OF_UNKNOWN_LENGTH,
    RISEN_LEVEL,
    UNTIMED_PHASES,
    AccountingOptions,
    Bound,
    both_bounds,
)
from goodput_cli.accounting.order import OrderedEvents, seen_at
from goodput_cli.accounting.segments import (
    Account,
    Ledger,
    Overlaps,
    Segments,
    account_of,
    partition,
    resolve_overlaps,
    spread_over_training,
)
from goodput_cli.accounting.sweep import Claims, join
from goodput_cli.accounting.training.checkpoints import CheckpointProgress
from goodput_cli.accounting.training.kept import (
    KeptTraining,
    Lineage,
    RisenLevel,
    TrainingOutcome,
    find_risen_level,
    kept_training_of,
    with_stalls,
)
from goodput_cli.accounting.training.progress import (
    ReferenceStepTime,
    TrainingProgress,
    claim_time_after_last_record,
    credit_last_step_of_job,
    find_progress,
    reference_step_time,
    with_slowdown,
)
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, UsualStepTimes
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.evidence import ends_by_exception
from goodput_cli.events.schema import NONE, UNTIMED_PHASE, UNTIMED_RESTART, EventTable, Kind
from goodput_cli.vocabulary.categories import CANCELLED, UNKNOWN_CAUSE, Category
from goodput_cli.vocabulary.text import plural

_MOST_LINES = 5
"""Lines that a bound names."""

_OF_EPOCHS = {
    GOODPUT: Category.PRODUCTIVE,
    Category.WASTED.id: Category.WASTED,
    Category.RECOVERY.id: Category.RECOVERY,
}
"""Quantities that differ if steps that begin to count again are the next epoch, and their categories."""
_FIRST_RECORDS = 1000
"""Number of records that usually suffices to see more than two different steps."""
_MAY_BE_TRAINING = (Category.OTHER, Category.RECOVERY, Category.UNDETERMINED, Category.CUSTOM)
"""Categories of the time of attempts that show no step: what blocks in a program that trains may be all that another
one does."""


@dataclass(frozen=True, repr=False)
class _Job:
    """A job before its time is accounted for."""

    ordered: OrderedEvents
    """Source of `table`, duplicates included."""
    table: EventTable
    """Its events in order, each once, without those that `--as-of` hides."""
    attempts: Attempts
    endings: Endings
    start: int
    end: int
    """The job window [start, end), in ns."""
    ended: bool
    """True if the job had ended (accounting §1)."""


@dataclass(frozen=True, repr=False)
class Timeline(_Job):
    """One job with all its time accounted for: the basis of every analysis."""

    rules: AccountingOptions
    phases: Intervals
    """Init, prep, custom and elastic intervals."""
    loads: Intervals
    """Data loads."""
    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    progress: CheckpointProgress | None
    """None in step logs."""
    lineage: Lineage
    training: TrainingOutcome
    """All training, kept and wasted."""
    usual_step: UsualStepTimes
    reference: ReferenceStepTime | None
    """The reference step time in use; None without one."""
    sign_of_life: I64
    """Last sign of life (ns) of each attempt (accounting §3)."""
    loading: tuple[I64, I64]
    """Data loading that overlaps training, which is not in the ledger: start and end (ns)."""
    claims: Claims
    """All claims of the ledger, wasted training included."""
    kept_training: KeptTraining
    dead_time: tuple[I64, I64]
    """Start and end (ns) of the unclaimed time of attempts that others follow (accounting §4), in time order."""

    @property
    def reference_ns(self) -> Fraction | None:
        """The reference step time in use; None without one."""
        return None if self.reference is None else self.reference.ns

    @property
    def origin(self) -> Literal["given", "auto"] | None:
        """Origin of the reference step time."""
        return None if self.reference is None else self.reference.origin

    def __repr__(self) -> str:
        events = f"{len(self.table)} events in {len(self.attempts)} attempts"
        return f"<{events}; Analysis.segments is a DataFrame of the segments>"

    @cached_property
    def segments(self) -> Segments:
        """Segments of the job, built on first use: analyses of steps alone do not need them, and a long log has
        many."""
        claimed_time = self.kept_training.claimed_time
        return partition(self.claims, claimed_time, self.kept_training, self.dead_time, self.start, self.end)

    @cached_property
    def ledger(self) -> Ledger:
        """Running totals of the segments."""
        return Ledger(self.segments)

    @cached_property
    def risen_level(self) -> RisenLevel | None:
        """Slow training at the end that may be by design (accounting §6); None without any, and with a given reference
        step time."""
        reference = self.reference
        if reference is None or reference.origin == "given":
            return None
        judged = self.training.sample & ~self.training.spans.opening
        return find_risen_level(self.kept_training, judged, reference.ns, reference.alike)

    @cached_property
    def _open_slowdown(self) -> Account | None:
        """Running total of the slowdown that may be by design."""
        level = self.risen_level
        return None if level is None else account_of(spread_over_training(self.segments, level.slowdown))

    def undecided(self, start: I64, end: I64) -> I64:
        """Return how much more time (ns) of each window [start, end) (ns) may be productive than the ledger contains
        (accounting §7). 0 if that changes goodput by at most half a point."""
        return self.undecided_slowdown(start, end) + self._undecided_epochs(start, end)

    def undecided_slowdown(self, start: I64, end: I64) -> I64:
        """Return the part of the time in `undecided` (ns) that may be slow training."""
        if self._open_slowdown is None:
            return np.zeros(len(start), dtype=np.int64)
        return self._if_it_matters(self.ledger.of_account(self._open_slowdown, start, end), start, end)

    def _undecided_epochs(self, start: I64, end: I64) -> I64:
        """Return the part of the time in `undecided` (ns) that is productive if steps that begin again are epochs."""
        other = self.epoch_reading
        if other is None:
            return np.zeros(len(start), dtype=np.int64)
        own, kept = (one.ledger.time_in(Category.PRODUCTIVE, start, end) for one in (self, other))
        return self._if_it_matters(np.maximum(kept - own, 0), start, end)

    def _if_it_matters(self, amount: I64, start: I64, end: I64) -> I64:
        """Return an amount (ns) of each window [start, end); 0 if it is at most half a point of goodput."""
        excluded = self.ledger.time_in(Category.EXCLUDED, start, end)
        return np.where(100 * amount > LEAST_POINTS * (end - start - excluded), amount, 0)

    @cached_property
    def unnamed_epochs(self) -> Rows:
        """Rows at which steps begin to count again, in the next epoch or another process (accounting §7)."""
        if set(EPOCH_MARKS).isdisjoint(self.table.details):
            return np.zeros(0, dtype=np.intp)
        return find_unnamed_epochs(self.table, self.attempts, self.endings.how, self.died)

    @cached_property
    def epoch_reading(self) -> Timeline | None:
        """The job if steps that begin to count again are the next epoch; None if none do."""
        if len(self.unnamed_epochs) == 0:
            return None
        return build_timeline(with_continued_steps(self.table, self.unnamed_epochs), self.rules, self.end)

    def begin_of(self, level: RisenLevel) -> tuple[int, int]:
        """Return the first step of a risen level, as the log counts, and the row that shows it."""
        spans = self.kept_training.spans
        return int(spans.first[level.first]) + self.attempts.step_ends, int(spans.row[level.first])

    def bounds(self, start: int, end: int) -> tuple[Bound, ...]:
        """Return the bounds of the window [start, end) (ns); none if the log decides all of it (accounting §7)."""
        return (
            *self._bounds_of_risen_level(start, end),
            *self._bounds_of_epochs(start, end),
            *self._bound_above(start, end, self.untimed_restarts, NO_CLOCK),
            *self._bound_above(start, end, self._rows_with(UNTIMED_PHASE), UNTIMED_PHASES),
        )

    @cached_property
    def untimed_restarts(self) -> Rows:
        """Rows at which a process began an unknown time after the one before (accounting §7)."""
        return self._rows_with(UNTIMED_RESTART) if self.attempts.count > 1 else np.zeros(0, dtype=np.intp)

    def _rows_with(self, detail: tuple[tuple[str, Any], ...]) -> Rows:
        if detail not in self.table.details:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self.table.detail == self.table.details.index(detail))

    def has_unknown_time(self, start: I64, end: I64) -> Mask:
        """Return True for each window [start, end) (ns) with a downtime, a save or an evaluation of unknown length."""
        rows = np.concatenate([self.untimed_restarts, self._rows_with(UNTIMED_PHASE)])
        times = np.sort(self.table.time[rows])
        return np.asarray(times.searchsorted(end) > times.searchsorted(start))

    def _first_lines(self, rows: Rows) -> tuple[str, ...]:
        return tuple(self.table.where(row) for row in rows[:_MOST_LINES].tolist())

    def _bound_above(self, start: int, end: int, rows: Rows, reason: str) -> tuple[Bound, ...]:
        """Return the bound of a window in which time of unknown length may count as training. rows: what shows it."""
        rows = rows[(start <= self.table.time[rows]) & (self.table.time[rows] < end)]
        if len(rows) == 0:
            return ()
        most = self.ledger.in_window(start, end, (Category.PRODUCTIVE,)).get((Category.PRODUCTIVE, -1), 0)
        text = OF_UNKNOWN_LENGTH[reason](len(rows))
        return (Bound(GOODPUT, "at_most", most, reason, text, self._first_lines(rows)),)

    def _bounds_of_epochs(self, start: int, end: int) -> tuple[Bound, ...]:
        window = np.array([start]), np.array([end])
        (undecided,) = self._undecided_epochs(*window).tolist()
        other = self.epoch_reading
        if not undecided or other is None:
            return ()
        count = plural(len(self.unnamed_epochs), "time")
        text = f"step numbers begin again {count}: at the next epoch or phase, or in a new process"
        lines = self._first_lines(self.unnamed_epochs)
        found: list[Bound] = []
        for quantity, category in _OF_EPOCHS.items():
            amounts = [one.ledger.between(*window, (category,)) for one in (self, other)]
            least, most = sorted(int(of_reading.get((category, -1), np.zeros(1))[0]) for of_reading in amounts)
            found += both_bounds(quantity, least, most, EPOCH_OR_RESTART, text, lines)
        return tuple(found)

    def _bounds_of_risen_level(self, start: int, end: int) -> tuple[Bound, ...]:
        window, level = (np.array([start]), np.array([end])), self.risen_level
        (undecided,) = self.undecided_slowdown(*window).tolist()
        if level is None or not undecided:
            return ()
        amounts = self.ledger.between(*window, (Category.PRODUCTIVE, Category.SLOWDOWN))
        least, slow = (int(amounts[category, -1][0]) for category in (Category.PRODUCTIVE, Category.SLOWDOWN))
        step, row = self.begin_of(level)
        text = f"step times rose at step {step} and stayed high for an unknown reason"
        lines = (self.table.where(row),)
        return (
            *both_bounds(GOODPUT, least, least + undecided, RISEN_LEVEL, text, lines),
            *both_bounds(Category.SLOWDOWN.id, slow - undecided, slow, RISEN_LEVEL, text, lines),
        )

    @cached_property
    def clock_steps(self) -> tuple[tuple[int, int], ...]:
        """Time that did not pass, [begin, end) in ns: the recorder saw its clock set forward (accounting §5)."""
        return claims.clock_steps(self.table)

    @cached_property
    def runs(self) -> list[int]:
        """Rows at which runs begin (accounting §10), the first at row 0."""
        return find_runs(self.table, self.attempts)

    @cached_property
    def ends(self) -> Ends:
        """End of every attempt, the last one included."""
        why = self.causes.why
        return find_ends(
            self.attempts, self.endings, self.died, self.preempted_saves, self.elastic_passages, self.sign_of_life,
            self.failed, cancelled=bool(why) and why[-1].code == CANCELLED,
        )  # fmt: skip

    @property
    def disruptions(self) -> NDArray[np.intp]:
        """Attempts whose end was a disruption: another one follows, and no believed clean end precedes it. Includes
        scale-ups and rollbacks, which do not count."""
        return np.flatnonzero(self.endings.how[:-1] != End.CLEAN)

    @cached_property
    def preempted_saves(self) -> Rows:
        """The last save of each attempt that had reached a preemption; -1 without."""
        return preempted_saves(self.table, self.attempts)

    @cached_property
    def elastic_passages(self) -> tuple[NDArray[np.int8], Rows]:
        """Direction of the elastic passage after each attempt (`ElasticTransition`), and the line that shows it."""
        return elastic_passages(self.table, self.attempts)

    @cached_property
    def causes(self) -> Causes:
        """Cause of the end of each attempt if known (docs/causes.md). The ledger does not use it."""
        causes = causes_of(self.table, self.attempts, self.sign_of_life)
        return with_preemptions(causes, self.table, np.where(self.endings.how == End.CLEAN, -1, self.preempted_saves))

    @cached_property
    def died(self) -> Mask:
        """True for each attempt that an uncaught exception ended, if no event states how it ended."""
        died = self.endings.how == End.NOT_LOGGED
        for attempt in np.flatnonzero(died).tolist():
            why = self.causes.why[attempt]
            going_on = self._begins_at(attempt + 1)
            died[attempt] = why.code != CANCELLED and any(ends_by_exception(one, going_on) for one in why.used)
        return np.asarray(died)

    def _begins_at(self, attempt: int) -> tuple[str, int]:
        """Return the source and the line at which an attempt begins; ("", 0) after the last one."""
        if attempt >= len(self.attempts):
            return "", 0
        row = int(self.attempts.begin_row[attempt])
        return self.table.sources[int(self.table.source[row])], int(self.table.line[row])

    @property
    def ending(self) -> Ending:
        """How the last attempt of the job ended."""
        return ending_of(self.table, self.endings, self.died)

    @property
    def last_cause(self) -> FailureCause | None:
        """Cause of the end of the last attempt, if it did not end clean and a line states the cause, or a kill."""
        why = self.causes.why
        return why[-1] if why and why[-1].code != UNKNOWN_CAUSE and self.endings.how[-1] != End.CLEAN else None

    @property
    def planned(self) -> Mask:
        """True for each attempt that a scale-up or a rollback ended: listed with the disruptions, but not counted."""
        scaled_up = self.elastic_passages[0] == ElasticTransition.SCALE_UP
        if scaled_up.any():
            scaled_up = scaled_up & (self.preempted_saves < 0)
        return np.asarray(scaled_up | self.attempts.gone_back)

    @property
    def shows_training(self) -> bool:
        """True if the log shows any training, kept or not: a step, or, in checkpoint logs, steps done since a start, a
        load or another checkpoint."""
        if self.progress is not None:
            return len(self.progress.spans) > 0
        return self.records is not None and len(self.records.number) > 0

    @cached_property
    def few_records(self) -> int | None:
        """Number of step records with different numbers if it is one or two, otherwise None. Also None if begin and end
        of all of them are stated."""
        if self.records is None or not len(self.records.number):
            return None
        for numbers in (self.records.number[:_FIRST_RECORDS], self.records.number):
            low, high = int(numbers.min()), int(numbers.max())
            if not bool(((numbers == low) | (numbers == high)).all()):
                return None
        return None if self._states_intervals(self.records) else 1 if low == high else 2

    def _states_intervals(self, records: StepRecordsByAttempt) -> bool:
        """Return True if each record states how long its steps took, and a restore where each attempt began."""
        if records.beginnings is None:
            return False
        is_restored = (
            records.beginnings.shown[records.has_records] != records.rows[records.bounds[:-1][records.has_records]]
        )
        return bool(is_restored.all()) and bool((self.table.step_time[records.rows] != NONE).all())

    @cached_property
    def why_unknown(self) -> str | None:
        """Reason why goodput cannot be measured: the job's time may contain training that no line shows (accounting
        §7). None if it can be measured. A job that crashed before its first step is measurable, because it lost all of
        its time."""
        if not self.shows_training:
            table = self.table
            if table.observed.draft_refused:
                return "no step was recognized"
            if table.observed.scheduled_alone:
                return "only a scheduler reports this job (`goodput fleet` shows its allocation)"
            unread = table.observed.unread_steps.get(table.jobs[int(table.job[0])], "") if len(table) else ""
            if unread:
                return (
                    f"{unread} looks like a step, but the format is unknown; `goodput check --suggest` infers a mapping"
                )
            crashed = len(self.attempts) > 0 and self.endings.how[-1] == End.CRASHED
            return None if crashed else self.no_training
        several = self.table.observed.several_runs.get(self.table.jobs[int(self.table.job[0])])
        if several is not None:
            return several
        few, numbers = self.few_records, None if self.records is None else self.records.number
        if few is None or numbers is None:
            return None
        first = 0 if self.attempts.counts_from_0 else 1
        more = (
            int(numbers.max()) - int(numbers.min()) > 1 if few == 2 else self.attempts.step_ends and numbers[0] > first
        )
        if not more:
            return None
        return "only one step record was logged" if few == 1 else "only two step records were logged"

    @property
    def no_training(self) -> str:
        """Reason to report if no line shows training."""
        if of_kind(self.table.kind, (Kind.FINISHED, Kind.SAVED)).any():
            return "only checkpoint steps were logged"
        return "no step was logged"

    def unknown(self, start: I64, end: I64) -> Mask:
        """Return True for each window [start, end) (ns) whose goodput cannot be measured, because it contains time that
        may have been training."""
        if self.why_unknown is None:
            return np.zeros(len(start), dtype=np.bool_)
        if self.shows_training:
            return np.ones(len(start), dtype=np.bool_)
        amounts = self.ledger.between(start, end, only=_MAY_BE_TRAINING)
        return np.asarray(sum(amounts.values(), np.zeros(len(start), dtype=np.int64)) > 0)

    @property
    def failed(self) -> Mask:
        """True for each attempt whose end was a disruption that counts, which means it was not planned."""
        followed = np.arange(len(self.attempts)) < len(self.attempts) - 1
        return np.asarray(followed & (self.endings.how != End.CLEAN) & ~self.planned)


def build_timeline(ordered: OrderedEvents, rules: AccountingOptions, as_of: int | None = None) -> Timeline | None:
    """Account for the job of these events. Return None if they span no time.

    as_of: ns. Events after it are ignored. Unless the job had ended by then, the window ends there.
    """
    table = ordered.table if as_of is None else seen_at(ordered.table, as_of)
    if len(table) == 0:
        return None
    attempts = find_attempts(table, is_step_log(ordered.table), rules.unknown_falls)
    endings = find_endings(table, attempts, rules.method.planned)
    ended = has_ended(table, attempts, endings)
    start = job_start(table)
    end = job_end(table, attempts) if ended or as_of is None else as_of
    return _account(_Job(ordered, table, attempts, endings, start, end, ended), rules) if start < end else None


def cause_of_last_end(table: EventTable) -> FailureCause:
    """Return why the last attempt ended, also if the events span no time and have no timeline. table: in the order of
    accounting §1."""
    if len(table) > 0:
        attempts = find_attempts(table, is_step_log(table))
        if len(attempts) > 0:
            return causes_of(table, attempts, last_activity_ns(table, attempts)).why[-1]
    return cause_without_attempts(table.observed)


def _account(job: _Job, rules: AccountingOptions) -> Timeline:
    """Account for a job: the chapters of accounting.md in order."""
    table, attempts, endings = job.table, job.attempts, job.endings
    rules = replace(rules, exclusions=(*rules.exclusions, *claims.clock_steps(table)))
    sign_of_life = last_activity_ns(table, attempts)
    progress = find_progress(table, attempts, endings, rules, sign_of_life)
    training = progress.training
    credited = np.flatnonzero(training.credited)
    np.maximum.at(sign_of_life, training.spans.attempt[credited], training.spans.end[credited])
    phases = phase_intervals(table, attempts, sign_of_life, job.end)
    loads = data_intervals(table, attempts, sign_of_life, job.end)
    in_flight = steps_in_flight(table, attempts, training, progress.records, progress.checkpoints, job.end)
    blocking = rules.method.data_loading == "blocking"
    loading, overlapping_loads = data_loading(table, attempts, loads, in_flight, blocking)
    events_claim = _claims_of_events(job, rules, phases, sign_of_life, progress.checkpoints)
    lost = _claim_time_after_step_ends(job, progress, sign_of_life)
    judged_by_steps = attempts.step_log and rules.reference_ns is None
    unknown = claims.lost_lines(table, training) if judged_by_steps else join([])
    overlaps = resolve_overlaps(
        (*events_claim, loading, unknown, lost), training, progress.may_start(attempts), (job.start, job.end)
    )
    reference = reference_step_time(rules, training, overlaps.claimed_time, attempts.step_log)
    kept_training = _kept_training(job, rules, progress, overlaps, None if reference is None else reference.ns)
    return Timeline(
        **vars(job),
        rules=rules,
        phases=phases,
        loads=loads,
        records=progress.records,
        progress=progress.checkpoints,
        lineage=progress.lineage,
        training=training,
        usual_step=overlaps.usual_step,
        reference=reference,
        sign_of_life=sign_of_life,
        loading=overlapping_loads,
        claims=overlaps.claims,
        kept_training=kept_training,
        dead_time=_dead_time(table, attempts, endings, training),
    )


def _claims_of_events(
    job: _Job, rules: AccountingOptions, phases: Intervals, sign_of_life: I64, checkpoints: CheckpointProgress | None
) -> tuple[Claims, ...]:
    """Return all claims except those of data loading and wasted training."""
    table, attempts, endings = job.table, job.attempts, job.endings
    down = claims.downtime(table, attempts, endings, sign_of_life, checkpoints, job.end)
    return (
        claims.excluded(rules.exclusions),
        claims.planned_stops_excluded(down) if rules.method.exclude_stopped else join([]),
        claims.phases(table, attempts, phases),
        claims.saves_and_restores(table, attempts),
        claims.queued(table, attempts, job.end),
        down,
        *(claims.checkpoint_log(table, attempts, endings, checkpoints) if checkpoints is not None else ()),
    )


def _claim_time_after_step_ends(job: _Job, progress: TrainingProgress, sign_of_life: I64) -> Claims:
    """Return the training lost after the last record of each attempt of a step-end log."""
    if progress.records is None or not job.attempts.step_ends:
        return join([])
    trained_to = progress.training.spans.latest_end(np.zeros(len(job.attempts), dtype=np.int64))
    return claim_time_after_last_record(
        job.table, job.attempts, job.endings, progress.records, sign_of_life, trained_to
    )


def _kept_training(
    job: _Job, rules: AccountingOptions, progress: TrainingProgress, overlaps: Overlaps, reference: Fraction | None
) -> KeptTraining:
    """Return kept training with its start-up, and its stalls or its slowdown."""
    training, records, claimed_time = progress.training, progress.records, overlaps.claimed_time
    if records is not None and len(job.attempts):
        credit_last_step_of_job(
            job.table, job.attempts, records, overlaps.usual_step, claimed_time, training, rules.exclusions
        )
    kept_training = kept_training_of(training, overlaps.partial, overlaps.splits, overlaps.startup, claimed_time)
    if reference is not None:
        return with_slowdown(kept_training, reference)
    if records is None:
        return kept_training
    return with_stalls(kept_training, overlaps.usual_step, training.credited, rules.method.stall_factor)


def _dead_time(table: EventTable, attempts: Attempts, endings: Endings, training: TrainingOutcome) -> tuple[I64, I64]:
    """Return dead time (accounting §4), start and end (ns), in time order. It lies in attempts that others follow, from
    the end of the last span (or the first start, without any span) to the next start. Before a believed clean end time
    is unclaimed, so dead time begins at the first line that ended the attempt."""
    begin, end = training.spans.latest_end(attempts.begin)[:-1], attempts.begin[1:]
    clean = np.flatnonzero(endings.how[:-1] == End.CLEAN)
    begin[clean] = np.maximum(begin[clean], table.time[attempts.first_ending[clean]])
    some = begin < end
    return begin[some], end[some]
