"""Losses of training itself: hangs, slow steps, waiting for data, discarded training.

Also categories with more than their usual share of the window, and questions that the log does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.columns import distinct, is_among, of_kind
from goodput_cli.analysis.disruptions.find import STEP_PREFIX
from goodput_cli.analysis.goodput.findings import CoveredTime
from goodput_cli.analysis.insights.hangs import HANG_NS, Hangs, ended_by_timeout, ran_out_of_time
from goodput_cli.analysis.insights.kinds import BY_CODE, Candidate, InsightTarget
from goodput_cli.analysis.insights.patterns import WITHIN, find_step_pause, hangs_now, silent_since
from goodput_cli.analysis.step_breakdown.insights import growth_between, waited_for_data
from goodput_cli.analysis.steps.levels import LEAST_STRETCH, changes_level
from goodput_cli.analysis.steps.regimes import Drift, Regime, drift_text, lost_in_regimes, stalled_in_regimes, step_pace
from goodput_cli.analysis.steps.times import TimedSteps, slices_of, step_time_parts, timed_steps
from goodput_cli.analysis.timeline.rows import segments_inside
from goodput_cli.arrays import I64, Mask, Rows, alike
from goodput_cli.diagnostics.diagnostic import CODES
from goodput_cli.events.schema import NONE, Kind
from goodput_cli.vocabulary.categories import BY_NAME, OVERLAPPED, Category, is_eval, label_title, title, with_certainty
from goodput_cli.vocabulary.text import duration, duration_of_seconds, iso, number, percent, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.results import CategoryTime
    from goodput_cli.analysis.step_breakdown.breakdown import StepBreakdown


_MOST_ROWS = 5
_NO_ROWS = np.zeros(0, dtype=np.intp)
_MOST_ABOUT = 100
_HALF, _EXPLAINED = 0.5, 0.8
_LEAST_BEYOND_OWN = 1.03
"""Minimum ratio to a reference from the log itself, which is not more precise."""
_TENTH = 0.1
_MANY_STEPS = 100_000
_TIMEOUT = "find out which rank was missing and why, and shorten the timeout that the other ranks waited for"
_NOW_AND_THEN = "check what these steps have in common: a host, their data, the network"
_HUNG_OR_STOPPED = "check whether the process ran at that time: it hung, or it was stopped and resumed at this step"
_OPEN = "unknown whether slow or by design"
"""Wording for step times that rose and stayed high (accounting §6, §8)."""
_DECIDE = "pass --reference-step-time, or log `global_batch_size`"
_SINCE_START = (
    "compare the hosts and data of these steps with later steps, unless the change was planned (a warm-up, the batch)"
)


def find_hung_now(analysis: AnalysisData) -> Iterator[Candidate]:
    """Report the step in flight at the end of the window."""
    timeline, window = analysis.timeline, analysis.window
    hung = hangs_now(timeline)
    if hung is None or hung.heard > window.end_ns:
        return
    ns = timeline.ledger.in_window(hung.begun, hung.heard, (Category.OTHER,)).get((Category.OTHER, -1), 0)
    text = pause_text(timeline) or f"no step for {duration(hung.heard - hung.begun)}"
    if hung.beats:
        text = f"step {hung.step} hangs now: {text}, but heartbeats continue"
    else:
        text += f": step {hung.step} hangs, or its process has exited"
    last_line = np.flatnonzero(timeline.table.time <= hung.heard)[-1:]
    options = ("--around", f"{STEP_PREFIX}{hung.step}", "--events")
    yield Candidate("hung_now", ns, text, hung.begun, hung.heard, 1, tuple(last_line.tolist()),
                    InsightTarget(steps=(hung.step,)), options=options)  # fmt: skip


def pause_text(timeline: Timeline) -> str:
    """Return how long no step was logged at the end of a job, and the usual step time; "" if that is not long."""
    pause = find_step_pause(timeline)
    return "" if pause is None else f"no step for {duration(pause.ns)} (usually {duration(pause.usual_ns)})"


def find_hang(hangs: Hangs, timeline: Timeline) -> Iterator[Candidate]:
    """Report hanging steps."""
    if len(hangs) == 0:
        return
    by_timeout = ended_by_timeout(hangs, timeline)
    text, advice = _words_of_hangs(hangs, timeline, by_timeout)
    largest = np.argsort(-hangs.ns, kind="stable")[:_MOST_ROWS]
    ended = np.unique(hangs.attempt[by_timeout])
    numbers = (np.searchsorted(timeline.disruptions, ended[timeline.ends.followed[ended]]) + 1).tolist()
    steps = hangs.step[largest][~hangs.before_first_step[largest]]
    yield Candidate(
        "hang", int(hangs.ns.sum()), text, int(hangs.start[0]), int(hangs.end[-1]), len(hangs),
        tuple(hangs.row[largest].tolist()),
        InsightTarget(tuple(numbers[:_MOST_ABOUT]), tuple(steps.tolist())),
        options=_around_worst(hangs), advice=advice,
    )  # fmt: skip


def _around_worst(hangs: Hangs) -> tuple[str, ...]:
    """Return the options that show the longest hang."""
    worst = int(np.argmax(hangs.ns))
    if hangs.before_first_step[worst]:
        return ("--from", iso(int(hangs.start[worst])), "--to", iso(int(hangs.end[worst])), "--events")
    return ("--around", f"{STEP_PREFIX}{hangs.step[worst]}", "--events")


def _words_of_hangs(hangs: Hangs, timeline: Timeline, by_timeout: Mask) -> tuple[str, str | None]:
    """Return a description of the hangs with the number of the worst, and the advice; None for the general advice."""
    count, worst = len(hangs), int(np.argmax(hangs.ns))
    step, start, end = int(hangs.step[worst]), int(hangs.start[worst]), int(hangs.end[worst])
    took, usual = duration(end - start), duration(int(hangs.usual[worst]))
    if hangs.ns[worst] < HANG_NS:
        what = f"{count} steps were unusually long: step {step}" if count > 1 else f"step {step}"
        return f"{what} took {took} (usually {usual})", _NOW_AND_THEN
    why = timeline.causes.why[hangs.attempt[worst]] if timeline.table.observed.rows else None
    advice = _TIMEOUT if why is not None and ran_out_of_time(why) else None
    ended = f", until a timeout{_named_end(timeline, int(hangs.attempt[worst]))}" if by_timeout[worst] else ""
    early = f"attempt {timeline.attempts.number[hangs.attempt[worst]]} hung for {took} before its first step"
    if advice is None and _may_be_a_restart(timeline, start, end):
        if count > 1:
            return f"the log has long gaps in {count} steps, the longest in step {step} ({took})", _HUNG_OR_STOPPED
        return f"no log output for {took} in step {step} (usually {usual})", _HUNG_OR_STOPPED
    if count > 1:
        timeouts = f"; timeouts ended {np.count_nonzero(by_timeout)} of them" if by_timeout.any() else ""
        if hangs.before_first_step.any():
            longest = early if hangs.before_first_step[worst] else f"step {step} for {took}"
            return f"{count} hangs, the longest: {longest}{timeouts}", advice
        return f"{count} steps hung, the longest was step {step} for {took}{timeouts}", advice
    if hangs.before_first_step[worst]:
        return f"{early}{ended}", advice
    several = int(hangs.upto[worst] - hangs.number[worst])
    if several > 0:
        return f"one of steps {step} to {step + several} hung: together they took {took} (usually {usual})", advice
    return f"step {step} hung for {took}{ended} (usually {usual})", advice


def _named_end(timeline: Timeline, attempt: int) -> str:
    """Return the disruption's number as ` (disruption 2)`; the end of the last attempt has none."""
    if not timeline.ends.followed[attempt]:
        return " at the end of the log"
    return f" (disruption {int(np.searchsorted(timeline.disruptions, attempt)) + 1})"


