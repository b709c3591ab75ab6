"""What reads a document, and what it gives: the plug-in point between bytes and records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.columnar import Block, Columns
from goodput_cli.events.text.marks import TextPart
from goodput_cli.sources.base import RawBatch, Record


@dataclass(frozen=True)
class Parsed:
    """The records of a part of a document, and what in it holds none."""

    records: Sequence[Record]
    lines: I64
    """The number of the line where each record begins."""
    bad: Sequence[tuple[int, str]] = ()
    """Lines that hold no record: number and reason."""
    nulls: bool = True
    """Whether a value of a record may be None."""
    columns: Sequence[Columns] = ()
    """Further records, those of the lines of `block` that were read as columns."""
    block: Block | None = None
    first_line: int = 1
    """The number of the first line of `block`."""
    modified_ns: int | None = None
    """When the document was last written to, where its reader does not say it."""
    text: TextPart | None = None
    """What lines of text said, if the document is one of text."""

    def __len__(self) -> int:
        """How many records and bad lines there are."""
        of_text = 0 if self.text is None else len(self.text.marks) + len(self.text.bad) + self.text.noise
        return of_text + len(self.records) + len(self.bad) + sum(len(one.rows) for one in self.columns)


NOTHING = Parsed((), np.empty(0, dtype=np.int64))


class DocumentReader(Protocol):
    """Reads one document, from its first batch to its last. It may keep state in between."""

    @property
    def by_line(self) -> bool:
        """Whether each line stands for itself, so that any lines of a document are a document."""

    def feed(self, batch: RawBatch, /) -> Parsed:
        """The records that end in the next bytes of the document."""

    def finish(self) -> Parsed:
        """What is left at the end of the document."""
