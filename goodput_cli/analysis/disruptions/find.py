"""Disruptions (accounting §10): the end of each attempt, the loss of each disruption, and the downtime of the job.

Reliability (accounting §10): the time between disruptions, and their cost.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import clipped, distinct
from goodput_cli.analysis.disruption_facts import DISRUPTION_FACTS
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.losses import find_evidence, first_and_last_steps, lost_steps
from goodput_cli.analysis.disruptions.rows import Disruptions, no_disruptions
from goodput_cli.analysis.recovery.columns import recoveries_of, unplanned_chains
from goodput_cli.analysis.results import Reliability
from goodput_cli.analysis.table import UNKNOWN
from goodput_cli.analysis.timeline.rows import segments_inside
from goodput_cli.arrays import I64, Rows
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.vocabulary.categories import ENDED, Category


def find_disruptions(timeline: Timeline, start: int, end: int) -> Disruptions:
    """Return the disruptions whose last sign of life is in [start, end) (ns), in time order (accounting §10)."""
    table, attempts = timeline.table, timeline.attempts
    inside = disruptions_inside(timeline, start, end)
    if len(inside) == 0:
        return no_disruptions(table)
    costs, evidence = AttemptCosts(timeline), find_evidence(timeline)
    began, last = first_and_last_steps(timeline)
    ranks, died = ranks_of(timeline), timeline.sign_of_life
    dead = timeline.disruptions[inside]  # Attempts that ended.
    next_, resumed = dead + 1, evidence.resumed[dead]
    first_step, regained = evidence.first_step[dead], evidence.regained[dead]
    ended, ended_row = timeline.ends.how, timeline.ends.row
    up, next_start = attempts.up[next_], attempts.begin[next_]
    steps_lost, silent = _steps_lost(timeline, costs)[dead], ended[dead] == ENDED.index("silent")
    wasted, downtime, restart = costs.taken_back[dead], costs.downtime[dead], costs.restart[dead]
    columns = {
        "number": inside + 1,
        "attempt": attempts.number[dead],
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
        "undetermined_ns": costs.until_up(Category.UNDETERMINED)[dead],
        "queued_ns": costs.until_up(Category.QUEUED)[dead],
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
    causes, planned = timeline.causes.why, timeline.planned
    why = tuple(FailureCause(planned=True) if planned[attempt] else causes[attempt] for attempt in dead.tolist())
    facts = {one.name: one.of(timeline, costs, dead.tolist()) for one in DISRUPTION_FACTS}
    return Disruptions(table, columns, rows, why, facts)


def disruptions_inside(timeline: Timeline, start: int, end: int) -> NDArray[np.intp]:
    """Return the positions in `Timeline.disruptions` of those inside [start, end) (ns).

    A last sign of life exactly at the end of the job window, or before it, counts as inside: windows that tile the job
    contain each disruption once.
    """
    down = clipped(timeline.sign_of_life[timeline.disruptions], timeline.start, timeline.end - 1)
    return np.flatnonzero((down >= start) & (down < end))


def count_disruptions(timeline: Timeline, start: int, end: int) -> int:
    """Return the number of disruptions inside [start, end) (ns) that count: without scale-ups and rollbacks."""
    inside = timeline.disruptions[disruptions_inside(timeline, start, end)]
    return int(np.count_nonzero(~timeline.planned[inside]))


def _since(instant: I64, table: EventTable, rows: Rows) -> I64:
    """Return the ns from each time to an event, not below 0; unknown without an event."""
    return np.where(rows >= 0, np.maximum(table.time[rows] - instant, 0), UNKNOWN)


def _steps_lost(timeline: Timeline, costs: AttemptCosts) -> I64:
    """Return lost steps by attempt that another one follows; unknown if a checkpoint log shows lost time without a
    step."""
    steps = lost_steps(timeline)[:-1]
    if timeline.progress is None:
        return steps
    unseen = (steps == 0) & ((costs.taken_back[:-1] > 0) | (costs.until_up(Category.UNDETERMINED) > 0))
    return np.where(unseen, UNKNOWN, steps)


def ranks_of(timeline: Timeline) -> I64:
    """Return the number of ranks that started in each attempt; 0 if its start lines name none. Ranks without a number
    are counted by instance or pod."""
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


_CONFIDENCE = 0.95
_BISECTIONS = 200


def reliability(timeline: Timeline, disruptions: Disruptions, start: int, end: int, ettr: float | None) -> Reliability:
    """Return the reliability over [start, end) (ns). disruptions: those inside, some of which may not count. ettr:
    productive / window, None if unknown."""
    disruptions = disruptions.unplanned
    exposure = time_up(timeline, start, end)
    count, last = len(disruptions), last_failure(timeline)
    failures = count + (last is not None and start <= last <= end)
    lower, upper = poisson_interval(failures)
    downtime, regained = disruptions.column("downtime_ns").tolist(), disruptions.column("regained_after_ns").tolist()
    return Reliability(
        disruptions=count,
        failures=failures,
        exposure_ns=exposure,
        mtbf_seconds=exposure / failures / 1e9 if failures else None,
        mtbf_ci95_seconds=(exposure / upper / 1e9 if exposure else None, exposure / lower / 1e9 if failures else None),
        mean_downtime_seconds=fmean(downtime) / 1e9 if count else None,
        mean_time_to_regain_seconds=fmean(regained) / 1e9 if regained else None,
        longest_unproductive=_longest_unproductive(timeline, start, end),
        ettr=ettr,
        recoveries=recoveries_of(list(unplanned_chains(disruptions.chains))) if count else None,
    )


def last_failure(timeline: Timeline) -> int | None:
    """Return when (ns) the last attempt failed; None if it did not, so that its time up is censored."""
    if not len(timeline.attempts) or not timeline.ends.failed[-1]:
        return None
    return int(up_times(timeline)[1][-1])


def poisson_interval(count: int) -> tuple[float, float]:
    """Return the exact (Garwood) interval of a Poisson mean for `count` observed events.

    It consists of half the chi-square quantiles with 2 x count and 2 x count + 2 degrees of freedom, in the tails
    outside 95 %. Its lower end is 0 for 0 events. For even degrees of freedom the chi-square distribution is a Poisson
    sum (P(chi2(2k) > 2x) = P(Poisson(x) < k)), so that no library of distributions is needed.
    """
    tail = (1 - _CONFIDENCE) / 2
    lower = _half_chi_square(tail, count) if count else 0.0
    return lower, _half_chi_square(1 - tail, count + 1)


@lru_cache(maxsize=256)
def _half_chi_square(probability: float, half_freedom: int) -> float:
    """Return x with P(chi2(2k) <= 2x) = probability, by bisection on a falling Poisson sum.

    x is at most ten standard deviations from k, and terms twice as far below k are negligible.
    """
    far = 10 * math.sqrt(half_freedom) + 30
    first = max(half_freedom - round(2 * far), 0)
    index = np.arange(first, half_freedom)
    log_factorial = math.lgamma(first + 1) + np.append(0.0, np.cumsum(np.log(index[1:])))
    low, high = max(half_freedom - far, 0.0), half_freedom + far
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        above = float(np.exp(index * math.log(middle) - middle - log_factorial).sum())
        low, high = (middle, high) if above > 1 - probability else (low, middle)
    return (low + high) / 2


def time_up(timeline: Timeline, start: int, end: int) -> int:
    """Return how long (ns) attempts were up within [start, end)."""
    up, down = up_times(timeline)
    return int(np.maximum(np.minimum(down, end) - np.maximum(up, start), 0).sum())


def up_times(timeline: Timeline) -> tuple[I64, I64]:
    """Return when (ns) each attempt was up, and until when. The last attempt is censored at its logged end or T1."""
    attempts = timeline.attempts
    down = attempts.cut_at_next(timeline.sign_of_life)
    if len(attempts):
        ending = int(attempts.first_ending[-1])
        down[-1] = timeline.table.time[ending] if ending >= 0 else timeline.end
    return attempts.up, down


def _longest_unproductive(timeline: Timeline, start: int, end: int) -> tuple[int, int] | None:
    segments, inside = timeline.segments, segments_inside(timeline, start, end)
    category = segments.category[inside]
    idle = (category != Category.PRODUCTIVE) & (category != Category.EXCLUDED)
    if not idle.any():
        return None
    turns = np.flatnonzero(np.diff(idle, prepend=False, append=False))
    first, last = turns[::2], turns[1::2] - 1
    begins = np.maximum(segments.start[inside][first], start)
    ends = np.minimum(segments.end[inside][last], end)
    longest = int(np.argmax(ends - begins))
    return int(begins[longest]), int(ends[longest])
