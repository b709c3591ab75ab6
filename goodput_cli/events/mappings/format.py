"""The records of a mapping as a log format (see `Format`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.text.marks import Mark
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.rules import BadValueError
from goodput_cli.events.text.stamps import Stamp, StampError, Zone


class MappedRecords:
    """Reads the JSON objects, and the rows of tables, that a mapping declares."""

    restores_are_inferred = False

    def __init__(self, made: Mapped) -> None:
        self.name = made.name
        self._rules = made.records
        self.keys = frozenset().union(*(rule.known for rule in made.records))

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Whether some rule finds its keys; whether the values are as `where` says is asked when they are read."""
        return any(rule.has_keys(record) for rule in self._rules)

    def any_key(self, _records: Records) -> bool:
        """Records of other programs hold much else."""
        return True

    def job_of(self, _records: Records) -> str:
        """Jobs are told by files, as those of text are."""
        return self.name

    def translate(self, records: Records, output: Output) -> Mask:
        """A mark for each rule that reads a record."""
        used = np.zeros(len(records), dtype=np.bool_)
        marks: list[Mark] = []
        for at, record in enumerate(records.records):
            for rule in (rule for rule in self._rules if rule.recognises(record)):
                used[at] = True
                try:
                    said, stamp = rule.read(record)
                except (BadValueError, StampError) as error:
                    reason = output.notes.bounded("bad_value", str(error))
                    output.report("bad_value", f"{reason}; dropped", records, [at])
                    break
                if stamp is None and records.stamp[at] >= 0:
                    stamp = Stamp(int(records.stamp[at]), Zone.EXACT, False)
                if said is not None:
                    marks.append(Mark(int(records.origin.line[at]), "", stamp, said))
                if not rule.declared.also:
                    break
        output.texts.add(records.origin.source, TextPart(marks))
        return used
