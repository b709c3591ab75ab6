"""Lines that a program printed and a collector keeps as JSON: where the line stands in a record, and when it was taken.

Docker writes `log`, `stream` and `time`, Fluent Bit and Vector the like with the pod, journald `MESSAGE`, Loki `line`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.envelope import NO_STAMP
from goodput_cli.events.formats.base import JOB_NAME, Entry
from goodput_cli.events.timestamps.iso import TimestampReader
from goodput_cli.events.values import MAX_NS, number, round_to_us
from goodput_cli.sources.base import Record

_TIMES = {
    "log": ("time", "@timestamp", "date", "timestamp"),
    "message": ("@timestamp", "timestamp", "time"),
    "MESSAGE": ("__REALTIME_TIMESTAMP",),
    "line": ("timestamp",),
}
"""By the key of the text, the keys of its time, the best first."""
KEYS = frozenset(_TIMES).union(*_TIMES.values())
_PODS = (("kubernetes", "pod_name"), ("labels", "pod"))
LONGEST_PREFIX = 256
"""Launchers, loggers and collectors put fewer characters before an object."""
_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Epoch times below the first are in units of so many ns: seconds, milli- and microseconds."""


def wrapped_line(keys: frozenset[str]) -> tuple[str, str] | None:
    """The keys of the text and of its time in records with these keys; None where they wrap no line."""
    pairs = ((text, time) for text, times in _TIMES.items() for time in times)
    return next(((text, time) for text, time in pairs if text in keys and time in keys), None)


def collected_at(times: Sequence[Any]) -> I64:
    """ns of what collectors wrote as ISO timestamps with a zone or as epoch times; NO_STAMP for everything else."""
    instants = TimestampReader(UTC).read_column([time if isinstance(time, str) else "" for time in times])
    stamps = np.where(instants.good & ~instants.naive, instants.ns, NO_STAMP)
    for at in np.flatnonzero(stamps == NO_STAMP).tolist():
        stamps[at] = _epoch(times[at])
    return stamps


def _epoch(time: Any) -> int:
    value = number(time)
    if value is None or value < 0:
        return NO_STAMP
    unit = next((unit for limit, unit in _UNITS if value < limit), 1)
    ns = round_to_us(value) if isinstance(value, float) and unit == _UNITS[0][1] else int(value) * unit
    return ns if ns < MAX_NS else NO_STAMP


def as_entries(records: Sequence[Record]) -> list[Entry]:
    """What an entry of Cloud Logging would say of who printed each line."""
    return [{"resource": {"labels": {"pod_name": _pod(record)}}} for record in records]


def _pod(record: Record) -> str:
    for holder, key in _PODS:
        about = record.get(holder)
        if isinstance(about, dict) and isinstance(about.get(key), str):
            return str(about[key])
    return ""


def json_in(text: object) -> Record | None:
    """The JSON object that a line is, behind what launchers and collectors put before it; behind words of a logger only
    one that names its job. None where it is none."""
    if not isinstance(text, str) or "{" not in text:
        return None
    from goodput_cli.events.json_documents import BadLineError, parse
    from goodput_cli.events.text.stamps import bare  # few logs hold text

    body = bare(text.strip()).text
    begin = body.find("{")
    if begin and (begin > LONGEST_PREFIX or JOB_NAME not in body):
        return None
    try:
        record = parse(body[begin:].encode())
    except (BadLineError, UnicodeEncodeError):
        return None
    return None if begin and JOB_NAME not in record else record
