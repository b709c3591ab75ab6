"""Accounting §3, heartbeats: they are signs of life only. §10: a notice of preemption."""

from __future__ import annotations

from tests.support.story import (
    Lines,
    account,
    crashed,
    end,
    finished,
    heartbeat,
    init,
    job_finished,
    ledger,
    loaded,
    notice,
    saved,
    scheduled,
    start,
    started,
    steps,
    terminated,
)


def test_heartbeat_is_activity() -> None:
    silent = account(start(0), steps(0, 4, at=10), start(100), steps(2, 4, at=110), end(150))
    assert silent.seconds == ledger(other=20, productive=60, wasted=10, recovery=60)
    beating = account(start(0), steps(0, 4, at=10), heartbeat(75), start(100), steps(2, 4, at=110), end(150))
    assert beating.seconds == ledger(other=20, productive=60, wasted=45, recovery=25)
    assert beating.analysis.disruptions[0].evidence.last_sign_of_life == "stdin:6"


def test_heartbeat_ends_the_window_of_a_running_job() -> None:
    story = account(start(0), steps(0, 4, at=10), heartbeat(55))
    assert story.seconds == ledger(other=10 + 15, productive=30)


def test_heartbeat_after_the_end_is_ignored() -> None:
    ended = account(start(0), steps(0, 4, at=10), end(50))
    assert account(start(0), steps(0, 4, at=10), end(50), heartbeat(300)).seconds == ended.seconds
    late = account(start(0), steps(0, 4, at=10), crashed(50), heartbeat(70), start(100), steps(4, 2, at=110), end(130))
    assert late.seconds == ledger(other=20, productive=60, recovery=50)


def test_heartbeat_begins_no_attempt_and_no_window() -> None:
    story = account(heartbeat(-30), start(0), steps(0, 4, at=10), end(50))
    assert (story.attempts, story.total) == (1, 50)
    cut_off = account(heartbeat(0), steps(5, 4, at=20))
    assert (cut_off.attempts, cut_off.total) == (1, 50)
    assert cut_off.seconds == ledger(other=20, productive=30)
    after_an_end = account(heartbeat(0), job_finished(5), steps(5, 4, at=20), end(60))
    assert after_an_end.total == 55


def test_heartbeat_is_not_progress() -> None:
    # The initialization without an end line ends at the next step.
    story = account(start(0), init(0), heartbeat(5), steps(0, 4, at=10), end(50))
    assert story.seconds == ledger(init=10, productive=40)
    # A checkpoint log still dies at an unlogged time.
    story = account(started(0), loaded(0, 10), finished(5, 20), saved(5, 22), heartbeat(40), started(50), loaded(5, 60),
                    finished(10, 70), saved(10, 72), job_finished(80))  # fmt: skip
    assert story.seconds["disruption_undetermined"] == 28


def test_heartbeat_prevents_queued_unless_job_was_terminated() -> None:
    again = start(100), *steps(4, 2, at=110)
    story = account(start(0), steps(0, 4, at=10), terminated(50), scheduled(60), heartbeat(70), *again)
    assert story.seconds["queued"] == 40
    alive = account(start(0), steps(0, 4, at=10), scheduled(60), heartbeat(70), *again)
    assert "queued" not in alive.seconds


def test_log_of_heartbeats_alone_is_other() -> None:
    assert account(heartbeat(0), heartbeat(60)).seconds == ledger(other=60)


def ended_by(*events: Lines) -> str:
    story = account(start(0), steps(0, 4, at=10), *events, start(1000), steps(4, 2, at=1010))
    (row,) = story.analysis.disruptions
    return row.ended


def test_preemption_notice_is_the_cause_of_an_end() -> None:
    assert ended_by() == "silent"
    assert ended_by(notice(45)) == "preempted"
    assert ended_by(notice(45), terminated(60)) == "preempted"
    assert ended_by(notice(45), crashed(46)) == "preempted"
    assert ended_by(crashed(45), notice(46)) == "crashed"


def test_preemption_notice_is_ignored_if_training_went_on() -> None:
    assert ended_by(notice(45), steps(4, 1, at=640)) == "preempted"
    assert ended_by(notice(45), steps(4, 2, at=640)) == "silent"
    assert ended_by(notice(45), steps(4, 2, at=640), notice(655)) == "preempted"
