"""Thresholds on changes: accepted expressions, judged unrounded."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.compare.phrases import limit_text, threshold_value
from goodput_cli.analysis.compare.results import judge, parse_change
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.results import Window
from goodput_cli.analysis.summary import Summary, summary_of
from goodput_cli.errors import UsageError
from tests.support.story import account, custom, end, prep, start, steps

BEFORE = summary_of(account(start(0), prep(0, 10), steps(0, 9, at=10), custom("EVAL", 90, 95), end(100)).analysis)
AFTER = summary_of(
    account(
        start(0), prep(0, 25), steps(0, 6, at=25), custom("EVAL", 40, 50), start(110), steps(6, 1, at=110), end(120)
    ).analysis
)


def shares(goodput: int, total: int) -> Summary:
    """Return a summary with this goodput and the rest as `other`."""
    return replace(BEFORE, window=Window(0, total, 0), goodput_ns=goodput, badput={("other", None): total - goodput})


@pytest.mark.parametrize(
    ("text", "name", "label", "falls", "limit", "unit"),
    [
        ("goodput:-2pp", "goodput", None, True, Fraction(-2), "pp"),
        ("goodput:-2", "goodput", None, True, Fraction(-2), "pp"),
        (" Goodput : -2.5 PP ", "goodput", None, True, Fraction("-2.5"), "pp"),
        ("goodput:-3%", "goodput", None, True, Fraction(-3), "%"),
        ("queued:+30m", "queued", None, False, Fraction(1800), "s"),
        ("wasted_progress_from_disruption:+1pp", "wasted_progress_from_disruption", None, False, Fraction(1), "pp"),
        ("custom:eval:+1pp", "custom_badput_events", "EVAL", False, Fraction(1), "pp"),
        ("custom:a:b:+1", "custom_badput_events", "A:B", False, Fraction(1), "pp"),
        ("steps.p99:+10%", "steps.p99", None, False, Fraction(10), "%"),
        ("steps.p99:+0.5", "steps.p99", None, False, Fraction("0.5"), "s"),
        ("mean_downtime:+2h", "mean_downtime", None, False, Fraction(7200), "s"),
        ("disruptions:+2", "disruptions", None, False, Fraction(2), ""),
        ("disruptions.silent:+0", "disruptions.silent", None, False, Fraction(0), ""),
        ("saves.interval:-50%", "saves.interval", None, True, Fraction(-50), "%"),
        ("goodput:-0", "goodput", None, True, Fraction(0), "pp"),
    ],
)
def test_expressions(text: str, name: str, label: str | None, falls: bool, limit: Fraction, unit: str) -> None:
    parsed = parse_change(text)
    assert (parsed.name, parsed.label, parsed.comparison == "<", parsed.limit, parsed.unit) == (
        name,
        label,
        falls,
        limit,
        unit,
    )


@pytest.mark.parametrize("name", MEASURES)
def test_every_name_is_accepted(name: str) -> None:
    assert parse_change(f"{name}:+1").name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("goodput<90", ". For one log, use `goodput analyze --fail-if`"),
        ("goodput", "write NAME:CHANGE"),
        ("goodput:", "write NAME:CHANGE"),
        ("goodput:2pp", "has no sign; add one: '-2' if it fell by more than that, '\\+2' if it rose"),
        ("godput:-2pp", "did you mean goodput"),
        ("goodput:-2kg", "write pp, %, s, m, h, d"),
        ("disruptions:+2pp", "write no unit, %"),
        ("steps.p99:+1pp", "write s, m, h, d, %"),
        ("elastic.stepping:-2s", "write pp, %"),
        ("goodput:-nan", "write NAME:CHANGE"),
        ("goodput:-" + "9" * 900, "write NAME:CHANGE"),
        ("goodput:-" + "9" * 5000, "the limit is 1000"),
        ("custom:-2pp", "unknown measure 'custom'"),
        (":-2pp", "write NAME:CHANGE"),
        ("goodput:-200pp", "can never hold"),
        ("steps.p99:-100%", "can never hold"),
        ("insight:hang:+1m", "unknown measure 'insight:hang'; names are"),
    ],
)
def test_invalid_expression_is_wrong_usage(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_change(text)


@pytest.mark.parametrize(
    ("text", "met", "value"),
    [
        ("training_prep:+10pp", True, 100 * 25 / 120 - 10),
        ("training_prep:+11pp", False, 100 * 25 / 120 - 10),
        ("training_prep:+14s", True, 15.0),
        ("training_prep:+15s", False, 15.0),
        ("training_prep:-1s", False, 15.0),
        ("custom:EVAL:+4s", True, 5.0),
        ("custom:OTHER:+4s", None, None),
        ("disruptions:+0", True, 1.0),
        ("disruptions:+1", False, 1.0),
        ("disruptions:-1", False, 1.0),
        ("attempts:+99%", True, 100.0),
        ("attempts:+100%", False, 100.0),
        ("mtbf:-10%", None, None),
        ("queued:+1pp", None, None),
        ("step_stall:+1pp", False, 0.0),
    ],
)
def test_judgement(text: str, met: bool | None, value: float | None) -> None:
    judged = judge(parse_change(text), BEFORE, AFTER)
    assert judged.met is met
    assert judged.value == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(("text", "met"), [("disruptions:+500%", True), ("disruptions:-1%", False)])
def test_rise_from_zero_exceeds_every_percentage(text: str, met: bool) -> None:
    judged = judge(parse_change(text), BEFORE, AFTER)
    assert (judged.met, judged.value) == (met, None)


def test_zero_stays_zero() -> None:
    judged = judge(parse_change("disruptions:+0%"), BEFORE, BEFORE)
    assert (judged.met, judged.value) == (False, 0.0)


def test_one_nanosecond_decides() -> None:
    year = 365 * 86_400 * 10**9
    before = shares(year * 90 // 100, year)
    for off, met in ((-1, True), (0, False), (1, False)):
        judged = judge(parse_change("goodput:-2pp"), before, shares(year * 88 // 100 + off, year))
        assert judged.met is met
        assert judged.value is not None
        assert (judged.value < -2) is met
        assert (threshold_value(judged) != "-2.00 pp") is (off != 0)


def test_the_limit_is_shown_with_its_sign() -> None:
    assert [limit_text(judge(parse_change(text), BEFORE, AFTER)) for text in ("goodput:-2pp", "goodput:+2pp")] == [
        "-2 pp",
        "+2 pp",
    ]


@given(st.text(max_size=40))
def test_any_text_raises_only_wrong_usage(text: str) -> None:
    with contextlib.suppress(UsageError):
        parse_change(text)
