"""Disruptions (accounting §10): the end of each attempt, the loss of each disruption, the downtime of the job and its
reliability; and the window around a disruption, a step or a time.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from statistics import fmean

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import clipped, distinct
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.losses import find_evidence, first_and_last_steps, lost_steps
from goodput_cli.analysis.disruptions.rows import DISRUPTION_FACTS, Disruptions, no_disruptions
from goodput_cli.analysis.recovery.columns import recoveries_of, unplanned_chains
from goodput_cli.analysis.results import Reliability
from goodput_cli.analysis.table import UNKNOWN
from goodput_cli.analysis.timeline.rows import segments_inside
from goodput_cli.arrays import I64, Rows
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.schema import EventTable, Kind
from goodput_cli.vocabulary.categories import ENDED, Category
from goodput_cli.vocabulary.text import plural
from goodput_cli.vocabulary.when import Anchors, TimeArgument, load_zone, parse_when


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


DISRUPTION_PREFIX = "disruption:"
STEP_PREFIX = "step:"
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


class StepNumber(Struct, frozen=True):
    """A step in the numbering of the log."""

    number: int


Around = int | StepNumber | TimeArgument
"""Number of a disruption, a step, or a time."""


def parse_around(text: str) -> Around:
    """Parse `disruption:3` as its number (from 1, in time order), `step:1503`, or a time. Raise `UsageError` for
    anything else."""
    plain = text.strip().lower()
    prefix = next((one for one in (DISRUPTION_PREFIX, STEP_PREFIX) if plain.startswith(one)), None)
    if prefix is None:
        try:
            return parse_when(text)
        except UsageError as error:
            raise UsageError(f"{error}, {DISRUPTION_PREFIX}3 or {STEP_PREFIX}1503") from error
    number = plain.removeprefix(prefix)
    if prefix == STEP_PREFIX:
        if not _NUMBER.fullmatch(number):
            raise UsageError(f"{text!r} is not a step", tip=f"use its number, as in {STEP_PREFIX}1503")
        return StepNumber(int(number))
    if not _NUMBER.fullmatch(number) or int(number) == 0:
        raise UsageError(f"{text!r}: disruptions are numbered from 1, as in disruption:3")
    return int(number)


def neighbourhood(timeline: Timeline, what: Around, margin: int, timezone: str, now_ns: int) -> tuple[int, int]:
    """Return the window [start, end) (ns) around `what`, with `margin` ns on either side, cut to the job window.

    A disruption extends from the last sign of life to the time at which the old progress was regained. A step that was
    trained several times is taken where it took longest. Raise `UsageError` for an unknown disruption or step, and
    `NotEnoughData` for a time outside the job, or without step times.
    """
    if isinstance(what, int):
        start, end = _disruption(timeline, what)
    elif isinstance(what, StepNumber):
        start, end = _step(timeline, what.number)
    else:
        starts = timeline.attempts.begins.tolist()
        anchors = Anchors(timeline.start, timeline.end, starts, now_ns, load_zone(timezone))
        start = end = what.resolve(anchors)
    start, end = max(start - margin, timeline.start), min(end + margin, timeline.end)
    if start >= end:
        raise NotEnoughData("the time of --around is outside the job")
    return start, end


def _disruption(timeline: Timeline, number: int) -> tuple[int, int]:
    disruptions = find_disruptions(timeline, timeline.start, timeline.end)
    if number > len(disruptions):
        raise UsageError(f"disruption {number} does not exist: the job has {plural(len(disruptions), 'disruption')}")
    row = disruptions[number - 1]
    down = row.last_sign_of_life_ns
    return down, timeline.end if row.regained_after_ns is None else down + row.regained_after_ns


def _step(timeline: Timeline, number: int) -> tuple[int, int]:
    """Return the time from the record at the step's begin to the next one of its attempt. If not every step is logged,
    it is the time between the records around it."""
    records = timeline.records
    if records is None or len(records.number) == 0:
        raise NotEnoughData("the log contains no step times", tip="use a time or a disruption")
    ends = int(timeline.attempts.step_ends)  # Such logs count finished steps.
    done = number - ends
    begin, stop = records.number, np.append(records.number[1:], records.number[-1] + 1)
    same = np.append(records.owner[1:] == records.owner[:-1], False)
    held = np.flatnonzero((begin <= done) & np.where(same, done < stop, done == begin))
    if len(held) == 0:
        first, last = int(begin.min()) + ends, int(begin.max())
        raise UsageError(f"step {number} does not exist: the log contains steps {first} to {last}")
    took = np.where(same[held], np.append(records.time[1:], 0)[held] - records.time[held], 0)
    place = int(held[np.argmax(took)])
    return int(records.time[place]), int(records.time[place] + took.max())
