"""A record equals protobuf's own conversion of its entry to JSON."""

from __future__ import annotations

from typing import Any

from google.cloud.logging_v2.types import LogEntry
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from goodput_cli.sources.cloud_logging_pages import records_of

KEYS = st.sampled_from(["a", "job_name", "step_count", "k" * 130, "ü"])
TEXTS = st.sampled_from(["", "a", "bb", "é", "x" * 200, "\x00", "\x11abc", "yyy"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.5, 500.0])
VALUES = st.recursive(
    NUMBERS | TEXTS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=3,
)


def entry(payload: dict[str, Any] | None, ns: int) -> Any:
    made = LogEntry.pb()(log_name="projects/p/logs/l", insert_id="id")
    made.timestamp.FromNanoseconds(ns)
    made.resource.type = "global"
    made.resource.labels["host"] = "h"
    if payload is None:
        made.text_payload = "text"
    else:
        made.json_payload.SetInParent()
        made.json_payload.update(payload)
    return made


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.integers(10**9, 9 * 10**18))
def test_record_equals_that_of_protobuf(payload: dict[str, Any], ns: int) -> None:
    made = entry(payload, ns)
    expected = MessageToDict(made)
    (record,) = records_of([made])
    assert record["jsonPayload"] == payload
    assert {key: record[key] for key in ("insertId", "logName", "resource")} == {
        key: expected[key] for key in ("insertId", "logName", "resource")
    }


def test_timestamp_always_has_nine_digits() -> None:
    records = records_of([entry({}, 10**18), entry({}, 10**18 + 7)])
    assert [record["timestamp"] for record in records] == [
        "2001-09-09T01:46:40.000000000Z",
        "2001-09-09T01:46:40.000000007Z",
    ]


def test_text_payload_stays_text() -> None:
    (record,) = records_of([entry(None, 10**18)])
    assert record["textPayload"] == "text"
    assert "jsonPayload" not in record
