"""Words and numbers for people, and harmless log text on a terminal."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.events.timestamps import isos
from goodput_cli.report.json import one_line
from goodput_cli.vocabulary.text import (
    duration,
    exact,
    iso,
    percent,
    period,
    plural,
    rough_duration,
    safe,
    safe_lines,
    seconds_text,
    shorten,
    telling_decimals,
    tenths,
    well_formed,
)

SECOND = 10**9


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (1, "<0.001 ms"),
        (2_569_000, "2.57 ms"),
        (850_000_000, "850 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (5_299_000_000, "5.30 s"),
        (9_995_000_000, "10.0 s"),
        (12_345_000_000, "12.3 s"),
        (59_949_999_999, "59.9 s"),
        (59_950_000_000, "1 min 00 s"),
        (200 * SECOND, "3 min 20 s"),
        (3600 * SECOND - 500_000_000, "1 h 00 min"),
        (7500 * SECOND, "2 h 05 min"),
        (86_400 * SECOND, "24 h 00 min"),
        (360_000 * SECOND, "4 d 04 h"),
        (-1500 * SECOND, "-25 min 00 s"),
    ],
)
def test_durations_are_readable(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_rough_durations_are_readable() -> None:
    seen = [rough_duration(seconds * SECOND) for seconds in (1.5, 600, 9000, 200_000, 2e9)]
    assert seen == ["1.5 s", "10 min", "2.5 h", "2.31 days", "63.4 years"]


@given(st.integers(min_value=-(2**62), max_value=2**62))
def test_every_duration_is_short_and_carries(ns: int) -> None:
    text = duration(ns)
    assert len(text) <= 16
    assert "60 s" not in text
    assert "60 min" not in text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (1_735_689_600 * SECOND, "2025-01-01T00:00:00Z"),
        (1_735_689_600 * SECOND + 500_000_000, "2025-01-01T00:00:00.500Z"),
        (1_735_689_600 * SECOND + 1000, "2025-01-01T00:00:00.000001Z"),
        (1_735_689_600 * SECOND + 1, "2025-01-01T00:00:00.000000001Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_timestamps_have_as_few_digits_as_are_exact(ns: int, text: str) -> None:
    assert iso(ns) == text


def test_period_has_a_second_day_only_if_it_differs() -> None:
    assert period(0, 60 * SECOND) == "1970-01-01 00:00:00 - 00:01:00 UTC"
    assert period(0, 86_400 * SECOND) == "1970-01-01 00:00:00 - 1970-01-02 00:00:00 UTC"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50.0, "50.00 %"),
        (0.0, "0.00 %"),
        (0.001, "<0.01 %"),
        (-0.001, "-<0.01 %"),
        (99.9999, ">99.99 %"),
        (100.0, "100.00 %"),
        (103.2, "103.20 %"),
        (-12.5, "-12.50 %"),
        (float("nan"), "n/a"),
    ],
)
def test_percentages_are_rounded(value: float, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "decimals"), [(50, 85, 2), (85, 85, 2), (84.9996, 85, 4), (84.994, 85, 2), (85.00000001, 85, 8)]
)
def test_limit_side_has_enough_decimals(value: float, limit: float, decimals: int) -> None:
    assert telling_decimals(value, limit) == decimals


def test_numbers_are_readable() -> None:
    assert [seconds_text(ns) for ns in (0, 5_299_000_000, -1, 12 * SECOND)] == ["0", "5.299", "-0.000000001", "12"]
    assert [exact(value) for value in (120.0, 0.002569, 0.1)] == ["120", "0.002569", "0.1"]
    assert [plural(count, "step") for count in (0, 1, 2, 1.5)] == ["0 steps", "1 step", "2 steps", "1.5 steps"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("llm-7b", "llm-7b"),
        ("größe 訓練 🙂", "größe 訓練 🙂"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202egnp", "\\u202egnp"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
    ],
)
def test_active_and_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_safe_text_is_one_printable_line(text: str) -> None:
    shown = safe(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)
    assert safe(shown) == shown
    assert safe_lines(f"{shown}\n{shown}") == f"{shown}\n{shown}"


@given(st.text(alphabet=st.characters(codec=None)))
def test_well_formed_text_can_be_encoded(text: str) -> None:
    well_formed(text).encode("utf-8")


def test_long_text_loses_its_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 7) == "abc…ijk"
    assert len(shorten("x" * 10_000, 39, "...")) == 39


@given(st.lists(st.tuples(st.integers(-(2**62), 2**63 - 1), st.sampled_from((1, 10**3, 10**6, 10**9)))))
def test_a_column_of_instants_is_written_as_each_of_them(given: list[tuple[int, int]]) -> None:
    instants = [ns // size * size for ns, size in given]
    assert isos(np.array(instants, dtype=np.int64)) == [iso(ns) for ns in instants]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b": [None, True, 0.1]}, '{"a":1,"b":[null,true,0.1]}'),
        ({"a": math.nan, "b": -math.inf}, '{"a":null,"b":null}'),
        ({"naïve": "\x1b[31m\x7f\u202e"}, '{"na\\u00efve":"\\u001b[31m\\u007f\\u202e"}'),
        (["\ud800", 2**70], '["\\ufffd",1180591620717411303424]'),
        ([("x", 2)], '[["x",2]]'),
    ],
)
def test_json_in_one_line_is_plain_ascii(value: object, text: str) -> None:
    assert one_line(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.0"),
        (17831, "17,831.0"),
        (0.1, "0.1"),
        (0.095, "0.1"),
        (0.0344, "0.034"),
        (2e-4, "<0.001"),
        (-0.03, "-0.03"),
    ],
)
def test_tenths_are_never_0_for_a_positive_value(number: float, text: str) -> None:
    assert tenths(number) == text
