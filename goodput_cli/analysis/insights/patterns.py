"""Patterns of step times and saves over a job: long steps at equal distances, saves that become slow. Each pattern
needs a minimum of data, and is not judged without it.

Also the save interval compared with Young's formula, and its effect on wasted training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.find import STEP_PREFIX
from goodput_cli.analysis.insights.kinds import Candidate, InsightTarget
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.saves import saves_made
from goodput_cli.analysis.steps.times import TimedSteps, timed_steps
from goodput_cli.analysis.summary import summary_of
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.errors import GoodputError
from goodput_cli.events.schema import NO_STEP, Edge, EventTable, Kind
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import duration, duration_of_seconds, number, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


_PERIODS = 8
_LEAST_PERIOD = 5
"""Smallest distance of a pattern: long steps at smaller distances are a separate population."""
_IN_PHASE = 0.8
_LONGER = 0.25
"""A long step exceeds the usual one by at least this share,"""
_SIGMAS, _MAD_TO_SIGMA = 4, 1.4826
"""and by this number of standard deviations, estimated from the middle half of the steps; other steps are noise."""
_SAVES = 8
_GREW = 1.5
_OUTLIER = 5.0
_MINUTE_NS = 60 * 10**9
_MOST_ROWS = 5
_HALF = 0.5
_MOST_WEIGHED = (300, 100_000)
"""Maximum numbers of attempts and of step records for an insight about the save interval. Weighing each attempt of a
larger job takes as long and as much memory as accounting for the job; `goodput advise` does it."""
_TRAINED = (Category.PRODUCTIVE, Category.STALL, Category.SLOWDOWN)
WITHIN = ", counted as goodput"
"""Suffix of a cost that is not badput, because the training was kept."""


class PeriodicSteps(Struct, frozen=True):
    """Steps at equal distances that take longer than the others."""

    every: int
    """Distance between them, in steps."""
    steps: TimedSteps
    """The long steps."""
    beyond: I64
    """Time of each beyond a usual step, in kept training (ns)."""
    stalled: I64
    """Part of it that the ledger counts as a stall (ns)."""

    def contains(self, attempt: Rows, number: I64) -> Mask:
        """Return, for step numbers as recorded, True if the step is one of the long ones."""
        own = set(zip(self.steps.attempt.tolist(), self.steps.number.tolist(), strict=True))
        return np.array([pair in own for pair in zip(attempt.tolist(), number.tolist(), strict=True)], dtype=bool)


def find_periodic(analysis: AnalysisData) -> PeriodicSteps | None:
    """Return eight or more long steps at the same distance. None without any, or if not every step is recorded."""
    timeline, window = analysis.timeline, analysis.window
    if analysis.steps.count < _PERIODS * _LEAST_PERIOD or timeline.reference_ns is not None:
        return None
    steps = timed_steps(timeline, window.start_ns, window.end_ns)
    usual = float(np.median(steps.seconds))
    if usual <= 0 or np.any(steps.count > 1):
        return None
    least = max(_LONGER * usual, _SIGMAS * _MAD_TO_SIGMA * float(np.median(np.abs(steps.seconds - usual))))
    long = np.flatnonzero(steps.seconds > usual + least)
    if not _PERIODS <= len(long) <= len(steps) / _LEAST_PERIOD:
        return None
    slow = steps.take(long)
    amounts = timeline.ledger.between(slow.time, slow.end, _TRAINED)
    nothing = np.zeros(len(long), dtype=np.int64)
    beyond = sum(amounts.values(), nothing) - round(usual * 1e9)
    some = beyond > least * 1e9  # The others contained a save or an evaluation, which have their own lines.
    slow, beyond = slow.take(np.flatnonzero(some)), beyond[some]
    every = _distance(slow.number)
    if every is None:
        return None
    phase = np.bincount(slow.number % every).argmax()
    of_phase = slow.number % every == phase
    expected = np.count_nonzero(steps.number % every == phase)
    if np.count_nonzero(of_phase) < max(_PERIODS, _IN_PHASE * expected):
        return None
    if beyond[of_phase].sum() < _IN_PHASE * beyond.sum():
        return None
    stalled = amounts.get((Category.STALL, -1), nothing)[some]
    slow, beyond, stalled = slow.take(np.flatnonzero(of_phase)), beyond[of_phase], stalled[of_phase]
    return PeriodicSteps(every, slow, beyond, np.minimum(stalled, beyond))


def _distance(numbers: I64) -> int | None:
    """Return the most common distance between consecutive steps; None if none is common enough."""
    if len(numbers) < _PERIODS:
        return None
    apart = np.diff(numbers)
    values, counts = np.unique(apart[apart >= _LEAST_PERIOD], return_counts=True)
    if len(counts) == 0 or counts.max() < max(_PERIODS - 1, _HALF * len(apart)):
        return None
    return int(values[counts.argmax()])


def periodic_insight(analysis: AnalysisData, periodic: PeriodicSteps) -> Candidate:
    """Return the insight about the time of long steps beyond usual ones."""
    steps = periodic.steps
    loads = analysis.timeline.loads
    loaded = _overlap_ns(loads.start, loads.end, steps.time, steps.end)
    ns, each = int(periodic.beyond.sum()), duration(int(np.median(periodic.beyond)))
    text = f"every {periodic.every} steps, one step takes {each} longer ({plural(len(steps), 'time')})"
    advice = None
    if loaded > _HALF * ns:
        text += ", while data is loaded"
        advice = "load the data of the next epoch in the background, and keep the workers of the loader alive"
    worst = steps.take(np.argsort(-periodic.beyond, kind="stable")[:_MOST_ROWS])
    return Candidate(
        "periodic", ns, text, int(steps.time[0]), int(steps.end[-1]), len(steps),
        tuple(worst.row.tolist()), InsightTarget(steps=tuple(worst.number.tolist())),
        options=("--around", f"{STEP_PREFIX}{int(worst.number[0])}", "--events"),
        in_goodput_ns=ns - int(periodic.stalled.sum()), advice=advice,
    )  # fmt: skip


def _overlap_ns(starts: I64, ends: I64, begin: I64, stop: I64) -> int:
    """Return the time (ns) of some intervals inside others, which do not overlap and are sorted."""
    if len(starts) == 0:
        return 0
    place = np.minimum(np.searchsorted(stop, starts, side="right"), len(begin) - 1)
    return int(np.maximum(np.minimum(ends, stop[place]) - np.maximum(starts, begin[place]), 0).sum())


def find_slow_saves(analysis: AnalysisData) -> Candidate | None:
    """Return an insight about the excess time of saves that grow, or of single slow ones; None with fewer than eight
    saves."""
    table = analysis.timeline.table
    rows, taken = _blocking_saves(analysis)
    if len(rows) < _SAVES:
        return None
    third = len(rows) // 3
    early, late, usual = (float(np.median(some)) for some in (taken[:third], taken[-third:], taken))
    odd = (taken > _OUTLIER * usual) & (taken > usual + _MINUTE_NS)
    if late > _GREW * early:
        quarter = (late - early) / 4  # The medians of thirds are two thirds of the way apart.
        first, last = max(early - quarter, float(taken.min())), late + quarter
        beyond = np.maximum(taken - round(first), 0)
        text = f"saves became slower: from {duration(round(first))} to {duration(round(last))}"
        return _slow_saves(analysis, rows, beyond, text, "check what grows: the checkpoint, or the load of the storage")
    if not odd.any():
        return None
    beyond = np.where(odd, taken - round(usual), 0)
    worst = int(np.argmax(beyond))
    step = int(table.step[rows[worst]])
    name = "a save" if step == NO_STEP else f"the save of step {step}"
    text = f"{name} took {duration(int(taken[worst]))} (usually {duration(round(usual))})"
    if np.count_nonzero(odd) > 1:
        text += f", and {plural(int(np.count_nonzero(odd)) - 1, 'more')} were slow"
    return _slow_saves(analysis, rows[odd], beyond[odd], text, "check the storage at that time")


def _blocking_saves(analysis: AnalysisData) -> tuple[Rows, I64]:
    """Return the line of each save in the window that training waited for, and how long it waited (ns). In checkpoint
    logs it is the line at the end of the save."""
    timeline, window = analysis.timeline, analysis.window
    table, segments = timeline.table, timeline.segments
    if timeline.records is None:
        saves = np.flatnonzero(segments.category == Category.SAVE)
        saves = saves[(segments.end[saves] > window.start_ns) & (segments.start[saves] < window.end_ns)]
        rows, taken = segments.evidence(saves)[1], segments.end[saves] - segments.start[saves]
    else:
        rows = np.flatnonzero((table.kind == Kind.SAVE) & (table.edge == Edge.INTERVAL))
        rows = rows[(table.end[rows] > window.start_ns) & (table.time[rows] < window.end_ns)]
        taken = timeline.ledger.time_in(Category.SAVE, table.time[rows], table.end[rows])
    some = (taken > 0) & (rows >= 0)
    return np.asarray(rows[some], dtype=np.intp), np.asarray(taken[some])


def _slow_saves(analysis: AnalysisData, rows: Rows, beyond: I64, text: str, advice: str) -> Candidate:
    table, worst = analysis.timeline.table, rows[np.argsort(-beyond, kind="stable")[:_MOST_ROWS]]
    return Candidate(
        "slow_saves", int(beyond.sum()), text, int(table.time[rows[0]]), int(table.end[rows[-1]]), len(rows),
        tuple(worst.tolist()), InsightTarget(categories=(Category.SAVE.id,)), options=("--category", Category.SAVE.id),
        advice=advice,
    )  # fmt: skip


class OngoingHang(NamedTuple):
    """The step in flight at the end of a job without a logged end."""

    step: int
    begun: int
    """Time of the last other line, ns UTC."""
    heard: int
    """Last sign that the step is still in flight: a heartbeat, or the clock. ns UTC."""
    beats: bool
    """True if heartbeats continue."""


def hangs_now(timeline: Timeline) -> OngoingHang | None:
    """Return the step that hangs at the end of a job; None without one.

    Heartbeats continued for longer than a step may take, or the clock did: the window of a running job extends to now.
    A log that ends with its last line shows no hang, and a job that is silent for long may be dead.
    """
    records, factor = timeline.records, timeline.rules.method.stall_factor
    if timeline.ended or records is None or len(timeline.attempts) == 0 or factor <= 0:
        return None
    last = len(timeline.attempts) - 1
    usual = float(timeline.usual_step.median[last])
    own = np.flatnonzero(records.owner == last)
    if len(own) == 0 or not usual > 0:
        return None
    table = timeline.table
    beats = table.time[(table.kind == Kind.HEARTBEAT) & (timeline.attempts.of_row == last)]
    begun, heard = int(records.time[own[-1]]), int(beats.max()) if len(beats) else 0
    other = table.end[(table.kind != Kind.HEARTBEAT) & (timeline.attempts.of_row == last)]
    begun = max(begun, int(other.max()))
    has_beats = heard > begun and timeline.end - heard <= _BEATS_NS
    is_in_flight = timeline.ending == "not_logged" and silent_since(timeline) is None
    if is_in_flight and find_step_pause(timeline) is not None:
        heard = timeline.end
    if heard - begun <= max(factor * usual, _MINUTE_NS):
        return None
    return OngoingHang(int(records.number[own[-1]]) + int(timeline.attempts.step_ends), begun, heard, has_beats)


_BEATS_NS = 3 * _MINUTE_NS
"""Heartbeats continue if the last one is not older."""
_PAUSE_STEPS = 10


class StepPause(NamedTuple):
    """Time without a step at the end of a window."""

    ns: int
    """Time since the last line about a step; a monitor publishes it as seconds since the last step."""
    usual_ns: int
    """Usual time from one such line to the next."""


def find_step_pause(timeline: Timeline) -> StepPause | None:
    """Return the time without a logged step of a job without a logged end. None up to a minute or ten usual distances
    between two lines about steps, whichever is longer."""
    records, usual = timeline.records, timeline.usual_step.median
    known = usual[~np.isnan(usual)]
    last = last_step_ns(timeline.table)
    if timeline.ended or records is None or last is None or len(known) == 0:
        return None
    pause = StepPause(timeline.end - last, round(float(known[-1]) * records.stride(int(records.owner[-1]))))
    return pause if pause.ns > max(_PAUSE_STEPS * pause.usual_ns, _MINUTE_NS) else None


def last_step_ns(table: EventTable) -> int | None:
    """Return the time of the last line about a step, in ns UTC; None if the log has none."""
    times = table.time[table.kind == Kind.STEP]
    return int(times.max()) if len(times) else None


_DEAD_NS = 10 * _MINUTE_NS


def silent_since(timeline: Timeline) -> int | None:
    """Return the time (ns) of the last line of a job that may be dead; None otherwise.

    The job's end is not logged, and its window continues for longer than a step may take, and for more than 10 min.
    """
    heard = int(timeline.table.end.max())
    usual = timeline.usual_step.median
    known = usual[~np.isnan(usual)]
    patience = max(_DEAD_NS, timeline.rules.method.stall_factor * (float(known[-1]) if len(known) else 0.0))
    return None if timeline.ended or timeline.end - heard <= patience else heard


_FAR = 2.0
"""A save interval is too long or too short if it differs from the best one by this factor."""
_LEAST_FAILURES = 3


class SavePolicy(Struct, frozen=True):
    """Save interval of a job, and the best one by Young's formula (s)."""

    count: int
    """Number of saves."""
    cost: float
    """Blocking time of one save."""
    apart: float
    """Training between two saves."""
    interval: float
    """Time from the beginning of one save to the next, as shown in reports; training between two if no attempt
    has two."""
    best: float
    """Training between two saves, by the formula."""
    failures: int
    """Number of failures from which the formula has its time between failures."""
    is_median: bool
    """True if `interval` is the median of the saves of an attempt."""

    @property
    def apart_text(self) -> str:
        """Return the interval in words: `29 min 35 s apart (median)`."""
        return f"{duration_of_seconds(self.interval)} apart{' (median)' * self.is_median}"

    @property
    def too_rare(self) -> bool:
        """Return True if enough failures show that saves are too far apart."""
        return self.failures >= _LEAST_FAILURES and self.apart > _FAR * self.best

    @property
    def too_frequent(self) -> bool:
        """Return True if enough failures show that saves are too close together."""
        return self.failures >= _LEAST_FAILURES and _FAR * self.apart < self.best


