"""All insights of an analysis, ranked: candidates of each finder, compared with the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.columns import distinct
from goodput_cli.analysis.capabilities import CAPABILITIES
from goodput_cli.analysis.disruptions.costs import AttemptCosts, costs_of
from goodput_cli.analysis.insights.failures import Failures, failing_starts, find_failures
from goodput_cli.analysis.insights.hangs import (
    Hangs,
    down_in_hangs,
    ended_by_timeout,
    find_hangs,
    lost_in_hangs,
    significant_hangs,
)
from goodput_cli.analysis.insights.kinds import BY_CODE, LEAST_NS, Candidate, Insight, InsightKind
from goodput_cli.analysis.insights.last_end import LastEndCost, find_last_end, watchdog_words
from goodput_cli.analysis.insights.patterns import find_periodic, find_slow_saves, interval_advised, periodic_insight
from goodput_cli.analysis.insights.training import (
    find_given_up,
    find_hang,
    find_hung_now,
    find_input_bound,
    find_shares,
    find_slow_steps,
    find_unexplained,
)
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.recovery.chain import chains_of
from goodput_cli.analysis.recovery.insights import add_outage_texts, saved_by_watchdog
from goodput_cli.analysis.step_breakdown.breakdown import inside_of
from goodput_cli.analysis.summary import summary_of
from goodput_cli.vocabulary.categories import Category

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData

_OF_SHORT_JOBS = frozenset({
    "several_runs", "repeat_host", "same_step", "older_checkpoint", "failed_saves", "unknown_saves", "failing_starts",
    "long_outage", "disruptions", "hang", "hung_now", "startups", "planned_stops", "queued", "dead_job", "elastic",
    "undetermined", "unexplained", "restores", "last_end",
})  # fmt: skip
"""Kinds that are also reported for a job of fewer than ten kept steps: they need no usual step, and no shares of many
steps."""

_OF_STARTS = (Category.TPU_INITIALIZATION, Category.TRAINING_PREP, Category.RESTORE, Category.OTHER)


def find_insights(analysis: AnalysisData) -> tuple[Insight, ...]:
    """Return the insights of the window: confirmed losses first, each group by cost."""
    made = [
        _made(analysis, one)
        for one in map(partial(_completed, analysis), add_outage_texts(analysis, list(_all(analysis))))
        if one.ns >= LEAST_NS
        and 100 * one.ns >= BY_CODE[one.code].least_percent * analysis.window.counted_ns
        and (one.code in _OF_SHORT_JOBS or not analysis.is_too_short)
    ]
    return tuple(sorted(made, key=lambda insight: (not insight.confirmed, -insight.ns, insight.code)))


def _completed(analysis: AnalysisData, candidate: Candidate) -> Candidate:
    """Return an insight with what capabilities know about it."""
    for capability in CAPABILITIES:
        candidate = capability.completed_insight(analysis, candidate)
    return candidate


def is_judged(kind: InsightKind, analysis: AnalysisData) -> bool:
    """Return True if the log records the inputs of the kind: a missing insight then means none, and not unknown."""
    summary = summary_of(analysis)
    values = (MEASURES[name].compared(MEASURES[name].of(summary)) for name in kind.needs)
    return not kind.needs or any(value is not None for value in values)


def _all(analysis: AnalysisData) -> Iterator[Candidate]:
    timeline, window = analysis.timeline, analysis.window
    within = (window.start_ns, window.end_ns)
    periodic = find_periodic(analysis)
    hangs = find_hangs(timeline, within)
    if periodic is not None:
        hangs = hangs.take(~periodic.contains(hangs.attempt, hangs.step))
    hangs = significant_hangs(hangs, timeline, within)
    costs = costs_of(analysis)
    unplanned, lost = costs.unplanned, costs.taken_back[:-1]
    in_hangs, avoidable = lost_in_hangs(timeline, hangs, (costs.olders, costs.failed, costs.unknowns))
    older, unfinished, unknown = (
        np.where(unplanned, np.maximum(kept[:-1] - hung, 0), 0)
        for kept, hung in zip((costs.older, costs.unfinished, costs.unknown), avoidable, strict=True)
    )
    newer = older + unfinished + unknown
    wasted = np.maximum(lost - in_hangs - newer, 0)
    last = LastEndCost.of(analysis, costs, hangs)
    taken_back = int(np.where(unplanned, newer + wasted, 0).sum()) + int(hangs.lost.sum()) + last.wasted_ns
    slow_saves = find_slow_saves(analysis)
    starting = (costs.of(*_OF_STARTS) + costs.until_left(Category.RECOVERY))[:-1]
    hung = distinct(hangs.attempt[ended_by_timeout(hangs, timeline)])
    down = costs.until_up(Category.RECOVERY) - down_in_hangs(hangs, timeline)
    failures = Failures(
        analysis, unplanned, down, older, wasted, starting, unfinished,
        unknown, costs.olders, costs.failed, costs.unknowns, hung,
    )  # fmt: skip
    yield from find_failures(failures, 0 if slow_saves is None else slow_saves.ns)
    yield from find_last_end(analysis, last)
    yield from _of_hangs(analysis, hangs, costs)
    hung_now = [_with_hang_notes(analysis, one, one.start_ns, one.end_ns) for one in find_hung_now(analysis)]
    yield from hung_now
    slow = list(find_slow_steps(analysis))
    if periodic is not None:
        slow.append(periodic_insight(analysis, periodic))
    yield from slow
    if slow_saves is not None:
        yield slow_saves
    yield from find_input_bound(analysis, analysis.part(inside_of), sum(one.in_goodput_ns for one in slow))
    explained = sum(one.in_goodput_ns for one in slow)
    for capability in CAPABILITIES:
        found = list(capability.insights(analysis, explained))
        yield from found
        explained += sum(one.in_goodput_ns for one in found)
    yield from find_given_up(analysis, taken_back)
    failing = failing_starts(failures)
    yield from find_shares(analysis, failing)
    dead = np.concatenate((np.column_stack((costs.begin, costs.end))[failing], last.explained))
    yield from find_unexplained(analysis, sum(one.ns for one in hung_now), dead)


def _of_hangs(analysis: AnalysisData, hangs: Hangs, costs: AttemptCosts) -> Iterator[Candidate]:
    """Report hanging steps, with the device to check if samples show one."""
    timeline = analysis.timeline
    for one in find_hang(hangs, timeline):
        if one.advice is None and (saved := saved_by_watchdog(timeline, hangs, costs)) is not None and saved < LEAST_NS:
            one = replace(one, advice=f"check what the ranks did, and set an alert: {_restarts_cost_more(len(hangs))}")
        worst = int(np.argmax(hangs.ns))
        start, end, usual = int(hangs.start[worst]), int(hangs.end[worst]), int(hangs.usual[worst])
        if not timeline.ends.followed[hangs.attempt[ended_by_timeout(hangs, timeline)]].all():
            late = watchdog_words(analysis, chains_of(timeline, last=True)[-1])
            one = replace(one, sooner=f"; {late}") if late else one
        yield _with_hang_notes(analysis, one, start, end, usual)


def _with_hang_notes(analysis: AnalysisData, candidate: Candidate, start: int, end: int, usual: int = 0) -> Candidate:
    """Add to the insight of a hang in [start, end) (ns) what capabilities know about its cause. usual: a usual step."""
    notes = (capability.hang_note(analysis, start, end, usual) for capability in CAPABILITIES)
    return replace(candidate, text="; ".join((candidate.text, *filter(None, notes))))


def _restarts_cost_more(hangs: int) -> str:
    return "a restart would have cost more than the hang" if hangs == 1 else "restarts would have cost more than hangs"


def _made(analysis: AnalysisData, candidate: Candidate) -> Insight:
    kind, table, advice = BY_CODE[candidate.code], analysis.timeline.table, candidate.advice
    if candidate.code in ("rare_saves", "frequent_saves"):  # This is costly, so only shown insights get it.
        advice = interval_advised(analysis)
    return Insight(
        code=candidate.code,
        ns=candidate.ns,
        in_goodput_ns=candidate.in_goodput_ns,
        confirmed=candidate.confirmed,
        percent=100 * candidate.ns / analysis.window.counted_ns,
        text=candidate.text + candidate.sooner,
        advice=advice or kind.advice,
        command=(candidate.command or kind.command, *candidate.options),
        source=analysis.options,
        start_ns=candidate.start_ns,
        end_ns=candidate.end_ns,
        count=candidate.count,
        evidence=tuple(table.where(row) for row in candidate.rows),
        about=candidate.about,
        price=analysis.price,
    )
