"""Rows of `sacct` as marks: when a job was submitted, started and ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.sacct import NAME
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.stamps import Stamp, StampError, read_dated

_NO_TIME = ("Unknown", "None", "N/A", "")
_ENDS = {
    "COMPLETED": What.FINISHED,
    "CANCELLED": What.STOPPED,
    "PREEMPTED": What.PREEMPTED,
    "TIMEOUT": What.TERMINATED,
    "REQUEUED": What.TERMINATED,
    "DEADLINE": What.TERMINATED,
    "REVOKED": What.TERMINATED,
    "SUSPENDED": What.TERMINATED,
    "FAILED": What.CRASHED,
    "NODE_FAIL": What.CRASHED,
    "OUT_OF_MEMORY": What.CRASHED,
    "BOOT_FAIL": What.CRASHED,
}


def collect(records: Records, output: Output) -> None:
    """Collect the marks of allocations; steps of a job (`812.batch`) are parts of it."""
    marks: list[Mark] = []
    for at, record in enumerate(records.records):
        if "." in str(record["JobID"]):
            continue
        try:
            marks += _marks(record, int(records.origin.line[at]))
        except StampError as error:
            output.report("bad_value", f"{output.notes.bounded('bad_value', str(error))}; dropped", records, [at])
    output.texts.add(records.origin.source, TextPart(marks))


def _marks(record: Mapping[str, Any], line: int) -> list[Mark]:
    submitted = _time(record, "Eligible") or _time(record, "Submit")
    started, ended = _time(record, "Start"), _time(record, "End")
    state = str(record.get("State", "")).split(" ", 1)[0].rstrip("+").upper()
    what = _ENDS.get(state)
    found = [(What.SCHEDULED, submitted), (What.START, started)]
    if what is not None and started is not None:
        found.append((what, ended))
    return [
        Mark(line, "", stamp, Said(NAME, what, name=str(record["JobID"]), job=str(record.get("JobName", "")), detail=(
            ("state", state),)))
        for what, stamp in found
        if stamp is not None
    ]  # fmt: skip


def _time(record: Mapping[str, Any], key: str) -> Stamp | None:
    text = str(record.get(key, ""))
    return None if text in _NO_TIME else read_dated(text)
