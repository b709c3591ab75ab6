"""Sentences about outages for the insights that have their seconds (accounting §10, Links): the longest recovery phase,
a node that was waited for, restarts that could not help, and restarts left. None adds its own seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.disruptions.losses import first_and_last_steps
from goodput_cli.analysis.insights.kinds import LEAST_NS, Candidate
from goodput_cli.analysis.recovery.chain import OutageTimeline, chains_of
from goodput_cli.analysis.recovery.columns import budget_used
from goodput_cli.analysis.recovery.nodes import standby_ns
from goodput_cli.analysis.recovery.watchdog import UNTIL_DETECTED, longest_link_words, waited_words
from goodput_cli.events.schema import NO_STEP
from goodput_cli.events.signs import RecoveryPhase
from goodput_cli.vocabulary.causes import UNKNOWN_CAUSE
from goodput_cli.vocabulary.text import duration, plural

if TYPE_CHECKING:
    from goodput_cli.analysis.results import AnalysisData


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
        mine = [by_number[number] for number in one.about.disruptions if number in by_number]
        if one.code == "hang":
            words.append(_noticed_late(timeline, mine))
        elif one.code == "queued":
            words.append(_in_queue(timeline, list(by_number.values())))
        elif one.code in _OF_OUTAGES and mine:
            rest = [chain for chain in mine if chain.number not in hung]
            words.append(storm.words if storm is not None and one.code == stormy else None)
            words.append(longest_link_words(timeline, rest) if rest else None)
            words.append(None if in_queue else waited_words(rest, standby_ns(timeline)))
            words.append(_budget(by_number, mine))
        added = "; ".join(filter(None, words))
        yield replace(one, text=f"{one.text}; {added}") if added else one


def _chains(analysis: AnalysisData, wanted: set[int]) -> dict[int, OutageTimeline]:
    """Return, by number, the chains of the window's disruptions; of the whole job, if insights are about others."""
    found = {one.number: one for one in analysis.disruptions.chains if one is not None and one.number is not None}
    if wanted <= found.keys():
        return found
    return {one.number: one for one in chains_of(analysis.timeline) if one.number is not None}


def _noticed_late(timeline: Timeline, chains: Sequence[OutageTimeline]) -> str | None:
    """Return the sentence for hangs that a timeout ended: only that they were detected late, as they have no other
    seconds of outages."""
    some = [one for one in chains if one.link(RecoveryPhase.DETECTED) is not None]
    words = longest_link_words(timeline, some) if some else None
    return words if words is not None and UNTIL_DETECTED in words else None


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
