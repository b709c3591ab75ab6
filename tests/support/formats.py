"""Log formats and lines for tests only: saves while training continues, numbers of finished steps, and lines that one
parser or another takes for something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import JOB_NAME, Output, Records
from goodput_cli.events.schema import ASYNCHRONOUS, NONE, Edge, Kind

_SAVED_STEP, _SAVED_TIME = "saved_asynchronously", "saved_asynchronously_time"


class AsynchronousSaves:
    """See `Format`."""

    name = "asynchronous-saves"
    keys = frozenset({JOB_NAME, _SAVED_STEP, _SAVED_TIME})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return _SAVED_TIME in record

    def translate(self, records: Records, output: Output) -> Mask:
        time, timed = output.times(records, _SAVED_TIME)
        step, whole = output.whole(records, _SAVED_STEP)
        detail = np.full(len(records), output.details.code(ASYNCHRONOUS), dtype=np.int32)
        output.rows.add(records.origin, timed & whole, Kind.SAVED, Edge.POINT, time, step=step, detail=detail)
        return records.every()


# --- A log format for tests only.

_DONE, _END_TIME, _MEAN = "steps_done", "steps_done_time", "mean_seconds"


class StepEndLines:
    """See `Format`."""

    name = "step-end-lines"
    keys = frozenset({JOB_NAME, _DONE, _END_TIME, _MEAN})

    def recognises(self, record: Mapping[str, Any]) -> bool:
        return _END_TIME in record

    def translate(self, records: Records, output: Output) -> Mask:
        time, timed = output.times(records, _END_TIME)
        step, whole = output.whole(records, _DONE)
        mean = np.full(len(records), NONE, dtype=np.int64)
        if _MEAN in records.keys:
            mean, _ = output.times(records, _MEAN)
        output.rows.add(records.origin, timed & whole, Kind.STEP, Edge.END, time, step=step, step_time=mean)
        return records.every()


# --- Lines and envelopes that one parser or another takes for something else.

ODD = (
    b"", b" ", b"null", b"[]", b"{}", b"{", b"}", b"garbage", b"\xff\xfe", b"\xef\xbb\xbf{}", b"\r",
    b'{"job_name": "j", "step_count": 12345678901234567890, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 1234567890123456789012, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": NaN, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 3, "step_start_time": NaN}',
    b'{"job_name": "j", "step_count": 3, "step_start_time": Infinity}',
    b'{"job_name": "j", "step_count": 3, "step_count": 4, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 500, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 500.0, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 500.5, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": "500", "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": "500", "step_start_time": "1767225601.5"}',
    b'{"job_name": "j", "step_count": -5, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 05, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 0767225601.5}',
    b'{"job_name": "j", "step_count": 5e2, "step_start_time": 1.7672256015e9}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.0}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.1234565}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.12345678}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.123456789}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.99999996}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.12a456}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.12:456}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 17672256O1.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 5.123456}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 9767225601.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601500}',
    b'{"job_name": "\\ud800", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "\xc3\xa9", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "\xff", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": 7, "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": null, "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": null}',
    b'{"job_name": "j", "step_count": true, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": [5], "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5, "host": "a", "n": 12}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5}{"job_name": "j"}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5} {"job_name": "j", "job_start_time": 1}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5},',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5} ',
    b' {"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5}\r',
    b'{"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5',
    b'{"job_name": "j", "step_count": 5,\n"step_start_time": 1767225601.5}',
    b'{"job_name": "j", "step_count": 5}',
    b'{"step_start_time": 1767225601.5, "step_count": 5, "job_name": "j"}',
    b'{"job_name":"j","step_count":5,"step_start_time":1767225601.5}',
    b'{"a\\u0062": 1, "job_name": "j", "step_count": 5, "step_start_time": 1767225601.5}',
    b'{"job_name": "j", "custom_badput_event_type": "eval 7", "custom_badput_event_start_time": 1767225601.5}',
    b'{"job_name": "j", "custom_badput_event_type": 7, "custom_badput_event_start_time": 1767225601.5}',
    b'{"job_name": "j", "event_type": "step_finished", "timestamp": "2026-01-01T00:00:05.123456", "step": 12}',
    b'{"job_name": "j", "event_type": "step_finished", "timestamp": "2026-02-30T00:00:05.123456", "step": 12}',
    b'{"job_name": "j", "event_type": "step_finished", "timestamp": "2026-01-01T00:00:05", "step": 12.0}',
    b'{"job_name": "j", "event_type": "job_started", "timestamp": "2026-01-01T00:00:05Z", "node_rank": 12345678901}',
    b'{"job_name": "j", "event_type": "2026-01-01T00:00:05", "timestamp": "2026-01-01T00:00:05", "step": 1}',
    b'{"jsonPayload": {"job_name": "j", "step_count": 5, "step_start_time": 1767225601.5}, "insertId": "x1"}',
    b'{"jsonPayload": 5, "job_name": "j"}',
    b'{"job_name": "j", "step": 7, "event_type": "save", "checkpoint_manager_blocking_start_time": 1767225601.5, '
    b'"checkpoint_manager_blocking_duration_secs": 0.5243971347808838, "directory": "d", "synchronous": false}',
    b'{"job_name": "j", "step": 7, "event_type": "save", "checkpoint_manager_blocking_start_time": 1767225602.5, '
    b'"checkpoint_manager_blocking_duration_secs": 2.0000005, "directory": "d", "synchronous": null}',
    b'{"job_name": "j", "step": "7", "event_type": "save", "checkpoint_manager_blocking_start_time": 1767225601, '
    b'"checkpoint_manager_blocking_duration_secs": "5", "directory": ["d"], "synchronous": 0}',
    b'{"job_name": "j", "step": 7.5, "event_type": "save", "checkpoint_manager_blocking_start_time": 1767225601.5, '
    b'"checkpoint_manager_blocking_duration_secs": 5, "directory": "d", "synchronous": true}',
    b'{"job_name": "j", "step": 7, "event_type": "save", "checkpoint_manager_blocking_start_time": NaN, '
    b'"checkpoint_manager_blocking_duration_secs": -0.0, "directory": "5", "synchronous": true}',
    b'{"job_name": "j", "step": 7, "event_type": "save", "checkpoint_manager_blocking_start_time": 1767225601.5, '
    b'"checkpoint_manager_blocking_duration_secs": 1e300, "directory": 5.0, "synchronous": true}',
    b'{"job_name": "j", "event_type": "restore", "checkpoint_manager_start_time": 7122816000.5, '
    b'"checkpoint_manager_duration_secs": 1871078400, "checkpointer_duration_secs": Infinity}',
    b'{"job_name": "j", "event_type": "restore", "checkpoint_manager_start_time": 1767225601.5, '
    b'"checkpoint_manager_duration_secs": 3, "checkpointer_duration_secs": 12345678901234567890}',
    b'{"job_name": "j", "event_type": "restore", "checkpointer_start_time": 5.25, "checkpointer_duration_secs": 1.5}',
    b'{"jsonPayload": "2026-01-01T00:00:05", "job_name": "j", "job_start_time": 1767225601.5}',
    b'{"job_name": "j", "active_slices": 1, "total_slices": 2, "elastic_slice_counts_timestamp": 1767225601.5}',
)  # fmt: skip
"""Lines that one parser or another takes for something else."""


_ENTRY = (
    b'{"insertId": "%s", "jsonPayload": %s, "logName": "l", "receiveTimestamp": "2026-01-01T00:00:06.5Z", '
    b'"resource": {"type": "global", "labels": {"p": "x"}}, "severity": "INFO", "timestamp": "%s"}'
)
_STEP = b'{"job_name": "j", "step_count": %s, "step_start_time": %s}'
_ODD_TIME = b"2026-01-01T00:00:05.250000Z"


def entry(
    insert_id: bytes = b"a1b2", step_count: bytes = b"5", start: bytes = b"1767225601.5", time: bytes = _ODD_TIME
) -> bytes:
    """A step in an envelope, keys in the order in which `gcloud logging read` prints them."""
    return _ENTRY % (insert_id, _STEP % (step_count, start), time)


ODD_ENTRIES = (
    *(entry(name) for name in (
        b"", b"a", b"a1b2c", b"a\\u0062", b'a\\"b', b'a", "x": "b',
        b"\xc3\xa9b2", b"\xffb2c", b"\\ud80", b"a\tb2", b"a\x00b2",
        b"a1b2", b"1234", b"a b,", b"{}:,", b"\x7fabc",
    )),
    *(entry(step_count=count) for count in (
        b"05", b"-5", b"5.0", b'"5"', b"5e2", b"NaN", b"null", b"true", b"1234567890123456789", b"55", b"{}", b"[5]",
    )),
    *(entry(start=start) for start in (
        b"1767225601", b"1767225601.", b"1767225601.1234567", b"1767225601.123456789", b"NaN", b"0767225601.5",
        b"1767225601.5e0", b'"1767225601.5"', b"9767225601.5", b"-1767225601.5", b"1767225601.5 ",
    )),
    *(entry(time=time) for time in (
        b"2026-01-01T00:00:05Z", b"2026-13-01T00:00:05.250000Z", b"2026-01-01T00:00:05.250000+", b"", b"20260101",
        b"2026-01-01T00:00:65.250000Z", b"2026-01-01T00:00:05.250001Z", b"1926-01-01T00:00:05.250000Z",
        b"2026-01-01T00:00:05.25:000Z", b"2026-01-01t00:00:05.250000Z",
    )),
    entry().replace(b'"insertId": "a1b2", ', b""),
    entry().replace(b'"insertId": "a1b2"', b'"insertId": 1234'),
    entry().replace(b'"insertId": "a1b2"', b'"insertId": null'),
    entry().replace(b'"logName": "l"', b'"logName": "m"'),
    entry().replace(b'"logName": "l"', b'"logName": 7'),
    entry().replace(b'"logName": "l", ', b""),
    entry().replace(b'"p": "x"', b'"p": "y"'),
    entry().replace(b'"p": "x"', b'"p": null'),
    entry().replace(b'{"p": "x"}', b"{}"),
    entry().replace(b'"severity": "INFO"', b'"insertId": "zzzz"'),
    entry().replace(b'"severity": "INFO"', b'"jsonPayload": {}'),
    entry().replace(b'"severity": "INFO"', b'"severity": "INFO", "timestamp": "2027-01-01T00:00:05.250000Z"'),
    entry().replace(b'"job_name": "j", ', b""),
    entry().replace(b'"job_name": "j"', b'"job_name": "j", "job_name": "k"'),
    entry().replace(b'"job_name": "j"', b'"job_name": {"j": 1}'),
    entry() + entry(b"c3d4"),
    entry() + b" ",
    entry()[:-1],
    b" " + entry(),
    entry().replace(b", ", b",\n", 1),
    entry().replace(b": ", b":"),
    b'{"jsonPayload": {"jsonPayload": ' + entry() + b'}, "insertId": "a1b2", "timestamp": "2026-01-01T00:00:05.5Z"}',
    b'{"step_start_time": 1767225601.5, "step_count": 5, "job_name": "j"}',
    b'{"step_start_time": 1767225601.5, "step_count": 12, "job_name": "j"}',
    b'{"step_start_time": 1767225601.5, "step_count": 05, "job_name": "j"}',
)  # fmt: skip
"""Envelopes that one parser or another takes for something else."""
