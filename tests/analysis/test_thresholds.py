"""Thresholds: valid expressions, and their comparison with unrounded values."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, parse_threshold, read_threshold
from goodput_cli.analysis.results import AtRisk, Reliability, SliceEfficiency, StepStatistics, Window
from goodput_cli.errors import UsageError
from goodput_cli.events.schema import COLUMNS, Kind
from goodput_cli.vocabulary.categories import CATEGORIES
from tests.support.answers import BASE, MINUTE, amount, empty_table, primer


@pytest.mark.parametrize(
    ("text", "name", "label", "comparison", "limit", "unit"),
    [
        ("goodput<90", "goodput", None, "<", Fraction(90), "%"),
        (" goodput  <= 92.5 % ", "goodput", None, "<=", Fraction("92.5"), "%"),
        ("queued>30m", "queued", None, ">", Fraction(1800), "s"),
        ("other>=1h", "other", None, ">=", Fraction(3600), "s"),
        ("training_slowdown<-5", "training_slowdown", None, "<", Fraction(-5), "%"),
        ("custom:eval>5", "custom_badput_events", "EVAL", ">", Fraction(5), "%"),
        ("custom:A<B==5s", "custom_badput_events", "A<B", "==", Fraction(5), "s"),
        ("custom_badput_events:Eval>5", "custom_badput_events", "EVAL", ">", Fraction(5), "%"),
        ("disruptions!=0", "disruptions", None, "!=", Fraction(0), ""),
        ("mtbf<2h", "mtbf", None, "<", Fraction(7200), "s"),
        ("steps.p99>2.5", "steps.p99", None, ">", Fraction("2.5"), "s"),
        ("steps.count<100", "steps.count", None, "<", Fraction(100), ""),
        ("mean_downtime>10m", "mean_downtime", None, ">", Fraction(600), "s"),
        ("at_risk>90m", "at_risk", None, ">", Fraction(5400), "s"),
        ("at_risk.steps>100", "at_risk.steps", None, ">", Fraction(100), ""),
        ("elastic.stepping<95", "elastic.stepping", None, "<", Fraction(95), "%"),
    ],
)
def test_expression_is_parsed(
    text: str, name: str, label: str | None, comparison: str, limit: Fraction, unit: str
) -> None:
    parsed = parse_threshold(text)
    assert (parsed.name, parsed.label, parsed.comparison, parsed.limit, parsed.unit) == (
        name, label, comparison, limit, unit,
    )  # fmt: skip


def test_every_category_is_a_valid_expression() -> None:
    for category in (*CATEGORIES, "data_loading_async"):
        assert parse_threshold(f"{category}>1").name == category


@pytest.mark.parametrize(
    "text",
    [
        "", "goodput", "goodput=90", "goodput<", "<90", "goodput<ninety", "goodput<1e400", "goodput<nan", "godput<90",
        "goodput<90kg", "disruptions>3%", "steps.p99>3%", "steps.count>3s", "custom:>3", "custom>3", "steps.p42>1",
        "elastic.stepping<5m", "at_risk>5%", "mtbf>5%", "elastic<5",
        "goodput<90 and other>3", "goodput<" + "9" * 5000,
    ],
)  # fmt: skip
def test_invalid_expression_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


@pytest.mark.parametrize(
    "text", ["goodput<0", "goodput<=-1", "goodput>100", "custom:EVAL>=100.5%", "insight:hang>120%", "steps.p99<0s"]
)
def test_threshold_that_is_never_true_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="can never hold"):
        read_threshold(text)


def test_limit_at_the_edge_of_the_range_is_valid() -> None:
    for text in ("goodput<=0", "goodput>=100", "excluded>150%", "disruptions>1000", "goodput<100"):
        assert read_threshold(text) == parse_threshold(text)


def test_categories_have_short_names() -> None:
    assert parse_threshold("recovery>1h").name == "infrastructure_recovery_from_disruption"
    assert parse_threshold("Checkpoint save>5%").name == "unproductive_checkpoint_save_time"


def test_misspelled_name_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean goodput"):
        parse_threshold("godput<90")


def test_fail_under_is_a_limit_for_goodput() -> None:
    assert parse_fail_under("85") == parse_threshold("goodput<85")
    assert parse_fail_under("85 %") == parse_threshold("goodput<85")
    with pytest.raises(UsageError, match="percentage"):
        parse_fail_under("high")


@pytest.mark.parametrize(
    ("text", "met", "value"),
    [
        ("goodput<90", True, 50.0),
        ("goodput<50", False, 50.0),
        ("goodput<=50", True, 50.0),
        ("goodput>1h", True, 6000.0),
        ("productive>1h", True, 6000.0),
        ("wasted_progress_from_disruption>=20", True, 20.0),
        ("wasted_progress_from_disruption>40m", False, 2400.0),
        ("program_startup>0", False, 0.0),
        ("excluded>0", False, 0.0),
        ("disruptions>0", True, 1.0),
        ("attempts==2", True, 2.0),
        ("kept_steps<50", False, 50.0),
        ("custom_badput_events>5", None, None),
        ("custom:EVAL>5", None, None),
        ("data_loading_async>5", None, None),
        ("tpu_initialization<5", None, None),
        ("steps.p99>2", None, None),
        ("steps.count<1", True, 0.0),
        ("mtbf<2h", None, None),
    ],
)
def test_threshold_is_met_or_not(text: str, met: bool | None, value: float | None) -> None:
    (judged,) = evaluate([parse_threshold(text)], primer())
    assert (judged.met, judged.value) == (met, value)


RELIABILITY = Reliability(2, 2, 9 * 10**12, 4500.0, (100.0, 9000.0), 450.0, None, (BASE, BASE + 20 * MINUTE), 0.5)
ELASTIC = SliceEfficiency(0.3, None, 0, 15.0)


@pytest.mark.parametrize(
    ("text", "met", "value"),
    [
        ("mtbf<2h", True, 4500.0),
        ("mean_downtime>450", False, 450.0),
        ("mean_time_to_regain>1h", None, None),
        ("longest_unproductive>=20m", True, 1200.0),
        ("at_risk>29.9s", True, 30.0),
        ("at_risk.steps>12.5", False, 12.0),
        ("elastic.stepping==30", True, 30.0),
        ("elastic.available<30", None, None),
        ("elastic.goodput<15", False, 15.0),
        ("runs>1", False, 1.0),
    ],
)
def test_thresholds_outside_the_ledger_are_judged(text: str, met: bool | None, value: float | None) -> None:
    analysis = primer(reliability=RELIABILITY, elastic=ELASTIC, at_risk=AtRisk(12.0, 30 * 10**9))
    (judged,) = evaluate([parse_threshold(text)], analysis)
    assert (judged.met, judged.value) == (met, value)


def test_longest_gap_is_zero_without_gaps_and_unknown_if_empty() -> None:
    whole = replace(RELIABILITY, longest_unproductive=None)
    empty = Window(BASE, BASE + MINUTE, MINUTE)
    (judged,) = evaluate([parse_threshold("longest_unproductive>0")], primer(reliability=whole))
    assert (judged.met, judged.value) == (False, 0.0)
    assert evaluate([parse_threshold("longest_unproductive>0")], primer(reliability=whole, window=empty))[0].met is None


@pytest.mark.parametrize(
    ("text", "fails", "verdict"),
    [("goodput<90", True, "failed"), ("goodput<90", False, "warning"), ("goodput<9", True, "passed"),
     ("goodput<9", False, "passed"), ("queued>1", True, "not_recorded"), ("queued>1", False, "not_recorded")],
)  # fmt: skip
def test_verdict_follows_from_the_action(text: str, fails: bool, verdict: str) -> None:
    analysis = primer(not_recorded=("queued",))
    assert evaluate([parse_threshold(text, fails=fails)], analysis)[0].verdict == verdict


def test_window_without_exclusions_is_the_100_percent() -> None:
    window = Window(BASE, BASE + 200 * MINUTE, 100 * MINUTE)
    (judged,) = evaluate([parse_threshold("goodput<100")], primer(window=window))
    assert (judged.met, judged.value) == (False, 100.0)


def test_empty_window_neither_passes_nor_fails() -> None:
    window = Window(BASE, BASE + MINUTE, MINUTE)
    assert evaluate([parse_threshold("goodput<90")], primer(window=window))[0].met is None


def test_one_nanosecond_decides_a_verdict() -> None:
    year = 365 * 86_400 * 10**9
    limit = year * 85 // 100
    window = Window(BASE, BASE + year, 0)
    for off, met in ((-1, True), (0, False), (1, False)):
        analysis = primer(window=window, goodput=amount("productive", limit + off, year))
        (judged,) = evaluate([parse_fail_under("85")], analysis)
        assert judged.met is met
        assert judged.value is not None
        assert (judged.value < 85) is met


def test_labels_are_added_up_unless_one_is_named() -> None:
    rows = (amount("custom_badput_events", 30, 100, "EVAL"), amount("custom_badput_events", 20, 100, "TEST"))
    analysis = primer(window=Window(0, 100, 0), badput=rows, not_recorded=())
    judged = evaluate([parse_threshold(f"{name}>1") for name in ("custom_badput_events", "custom:eval")], analysis)
    assert [one.value for one in judged] == [50.0, 30.0]


def test_label_outside_the_window_is_zero() -> None:
    table = empty_table()
    row: dict[str, Any] = {name: np.zeros(1, dtype) for name, dtype in COLUMNS.items()}
    row["kind"] = np.full(1, Kind.CUSTOM, np.int8)
    table = replace(table, **row, labels=("EVAL", "SCALE_UP"))
    analysis = primer(table=table, not_recorded=())
    judged = evaluate([parse_threshold(f"custom:{label}>0") for label in ("EVAL", "SCALE_UP")], analysis)
    assert [one.met for one in judged] == [False, None]


def test_step_times_are_compared_as_displayed_decimals() -> None:
    analysis = primer(steps=StepStatistics(3, 0.1, 0.3, 0.2, 0.1, float("nan")))
    judged = evaluate([parse_threshold(f"steps.{name}") for name in ("mean==0.3", "ideal<=0.1", "p99>0")], analysis)
    assert [one.met for one in judged] == [True, True, None]


def test_warnings_do_not_fail() -> None:
    assert not evaluate([parse_threshold("goodput<90", fails=False)], primer())[0].fails


@given(st.text(max_size=40))
def test_any_text_raises_only_wrong_usage(text: str) -> None:
    for parse in (parse_threshold, parse_fail_under):
        with contextlib.suppress(UsageError):
            parse(text)


@pytest.mark.parametrize("text", [" " * 500_000, "goodput" + " " * 500_000 + "<", "any(" * 250_000, "x" * 1001 + "<1"])
def test_expression_of_any_length_is_parsed_quickly(text: str) -> None:
    """A settings file may contain it. The time for blanks once grew with the cube of their number."""
    with pytest.raises(UsageError, match="characters; the limit is 1000"):
        read_threshold(text)


@pytest.mark.parametrize("blanks", [0, 990])
def test_blanks_around_an_expression_are_parsed_quickly(blanks: int) -> None:
    assert read_threshold(" " * blanks + "goodput<90").name == "goodput"
    with pytest.raises(UsageError, match="is not a threshold"):
        read_threshold(" " * blanks + "goodput")