def save_policy(analysis: AnalysisData, failures: int) -> SavePolicy | None:
    """Return the save policy; None without failures, or if the log does not show the interval or the cost of saves.
    failures: how many ended training."""
    saves, reliability = analysis.saves, analysis.reliability
    cost = MEASURES["saves.time"].of(summary_of(analysis))
    if saves is None or not cost or reliability is None or not failures:
        return None
    each, interval = float(cost), saves.interval_seconds
    apart = _seconds_apart(analysis) if interval is None else interval - each
    if apart is None or apart <= 0:
        return None
    from goodput_cli.analysis.advice.results import young  # It is needed only if saves and failures are known.

    best = young(each, reliability.exposure_ns / 1e9 / failures)
    shown = apart if interval is None else interval
    return SavePolicy(saves.count, each, apart, shown, best, failures, is_median=interval is not None)


def _seconds_apart(analysis: AnalysisData) -> float | None:
    """Return the training between two saves (s) if no attempt has two, from the steps between them. A single save
    counts the steps before it. None if saves do not name steps."""
    saves, kept = saves_made(analysis.timeline), analysis.job.kept_range
    usual = analysis.timeline.usual_step.median
    known, steps = usual[~np.isnan(usual)], saves.apart_steps
    if steps is None and kept is not None and len(saves.steps):
        steps = max(int(saves.steps[0]) + 1 - kept[0], 1)
    return None if steps is None or len(known) == 0 else steps * float(known[-1]) / 1e9