def _may_be_a_restart(timeline: Timeline, start: int, end: int) -> bool:
    """Return True if a long step (ns) may have been a stopped job that continued at that step.

    No line of the log shows a process start or the length of its steps, and none shows activity in between.
    """
    table, within = timeline.table, np.searchsorted(timeline.table.time, [start + 1, end])
    told = timeline.attempts.started.any() or (table.step_time != NONE).any()
    return not told and int(within[0]) == int(within[1])


def find_slow_steps(analysis: AnalysisData) -> Iterator[Candidate]:
    """Report slow periods and drift; with a reference, the training time beyond it."""
    timeline, window = analysis.timeline, analysis.window
    if timeline.reference_ns is not None:
        yield from _beyond_reference(analysis, timeline.reference_ns)
        return
    count, within = analysis.steps.count, (window.start_ns, window.end_ns)
    if count < 2 * LEAST_STRETCH or (
        count > _MANY_STEPS and not changes_level(step_time_parts(timeline, *within), count)
    ):
        return  # This is the usual case, and saves computing the columns of all steps of a long job.
    steps = timed_steps(timeline, *within)
    pace = step_pace(timeline, steps)
    if pace.drifts:
        yield _of_drifts(steps, pace.drifts)
    stayed = _first_that_stayed(pace.regimes)
    for regimes in (pace.regimes[:stayed], pace.regimes[stayed:]):
        if regimes:
            yield _of_regimes(analysis, steps, regimes)


