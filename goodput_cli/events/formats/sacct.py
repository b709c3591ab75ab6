"""Slurm's accounting as `sacct -P` prints it: when jobs were submitted, started and ended. Local time without a zone.

The only common log that shows queueing. Which file of text a job belongs to is told by its number in the file's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.fields import SACCT

HEADER = frozenset({"JobID", "State", "Start"})
DELIMITERS = ("|", ",")


class Sacct:
    """Reads the rows that Slurm's `sacct -P` prints."""

    name = SACCT
    keys = HEADER

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """A row with the columns that `sacct` always prints."""
        return {"JobID", "State"} <= record.keys()

    def any_key(self, _records: Records) -> bool:
        """sacct has a hundred columns."""
        return True

    def job_of(self, _records: Records) -> str:
        """Told by files, as those of text are."""
        return SACCT

    def translate(self, records: Records, output: Output) -> Mask:
        """Marks of allocations; steps of a job (`812.batch`) are parts of it."""
        from goodput_cli.events.text.entries import collect_allocations  # few logs hold any

        collect_allocations(records, output)
        return records.every()
