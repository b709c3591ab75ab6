"""Each case of the restart model (`cases/*.toml`), analyzed as `goodput LOG` does."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.text.case_set import KINDS, PAIRS, RULES, Case, load_cases

ALL = load_cases()


def _marked(case: Case) -> object:
    """Return the parameter of a case. A case that is wrong today must be wrong: a fix removes its mark."""
    reason = case.expected_failure
    marks = [] if reason is None else [pytest.mark.xfail(raises=AssertionError, reason=reason, strict=True)]
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in ALL])
def test_case_is_answered_as_its_log_shows(case: Case) -> None:
    assert case.differences() == []


def test_names_of_cases_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in ALL).items() if count > 1] == []


def test_each_rule_and_each_pair_has_cases() -> None:
    count = Counter(case.rule for case in ALL)
    assert set(count) <= set(KINDS)
    assert [rule for rule in RULES if count[rule] < 2] == []
    assert [pair for pair in PAIRS if not count[pair]] == []


def test_logs_of_cases_are_small() -> None:
    """States of a bar count as lines."""
    lines = {case.name: sum(len(text.splitlines()) for text in case.files.values()) for case in ALL}
    assert [name for name, count in lines.items() if not 6 <= count <= 60] == []