def _first_that_stayed(regimes: Sequence[Regime]) -> int:
    """Return the index of the first slow period after which no step was fast again; the number of periods if the last
    one ended."""
    if not regimes or not regimes[-1].ongoing:
        return len(regimes)
    place = len(regimes) - 1
    while place and regimes[place].first_step == regimes[place - 1].last_step + 1:
        place -= 1
    return place


def _of_drifts(steps: TimedSteps, drifts: Sequence[Drift]) -> Candidate:
    """Return the insight about steps that became slower throughout. There is more than one drift only if steps took
    different numbers of samples."""
    worst = max(drifts, key=lambda drift: drift.lost_seconds)
    ns = round(sum(drift.lost_seconds for drift in drifts) * 1e9)
    ends = [at for drift in drifts[:_MOST_ROWS] for at in _ends_of(steps, drift)]
    return Candidate(
        "drift", ns, f"{drift_text(worst)}: {_OPEN}{WITHIN}", min(drift.start_ns for drift in drifts),
        max(drift.end_ns for drift in drifts), len(drifts), tuple(steps.take(np.array(ends)).row.tolist()),
        InsightTarget(steps=tuple(drift.first_step for drift in drifts[:_MOST_ROWS])), in_goodput_ns=ns,
        confirmed=False,
    )  # fmt: skip


def _ends_of(steps: TimedSteps, drift: Drift) -> tuple[int, int]:
    """Return the first and the last step time of a drift, as indices."""
    return int(np.searchsorted(steps.time, drift.start_ns)), int(np.searchsorted(steps.end, drift.end_ns))


def _explained(analysis: AnalysisData, regime: Regime) -> str:
    """Return the phase that makes up most of a slow period, if the log contains a breakdown of its steps;
    otherwise ""."""
    if not analysis.table.inside:
        return ""
    found = growth_between(analysis, regime.first_step, regime.last_step)
    if found is None or found.share < _EXPLAINED:
        return ""
    return f"{found.phase} took {duration(found.ns)} longer in each of these steps"


def _of_regimes(analysis: AnalysisData, steps: TimedSteps, regimes: Sequence[Regime]) -> Candidate:
    """Return the insight about slow periods: the one that lost most, or all as stairs."""
    timeline = analysis.timeline
    worst = max(regimes, key=lambda regime: regime.lost_seconds)
    usual = duration_of_seconds(worst.usual_seconds)
    text = f"steps {worst.first_step} to {worst.last_step} took {worst.factor:.2f} x the usual {usual}"
    if _are_stairs(regimes):
        least, most = regimes[0].factor, regimes[-1].factor
        text = f"steps {regimes[0].first_step} to {regimes[-1].last_step} became slower in {len(regimes)} jumps"
        text += f", {least:.2f} to {most:.2f} x the usual {usual}"
    elif len(regimes) > 1:
        text = f"{text}, and {plural(len(regimes) - 1, 'more slow period')}"
    rows = steps.take(np.searchsorted(steps.time, [regime.start_ns for regime in regimes[:_MOST_ROWS]])).row
    lost, loading = lost_in_regimes(timeline, steps, regimes), _more_loading(timeline, regimes)
    in_goodput, waits = lost - stalled_in_regimes(timeline, steps, regimes), loading > _HALF * lost
    missing = None if waits else _missing_slices(timeline, worst)
    confirmed = waits or missing is not None or not regimes[-1].ongoing
    text += "" if confirmed else f": {_OPEN}"
    text += WITHIN if in_goodput == lost else f", {duration(in_goodput)} of it{WITHIN[1:]}" if in_goodput else ""
    text += f"; data loading took {duration(loading)} longer than usual" if waits else ""
    advice = BY_CODE["input_bound"].advice if waits else None
    if not waits and (grown := _explained(analysis, worst)):
        text += f"; {grown}"
        advice = "check what this phase does in these steps; `goodput steps` shows it by rank"
    elif missing is not None:
        active, total = missing
        advice = f"restore the missing slices: {active} of {total} were active"
    elif not waits and worst.first_step == steps.number[0]:
        advice = _SINCE_START
    elif not confirmed:
        advice = _DECIDE
    return Candidate(
        "slow_steps", lost, text, regimes[0].start_ns, regimes[-1].end_ns,
        len(regimes), tuple(rows.tolist()), InsightTarget(steps=tuple(one.first_step for one in regimes[:_MOST_ROWS])),
        in_goodput_ns=in_goodput, advice=advice, confirmed=confirmed,
    )  # fmt: skip


