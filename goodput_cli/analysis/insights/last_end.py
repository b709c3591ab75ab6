"""The end of the last attempt, if it failed and no attempt follows: cause, time until detection, advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from goodput_cli.accounting.attempts.failure_cause import FailureCause
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.losses import finished_a_step, spans_taken_back
from goodput_cli.analysis.insights.hangs import Hangs
from goodput_cli.analysis.insights.kinds import LEAST_NS, Candidate, InsightTarget
from goodput_cli.analysis.recovery.chain import OutageTimeline, chains_of
from goodput_cli.analysis.recovery.insights import watchdog_ns
from goodput_cli.arrays import I64
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.categories import ENDED, KILLED, UNKNOWN_CAUSE, Category, with_certainty
from goodput_cli.vocabulary.text import duration

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData

_SOONER = "set a watchdog to detect failures sooner"


class LastEndCost(Struct, frozen=True):
    """Loss at the end of the last attempt (ns), without the part of a hang at that end."""

    wasted_ns: int
    """Lost training."""
    other_ns: int
    """Unexplained time after its last progress; 0 if the attempt did not fail."""
    explained: I64
    """[start, end) of that time in rows, for the `other` time of the ledger: ns[0 or 1, 2]."""

    @staticmethod
    def of(analysis: AnalysisData, costs: AttemptCosts, hangs: Hangs) -> LastEndCost:
        """Return the loss from the ledger of an analysis' window."""
        timeline, window = analysis.timeline, analysis.window
        nothing = np.zeros((0, 2), dtype=np.int64)
        if not len(costs) or not timeline.ends.stated[-1]:
            return LastEndCost(0, 0, nothing)
        last, end = len(costs) - 1, window.end_ns
        left = int(costs.left[-1])
        ended, start, _ = spans_taken_back(timeline)
        since = max(min([left, *start[np.asarray(ended) == last].tolist()]), window.start_ns)
        hung = hangs.take((hangs.attempt == last) & (hangs.end > left))
        other = _time_of(analysis, left, end, Category.OTHER)
        if hung.before_first_step.any() or timeline.ends.failed[-1]:
            nothing = np.array([[left, end]], dtype=np.int64)
        wasted = _time_of(analysis, since, end, Category.WASTED) - int(hung.lost.sum())
        other -= int((hung.ns - hung.lost).sum())
        return LastEndCost(max(wasted, 0), max(other, 0) if timeline.ends.failed[-1] else 0, nothing)


def _time_of(analysis: AnalysisData, start: int, end: int, category: Category) -> int:
    return analysis.timeline.ledger.in_window(start, max(start, end), (category,)).get((category, -1), 0)


def find_last_end(analysis: AnalysisData, cost: LastEndCost) -> Iterator[Candidate]:
    """Report the end of the last attempt, if it failed inside the window."""
    timeline, window = analysis.timeline, analysis.window
    ns, ends = cost.wasted_ns + cost.other_ns, timeline.ends
    if ns == 0 or not ends.failed[-1] or not window.start_ns <= int(ends.time[-1]) <= window.end_ns:
        return
    why, row = timeline.causes.why[-1], int(ends.row[-1])
    chain = chains_of(timeline, last=True)[-1]
    text, sooner, advice = _words(analysis, why, chain, lost=cost.wasted_ns > 0)
    yield Candidate(
        "last_end", ns, text, chain.start.time, window.end_ns, 1, (row,) if row >= 0 else (),
        InsightTarget(categories=tuple(_categories(cost))), advice=advice, sooner=sooner,
    )  # fmt: skip


def _categories(cost: LastEndCost) -> Iterator[str]:
    if cost.wasted_ns:
        yield Category.WASTED.id
    if cost.other_ns:
        yield Category.OTHER.id


def _words(
    analysis: AnalysisData, why: FailureCause, chain: OutageTimeline, *, lost: bool
) -> tuple[str, str, str | None]:
    """Return the cause and the detection delay of the last end, what would have shortened that, and the advice; None
    for that of the kind."""
    timeline = analysis.timeline
    how = ENDED[int(timeline.ends.how[-1])]
    text = f"attempt {timeline.attempts.number[-1]} {_ENDED_WORDS[how]}, and no attempt follows"
    text += "" if why.code == how else f": {_cause_words(why)}"
    stepped = bool(finished_a_step(timeline)[-1])
    noticed = chain.detect_ns
    if noticed is not None and noticed >= LEAST_NS:
        since = "the failure" if chain.failed_is_known else "its last step" if stepped else "its start"
        text += f"; detected {duration(noticed)} after {since}"
    elif not stepped:
        text += "; no step was finished"
    late = watchdog_words(analysis, chain)
    advice = None if why.code == UNKNOWN_CAUSE else why.advice_for(training_lost=lost)
    if late:
        return text, f": {late}", f"{_SOONER}; {advice}" if advice else _SOONER
    return text, "", advice


_ENDED_WORDS = {"crashed": "crashed", "terminated": "was terminated", "preempted": "was preempted"}


def _cause_words(why: FailureCause) -> str:
    """Return `likely device_oom on node-01`; if only the signal is known, `killed by an unknown sender`."""
    if why.code in (UNKNOWN_CAUSE, KILLED):
        return "cause unknown" if why.code == UNKNOWN_CAUSE else "killed by an unknown sender"
    return with_certainty(f"{why.code}{f' on {why.host}' if why.host else ''}", [why.certainty])


def watchdog_words(analysis: AnalysisData, chain: OutageTimeline) -> str:
    """Return how much of the detection time a watchdog would have saved. "" for less than a minute, or if the length of
    the silence is not logged."""
    link, patience = chain.link(RecoveryPhase.DETECTED), watchdog_ns(analysis.timeline)
    if link is None or patience is None or not chain.silence_is_known or link.ns - patience < LEAST_NS:
        return ""
    return f"a watchdog of {duration(patience)} would have saved {duration(link.ns - patience)}"
