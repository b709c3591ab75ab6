"""Wrapped lines break between words, never inside an amount, and lose nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.vocabulary.text import text_width, wrap_spans, wrapped


def test_short_lines_are_unchanged() -> None:
    assert wrapped("  a line", 80) == ["  a line"]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("median 8.03 s, p90 10.4 s, p99 1 min 21 s", 34, ["median 8.03 s, p90 10.4 s,", "p99 1 min 21 s"]),
        ("downtime of 12 h 04 min in all", 17, ["downtime of", "12 h 04 min in", "all"]),
        ("since 2026-01-13 04:20:42 UTC", 26, ["since", "2026-01-13 04:20:42 UTC"]),
        ("(3 silent, 1 slice_down)", 14, ["(3 silent,", "1 slice_down)"]),
        ("goodput 70.43 % of it", 14, ["goodput", "70.43 % of it"]),
    ],
)
def test_amounts_stay_together(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


def test_lines_after_the_first_are_indented() -> None:
    assert wrapped("    one two three", 12, "      ") == ["    one two", "      three"]


def test_word_that_is_too_long_is_cut() -> None:
    assert wrapped("a/very/long/path behind", 8) == ["a/very/l", "ong/path", "behind"]


@given(st.text("ab 1h%漢:-", max_size=60), st.integers(2, 20))
def test_nothing_is_lost_and_nothing_is_wider(text: str, width: int) -> None:
    spans = wrap_spans(text, width)
    assert "".join(text[start:end] for start, end in spans).replace(" ", "") == text.replace(" ", "")
    assert len(spans) == 1 or all(text_width(text[start:end].rstrip()) <= width for start, end in spans)
