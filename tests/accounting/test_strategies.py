"""The strategies draw legal, small logs, and the changes keep their facts."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import (
    BASE,
    any_logs,
    as_array,
    checkpoint_logs,
    doubled,
    enveloped,
    messy_logs,
    mixed_logs,
    respelled,
    shifted,
    shuffled,
    split,
    step_logs,
    unchanged_answers,
    with_junk,
)

MAX_LINES = 300
A_DAY = 86_400


@pytest.mark.parametrize("logs", [step_logs(), checkpoint_logs(), mixed_logs(), messy_logs()])
def test_strategy_logs_are_small_json_in_whole_seconds(logs: st.SearchStrategy[list[str]]) -> None:
    @given(logs)
    def check(lines: list[str]) -> None:
        assert 2 <= len(lines) <= MAX_LINES
        for line in lines:
            record = json.loads(line)
            assert record["job_name"] == "j"
            times = [value for key, value in record.items() if key.endswith(("_time", "_timestamp"))]
            if "timestamp" in record:
                times.append(int(datetime.fromisoformat(record["timestamp"] + "Z").timestamp()))
            assert times
            assert all(isinstance(value, int) and abs(value - BASE) < A_DAY for value in times)

    check()


@given(any_logs(), st.data())
def test_order_copies_and_files_keep_the_lines(lines: list[str], data: st.DataObject) -> None:
    assert Counter(data.draw(shuffled(lines))) == Counter(lines)
    assert set(data.draw(doubled(lines))) == set(lines)
    assert Counter(line for file in data.draw(split(lines)) for line in file) == Counter(lines)
    mixed = iter(data.draw(with_junk(lines)))
    assert all(line in mixed for line in lines)  # all of them, in the same order


@given(any_logs(), st.data())
def test_envelopes_and_spellings_keep_the_facts(lines: list[str], data: st.DataObject) -> None:
    entries = [json.loads(line) for line in data.draw(enveloped(lines))]
    assert [entry.get("jsonPayload", entry) for entry in entries] == [json.loads(line) for line in lines]
    assert json.loads(as_array(lines)) == [json.loads(line) for line in lines]
    for line, spelled in zip(lines, data.draw(respelled(lines)), strict=True):
        record, other = json.loads(line), json.loads(spelled)
        assert all(other[key] == value or float(other[key]) == value for key, value in record.items())


@given(any_logs())
def test_shift_can_be_reversed(lines: list[str]) -> None:
    assert shifted(shifted(lines, 7200), -7200) == lines
    assert all(line != moved for line, moved in zip(lines, shifted(lines, 1), strict=True))


@given(any_logs(), st.data())
def test_changes_can_be_combined(lines: list[str], data: st.DataObject) -> None:
    files = data.draw(unchanged_answers(lines))
    assert sum(map(len, files)) >= len(lines)