def _missing_slices(timeline: Timeline, regime: Regime) -> tuple[int, int] | None:
    """Return how many slices were active in the middle of a slow period, and the job's total. None if no slice was
    missing, or if it is not recorded."""
    table = timeline.table
    rows = np.flatnonzero((table.kind == Kind.SLICES) & (table.time <= (regime.start_ns + regime.end_ns) // 2))
    counts = slices_of(table.details[int(table.detail[rows[-1]])]) if len(rows) else None
    return counts if counts is not None and counts[0] < counts[1] else None


def _are_stairs(regimes: Sequence[Regime]) -> bool:
    """Return True if at least two slow periods follow each other, each slower than the one before."""
    return len(regimes) > 1 and all(
        after.first_step == before.last_step + 1 and after.factor > before.factor for before, after in pairwise(regimes)
    )


def _beyond_reference(analysis: AnalysisData, reference_ns: Fraction) -> Iterator[Candidate]:
    timeline, window = analysis.timeline, analysis.window
    command = "rolling" if timeline.records is None else None  # Checkpoint logs show no single steps.
    about = InsightTarget(categories=(Category.SLOWDOWN.id,))
    reference = f"the reference step time of {duration(round(float(reference_ns)))}"
    slow, limits = _lost_to(analysis, Category.SLOWDOWN), analysis.goodput_limits
    level = timeline.risen_level if analysis.is_bounded else None
    if level is not None and limits.at_most is not None and limits.at_least is not None:
        risen = limits.at_most - limits.at_least
        slow -= risen
        steps = float(timeline.kept_training.counted_between(window.start_ns, window.end_ns)[level.first :].sum())
        step, row = timeline.begin_of(level)
        text = f"steps from {step} on took {1 + risen / (steps * float(reference_ns)):.2f} x {reference}: {_OPEN}"
        begin = max(int(timeline.kept_training.spans.start[level.first]), window.start_ns)
        yield Candidate("slow_steps", risen, text, begin, window.end_ns, rows=(row,), command=command, about=about,
                        advice=_DECIDE, confirmed=False)  # fmt: skip
    took = 1 + slow / analysis.goodput.ns if analysis.goodput.ns else 0.0
    if analysis.reference.origin == "auto" and took < _LEAST_BEYOND_OWN:
        return  # A reference from the log itself is not more precise.
    yield Candidate(
        "slow_steps",
        slow,
        f"steps took {took:.2f} x {reference}",
        window.start_ns,
        window.end_ns,
        command=command,
        about=about,
    )


def _more_loading(timeline: Timeline, regimes: Sequence[Regime]) -> int:
    """Return how much longer (ns) data loading took in slow periods than in other time of the same length."""
    loads = timeline.loads
    long = timeline.end - timeline.start - sum(one.end_ns - one.start_ns for one in regimes)
    inside = [
        np.maximum(np.minimum(loads.end, one.end_ns) - np.maximum(loads.start, one.start_ns), 0).sum()
        for one in regimes
    ]
    loaded = int(sum(inside))
    elsewhere = int((loads.end - loads.start).sum()) - loaded
    return loaded - (elsewhere * (timeline.end - timeline.start - long) // long if long > 0 else 0)


def find_input_bound(analysis: AnalysisData, programs: Sequence[StepBreakdown], explained: int) -> Iterator[Candidate]:
    """Report waiting for data: certainly if outside steps, likely if inside. programs: their step breakdowns.
    explained: loading (ns) that another insight reports."""
    window = analysis.window
    outside, text = _lost_to(analysis, Category.DATA_LOADING_SYNC), "data was loaded while no step was in progress"
    inside = max(sum(row.ns for row in analysis.overlapped if row.category == OVERLAPPED) - explained, 0)
    training = analysis.goodput.ns
    waited, said = waited_for_data(analysis, programs)
    if waited:
        inside, text = waited, said
    elif training and inside > _TENTH * training:
        share = percent(100 * inside / training, 0)
        text = f"data was loaded during {share} of training, which may have waited for it{WITHIN}"
    else:
        inside = 0
    if outside + inside:
        yield Candidate("input_bound", outside + inside, text, window.start_ns, window.end_ns,
                    about=InsightTarget(categories=(Category.DATA_LOADING_SYNC.id,)),
                    options=("--category", Category.DATA_LOADING_SYNC.id), in_goodput_ns=inside)  # fmt: skip


def find_given_up(analysis: AnalysisData, taken_back: int) -> Iterator[Candidate]:
    """Report wasted training that no disruption took back. taken_back: what disruptions and hangs took (ns)."""
    timeline, window = analysis.timeline, analysis.window
    ns, runs = _lost_to(analysis, Category.WASTED) - taken_back, len(timeline.runs)
    rollbacks, advice = timeline.attempts.begin_row[timeline.attempts.rolled_back], None
    if runs > 1:
        text = f"{runs} runs share this job name: the training of the earlier runs does not count"
    elif len(rollbacks):
        text = f"steps were rolled back {_times(len(rollbacks))} in a running process"
        advice = "find the first bad step and skip its batch; newer checkpoints may contain the same problem"
    elif any(row.category == Category.STOPPED.id for row in analysis.badput):
        text = "training after the last checkpoint was discarded at a planned stop"
        advice = "save a checkpoint before a planned stop"
    else:
        return  # No line shows that training was discarded.
    options = ("--category", Category.WASTED.id)
    rows = tuple(map(int, [*timeline.runs[1:], *rollbacks][:_MOST_ROWS]))
    yield Candidate("given_up", ns, text, window.start_ns, window.end_ns, max(runs - 1, len(rollbacks), 1), rows,
                InsightTarget(categories=(Category.WASTED.id,)), options, advice=advice)  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_SHARES: dict[str, tuple[Category, ...]] = {
    "startups": (Category.PROGRAM_STARTUP, Category.TPU_INITIALIZATION, Category.TRAINING_PREP),
    "restores": (Category.RESTORE,),
    "planned_stops": (Category.STOPPED,),
    "queued": (Category.QUEUED,),
    "elastic": (Category.ELASTIC_DOWN, Category.ELASTIC_UP, Category.ELASTIC_REINIT),
    "undetermined": (Category.UNDETERMINED,),
}
_WORDS = {
    "startups": "start-up{s}{each}: initialization, preparation and first steps",
    "restores": "checkpoint restore{s}{each}",
    "planned_stops": "planned stop{s}{each}",
    "queued": "wait{s} in the queue{each}",
    "undetermined": "disruption{s} at an unknown time: wasted training or downtime",
}
_ELASTIC_KINDS = (
    ("wait{s} for slices", (Category.ELASTIC_DOWN, Category.ELASTIC_UP)),
    ("reinitialization{s}", (Category.ELASTIC_REINIT,)),
)
_OPTIONS: dict[str, tuple[str, ...]] = {"undetermined": (), "planned_stops": ("--exclude-stopped",)}


def find_shares(analysis: AnalysisData, failing: Rows) -> Iterator[Candidate]:
    """Report all kinds that are the time of some categories. failing: attempts whose start-up another insight
    reports."""
    for code, categories in _SHARES.items():
        rows = [row for row in analysis.badput if BY_NAME[row.category] in categories]
        if rows:
            yield _share(analysis, code, rows, failing if code in ("startups", "restores") else _NO_ROWS)
    segments, labels = _segments(analysis, [Category.CUSTOM]), analysis.table.labels
    by_code = alike(analysis.timeline.segments.label(segments))
    by_label = {labels[code]: segments[rows] for code, rows in by_code.items()}
    for row in analysis.badput:
        if row.category == Category.CUSTOM.id and row.label is not None:
            yield _custom(analysis, row, by_label.get(row.label, _NO_ROWS))


def _share(analysis: AnalysisData, code: str, rows: list[CategoryTime], failing: Rows) -> Candidate:
    segments = _segments(analysis, [BY_NAME[row.category] for row in rows])
    theirs = np.isin(analysis.timeline.segments.attempt(segments), failing)
    ns = sum(row.ns for row in rows) - int(_lengths(analysis, segments[theirs]).sum())
    segments = segments[~theirs]
    inferred = code == "restores" and analysis.timeline.records is None
    if code == "elastic":
        text, count = _elastic_words(analysis, rows, segments)
    else:
        count = _count_occurrences(analysis, segments, by_attempt=code == "startups")
        text = f"{number(count)} {_WORDS[code].format(s='s' * (count > 1), each=_average_length(ns, count))}"
    options = _OPTIONS[code] if code in _OPTIONS else ("--category", max(rows, key=lambda row: row.ns).category)
    found = _found(analysis, code, ns, text + inferred * ", including start-up", segments, rows, options, count)
    if code != "undetermined":
        return found
    advice = CODES["undetermined_time"].advice_for(analysis.job.formats)  # It explains what to log.
    return replace(found, advice=f"{advice[0].lower()}{advice[1:].rstrip('.')}")


def _elastic_words(analysis: AnalysisData, rows: list[CategoryTime], segments: Rows) -> tuple[str, int]:
    """Return a description of elastic time, each kind with its own count, and the count of the first kind."""
    category, kinds = analysis.timeline.segments.category[segments], list[tuple[int, str]]()
    for name, categories in _ELASTIC_KINDS:
        if any(BY_NAME[row.category] in categories for row in rows):
            count = _count_occurrences(analysis, segments[of_kind(category, categories)], by_attempt=True)
            kinds.append((count, f"{number(count)} {name.format(s='s' * (count > 1))}"))
    first = kinds[0][0]
    each = _average_length(sum(row.ns for row in rows), first) if len(kinds) == 1 else ""
    return " and ".join(words for _, words in kinds) + each, first


def _custom(analysis: AnalysisData, row: CategoryTime, segments: Rows) -> Candidate:
    assert row.label is not None
    count = _count_occurrences(analysis, segments)
    times = "once" if count == 1 else plural(count, "time")
    text = f"{label_title(row.label)} blocked training {times}{_average_length(row.ns, count)}"
    code = "evals" if is_eval(row.label) else "custom_events"
    options = () if code == "evals" else ("--category", f"custom:{row.label}")
    return _found(analysis, code, row.ns, text, segments, [row], options, count)


def find_unexplained(analysis: AnalysisData, explained: int, failing: I64) -> Iterator[Candidate]:
    """Report a silent end of the job, and other time in `other`, which may be activity that the log does not record.

    explained: time in `other` (ns) that another insight reports. failing: start and end (ns, one row each) of periods
    of failing starts, which another insight reports too.
    """
    timeline, window = analysis.timeline, analysis.window
    begun = _segments(analysis, [Category.OTHER])
    start = np.maximum(timeline.segments.start[begun], window.start_ns)
    end = np.minimum(timeline.segments.end[begun], window.end_ns)
    in_failing = CoveredTime(failing[:, 0], failing[:, 1]).within(start, end)
    other = _lost_to(analysis, Category.OTHER) - explained - int(in_failing.sum())
    silence = _silence(analysis)
    dead = int(_lengths(analysis, silence).sum())
    if dead:
        begin = int(timeline.segments.start[silence[0]])
        text = f"no log output for {duration(timeline.end - begin)} up to the end of the window: the job may be dead"
        why = timeline.causes.why[-1] if timeline.causes.why else None
        if why is not None and why.is_explained:
            text += f"; its last lines report {with_certainty(why.code, [why.certainty])}"
        last = int(np.argmax(timeline.table.end))
        yield Candidate("dead_job", dead, text, begin, timeline.end, 1, (last,),
                    InsightTarget(categories=(Category.OTHER.id,)), ("--from", "-10m"))  # fmt: skip
    segments = begun[~is_among(begun, silence) & (in_failing < end - start)]
    if len(segments) == 0:
        return
    missing = [name for name in analysis.not_recorded if BY_NAME.get(name) in _MAY_BE_THERE]
    text = f"the log does not explain this time ({plural(len(segments), 'period')})"
    if len(missing) > 2:
        text += f"; not recorded: {', '.join(map(title, missing[:2]))} and {len(missing) - 2} more"
    longest = int(segments[np.argmax(_lengths(analysis, segments))])
    around = ("--category", Category.OTHER.id)
    yield Candidate("unexplained", other - dead, text, window.start_ns, window.end_ns, len(segments),
                _rows(analysis, np.array([longest])), InsightTarget(categories=(Category.OTHER.id,)),
                around)  # fmt: skip


_MAY_BE_THERE = (
    Category.PROGRAM_STARTUP, Category.TPU_INITIALIZATION, Category.TRAINING_PREP, Category.DATA_LOADING_SYNC,
    Category.SAVE, Category.RESTORE, Category.CUSTOM,
)  # fmt: skip


def _silence(analysis: AnalysisData) -> Rows:
    """Return the segments of `other` after the last line of a job without a logged end, if they exceed a usual step."""
    heard = silent_since(analysis.timeline)
    if heard is None:
        return _NO_ROWS
    segments = _segments(analysis, [Category.OTHER])
    return segments[analysis.timeline.segments.start[segments] >= heard]


def _segments(analysis: AnalysisData, categories: list[Category]) -> Rows:
    """Return the segments of some categories that reach into the window."""
    inside = segments_inside(analysis.timeline, analysis.window.start_ns, analysis.window.end_ns)
    return np.asarray(np.flatnonzero(of_kind(analysis.timeline.segments.category[inside], categories)) + inside.start)


def _lost_to(analysis: AnalysisData, category: Category) -> int:
    """Return the badput (ns) of a category, for any label."""
    return sum(row.ns for row in analysis.badput if row.category == category.id)


def _lengths(analysis: AnalysisData, rows: Rows) -> I64:
    """Return the lengths (ns) of some segments, inside the window."""
    segments, window = analysis.timeline.segments, analysis.window
    return np.minimum(segments.end[rows], window.end_ns) - np.maximum(segments.start[rows], window.start_ns)


def _found(
    analysis: AnalysisData, code: str, ns: int, text: str, segments: Rows, badput: list[CategoryTime],
    options: tuple[str, ...], count: int,
) -> Candidate:  # fmt: skip
    """Return an insight about some categories. segments, badput: everything that it covers."""
    window, edges = analysis.window, analysis.timeline.segments.edges
    start = max(int(edges[segments[0]]), window.start_ns) if len(segments) else window.start_ns
    end = min(int(edges[segments[-1] + 1]), window.end_ns) if len(segments) else window.end_ns
    return Candidate(code, ns, text, start, end, count, _rows(analysis, segments),
                 InsightTarget(categories=tuple(row.name for row in badput)), options)  # fmt: skip


def _count_occurrences(analysis: AnalysisData, segments: Rows, *, by_attempt: bool = False) -> int:
    """Return how many things some segments represent: one that others interrupt counts once. by_attempt: the segments
    of an attempt count once."""
    of_all = analysis.timeline.segments
    return max(len(distinct(of_all.attempt(segments) if by_attempt else of_all.holder[segments])), 1)


def _rows(analysis: AnalysisData, segments: Rows) -> tuple[int, ...]:
    """Return the rows of the lines that begin the first segments."""
    rows, _ = analysis.timeline.segments.evidence(segments[:_MOST_ROWS])
    return tuple(row for row in rows.tolist() if row >= 0)


def _average_length(ns: int, count: int) -> str:
    """Return the length of each of several things, in words."""
    return f", {duration(ns // count)} on average" if count > 1 else ""
