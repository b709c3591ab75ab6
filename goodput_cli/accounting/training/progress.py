"""Progress (accounting §4): from the events of a job to its training, with what the lineage keeps of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.claims.intervals import reinitialised
from goodput_cli.accounting.rules import Rules
from goodput_cli.accounting.training.checkpoints import CheckpointProgress, checkpoint_progress
from goodput_cli.accounting.training.kept import TrainingOutcome, apply_lineage
from goodput_cli.accounting.training.last_steps import (
    last_steps_of_dead_attempts,
    leave_in_progress,
    with_last_steps,
)
from goodput_cli.accounting.training.lineage import ALL_KEPT, Lineage, trace
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, step_records, step_spans
from goodput_cli.accounting.training.step_ends import end_spans
from goodput_cli.accounting.training.usual_step import usual_step_times_of
from goodput_cli.arrays import I64, Mask
from goodput_cli.events.schema import EventTable


@dataclass(frozen=True)
class Progress:
    """The progress of a job."""

    records: StepRecordsByAttempt | None
    """None in checkpoint logs."""
    checkpoints: CheckpointProgress | None
    """None in step logs."""
    lineage: Lineage
    training: TrainingOutcome
    """All training, last steps of dead attempts included."""

    def may_start(self, attempts: Attempts) -> Mask:
        """Whether the start-up of each attempt may be inferred: not where the log begins in the middle of a run, and
        not beside asynchronous saves, which overlap the first span."""
        if self.checkpoints is not None and self.checkpoints.asynchronous:
            return np.zeros(len(attempts), dtype=bool)
        return attempts.started | (np.arange(len(attempts)) > 0)


def find_progress(table: EventTable, attempts: Attempts, endings: Endings, rules: Rules, sign_of_life: I64) -> Progress:
    """Training of a job, and what is kept of it. sign_of_life: ns, one an attempt."""
    if attempts.step_log:
        return _of_steps(table, attempts, rules, sign_of_life)
    return _of_checkpoints(table, attempts, endings, rules)


def _of_steps(table: EventTable, attempts: Attempts, rules: Rules, sign_of_life: I64) -> Progress:
    records = step_records(table, attempts)
    lineage = trace(records.began, records.last, records.stride)
    ending = int(attempts.first_ending[-1]) if len(attempts) else -1
    again = reinitialised(table, attempts, sign_of_life)
    if attempts.step_ends:
        spans, last_of_attempt = end_spans(table, records, ending, again)
    else:
        spans, last_of_attempt = step_spans(records, ending, again)
    training = apply_lineage(spans, lineage, rules)
    sample = training.sample
    sample[last_of_attempt] = False
    gross_step = usual_step_times_of(spans, None, sample, len(attempts))
    last = last_steps_of_dead_attempts(table, attempts, records, lineage, gross_step, sign_of_life, rules.exclusions)
    training = with_last_steps(training, last, last_of_attempt[: len(last.spans)])
    if len(attempts) and records.has[-1]:
        leave_in_progress(training)
    return Progress(records, None, lineage, training)


def _of_checkpoints(table: EventTable, attempts: Attempts, endings: Endings, rules: Rules) -> Progress:
    checkpoints = checkpoint_progress(table, attempts, rules.method.async_saves)
    lineage = _cut_by_crash(trace(checkpoints.began, checkpoints.last, lambda _: 0), checkpoints, endings)
    return Progress(None, checkpoints, lineage, apply_lineage(checkpoints.spans, lineage, rules))


def _cut_by_crash(lineage: Lineage, checkpoints: CheckpointProgress, endings: Endings) -> Lineage:
    """A checkpoint log's last attempt that ended in `job_crashed` keeps what it had saved, no more."""
    last = np.flatnonzero(lineage.limit == ALL_KEPT)
    crashed = last[endings.how[last] == End.CRASHED]
    limit = lineage.limit.copy()
    limit[crashed] = np.maximum(checkpoints.last_save[crashed], checkpoints.began[crashed])
    return replace(lineage, limit=limit)
