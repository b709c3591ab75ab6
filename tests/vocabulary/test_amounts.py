"""Numbers and durations in options."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from goodput_cli.analysis.question import make_question
from goodput_cli.api.options import FollowOptions, Reading
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import bounded, declared, read_length

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "ns"),
    [("100", 100 * SECOND), ("0.5", SECOND // 2), ("90s", 90 * SECOND), ("1h30m", 5400 * SECOND), ("1e-9", 1)],
)
def test_duration_has_a_unit_or_is_in_seconds(text: str, ns: int) -> None:
    assert read_length(text) == ns


@pytest.mark.parametrize("text", ["0", "-5", "0s", "1e-10", "nan", "inf", "1e99", "soon", "", "1m1h", "1/3"])
def test_invalid_duration_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match="not a positive duration"):
        read_length(text)


def test_every_option_reads_a_duration_in_its_own_unit() -> None:
    lookback = next(one for one in declared(Reading) if one.name == "lookback_days")
    assert [lookback.value(text) for text in ("7", "7d", "36h", "2w")] == [7.0, 7.0, 1.5, 14.0]
    steps = [make_question(reference_step_time=text).reference_step_time for text in ("8", "8s", "8000ms", 8)]
    assert steps == [Fraction(8)] * 4
    interval = next(declared(FollowOptions))
    assert [interval.value(text) for text in ("5", "5s", "2m", "0.1")] == [5.0, 5.0, 120.0, 0.1]
    assert make_question(window=["60", "1m", 60 * SECOND], every="30").window == (60 * SECOND,)
    assert make_question(window=["auto"], every="30").every == 30 * SECOND


def test_numbers_are_exact_and_both_bounds_apply() -> None:
    read = bounded(Fraction, "is wrong", above=0, most=1)
    assert (read("0.1"), read(" 1 "), read(Fraction(1, 3))) == (Fraction(1, 10), Fraction(1), Fraction(1, 3))
    wrong: list[Any] = ["0", "-0.1", "1.0000001", "0,5", "1s", None, "1e999999999", "1e-999999999"]
    for value in wrong:
        with pytest.raises(UsageError, match="is wrong"):
            read(value)
