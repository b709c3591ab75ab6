"""Data loading (accounting §5): a claim while no step is in flight, and beside the ledger while one is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from goodput_cli.accounting.attempts.attempts import Attempts
from goodput_cli.accounting.claims.intervals import Intervals
from goodput_cli.accounting.claims.priority import Priority
from goodput_cli.accounting.sweep import Claims, claim, join
from goodput_cli.accounting.training.checkpoints import CheckpointProgress
from goodput_cli.accounting.training.kept import TrainingOutcome
from goodput_cli.accounting.training.spans import StepRecordsByAttempt
from goodput_cli.arrays import I64
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.categories import Category


def steps_in_flight(
    table: EventTable,
    attempts: Attempts,
    training: TrainingOutcome,
    records: StepRecordsByAttempt | None,
    progress: CheckpointProgress | None,
    job_end: int,
) -> tuple[I64, I64]:
    """Per attempt the span [start, end) (ns) in which a step is in flight: from its first step on, the last one
    included, whether or not its end is known; in checkpoint logs from where training begins to the last progress.
    Empty where it has none."""
    never = np.full(len(attempts), np.iinfo(np.int64).max, dtype=np.int64)
    if progress is not None:
        start = never.copy()
        spans = progress.spans
        np.minimum.at(start, spans.attempt, spans.start)
        return start, np.where(start < never, progress.position, start)
    assert records is not None
    start = never.copy()
    start[records.has] = records.time[records.bounds[:-1][records.has]]
    end = training.spans.latest_end(np.zeros(len(attempts), dtype=np.int64))
    if len(attempts):
        last = attempts.first_ending[-1]
        end[-1] = job_end if last < 0 else table.time[last]
    return start, np.where(start < never, np.maximum(end, start), start)


def data_loading(
    attempts: Attempts, intervals: Intervals, flight: tuple[I64, I64], blocking: bool
) -> tuple[Claims, Claims]:
    """Data loading outside steps (claimed), and inside steps (claimed only where loading is said to block)."""
    if len(intervals.row) == 0:
        return join([]), join([])
    load = _by_attempt(attempts, intervals)
    start, end = flight[0][load.attempt], flight[1][load.attempt]
    parts = (
        (load.start, np.minimum(load.end, start)),
        (np.maximum(load.start, end), load.end),
        (np.maximum(load.start, start), np.minimum(load.end, end)),
    )
    made = [replace(load, start=begin, end=np.maximum(stop, begin)) for begin, stop in parts]
    if blocking:
        return join(made), join([])
    return join(made[:2]), made[2]


def _by_attempt(attempts: Attempts, intervals: Intervals) -> Claims:
    """Data loads, cut where the next attempt begins: what reaches into it is judged by its steps."""
    begins = np.append(attempts.begin, np.iinfo(np.int64).max)
    left = claim(
        intervals.start,
        intervals.end,
        Priority.DATA,
        Category.DATA_LOADING_SYNC,
        attempt=attempts.of_row[intervals.row],
        row=intervals.row,
        end_row=intervals.end_row,
    )
    parts = []
    while len(left):
        border = begins[left.attempt + 1]
        parts.append(replace(left, end=np.minimum(left.end, border)))
        left = replace(left, start=border, attempt=left.attempt + 1).take(left.end > border)
    return join(parts)
