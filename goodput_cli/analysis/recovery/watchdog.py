"""Ways to shorten outages (accounting §10, Links): a watchdog with a timeout that fits the job's silences, and a node
that is available when it is needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import STARTING, AttemptCosts
from goodput_cli.analysis.insights.hangs import Hangs, at_the_end, find_hangs
from goodput_cli.analysis.recovery.chain import OutagePhase, OutageTimeline
from goodput_cli.analysis.saves import saves_made
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.when import NS_PER_SECOND

LEAST_WATCHDOG_NS = 120 * NS_PER_SECOND
"""Minimum recommended watchdog timeout (ns): a slow file system alone can delay steps for that long."""
_PATIENCE = 3
"""Multiple of the longest healthy silence of a job."""
_LEAST_NS = 60 * NS_PER_SECOND
"""Minimum (ns) for a sentence: less than a minute is not worth acting on."""
UNTIL_DETECTED = "passed before the failure was detected"
_WAITING = frozenset({RecoveryPhase.ALLOCATED})
"""Recovery phases that consist of waiting for a node alone."""


def longest_silence(timeline: Timeline) -> int:
    """Return the longest time (ns) between two consecutive step records of one attempt, with saves and evaluations.

    Hangs and the first steps of attempts are not healthy. 0 without any.
    """
    records = timeline.records
    if records is None or len(records.rows) < 2:
        return 0
    healthy = records.owner[1:] == records.owner[:-1]
    if not timeline.attempts.step_ends:
        opening = np.append(False, records.owner[1:] != records.owner[:-1])
        opening[0] = True
        healthy &= ~opening[:-1]
    hung = find_hangs(timeline, (timeline.start, timeline.end)).start
    healthy &= ~np.isin(records.time[:-1], hung)
    gaps = np.diff(records.time)[healthy]
    return int(gaps.max(initial=0))


def watchdog_ns(timeline: Timeline) -> int | None:
    """Return the recommended timeout (ns) of a watchdog: 2 min, or three times the longest healthy silence. None if no
    two steps show one. A start-up has a separate timeout."""
    silence = longest_silence(timeline)
    return max(LEAST_WATCHDOG_NS, _PATIENCE * silence) if silence > 0 else None


def saved_by_watchdog(timeline: Timeline, hangs: Hangs, costs: AttemptCosts) -> int | None:
    """Return the time (ns) that a watchdog which restarts the job would have saved in some hangs; negative if the
    restarts would have cost more. None if the log shows no saves, or not how long a healthy step may take.

    A restart costs the usual downtime and start-up, and the training since the newest save. An attempt that ended in
    its hang was restarted anyway.
    """
    timeout, saves, records = watchdog_ns(timeline), saves_made(timeline), timeline.records
    if timeout is None or records is None or len(saves) == 0:
        return None
    outages = (costs.downtime + costs.restart)[costs.unplanned]
    usual = float(np.median(outages)) if len(outages) else float(costs.of(*STARTING)[0] + costs.first_startup[0])
    restarted, saved = at_the_end(hangs, timeline), 0
    for place, (attempt, start, end) in enumerate(
        zip(hangs.attempt.tolist(), hangs.start.tolist(), hangs.end.tolist(), strict=True)
    ):
        if end - start <= timeout:
            continue
        saved += end - start - timeout
        if not restarted[place]:
            own = saves.begin[(saves.attempt == attempt) & (saves.end <= start)]
            trained = int(records.time[records.bounds[attempt]])
            saved -= round(usual) + max(start - int(own.max(initial=trained)), 0)
    return saved


def longest_link_words(timeline: Timeline, chains: Sequence[OutageTimeline]) -> str | None:
    """Return which recovery phase took most of some outages: `6 min of 8 min passed until allocated`.

    None if no single phase took half of what they lost and more than a minute. Redone work and training that has to
    start again have their own insights."""
    lost = sum(one.lost_ns for one in chains)
    by_point: dict[RecoveryPhase, list[OutagePhase]] = {}
    for chain in chains:
        for link in chain.links:
            if link.point is not RecoveryPhase.DETECTED or chain.silence_is_known:
                by_point.setdefault(link.point, []).append(link)
    amounts = {point: sum(one.lost_ns for one in links) for point, links in by_point.items()}
    if not amounts:
        return None
    point = max(amounts, key=lambda one: (amounts[one], -one))
    ns = amounts[point]
    if ns <= _LEAST_NS or 2 * ns < lost or point is RecoveryPhase.FAILED:  # It trained until it failed.
        return None
    if point is RecoveryPhase.DETECTED:
        return _noticed(timeline, chains, ns, lost)
    if point in (RecoveryPhase.TRAINING_AGAIN, RecoveryPhase.WORKERS_STARTED) and any(
        one.missing for one in by_point[point]
    ):
        return None  # The log does not separate these phases.
    return f"{duration(ns)} of {duration(lost)} passed until {point.words}"


def _noticed(timeline: Timeline, chains: Sequence[OutageTimeline], ns: int, lost: int) -> str:
    words = f"{duration(ns)} of {duration(lost)} {UNTIL_DETECTED}"
    timeout = watchdog_ns(timeline)
    saved = 0
    if timeout is not None:
        links = (one.link(RecoveryPhase.DETECTED) for one in chains if one.silence_is_known)
        saved = sum(max(one.lost_ns - timeout, 0) for one in links if one is not None)
    configured = max((one.timeout_ns or 0 for one in chains), default=0)
    named = f" (a timeout of {duration(configured)} was set)" if configured else ""
    if timeout is None or saved < _LEAST_NS:
        return words + named
    return f"{words}{named}: a watchdog of {duration(timeout)} would have saved {duration(saved)}"


def waited_words(chains: Sequence[OutageTimeline], standby_ns: int | None = None) -> str | None:
    """Return how long outages waited for a node: `6 min 00 s of 45 min 20 s were spent waiting for a node`.

    None for less than a minute. standby_ns: total time of standby nodes (ns), None if not logged."""
    waited = sum(one.lost_ns + one.queued_ns for chain in chains for one in chain.links if one.point in _WAITING)
    if waited < _LEAST_NS:
        return None
    whole = sum(one.lost_ns + one.queued_ns for one in chains)
    words = f"{duration(waited)} of {duration(whole)} were spent waiting for a node"
    known = [one.nodes for one in chains if one.nodes is not None]
    if known:
        words += f"; {known[-1].standby_text}"
    return f"{words}; standby nodes were allocated for {duration(standby_ns)}" if known and standby_ns else words