def rare_saves(
    analysis: AnalysisData, policy: SavePolicy, wasted: int, failures: int, about: InsightTarget
) -> Candidate:
    """Return the insight. wasted: training (ns) that the failures took back."""
    window, apart = analysis.window, policy.apart_text
    text = f"{plural(failures, 'failure')} lost the work since the last checkpoint; checkpoints are {apart}"
    return Candidate("rare_saves", wasted, text, window.start_ns, window.end_ns, failures, about=about)


def interval_advised(analysis: AnalysisData) -> str | None:
    """Return the advice of `goodput advise`: `save a checkpoint about every 50 steps`, and whether that would have
    saved a minute in this run.

    None if `advise` recommends no change or is inconclusive, and for very large jobs.
    """
    timeline = analysis.timeline
    attempts, records = len(timeline.attempts), 0 if timeline.records is None else len(timeline.records.number)
    if attempts > _MOST_WEIGHED[0] or records > _MOST_WEIGHED[1]:
        return None
    from goodput_cli.analysis.advice.curve import exposure_of  # It is needed only if saves are too rare.
    from goodput_cli.analysis.advice.interval import interval_advice
    from goodput_cli.analysis.advice.replay import SaveEvery, check_replay, replay
    from goodput_cli.analysis.advice.replay_attempts import record_of

    try:
        record = record_of(timeline, analysis.job.name)
    except GoodputError:
        return None
    advice = interval_advice(record, exposure_of(record, None)).advice
    if advice.verdict != "change" or advice.every_steps is None:
        return None
    replayed = replay(record, SaveEvery(record, advice.every_steps)).ns if check_replay(record).ok else None
    pays = replayed is None or record.window - replayed >= _MINUTE_NS
    return _every(advice.every_steps) + ("" if pays else _ON_AVERAGE)


