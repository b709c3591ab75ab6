"""Disruptions (accounting §10): what each one lost, how long the job was down, and the log lines that show it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import clipped, distinct
from goodput_cli.analysis.disruptions.evidence import find_evidence
from goodput_cli.analysis.disruptions.losses import Losses, find_losses, first_and_last_steps
from goodput_cli.analysis.disruptions.passages import PassageAmounts, how_ended, passage_amounts
from goodput_cli.analysis.disruptions.rows import Disruptions, no_disruptions
from goodput_cli.analysis.table import UNKNOWN
from goodput_cli.arrays import I64, Rows
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.vocabulary.endings import ENDED


def find_disruptions(timeline: Timeline, start: int, end: int) -> Disruptions:
    """The disruptions whose last sign of life lies in [start, end) (ns), in time order (accounting §10)."""
    table, attempts = timeline.table, timeline.attempts
    inside = disruptions_inside(timeline, start, end)
    if len(inside) == 0:
        return no_disruptions(table)
    losses, amounts, evidence = find_losses(timeline), passage_amounts(timeline), find_evidence(timeline)
    began, last = first_and_last_steps(timeline)
    ranks, died = _ranks(timeline), timeline.sign_of_life
    dead = timeline.disruptions[inside]  # the attempt that ended
    next_, resumed = dead + 1, evidence.resumed[dead]
    first_step, regained = evidence.first_step[dead], evidence.regained[dead]
    ended, ended_row = how_ended(timeline)
    up, next_start = attempts.up[next_], attempts.begin[next_]
    steps_lost, silent = _steps_lost(timeline, losses, amounts)[dead], ended[dead] == ENDED.index("silent")
    wasted, downtime, restart = losses.ns[dead], amounts.down[dead], amounts.restart[dead]
    columns = {
        "number": inside + 1,
        "attempt": dead + 1,
        "ended": ended[dead],
        "last_step": last[dead],
        "last_sign_of_life_ns": died[dead],
        "death_latest_ns": np.where(attempts.first_ending[dead] >= 0, died[dead], np.maximum(next_start, died[dead])),
        "next_start_ns": next_start,
        "next_up_ns": up,
        "resumed_step": np.where(resumed >= 0, began[resumed], UNKNOWN),
        "steps_lost": steps_lost,
        "steps_lost_is": np.where(steps_lost == UNKNOWN, UNKNOWN, silent),
        "wasted_ns": wasted,
        "downtime_ns": downtime,
        "undetermined_ns": amounts.undetermined[dead],
        "queued_ns": amounts.queued[dead],
        "restart_ns": restart,
        "lost_ns": wasted + downtime + restart,
        "time_to_first_step_ns": _since(up, table, first_step),
        "regained_after_ns": _since(attempts.cut_at_next(died)[dead], table, regained),
        "ranks_before": _known_count(ranks[dead]),
        "ranks_after": _known_count(ranks[next_]),
    }
    rows = {
        "last_step": evidence.last_step[dead],
        "last_sign_of_life": evidence.sign_of_life[dead],
        "ended": ended_row[dead],
        "next_start": attempts.begin_row[next_],
        "next_up": attempts.up_row[next_],
        "resumed_step": np.where(resumed >= 0, evidence.began[resumed], -1),
        "first_step": first_step,
        "regained": regained,
    }
    return Disruptions(table, columns, rows)


def disruptions_inside(timeline: Timeline, start: int, end: int) -> NDArray[np.intp]:
    """Positions in `Timeline.disruptions` of those inside [start, end) (ns). A last sign of life at the very end of the
    job window, or before it, counts as inside it: windows that tile the job hold each disruption once."""
    down = clipped(timeline.sign_of_life[timeline.disruptions], timeline.start, timeline.end - 1)
    return np.flatnonzero((down >= start) & (down < end))


def count_disruptions(timeline: Timeline, start: int, end: int) -> int:
    """How many disruptions inside [start, end) (ns) count: scale-ups are planned."""
    inside = timeline.disruptions[disruptions_inside(timeline, start, end)]
    return int(np.count_nonzero(~timeline.planned[inside]))


def _since(instant: I64, table: EventTable, rows: Rows) -> I64:
    """ns from each instant to an event, not below 0; unknown where there is none."""
    return np.where(rows >= 0, np.maximum(table.time[rows] - instant, 0), UNKNOWN)


def _steps_lost(timeline: Timeline, losses: Losses, amounts: PassageAmounts) -> I64:
    """By attempt that another one follows; unknown where a checkpoint log shows time lost but no step."""
    steps = losses.steps[:-1]
    if timeline.progress is None:
        return steps
    unseen = (steps == 0) & ((losses.ns[:-1] > 0) | (amounts.undetermined > 0))
    return np.where(unseen, UNKNOWN, steps)


def _ranks(timeline: Timeline) -> I64:
    """How many ranks started in each attempt, those without a number counted by instance or pod; 0 where its start
    lines name none."""
    table, attempts = timeline.table, timeline.attempts
    rows = np.flatnonzero((table.kind == Kind.START) & (attempts.of_row >= 0))
    nodes = {node: -code for code, node in enumerate({node for node, _ in table.writers if node}, 1)}
    node_of = np.array([*(nodes.get(node, 0) for node, _ in table.writers), 0], dtype=np.int64)
    rank = table.rank[rows].astype(np.int64)
    named = np.where(rank >= 0, rank + 1, node_of[table.writer[rows]])
    pairs = distinct((attempts.of_row[rows].astype(np.int64) << 33) + (named + (1 << 32)))
    known = pairs[pairs & ((1 << 33) - 1) != 1 << 32]
    return np.bincount(known >> 33, minlength=len(attempts)).astype(np.int64)


def _known_count(ranks: I64) -> I64:
    return np.where(ranks > 0, ranks, UNKNOWN)
