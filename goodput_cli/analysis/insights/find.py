"""All insights of an analysis, ranked: what each finder saw, put against the window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goodput_cli.analysis.insights.failures import Failures, find_failures
from goodput_cli.analysis.insights.hangs import find_hangs, lost_in_hangs
from goodput_cli.analysis.insights.insight import Candidate, Insight
from goodput_cli.analysis.insights.kinds import BY_CODE, LEAST_NS, InsightKind
from goodput_cli.analysis.insights.passages import find_passages
from goodput_cli.analysis.insights.shares import find_shares, find_unexplained
from goodput_cli.analysis.insights.training import find_given_up, find_hang, find_input_bound, find_slow_steps
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.results import Analysis
from goodput_cli.analysis.summary import summary_of


def find_insights(analysis: Analysis) -> tuple[Insight, ...]:
    """The insights of the window, the most costly first."""
    made = [_made(analysis, candidate) for candidate in _all(analysis) if _matters(analysis, candidate)]
    return tuple(sorted(made, key=lambda insight: (-insight.ns, insight.code)))


def is_judged(kind: InsightKind, analysis: Analysis) -> bool:
    """Whether the log records what the kind is taken from: then none of it is none, and not unknown."""
    summary = summary_of(analysis)
    values = (MEASURES[name].compared(MEASURES[name].of(summary)) for name in kind.needs)
    return not kind.needs or any(value is not None for value in values)


def _all(analysis: Analysis) -> Iterator[Candidate]:
    timeline, window = analysis.timeline, analysis.window
    within = (window.start_ns, window.end_ns)
    hangs = find_hangs(timeline, within)
    passages = find_passages(analysis)
    in_hangs, avoidable = lost_in_hangs(timeline, hangs, passages.olders)
    older = np.where(passages.unplanned, np.maximum(passages.older - avoidable, 0), 0)
    wasted = np.maximum(passages.wasted - in_hangs - older, 0)
    taken_back = int(np.where(passages.unplanned, older + wasted, 0).sum()) + int(hangs.lost.sum())
    yield from find_failures(Failures(analysis, passages, older, wasted))
    yield from find_hang(hangs)
    yield from find_slow_steps(analysis)
    yield from find_input_bound(analysis)
    yield from find_given_up(analysis, taken_back)
    yield from find_shares(analysis)
    yield from find_unexplained(analysis)


def _matters(analysis: Analysis, candidate: Candidate) -> bool:
    least = BY_CODE[candidate.code].least_percent
    return candidate.ns >= LEAST_NS and 100 * candidate.ns >= least * analysis.window.counted_ns


def _made(analysis: Analysis, candidate: Candidate) -> Insight:
    kind, table = BY_CODE[candidate.code], analysis.timeline.table
    return Insight(
        code=candidate.code,
        ns=candidate.ns,
        in_goodput_ns=candidate.in_goodput_ns,
        percent=100 * candidate.ns / analysis.window.counted_ns,
        text=candidate.text,
        advice=candidate.advice or kind.advice,
        command=(candidate.command or kind.command, *candidate.options),
        source=analysis.asked,
        start_ns=candidate.start_ns,
        end_ns=candidate.end_ns,
        count=candidate.count,
        evidence=tuple(table.where(row) for row in candidate.rows),
        about=candidate.about,
        price=analysis.price,
    )
