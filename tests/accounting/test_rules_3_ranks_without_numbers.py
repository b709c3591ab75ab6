"""Accounting §3, ranks without numbers: several processes write recorder lines without a process name."""

from __future__ import annotations

from tests.support.story import Line, account, end, init, ledger, prep, start, step, steps


def steps_of_two(first: int, count: int, *, at: float, every: float = 10) -> list[Line]:
    """Return steps that a second process reports one second later."""
    lines = steps(first, count, at=at, every=every) + steps(first, count, at=at + 1, every=every)
    return sorted(lines)


def test_two_start_lines_of_two_processes_are_one_start() -> None:
    story = account(start(0), start(3), steps_of_two(0, 2, at=10), end(30))
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.seconds == ledger(other=10, productive=20)


def test_time_until_the_last_process_starts_is_recovery() -> None:
    story = account(
        start(0), start(1), steps_of_two(0, 2, at=10), start(50), start(54), steps_of_two(2, 2, at=60), end(80)
    )
    assert (story.attempts, story.disruptions) == (2, 1)
    # Kept: step 0, one step time of step 1, and two more. 30 to 54 is downtime, 54 to 60 is unclaimed.
    assert story.seconds == ledger(other=16, productive=40, recovery=24)


def test_starts_ten_minutes_apart_are_three_attempts() -> None:
    story = account(start(0), start(600), start(1200), steps(0, 3, at=1210), end(1240))
    assert (story.attempts, story.disruptions) == (3, 2)


def test_start_has_one_line_per_process_with_steps() -> None:
    # A start that died, and two processes that trained.
    story = account(start(0), start(20), start(21), steps_of_two(0, 2, at=30), end(50))
    assert (story.attempts, story.disruptions) == (2, 1)
    assert story.seconds == ledger(recovery=21, other=9, productive=20)


def test_starts_without_steps_use_the_attempt_before() -> None:
    story = account(
        start(0), start(1), steps_of_two(0, 2, at=10),
        start(40), start(41),  # both die
        start(70), start(71), steps_of_two(2, 2, at=80), end(100),
    )  # fmt: skip
    assert (story.attempts, story.disruptions) == (3, 2)


def test_start_lines_more_than_a_minute_apart_are_two_starts() -> None:
    story = account(start(0), start(61), steps_of_two(0, 2, at=70), end(90))
    assert story.attempts == 2


def test_first_end_line_closes_the_first_open_start() -> None:
    story = account(start(0), start(1), init(1, 5), init(2, 9), steps_of_two(0, 2, at=10), end(30))
    assert story.seconds == ledger(init=8, other=2, productive=20)
    assert story.found("open_interval") == story.found("orphan_end") == 0


def test_open_phases_are_limited_to_the_processes() -> None:
    # The first process loses its end line; the next round begins with two start lines again.
    story = account(
        start(0), start(1), init(1, None), init(2, 4), init(5, 7), init(6, 8), steps_of_two(0, 2, at=10), end(30)
    )
    # 1 to 4 (the one end line closes the first start line), 2 to 5 (open until the next start line), 5 to 8.
    assert story.seconds == ledger(init=7, other=3, productive=20)


def test_slowest_rank_may_prepare_after_the_first_step() -> None:
    story = account(
        start(0), start(1), prep(2, 10), prep(3, 11.5), step(0, 11), step(0, 12), step(1, 20), step(1, 21), end(30)
    )
    assert (story.attempts, story.disruptions) == (1, 0)
    assert story.found("multi_host_duplicates") == 2
