"""Cloud Logging entries, one per line or as one JSON array, and objects printed over many lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goodput_cli.events.json_documents import JsonObjects
from goodput_cli.events.read import read_events
from goodput_cli.events.schema import NONE
from goodput_cli.sources.base import RawBatch
from tests.support.logs import codes, envelope, lines, read_lines, rows, step, where
from tests.support.logs import recorded_steps_of as steps


def read_text(folder: Path, text: str) -> Any:
    (folder / "out.json").write_text(text, encoding="utf-8")
    return read_events([str(folder / "out.json")])


def test_entry_equals_its_payload(tmp_path: Path) -> None:
    log = read_lines(tmp_path, envelope(step(500.0, 3)), step(501, 4))
    assert steps(log.table) == [500, 501]
    assert [row[2] for row in rows(log)] == [3.0, 4.0]
    assert log.table.entry.tolist() == [0, NONE]
    assert log.diagnostics == ()


def test_two_spellings_of_an_entry_are_equal(tmp_path: Path) -> None:
    log = read_lines(
        tmp_path,
        envelope(step(1, 1), timestamp="2026-01-01T00:00:00Z"),
        envelope(step(1, 1), timestamp="2026-01-01T00:00:00.000000000+00:00"),
        envelope(step(1, 1), timestamp="2026-01-01T00:00:00.000000001Z"),
        envelope(step(1, 1), timestamp="2026-01-01T00:00:00Z", insertId="id2"),
        envelope(step(1, 1), timestamp="2026-01-01T00:00:00Z", insertId=None),
    )
    assert log.table.entry.tolist() == [0, 0, 1, 2, NONE]
    assert log.table.entries[0] == ("projects/p/logs/goodput_run", "1767225600000000000", "id1")


def test_resiliency_event_without_time_uses_entry_time(tmp_path: Path) -> None:
    payload = {"job_name": "j", "event_type": "job_started"}
    log = read_lines(
        tmp_path,
        envelope(payload),
        envelope({**payload, "timestamp": "2026-01-01T00:00:02Z"}),
        envelope({**payload, "timestamp": None}),
        envelope(payload, timestamp=None),
        payload,
    )
    assert [row[2] for row in rows(log)] == [9.5, 2.0, 9.5]
    assert where(log, "bad_value") == ["4", "5"]


def test_entry_without_json_object_is_not_recognized(tmp_path: Path) -> None:
    text = envelope(None, textPayload=f"{json.dumps(step(1, 1))} and more")
    log = read_lines(tmp_path, text, envelope("text"), envelope([step(1, 1)]), envelope({}), envelope(step(2, 2)))
    assert steps(log.table) == [2]
    assert where(log, "unrecognised_lines") == ["1", "2", "3", "4"]


def test_printed_json_object_is_recognized(tmp_path: Path) -> None:
    log = read_lines(tmp_path, envelope(None, textPayload=json.dumps(step(1, 1))), envelope(step(2, 2)))
    assert steps(log.table) == [1, 2]


def test_nested_payload_is_not_recognized(tmp_path: Path) -> None:
    assert where(read_lines(tmp_path, envelope(envelope(step(1, 1)))), "unrecognised_lines") == ["1"]


ENTRIES = [envelope(step(number, number), insertId=f"id{number}") for number in range(4)]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (json.dumps(ENTRIES, indent=2), [2, 19, 36, 53]),
        (json.dumps(ENTRIES), [1, 1, 1, 1]),
        ("[\n" + ",\n".join(map(json.dumps, ENTRIES)) + "\n]\n", [2, 3, 4, 5]),
        ("[" + ",\n ".join(map(json.dumps, ENTRIES)) + "]", [1, 2, 3, 4]),
        ("\n\n[ " + "\n,".join(map(json.dumps, ENTRIES)) + "]", [3, 4, 5, 6]),
        ("\n".join(json.dumps(entry, indent=1) for entry in ENTRIES), [1, 18, 35, 52]),
        (json.dumps(ENTRIES[:2], indent=2) + "\n" + json.dumps(ENTRIES[2:]) + "\n", [2, 19, 37, 37]),
        ("\r\n".join(json.dumps(ENTRIES, indent=2).split("\n")), [2, 19, 36, 53]),
    ],
)
def test_arrays_and_objects_over_many_lines(tmp_path: Path, text: str, at: list[int]) -> None:
    log = read_text(tmp_path, text)
    assert steps(log.table) == [0, 1, 2, 3]
    assert lines(log.table) == at
    assert log.diagnostics == ()


def test_braces_and_quotes_in_strings_are_ignored(tmp_path: Path) -> None:
    names = ["}{", '"', "\\", '\\"}', "[{", "a\nb", "é"]
    log = read_text(tmp_path, json.dumps([step(at, at, job=name) for at, name in enumerate(names)], indent=4))
    assert log.table.jobs == tuple(names)


def test_truncated_array_keeps_earlier_objects(tmp_path: Path) -> None:
    text = json.dumps(ENTRIES, indent=2)
    log = read_text(tmp_path, text[: text.index('"id2"')])
    assert steps(log.table) == [0, 1]
    assert where(log, "malformed_lines") == ["36"]
    between = read_text(tmp_path, "[\n" + json.dumps(ENTRIES[0]) + ",\n")
    assert steps(between.table) == [0]
    assert where(between, "malformed_lines") == ["3"]


@pytest.mark.parametrize("indent", [None, 2])
def test_broken_object_does_not_affect_others(tmp_path: Path, indent: int | None) -> None:
    texts = [json.dumps(entry, indent=indent) for entry in ENTRIES]
    for broken in range(4):
        parts = list(texts)
        parts[broken] = parts[broken][:-40].rstrip("}\n ")
        body = ",\n".join(parts)
        body = body.replace("\n", "\n  ") if indent else body
        log = read_text(tmp_path, ("[\n  " if indent else "[\n") + body + "\n]\n")
        assert steps(log.table) == [number for number in range(4) if number != broken]
        assert codes(log) == {"malformed_lines"}


def test_other_values_in_array_are_reported(tmp_path: Path) -> None:
    text = "[\n" + json.dumps(step(1, 1)) + ",\nnull,\n5,\n" + json.dumps(step(2, 2)) + "\n}\n]"
    log = read_text(tmp_path, text)
    assert steps(log.table) == [1, 2]
    assert where(log, "malformed_lines") == ["3", "6"]


def test_log_starting_with_bracket_is_not_an_array(tmp_path: Path) -> None:
    log = read_lines(tmp_path, "[INFO] starting", "[1, 2]", step(1, 1))
    assert (steps(log.table), where(log, "malformed_lines")) == ([1], [])


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_array_is_read_equally_in_any_block_size(data: st.DataObject) -> None:
    number = st.integers(0, 9)
    value = st.recursive(
        number | st.text('{}[]",\\ a', max_size=6), lambda inner: st.lists(inner, max_size=2), max_leaves=3
    )
    records = data.draw(st.lists(st.dictionaries(st.text('{"a', max_size=3), value, max_size=3), max_size=6))
    text = json.dumps(records, indent=data.draw(st.sampled_from([None, 0, 2]))).encode()
    text_lines = text.splitlines(keepends=True)
    reader, found, at = JsonObjects(), [], 0
    while at < len(text_lines):
        size = data.draw(st.integers(1, 5))
        found += list(reader.feed(RawBatch("s", at + 1, b"".join(text_lines[at : at + size]))).records)
        at += size
    end = reader.finish()
    assert [*found, *end.records] == records
    assert list(end.bad) == []
