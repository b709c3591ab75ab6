"""Properties of the recovery phases of every log (accounting §10, Links), for any position of their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.disruptions.find import last_failure
from goodput_cli.analysis.recovery.chain import OutageTimeline, chains_of
from goodput_cli.events.signs import RecoveryEvent, RecoveryPhase
from goodput_cli.vocabulary.categories import ENDED, Category
from tests.accounting.test_properties import analyse, slowly
from tests.strategies import any_logs, messy_logs, step_end_logs
from tests.support.story import with_signs

NAMED_BY_SIGNS = [
    one
    for one in RecoveryPhase
    if one not in (RecoveryPhase.LAST_PROGRESS, RecoveryPhase.TRAINING_AGAIN, RecoveryPhase.CAUGHT_UP)
]
EVENTS_SHOW = {
    RecoveryPhase.WORKERS_STARTED, RecoveryPhase.RESTORED, RecoveryPhase.TRAINING_AGAIN, RecoveryPhase.CAUGHT_UP,
}  # fmt: skip


def signs(timeline: Timeline, picks: Sequence[tuple[int, float]]) -> tuple[RecoveryEvent, ...]:
    """Return signs at any time of the job, including whole seconds."""
    length = timeline.end - timeline.start
    return tuple(
        RecoveryEvent(
            "", NAMED_BY_SIGNS[point % len(NAMED_BY_SIGNS)], timeline.start + int(share * length), f"more.log:{at}"
        )
        for at, (point, share) in enumerate(picks, 1)
    )


def chains(timeline: Timeline) -> list[OutageTimeline]:
    return chains_of(timeline, last=last_failure(timeline) is not None)


picked = st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1)), max_size=25)


@slowly
@given(log=st.one_of(any_logs(), messy_logs(), step_end_logs()), picks=picked)
def test_links_touch_and_add_up_to_their_disruption(log: list[str], picks: list[tuple[int, float]]) -> None:
    analysis = analyse(log)
    if analysis is None:
        return
    timeline = with_signs(analysis.timeline, *signs(analysis.timeline, picks))
    costs = AttemptCosts(timeline)
    found = chains(timeline)
    listed = {row.number for row in analysis.disruptions if row.ended not in ("scale_up", "rolled_back")}
    assert {one.number for one in found if one.number is not None} == listed
    for one in found:
        assert all(before.end_ns == after.start_ns for before, after in pairwise(one.links))
        assert all(before.point < after.point for before, after in pairwise(one.links))
        assert not one.links or one.links[0].start_ns == one.start.time
        for link in one.links:
            amounts = (link.ns, link.wasted_ns, link.downtime_ns, link.restart_ns, link.queued_ns, link.elsewhere_ns)
            assert min(amounts) >= 0
            assert link.uncategorized_ns >= 0
            assert link.undetermined_ns <= link.downtime_ns
        assert one.redone_ns >= 0
        if not one.followed:
            continue
        at = one.ended
        assert sum(link.downtime_ns for link in one.links) == costs.downtime[at]
        assert sum(link.restart_ns for link in one.links) == costs.restart[at]
        assert one.queued_ns == costs.until_up(Category.QUEUED)[at]
        assert one.redone_ns + sum(link.wasted_ns for link in one.links) == costs.taken_back[at]


@slowly
@given(log=st.one_of(any_logs(), messy_logs(), step_end_logs()))
def test_without_signs_the_events_alone_name_points(log: list[str]) -> None:
    analysis = analyse(log)
    if analysis is None:
        return
    ended = analysis.timeline.ends.how
    for one in chains(with_signs(analysis.timeline)):
        assert {link.point for link in one.links} <= EVENTS_SHOW
        assert one.recovery is None
        assert one.budget is None
        assert ENDED[ended[one.ended]] not in ("scale_up", "rolled_back")


@slowly
@given(log=st.one_of(any_logs(), step_end_logs()), picks=picked, seed=st.integers(0, 99))
def test_the_order_of_lines_changes_nothing(log: list[str], picks: list[tuple[int, float]], seed: int) -> None:
    analysis = analyse(log)
    if analysis is None:
        return
    named = list(signs(analysis.timeline, picks))
    told = chains(with_signs(analysis.timeline, *named))
    Random(seed).shuffle(named)
    assert chains(with_signs(analysis.timeline, *named)) == told


@slowly
@given(log=st.one_of(any_logs(), step_end_logs()), picks=picked, at=st.integers(0, 24))
def test_a_sign_less_moves_nothing_but_its_own_link(log: list[str], picks: list[tuple[int, float]], at: int) -> None:
    """If only this sign marked a point, the next phase grows by the removed one. All others stay equal."""
    analysis = analyse(log)
    if analysis is None or at >= len(picks):
        return
    named = signs(analysis.timeline, picks)
    before = chains(with_signs(analysis.timeline, *named))
    after = chains(with_signs(analysis.timeline, *named[:at], *named[at + 1 :]))
    assert [one.lost_ns for one in after] == [one.lost_ns for one in before]
    assert [replace(one.start, moved_ns=0) for one in after] == [replace(one.start, moved_ns=0) for one in before]
