"""Training spans of a job, and the use of time after the last one (accounting §4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from .canvas import RANK, Canvas, Claim
from .checkpoints import Course, are_asynchronous, course
from .ends import Beginning, beginnings, strides, trained_from
from .events import NS, TERMINATIONS
from .job import Job
from .life import Pairing, last_activity_ns, lost_end
from .lineage import EVERYTHING, NOTHING, TrainingSpan, gross, kept_of, lineage, usual_for_last_step

RESTORE = "unproductive_checkpoint_restore_time"
SAVE = "unproductive_checkpoint_save_time"
WASTED = "wasted_progress_from_disruption"
UNDETERMINED = "disruption_undetermined"


@dataclass
class Training:
    """Spans, and the claims that come with them. By attempt, ns: end of a wasted or a credited last step, and the
    number of steps of the credited one.

    in_flight: [start, end) of all that counts as a step for data loading, ns. undetermined: attempts that died at an
    unlogged time. infers_startup: not with asynchronous saves.
    """

    spans: list[TrainingSpan] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    wasted_end: dict[int, int] = field(default_factory=dict)
    credited_end: dict[int, int] = field(default_factory=dict)
    credited_count: dict[int, int] = field(default_factory=dict)
    in_flight: list[tuple[int, int]] = field(default_factory=list)
    undetermined: set[int] = field(default_factory=set)
    infers_startup: bool = True

    def claim(self, rank: str, start: int, end: int, owner: str) -> None:
        self.claims.append(Claim(RANK[rank], start, end, owner))

    def last_activity(self, job: Job, index: int) -> int:
        """Return the last sign of life of an attempt, ns."""
        if index < job.last and job.attempts[index + 1].rolled_back:
            return job.next_begin(index)
        return last_activity_ns(job.attempts[index], job.is_step_log, self.credited_end.get(index))


def train(job: Job) -> Training:
    """Return all spans, each with its kept part and its excluded part."""
    training = Training()
    if job.step_ends:
        train_end_log(job, training)
    elif job.is_step_log:
        train_step_log(job, training)
    else:
        train_checkpoint_log(job, training)
    mark_exclusions(job, training.spans)
    if not job.step_ends:
        training.in_flight += [(span.start, span.end) for span in training.spans]
    return training


def mark_exclusions(job: Job, spans: list[TrainingSpan]) -> None:
    for span in spans:
        # A span without length is excluded or not, like an interval of one ns.
        line = Canvas(span.start, max(span.end, span.start + 1), max(span.gross, 1))
        for start, end in job.options.exclude:
            line.paint(Claim(RANK["excluded"], start, end, "excluded"))
        span.excluded = line.totals().get("excluded", 0)
        lost = any(begin < max(span.end, span.start + 1) and end > span.start for begin, end in job.options.lost)
        span.lost_lines = job.is_step_log and span.role == "plain" and span.steps > 1 and lost


# Step logs


def train_step_log(job: Job, training: Training) -> None:
    step_ranges = [(a.steps[0].number, a.steps[-1].number) if a.steps else None for a in job.attempts]
    stride = strides(job.attempts)
    kept = lineage(step_ranges, stride)
    for index, attempt in enumerate(job.attempts):
        r = kept.get(index, NOTHING)
        for a, b in pairwise(attempt.steps):
            steps = Fraction(b.number - a.number)
            share = kept_of(a.number, b.number, EVERYTHING if r is None else r)
            training.spans.append(TrainingSpan(index, a.time, b.time, steps, share, first=a is attempt.steps[0]))
    mark_reinitialised(job, training.spans)
    mark_exclusions(job, training.spans)
    measured = list(training.spans)
    for index, attempt in enumerate(job.attempts):
        if attempt.steps and index == job.last:
            final_step(job, training, stride[index])
        elif attempt.steps:
            dead_last_step(job, training, index, kept.get(index), stride[index], measured)


def train_end_log(job: Job, training: Training) -> None:
    """Add the spans of steps that are recorded when they end: only time after the last record is in flight."""
    began, stride = beginnings(job.attempts), strides(job.attempts)
    step_ranges = [
        None if one is None else (one.step, attempt.steps[-1].number)
        for one, attempt in zip(began, job.attempts, strict=True)
    ]
    kept = lineage(step_ranges, stride)
    for index, one in enumerate(began):
        if one is not None:
            upto = kept.get(index, NOTHING)
            training.spans += end_spans(job, index, one, EVERYTHING if upto is None else upto)
    mark_reinitialised(job, training.spans)
    mark_exclusions(job, training.spans)
    measured = list(training.spans)
    for index, attempt in enumerate(job.attempts):
        if not attempt.steps:
            continue
        last = attempt.steps[-1].time
        if index == job.last:
            end = end_line_after_last_step(job, index)
            flight = job.t1 if end is None else end
            until = job.crash(index) or last
        else:
            add_steps_after_last_record(job, training, index, kept.get(index), stride[index], measured)
            until = last if job.clean[index] else min(training.last_activity(job, index), job.next_begin(index))
            flight = training.credited_end.get(index, last)
        training.in_flight.append((attempt.steps[0].time, flight))
        training.wasted_end[index] = training.credited_end.get(index, last)
        training.claim("wasted", training.wasted_end[index], until, WASTED)


def end_spans(job: Job, index: int, began: Beginning, upto: float) -> list[TrainingSpan]:
    """Return spans from the begin of an attempt to its first record, and from record to record."""
    spans: list[TrainingSpan] = []
    step, time, started = began.step, began.time, began.started
    for record in job.attempts[index].steps:
        steps = record.number - step
        if steps:
            start = time if started else trained_from(time, record, steps)
            share = kept_of(step, record.number, upto)
            spans.append(TrainingSpan(index, start, record.time, Fraction(steps), share, first=not spans))
        step, time, started = record.number, record.time, False
    return spans


def add_steps_after_last_record(
    job: Job, training: Training, index: int, r: int | None, stride: int, measured: list[TrainingSpan]
) -> None:
    """Add the steps that the lineage shows after the last record of an attempt that another one follows."""
    last = job.attempts[index].steps[-1]
    if r is None or r <= last.number:
        return
    missing = Fraction(r - last.number)
    reached = last.number >= r - stride
    fit = reached or were_trained(job, index, missing, measured)
    credit(job, training, index, missing if fit else Fraction(1), measured)


def mark_reinitialised(job: Job, spans: list[TrainingSpan]) -> None:
    """Mark the first span after the end of each elastic re-initialization of its attempt: it may contain a start-up."""
    for interval in Pairing().run(job.attempts):
        if interval.kind != "elastic_reinit":
            continue
        end = interval.end
        if end is None:
            end = lost_end(interval, job.attempts[interval.owner], interval.start, None)
        later = [s for s in spans if s.attempt == interval.owner and end is not None and s.start >= end]
        if later and not later[0].first:
            later[0].first = later[0].reinit = True


def end_line_after_last_step(job: Job, index: int) -> int | None:
    return next((e.time for e in job.attempts[index].after({"step"}) if e.kind in TERMINATIONS), None)


def final_step(job: Job, training: Training, stride: int) -> None:
    """Add the last step of the job: a span if a termination or end is logged, otherwise in progress; in flight either
    way."""
    start, end = job.attempts[-1].steps[-1].time, end_line_after_last_step(job, job.last)
    training.in_flight.append((start, job.t1 if end is None else end))
    if end is not None:
        training.spans.append(TrainingSpan(job.last, start, end, Fraction(stride), Fraction(stride), role="final"))


def dead_last_step(
    job: Job, training: Training, index: int, r: int | None, stride: int, measured: list[TrainingSpan]
) -> None:
    """Add the last step of an attempt that another follows; the lineage resumed from it at `r` (None: it did not)."""
    step = job.attempts[index].steps[-1]
    if r is not None and r > step.number:
        missing = Fraction(r - step.number)
        if step.number >= r - stride or were_trained(job, index, missing, measured):
            credit(job, training, index, missing, measured)
        else:
            credit(job, training, index, Fraction(1), measured)
        return
    end = max(min(training.last_activity(job, index), job.next_begin(index)), step.time)
    training.claim("wasted", step.time, end, WASTED)
    training.wasted_end[index] = end
    training.in_flight.append((step.time, end))


def were_trained(job: Job, index: int, missing: Fraction, measured: list[TrainingSpan]) -> bool:
    """Return True if unrecorded steps fit after the last one: at most 300 s, before its termination or the next start.
    Then a buffering writer lost them, and a checkpoint proves them."""
    start, pace = job.attempts[index].steps[-1].time, usual_for_last_step(measured, index, gross)
    time = round(missing * (pace or 0))
    return time <= 300 * NS and start + time <= end_of_credit(job, index)


def end_of_credit(job: Job, index: int) -> int:
    end_line = end_line_after_last_step(job, index)
    return job.next_begin(index) if end_line is None else end_line


def credit(job: Job, training: Training, index: int, count: Fraction, measured: list[TrainingSpan]) -> None:
    """Credit `count` usual (gross) step times. Chosen: a job without a usual step time gets no credit."""
    start, pace = job.attempts[index].steps[-1].time, usual_for_last_step(measured, index, gross)
    limit = end_of_credit(job, index)
    wish = start + round(count * (pace or 0))
    training.credited_end[index] = end = min(wish, limit)
    training.credited_count[index] = int(count)
    steps = count if end == wish or not pace else Fraction(end - start) / pace
    if end > start:
        training.spans.append(TrainingSpan(index, start, end, steps, steps, role="credited"))


# Checkpoint logs


def train_checkpoint_log(job: Job, training: Training) -> None:
    asynchronous = job.options.async_saves or any(are_asynchronous(attempt.records()) for attempt in job.attempts)
    training.infers_startup = not asynchronous
    courses = [course(job.attempts, index, asynchronous) for index in range(len(job.attempts))]
    kept = lineage([one.step_range for one in courses], [0] * len(courses))
    for index, one in enumerate(courses):
        upto = kept_upto(job, index, one, kept)
        for place, (a, start, b, end) in enumerate(one.spans):
            steps = Fraction(b - a)
            training.spans.append(TrainingSpan(index, start, end, steps, kept_of(a, b, upto), first=place == 0))
        for rank, saves in (("save", one.saves), ("initial_save", one.initial_saves)):
            for start, end in saves:
                training.claim(rank, start, end, SAVE)
        if one.load is not None:
            training.claim("inferred_restore", job.attempts[index].up, one.load, RESTORE)
        if one.tail is not None:
            after_the_last(job, training, index, one.tail)


def kept_upto(job: Job, index: int, one: Course, kept: dict[int, int | None]) -> float:
    """Return the step up to which an attempt's progress is kept; for a crashed last attempt, its last save."""
    r = kept.get(index, NOTHING)
    if r is not None:
        return r
    if job.crash(index) is None:
        return EVERYTHING
    return NOTHING if one.last_save is None else one.last_save


def after_the_last(job: Job, training: Training, index: int, tail: int) -> None:
    """Claim the time after the last span or save time (otherwise the load)."""
    if index == job.last:
        training.claim("wasted", tail, job.crash(index) or tail, WASTED)
        return
    down = job.termination(index)
    if down is None:
        training.undetermined.add(index)
        training.claim("downtime", tail, job.next_begin(index), UNDETERMINED)
    else:
        training.claim("wasted", tail, min(down, job.next_begin(index)), WASTED)