_ON_AVERAGE = ": it pays on average, although not with the failures of this run"


def _every(steps: int) -> str:
    return "save a checkpoint at every step" if steps == 1 else f"save a checkpoint about every {number(steps)} steps"


def frequent_saves(analysis: AnalysisData, policy: SavePolicy, slow: int) -> Candidate:
    """Return the insight about the time of all saves, minus `slow` (ns), which another insight reports."""
    window = analysis.window
    ns = sum(row.ns for row in analysis.badput if row.category == Category.SAVE.id) - slow
    each, apart = duration_of_seconds(policy.cost), policy.apart_text
    text = f"{plural(policy.count, 'save')} of {each}, {apart}"
    return Candidate("frequent_saves", ns, text, window.start_ns, window.end_ns, policy.count,
                     about=InsightTarget(categories=(Category.SAVE.id,)))  # fmt: skip


def lost_training(analysis: AnalysisData, policy: SavePolicy | None) -> str:
    """Return the advice if failures took back more training than the downtime that they caused."""
    if analysis.saves is None or analysis.saves.count == 0:
        return "save checkpoints, or log them: the log contains no saves"
    if policy is None:
        return "check whether saving checkpoints more often pays off"
    if policy.apart > _FAR * policy.best:
        return f"check whether to save checkpoints more often: they are {policy.apart_text}"
    return "checkpoints are frequent enough; check which improvement helps most"
