"""Accounting §6 and §7: a level that rose and stayed is slow, or longer by design. The log does not decide."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest

from goodput_cli.accounting.options import Bound, Limits, limits_of
from tests.oracle import account as by_oracle
from tests.support.story import (
    Account,
    Line,
    account,
    end,
    job_finished,
    loaded,
    saved,
    start,
    started,
    step,
    story_lines,
    terminated,
)

STEPS = 10
"""Steps per span of a checkpoint log."""
FAST, SLOW = [2.0], [3.0]


def checkpoints(pace: Sequence[float]) -> list[Line]:
    """Return a checkpoint log whose spans of ten steps take these seconds per step."""
    at = list(accumulate((STEPS * seconds for seconds in pace), initial=10.0))
    saves = [saved(STEPS * number, time) for number, time in enumerate(at[1:], 1)]
    return story_lines(started(0), loaded(0, 10), saves, job_finished(at[-1]))


def step_starts(pace: Sequence[float]) -> list[Line]:
    """Return a step log with these step times."""
    at = list(accumulate(pace, initial=10.0))
    return story_lines(start(0), [step(number, time) for number, time in enumerate(at)], end(at[-1] + 2))


def noisy(pace: Sequence[float], spread: float = 0.03) -> list[float]:
    dice = random.Random(1)
    return [seconds * dice.lognormvariate(0, spread) for seconds in pace]


def drifting(count: int, first: float, last: float) -> list[float]:
    return [first + (last - first) * number / (count - 1) for number in range(count)]


OPEN = {
    "rise": FAST * 20 + SLOW * 20,
    "rise after a slow stretch that ended": FAST * 15 + SLOW * 10 + FAST * 10 + SLOW * 15,
    "ramp of batches": FAST * 12 + [2.4] * 12 + [3.2] * 12 + [4.0] * 12,
    "curriculum of lengths": FAST * 30 + [4.0] * 10,
    "stairs": FAST * 10 + [2.5] * 10 + [3.0] * 10 + [3.5] * 10,
    "drift": drifting(60, 2.0, 3.5),
    "rise with noise": noisy(FAST * 30 + SLOW * 30),
    "rise with single fast spans": FAST * 20 + (SLOW * 5 + FAST) * 4 + SLOW * 3,
    "rise in the last quarter of a short log": FAST * 9 + SLOW * 3,
}
DECIDED = {
    "even": FAST * 40,
    "even with noise": noisy(FAST * 40),
    "one slow stretch that ends": FAST * 15 + SLOW * 15 + FAST * 10,
    "slow stretch that ends in a short log": FAST * 4 + SLOW * 4 + FAST * 3,
    "two slow stretches that end": FAST * 10 + SLOW * 8 + FAST * 10 + SLOW * 8 + FAST * 8,
    "slow at first": SLOW * 20 + FAST * 20,
    "single slow spans": (FAST * 9 + [6.0]) * 4,
    "one slow span at the end": FAST * 39 + SLOW,
    "one of two times": (FAST + SLOW) * 20,
}


def checked(log: list[Line], reference: str | float | None) -> Account:
    """Return the account, after the oracle has agreed on the open amount."""
    story = account(log, reference=reference)
    level = story.analysis.timeline.risen_level
    found = 0 if level is None else int(level.slowdown.sum())
    assert found == pytest.approx(float(by_oracle(log, reference_step_time=reference).open_slowdown), abs=100)
    return story


@pytest.mark.parametrize("pace", OPEN.values(), ids=OPEN)
@pytest.mark.parametrize("log_of", [checkpoints, step_starts])
def test_auto_with_a_level_that_stays_gives_bounds(log_of: type, pace: list[float]) -> None:
    analysis = checked(log_of(pace), "auto").analysis
    low, high = analysis.at_least_percent, analysis.at_most_percent
    assert analysis.goodput_percent is None
    assert low == analysis.goodput.percent
    assert high is not None
    assert low is not None
    assert low + 0.5 < high < 100.01


@pytest.mark.parametrize("pace", OPEN.values(), ids=OPEN)
def test_given_reference_gives_one_number(pace: list[float]) -> None:
    auto = account(checkpoints(pace)).analysis
    given = checked(checkpoints(pace), auto.reference.step_time_seconds).analysis
    assert given.bounds == ()
    assert given.goodput_percent == given.at_least_percent == given.at_most_percent
    assert given.goodput_percent == pytest.approx(auto.at_least_percent, abs=1e-6)


@pytest.mark.parametrize("pace", DECIDED.values(), ids=DECIDED)
@pytest.mark.parametrize("log_of", [checkpoints, step_starts])
def test_auto_with_slowness_that_ends_gives_one_number(log_of: type, pace: list[float]) -> None:
    analysis = checked(log_of(pace), "auto").analysis
    assert analysis.bounds == ()
    assert analysis.goodput_percent == analysis.goodput.percent


def test_readings_are_slow_and_by_design() -> None:
    # 20 spans of 20 s and 20 of 30 s after 10 s of restore, and 20 s more for the first one.
    story = account(checkpoints(FAST * 21 + SLOW * 20))
    assert story.seconds["productive"] == 41 * 20
    assert story.seconds["training_slowdown"] == 20 * 10
    sides = {(one.quantity, one.direction): one.seconds for one in story.analysis.bounds}
    assert sides == {
        ("goodput", "at_least"): 820,
        ("goodput", "at_most"): 1020,
        ("training_slowdown", "at_least"): 0,
        ("training_slowdown", "at_most"): 200,
    }


def test_slow_stretch_before_the_level_stays_slowdown() -> None:
    story = account(checkpoints(OPEN["rise after a slow stretch that ended"]))
    (least,) = [
        b.seconds for b in story.analysis.bounds if (b.quantity, b.direction) == ("training_slowdown", "at_least")
    ]
    assert least == 10 * 10


def test_single_slow_span_inside_the_level_stays_slowdown() -> None:
    story = account(checkpoints(FAST * 20 + SLOW * 10 + [30.0] + SLOW * 10))
    (least,) = [
        b.seconds for b in story.analysis.bounds if (b.quantity, b.direction) == ("training_slowdown", "at_least")
    ]
    assert least == 300 - 30


def test_windows_have_their_own_bounds() -> None:
    log = checkpoints(FAST * 20 + SLOW * 20)
    assert account(log, window=(0, 410)).analysis.goodput_percent is not None
    assert account(log, window=(410, 1010)).analysis.at_most_percent == pytest.approx(100)


def test_as_of_before_the_end_of_a_slow_stretch_gives_bounds() -> None:
    log = checkpoints(DECIDED["one slow stretch that ends"])
    assert account(log, as_of=10 + 300 + 450).analysis.is_bounded
    assert not account(log).analysis.is_bounded


def test_level_of_less_than_half_a_point_makes_no_bound() -> None:
    assert account(checkpoints(FAST * 400 + [2.3] * 10)).analysis.bounds == ()


def test_warm_up_of_a_restart_keeps_the_level_open() -> None:
    first = checkpoints(FAST * 10 + SLOW * 10)[:-1]
    again = [saved(200 + STEPS * number, 600 + 30 * number) for number in range(1, 11)]
    story = account(first, terminated(510), started(560), loaded(200, 600), again, job_finished(900))
    assert story.analysis.goodput_limits.at_most == story.analysis.goodput.ns + 20 * 10 * 10**9


@pytest.mark.parametrize(
    ("bounds", "limits"),
    [
        ((), Limits(50, 50)),
        ((("at_most", 60, "a"), ("at_least", 50, "a")), Limits(50, 60)),
        ((("at_most", 50, "a"),), Limits(None, 50)),
        ((("at_most", 60, "a"), ("at_least", 50, "a"), ("at_most", 55, "b"), ("at_least", 40, "b")), Limits(40, 65)),
        ((("at_most", 60, "a"), ("at_least", 50, "a"), ("at_most", 50, "b")), Limits(None, 60)),
    ],
)
def test_limits_of_independent_questions_add_up(bounds: tuple[tuple[str, int, str], ...], limits: Limits) -> None:
    made = [Bound("goodput", side, ns, reason, "") for side, ns, reason in bounds]  # type: ignore[arg-type]
    assert limits_of([*made, Bound("other", "at_most", 1, "a", "")], "goodput", 50) == limits
