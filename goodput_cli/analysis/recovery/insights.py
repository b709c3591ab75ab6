"""Insights about outages (accounting §10, Links): the longest recovery phase, a node that was waited for, restarts
that could not help, restarts left, and what would shorten them: a watchdog whose timeout fits the job's silences, a
node on standby.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import STARTING, AttemptCosts
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.disruptions.losses import first_and_last_steps
from goodput_cli.analysis.insights.hangs import Hangs, at_the_end, find_hangs
from goodput_cli.analysis.insights.kinds import LEAST_NS, Candidate
from goodput_cli.analysis.recovery.chain import OutagePhase, OutageTimeline, chains_of
from goodput_cli.analysis.recovery.columns import budget_used
from goodput_cli.analysis.recovery.points import standby_ns
from goodput_cli.analysis.saves import saves_made
from goodput_cli.events.schema import NO_STEP
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.categories import UNKNOWN_CAUSE
from goodput_cli.vocabulary.text import duration, plural
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


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
    """Return which recovery phase took most of some outages, and what would have shortened it."""
    found = _longest_link(timeline, chains)
    return None if found is None else "".join(found)


def _longest_link(timeline: Timeline, chains: Sequence[OutageTimeline]) -> tuple[str, str] | None:
    """Return which recovery phase took most of some outages, `6 min of 8 min passed until allocated`, and what would
    have shortened it, "" if unknown.

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
    return f"{duration(ns)} of {duration(lost)} passed until {point.words}", ""


def _noticed(timeline: Timeline, chains: Sequence[OutageTimeline], ns: int, lost: int) -> tuple[str, str]:
    words = f"{duration(ns)} of {duration(lost)} {UNTIL_DETECTED}"
    timeout = watchdog_ns(timeline)
    saved = 0
    if timeout is not None:
        links = (one.link(RecoveryPhase.DETECTED) for one in chains if one.silence_is_known)
        saved = sum(max(one.lost_ns - timeout, 0) for one in links if one is not None)
    configured = max((one.timeout_ns or 0 for one in chains), default=0)
    named = f" (a timeout of {duration(configured)} was set)" if configured else ""
    if timeout is None or saved < _LEAST_NS:
        return words + named, ""
    return words + named, f": a watchdog of {duration(timeout)} would have saved {duration(saved)}"


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


_OF_OUTAGES = ("failing_starts", "repeat_host", "same_step", "long_outage", "disruptions")
"""Kinds that have the seconds of whole disruptions."""
_AGAIN = 3
"""Minimum number of consecutive failures after one step that are not an accident."""
_FEW_LEFT = 1


