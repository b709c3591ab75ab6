"""Progress (accounting §4): from the events of a job to its training, with what the lineage keeps of it.

The reference step time (accounting §6): given, found in the log, or none, and the slowdown it makes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.attempts.endings import End, Endings
from goodput_cli.accounting.claims import lost_steps
from goodput_cli.accounting.intervals import reinitialised
from goodput_cli.accounting.rules import Rules
from goodput_cli.accounting.sweep import ClaimedTime
from goodput_cli.accounting.training.checkpoints import CheckpointProgress, checkpoint_progress
from goodput_cli.accounting.training.kept import (
    ALL_KEPT,
    KeptTraining,
    Lineage,
    TrainingOutcome,
    apply_lineage,
    scaled,
    trace,
)
from goodput_cli.accounting.training.last_steps import (
    end_spans,
    last_steps_of_dead_attempts,
    leave_in_progress,
    with_last_steps,
)
from goodput_cli.accounting.training.spans import StepRecordsByAttempt, step_records, step_spans, usual_step_times_of
from goodput_cli.arrays import I64, Mask, percentiles
from goodput_cli.errors import UsageError
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
    training = apply_lineage(spans, lineage, rules, lost_steps(table))
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


_MOST_NS = 2.0**62


def reference_step_time(
    rules: Rules, training: TrainingOutcome, claimed_time: ClaimedTime, step_log: bool
) -> tuple[Fraction | None, Literal["given", "auto"] | None]:
    """The reference step time in use (ns), and where it came from.

    claimed_time: what training cannot have. Checkpoint logs take "auto" where nothing is given.
    """
    if isinstance(rules.reference_ns, Fraction):
        return rules.reference_ns, "given"
    if rules.reference_ns == "auto" or not step_log:
        reference = auto_reference(training, claimed_time)
        return reference, None if reference is None else "auto"
    return None, None


def auto_reference(training: TrainingOutcome, claimed_time: ClaimedTime) -> Fraction | None:
    """The 10th percentile (linear) of net time per step (ns) over wholly kept, untouched spans that are not an
    attempt's first; if there are none, over the first ones; None if there are none either, or if it is 0: clocks of
    whole seconds show no time for most of many steps a second (accounting §6)."""
    spans = training.spans
    for chosen in (training.sample & ~spans.opening, training.sample & spans.opening):
        if chosen.any():
            net = claimed_time.net_between(spans.start[chosen], spans.end[chosen])
            rate = net / spans.steps[chosen]
            return Fraction(percentiles(rate, (10,))[0]) or None
    return None


def with_slowdown(kept_training: KeptTraining, reference_ns: Fraction) -> KeptTraining:
    """With a reference R: kept steps x R are productive, the rest of the net time (less start-up) is slowdown.

    The sum over the job is rounded once: each span takes the difference of two running totals. `UsageError` if that is
    more than can be counted.
    """
    _check_amount(kept_training, reference_ns)
    total = scaled(np.cumsum(kept_training.counted_steps), reference_ns)
    slowdown = kept_training.trained(0, len(kept_training)) - np.diff(total, prepend=0)
    slowdown[~kept_training.kept_steps.some] = 0
    return replace(kept_training, slowdown=slowdown)


def _check_amount(kept_training: KeptTraining, reference_ns: Fraction) -> None:
    """UsageError if kept steps x reference is more than can be counted in ns (292 years): a mistyped reference, or
    step numbers that are no steps."""
    steps = float(kept_training.counted_steps.sum())
    if steps * float(reference_ns) > _MOST_NS:
        raise UsageError(
            f"{steps:g} kept steps x a reference step time of {float(reference_ns) / 1e9:g} s is longer than any job; "
            "check the reference step time, and whether the log counts steps"
        )
