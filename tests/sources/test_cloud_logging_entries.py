"""Entries read in bulk are the entries that the ordinary parser reads."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.logging_v2.types import ListLogEntriesResponse, LogEntry
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput_cli.sources.cloud_logging.entries import decode, parse
from goodput_cli.sources.cloud_logging.wire import UnusualBytesError, fields, page_class

KEYS = st.sampled_from(["a", "job_name", "step_count", "k" * 130, "ü"])
TEXTS = st.sampled_from(["", "a", "bb", "é", "x" * 200, "\x00", "\x11abc", "yyy"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.5, 500.0])
VALUES = st.recursive(
    NUMBERS | TEXTS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=3,
)
NS = st.sampled_from([0, 1, 500, 10**9 - 1, 1_767_225_600_123_456_789]) | st.integers(0, 4 * 10**18)


def entry(payload: dict[str, Any] | None, identifier: str, ns: int, received: int, host: str) -> Any:
    made = LogEntry.pb()(log_name="projects/p/logs/l", insert_id=identifier)
    made.timestamp.FromNanoseconds(ns)
    if received:
        made.receive_timestamp.FromNanoseconds(received)
    if host:
        made.resource.labels["host"] = host
    if payload is None:
        made.text_payload = "text"
    else:
        made.json_payload.SetInParent()
        made.json_payload.update(payload)
    return made


def as_bytes(entries: list[Any]) -> list[bytes]:
    """The entries as they come out of a page."""
    page = ListLogEntriesResponse.pb()(entries=entries, next_page_token="t")
    read = page_class().FromString(page.SerializeToString())
    assert read.next_page_token == "t"
    return list(read.entries)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_in_bulk_and_one_by_one_are_equal(data: st.DataObject) -> None:
    shape = st.dictionaries(KEYS, VALUES, max_size=3)
    payloads = data.draw(st.lists(shape | st.none(), min_size=1, max_size=4))
    made = [
        entry(
            data.draw(st.sampled_from(payloads)),
            data.draw(TEXTS),
            data.draw(NS),
            data.draw(NS),
            data.draw(st.sampled_from(["", "x", "y"])),
        )
        for _ in range(30)
    ]
    raw = as_bytes(made)
    assert decode(raw) == [parse(one) for one in raw]


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.integers(10**9, 9 * 10**18))
def test_the_parser_gives_what_protobuf_gives(payload: dict[str, Any], ns: int) -> None:
    made = entry(payload, "id", ns, 0, "")
    (raw,) = as_bytes([made])
    expected = MessageToDict(made)
    record = parse(raw)
    assert record["jsonPayload"] == payload
    assert (record["insertId"], record["logName"]) == (expected["insertId"], expected["logName"])
    assert record["timestamp"].endswith("Z")
    assert len(record["timestamp"]) == len("2026-01-01T00:00:00.123456789Z")


def test_columns_of_numbers_times_and_texts() -> None:
    made = [
        entry({"job_name": "j", "n": at + 0.5, "t": f"{at:04}"}, f"i{at:04}", 10**18 + at, 0, "h") for at in range(50)
    ]
    records = decode(as_bytes(made))
    assert [record["jsonPayload"] for record in records] == [
        {"job_name": "j", "n": at + 0.5, "t": f"{at:04}"} for at in range(50)
    ]
    assert [record["insertId"] for record in records] == [f"i{at:04}" for at in range(50)]
    assert records[7]["timestamp"] == "2001-09-09T01:46:40.000000007Z"
    assert records[7]["resource"] == {"type": "", "labels": {"host": "h"}}


def test_a_field_that_is_there_twice_is_left_to_the_parser() -> None:
    twice = entry({"n": 1.0}, "a", 10**18, 0, "").SerializeToString()
    more = [twice + entry({"n": float(at)}, "b", 10**18, 0, "").SerializeToString() for at in range(20)]
    assert decode(more) == [parse(one) for one in more]
    assert [record["jsonPayload"]["n"] for record in decode(more)] == [float(at) for at in range(20)]


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\x0b\x00", b"\x80" * 20, b"\x09\x00"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(UnusualBytesError):
        list(fields(data, 0, len(data)))