def add_outage_texts(analysis: AnalysisData, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates, each with sentences from the chains of its disruptions."""
    timeline = analysis.timeline
    if not any(one.about.disruptions or one.code == "queued" for one in candidates):
        yield from candidates
        return
    by_number = _chains(analysis, {number for one in candidates for number in one.about.disruptions})
    if not by_number:
        yield from candidates
        return
    storm = find_storm(timeline)
    codes = [one.code for one in candidates]
    stormy = next((code for code in ("failing_starts", "same_step") if code in codes), None)
    hung = {number for one in candidates if one.code == "hang" for number in one.about.disruptions}
    in_queue = "queued" in codes
    for one in candidates:
        words: list[str | None] = []
        sooner = one.sooner
        mine = [by_number[number] for number in one.about.disruptions if number in by_number]
        if one.code == "hang":
            late, sooner = _noticed_late(timeline, mine) or (None, sooner)
            words.append(late)
        elif one.code == "queued":
            words.append(_in_queue(timeline, list(by_number.values())))
        elif one.code in _OF_OUTAGES and mine:
            rest = [chain for chain in mine if chain.number not in hung]
            words.append(storm.words if storm is not None and one.code == stormy else None)
            words.append(longest_link_words(timeline, rest) if rest else None)
            words.append(None if in_queue else waited_words(rest, standby_ns(timeline)))
            words.append(_budget(by_number, mine))
        added = "; ".join(filter(None, words))
        yield replace(one, text=f"{one.text}; {added}", sooner=sooner) if added else one


def _chains(analysis: AnalysisData, wanted: set[int]) -> dict[int, OutageTimeline]:
    """Return, by number, the chains of the window's disruptions; of the whole job, if insights are about others."""
    found = {one.number: one for one in analysis.disruptions.chains if one is not None and one.number is not None}
    if wanted <= found.keys():
        return found
    return {one.number: one for one in chains_of(analysis.timeline) if one.number is not None}


def _noticed_late(timeline: Timeline, chains: Sequence[OutageTimeline]) -> tuple[str, str] | None:
    """Return the sentence for hangs that a timeout ended: only that they were detected late, as they have no other
    seconds of outages."""
    some = [one for one in chains if one.link(RecoveryPhase.DETECTED) is not None]
    words = _longest_link(timeline, some) if some else None
    return words if words is not None and UNTIL_DETECTED in words[0] else None


def _in_queue(timeline: Timeline, chains: Sequence[OutageTimeline]) -> str | None:
    return waited_words([one for one in chains if one.queued_ns], standby_ns(timeline))


def _budget(by_number: dict[int, OutageTimeline], mine: Sequence[OutageTimeline]) -> str | None:
    """Return `5 of 5 restarts used`, for the insight with the last of them, if at most one is left."""
    said = [one for one in by_number.values() if one.budget is not None]
    if not said or said[-1] not in mine or (said[-1].left_after or 0) > _FEW_LEFT:
        return None
    used = budget_used(said)
    if used is not None:
        return f"{used[0]} of {plural(used[1], 'restart')} used"
    return f"{plural(said[-1].left_after or 0, 'restart')} left"


@dataclass(frozen=True)
class Storm:
    """Consecutive failures after one step, each resumed from the same checkpoint or an earlier one."""

    deaths: int
    step: int | None
    """The last finished step; None without one."""
    resumed: int | None
    """Highest step from which they resumed; None if unknown."""
    saved_ns: int
    """Time (ns) that stopping after the second failure would have saved."""

    @property
    def words(self) -> str:
        """Return `6 failures after step 45, each resumed from step 40; stopping after the second would have saved 9
        min`."""
        when = "before the first step" if self.step is None else f"after step {self.step}"
        each = "" if self.resumed is None else f", each resumed from step {self.resumed}"
        saved = f"stopping after the second would have saved {duration(self.saved_ns)}"
        return f"{self.deaths} failures {when}{each}; {saved}"


def find_storm(timeline: Timeline) -> Storm | None:
    """Return the last three or more failures of a job if restarts did not help.

    They have one cause (if it is unknown, one step), resumed from a step that never rose, and none got past the
    previous best. None if a later attempt did, because restarts may then have helped.
    """
    count, failed = len(timeline.attempts), timeline.failed
    last = count if last_failure(timeline) is not None else count - 1
    began, reached = (one.tolist() for one in first_and_last_steps(timeline))
    if last < _AGAIN or not failed[: last - 1].any():
        return None
    codes = _codes(timeline, count)
    first = last - 1
    while first > 0 and failed[first - 1] and _again(first - 1, first, codes, began, reached):
        first -= 1
    deaths = last - first
    if deaths < _AGAIN or any(one > reached[first] for one in reached[first:]):
        return None
    died = timeline.sign_of_life[:last]
    saved = int(died[-1] - died[first + 1])
    if saved < LEAST_NS:
        return None
    resumed = began[first + 1]
    step = reached[first]
    return Storm(deaths, None if step == NO_STEP else step, None if resumed == NO_STEP else resumed, saved)


def _codes(timeline: Timeline, count: int) -> list[str]:
    if not timeline.table.observed.rows:
        return [UNKNOWN_CAUSE] * count
    return [one.code for one in timeline.causes.why]


def _again(before: int, death: int, codes: Sequence[str], began: Sequence[int], reached: Sequence[int]) -> bool:
    """Return True if a failure repeats the one before, and the next attempt resumed from no higher step."""
    same = codes[before] == codes[death] and (codes[death] != UNKNOWN_CAUSE or reached[before] == reached[death])
    rose = death + 1 < len(began) and began[death + 1] > began[death] and began[death] != NO_STEP
    return same and reached[death] <= reached[before] and not rose
