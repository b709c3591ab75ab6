"""Slurm's accounting as `sacct -P` prints it: when jobs were submitted, started and ended. Local time without a zone.

The only common log that shows queueing. Which file of text a job belongs to is told by its number in the file's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.scan import TextPart
from goodput_cli.events.text.stamps import Stamp, StampError, read_dated

NAME = "sacct"
HEADER = frozenset({"JobID", "State", "Start"})
DELIMITERS = ("|", ",")
_NO_TIME = ("Unknown", "None", "N/A", "")
_ENDS = {
    "COMPLETED": What.FINISHED,
    "CANCELLED": What.STOPPED,
    "PREEMPTED": What.TERMINATED,
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


class Sacct:
    """See `Format`."""

    name = NAME
    keys = HEADER

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A row with the columns that `sacct` always prints."""
        return {"JobID", "State"} <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """sacct has a hundred columns."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by files, as those of text are."""
        return NAME

    def translate(self, records: Records, output: Output) -> Mask:
        """Marks of allocations; steps of a job (`812.batch`) are parts of it."""
        marks: list[Mark] = []
        for at, record in enumerate(records.records):
            if "." in str(record["JobID"]):
                continue
            try:
                marks += _marks(record, int(records.origin.line[at]))
            except StampError as error:
                output.report("bad_value", f"{output.notes.bounded('bad_value', str(error))}; dropped", records, [at])
        if output.texts is not None:
            output.texts.add(records.origin.source, TextPart(marks))
        return records.every()


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
