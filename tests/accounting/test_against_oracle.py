"""The engine compared with the oracle, on generated logs: two implementations of the rules that share no code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.vocabulary.categories import CATEGORIES, Category
from tests.accounting.test_properties import analyse, slowly
from tests.oracle import account, costs_by_attempt
from tests.strategies import (
    BASE,
    JOB,
    agent_logs,
    any_logs,
    asynchronous_logs,
    beating_logs,
    entry_logs,
    messy_logs,
    step_end_logs,
)
from tests.support.story import finished, loaded, saved, started, story_lines

Lines = Sequence[str]
START = int(BASE) * 10**9
ATTEMPT = json.dumps({"job_name": JOB, "goodput_event": "attempt", "goodput_time": BASE, "run_id": "r1"})
SAVE_TIED_WITH_LOAD = story_lines(finished(1, 1), saved(1, 2), loaded(1, 1), saved(2, 2), started(3), loaded(1, 3))
"""A log with an initial save that begins at the time of the load, in a span that the next attempt undoes."""
FIRST_RECORD_AT_STEP_0 = story_lines(started(0), finished(0, 10), saved(0, 12), finished(1, 20), finished(2, 30))


def questions() -> st.SearchStrategy[dict[str, Any]]:
    """Return options that both understand."""
    return st.fixed_dictionaries(
        {},
        optional={
            "reference_step_time": st.sampled_from(["auto", "2", "0.7"]),
            "data_loading": st.just("blocking"),
            "async_saves": st.just(True),
            "planned": st.sampled_from(["yes", "no"]),
            "stall_factor": st.sampled_from([2.0, 0.0]),
            "exclude": st.sampled_from([(10, 40), (0, 5), (33, 34)]),
            "as_of": st.sampled_from([40, 90]),
        },
    )


def for_oracle(question: dict[str, Any]) -> dict[str, Any]:
    options = dict(question)
    if "exclude" in options:
        options["exclude"] = [tuple(START + second * 10**9 for second in options["exclude"])]
    if "as_of" in options:
        options["as_of"] = START + options["as_of"] * 10**9
    return options


def oracle_answer(lines: Lines, question: dict[str, Any]) -> dict[str, int]:
    answer = account(lines, **for_oracle(question))
    amounts = {name: round(seconds * 10**9) for name, seconds in answer.seconds.items() if seconds}
    counts = {"attempts": answer.attempts, "disruptions": answer.disruptions, "judged": int(answer.judged)}
    return {**amounts, **counts, "open": round(answer.open_slowdown)}


def engine_analysis(lines: Lines, question: dict[str, Any]) -> Analysis | None:
    options = dict(question)
    if "exclude" in options:
        options["exclude"] = [f"{START // 10**9 + options['exclude'][0]}/{START // 10**9 + options['exclude'][1]}"]
    if "as_of" in options:
        options["as_of"] = START + options["as_of"] * 10**9
    return analyse(lines, **options)


def engine_answer(lines: Lines, question: dict[str, Any]) -> dict[str, int] | None:
    analysis = engine_analysis(lines, question)
    if analysis is None:
        return None
    amounts = {row.name: row.ns for row in (analysis.goodput, *analysis.badput) if row.ns}
    if analysis.window.excluded_ns:
        amounts["excluded"] = analysis.window.excluded_ns
    counts = {"attempts": analysis.job.attempts, "disruptions": analysis.job.disruptions}
    level = analysis.timeline.risen_level
    judged = analysis.is_bounded or analysis.goodput_percent is not None
    return {**amounts, **counts, "judged": int(judged), "open": 0 if level is None else int(level.slowdown.sum())}


@slowly
@given(st.one_of(any_logs(), messy_logs()), questions())
@example(SAVE_TIED_WITH_LOAD, {})
@example(FIRST_RECORD_AT_STEP_0, {})
def test_engine_and_oracle_agree(lines: Lines, question: dict[str, Any]) -> None:
    agree(lines, question)


@slowly
@given(beating_logs(), questions())
def test_engine_and_oracle_agree_on_rollbacks(lines: Lines, question: dict[str, Any]) -> None:
    agree(lines, question)


@slowly
@given(entry_logs(), questions())
def test_engine_and_oracle_agree_on_writers(lines: Lines, question: dict[str, Any]) -> None:
    agree(lines, question)


@slowly
@given(agent_logs(), questions())
def test_engine_and_oracle_agree_on_launcher_agents(lines: Lines, question: dict[str, Any]) -> None:
    agree(lines, question)


@slowly
@given(step_end_logs(), questions(), st.booleans())
@pytest.mark.usefixtures("step_end_lines")
def test_engine_and_oracle_agree_on_step_ends(lines: Lines, question: dict[str, Any], is_announced: bool) -> None:
    agree([ATTEMPT, *lines] if is_announced else lines, question)


@slowly
@given(asynchronous_logs(), questions())
@pytest.mark.usefixtures("asynchronous_saves")
def test_engine_and_oracle_agree_on_asynchronous_saves(lines: Lines, question: dict[str, Any]) -> None:
    agree(lines, question)


@slowly
@given(st.one_of(any_logs(), messy_logs()), questions())
@example(SAVE_TIED_WITH_LOAD, {})
def test_engine_and_oracle_agree_on_costs_of_attempts(lines: Lines, question: dict[str, Any]) -> None:
    agree_by_attempt(lines, question)


@slowly
@given(step_end_logs(), questions())
@pytest.mark.usefixtures("step_end_lines")
def test_engine_and_oracle_agree_on_costs_in_step_end_logs(lines: Lines, question: dict[str, Any]) -> None:
    agree_by_attempt(lines, question)


def agree_by_attempt(lines: Lines, question: dict[str, Any]) -> None:
    """Check that both assign the same seconds to the same attempts, and that the columns add up to the ledger."""
    analysis = engine_analysis(lines, question)
    if analysis is None or not analysis.job.attempts:
        return
    timeline, table = analysis.timeline, AttemptCosts(analysis.timeline)
    whole = timeline.ledger.between(np.array([timeline.start]), np.array([timeline.end]))
    assert {key: int(ns.sum()) for key, ns in table.ledger.items()} == {key: int(ns[0]) for key, ns in whole.items()}
    assert (table.end - table.begin).tolist() == np.sum([*table.ledger.values()], axis=(0, 2)).tolist()
    expected = costs_by_attempt(lines, **for_oracle(question))
    for attempt, row in enumerate(expected.rows):
        found: dict[str, int] = {}
        for (category, label), ns in table.ledger.items():
            name = CATEGORIES[category] + (f":{timeline.table.labels[label]}" if label >= 0 else "")
            name = "productive" if category == Category.SLOWDOWN else name
            found[name] = found.get(name, 0) + int(ns[attempt].sum())
        assert {name: ns for name, ns in found.items() if ns} == {name: ns for name, ns in row.items() if ns}
    assert table.downtime.tolist() == expected.down
    assert table.restart.tolist() == expected.restart
    assert table.until_up(Category.QUEUED).tolist() == expected.queued
    assert expected.taken_back is None or table.taken_back.tolist() == expected.taken_back


def agree(lines: Lines, question: dict[str, Any]) -> None:
    """Check that both give the same amounts, attempts and disruptions."""
    found = engine_answer(lines, question)
    if found is None:
        return
    expected = oracle_answer(lines, question)
    assert found.keys() == expected.keys()
    # 3 ns of tolerance: a reference from `auto` is a float here and a fraction there, and sums of rounded parts may
    # differ.
    assert all(abs(found[name] - expected[name]) <= 3 for name in expected)
