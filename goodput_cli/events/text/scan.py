"""Blocks of text -> marks. Lines without a literal of some rule are never looked at one by one.

One pass of a deterministic automaton (RE2) finds the literals of all rules; NumPy finds what looks like a time of day.
Between two lines that say something only the first and the last stamp of each stream are read: they show how long its
process was alive, and where a line without a stamp lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.errors import SourceError
from goodput_cli.events.parsed import Parsed
from goodput_cli.events.text.block import LONGEST, Lines
from goodput_cli.events.text.marks import Mark, Said, timed
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.programs.progress_bars import thinned
from goodput_cli.events.text.rules import BadValueError, Rule
from goodput_cli.events.text.stamps import StampError, stamp_of
from goodput_cli.events.wrapped_lines import json_in
from goodput_cli.sources.base import RawBatch, Record

SNIFFED = 1 << 16
"""How much of a document tells whether it is text."""
_OBJECT = re.compile(rb"\s*(?:\{(?!')|\[\s*(?:\{|\]|\Z))")
_PREFIXED = 128
"""Prefixes are in so many characters."""


@dataclass(frozen=True)
class Ruleset:
    """The rules of all formats, in the order in which they are tried."""

    rules: tuple[Rule, ...]

    @cached_property
    def reads_all(self) -> bool:
        """Whether some rule has no literal, and is tried on every line."""
        return any(not rule.anchor for rule in self.rules)

    @cached_property
    def anchors(self) -> Any:
        """Finds any of the literals in bytes."""
        literals = sorted({rule.anchor for rule in self.rules if rule.anchor}, key=len, reverse=True)
        return linear().compile("|".join(map(re.escape, literals)).encode())

    def knows(self, head: bytes) -> bool:
        """Whether a rule knows some line of a text that begins like this."""
        head = head.replace(b"\r", b"\n")
        rows = head.split(b"\n")
        lines = {head.count(b"\n", 0, found.start()) for found in self.anchors.finditer(head)}
        lines = set(range(len(rows))) if self.reads_all else lines
        return any(self.read(bare(rows[at][:LONGEST].decode(errors="replace")).text)[1] for at in lines)

    def read(self, text: str, overwritten: bool = False) -> tuple[list[Said], bool, str]:
        """What a line says, whether a rule knows it, and why it is wrong ("": it is not). overwritten: whether a
        carriage return let something else stand in its place."""
        said: list[Said] = []
        known = False
        for rule in self.rules:
            if rule.anchor not in text or (overwritten and not rule.split):
                continue
            found = rule.pattern.search(text)
            if found is None:
                continue
            known = True
            try:
                one = rule.read(found)
            except (BadValueError, StampError) as error:
                return [], True, str(error)
            if one is not None:
                said.append(one)
            if not rule.also:
                break
        return said, known, ""


def linear() -> Any:
    """The regular expressions whose time grows with the text only."""
    try:
        import re2
    except ImportError as error:
        raise SourceError("logs of plain text are read with google-re2; `pip install google-re2`") from error
    return re2


@dataclass
class TextLines:
    """Reads a document of text (see `DocumentReader`)."""

    rules: Ruleset
    by_line: bool = True

    def feed(self, batch: RawBatch) -> Parsed:
        """What the next lines say."""
        data = batch.data.replace(b"\r\n", b"\n") if b"\r\n" in batch.data else batch.data
        block = Lines(data)
        hits = block.short() if self.rules.reads_all else block.found(self.rules.anchors)
        bad: list[tuple[int, str]] = []
        meant: list[int] = []
        placed: list[tuple[int, Mark]] = []
        for at in hits.tolist():
            number = batch.first_line + int(block.number[at])
            more, reason = self._read(block, at, number)
            if reason:
                bad.append((number, reason))
            if more or reason:
                placed += [(at, mark) for mark in more]
                meant.append(at)
        placed += self._clocks(block, np.array(meant, dtype=np.int64), batch.first_line)
        marks = [mark for _, mark in thinned(sorted(placed, key=itemgetter(0)))]
        records, lines = _objects(block, batch.first_line)
        noise = block.count - len(np.unique(block.number[meant])) - len(records)
        part = TextPart(marks, bad, noise, batch.modified_ns)
        return Parsed(records, np.array(lines, dtype=np.int64), text=part)

    def finish(self) -> Parsed:
        """The end of the document: nothing is left over."""
        return Parsed((), np.empty(0, dtype=np.int64), text=TextPart())

    def _read(self, block: Lines, at: int, number: int) -> tuple[list[Mark], str]:
        line = bare(block.text(at))
        overwritten = bool(block.overwritten[at])
        said, known, reason = self.rules.read(line.text, overwritten)
        if not known:
            return [], ""
        first = int(block.first[at])
        prefixed = line if first == at else bare(block.text(first))
        collected = None if overwritten else prefixed.collected
        try:
            own = stamp_of(line.text)
        except StampError as error:
            if collected is None and not (said and all(one.at for one in said)):  # a rule knows how they are written
                return [], reason or str(error)
            own = None
        return [timed(Mark(number, prefixed.stream, own or one.at, one), collected) for one in said], reason

    def _clocks(self, block: Lines, hits: I64, first_line: int) -> Iterator[tuple[int, Mark]]:
        """The first and the last stamped line of each stream between two hits."""
        lines, columns = block.stamped()
        keep = ~np.isin(lines, hits, assume_unique=True)
        lines, columns = lines[keep], columns[keep]
        gaps = np.searchsorted(hits, lines)
        streams, names = self._streams_of(block, lines, columns)
        keys = gaps * (len(names) + 1) + streams
        _, first = np.unique(keys, return_index=True)
        _, last = np.unique(keys[::-1], return_index=True)
        for at in np.union1d(first, len(keys) - 1 - last).tolist():
            line = int(lines[at])
            mark = self._clock(block, line, first_line + int(block.number[line]), names[int(streams[at])])
            if mark is not None:
                yield line, mark

    def _streams_of(self, block: Lines, lines: I64, columns: I64) -> tuple[I64, list[str]]:
        """The stream of each line, as a number int64[n] and the names of the numbers. What stands before the stamps of
        a block is the same on most lines, and is taken apart once."""
        prefixes, kind = np.unique(block.prefixes(lines, columns), return_inverse=True)
        names: dict[str, int] = {}
        codes = np.zeros(len(prefixes), dtype=np.int64)
        _, examples = np.unique(kind, return_index=True)
        for at, example in enumerate(examples.tolist()):
            name = self._stream(block, int(lines[example]), int(columns[example]))
            codes[at] = names.setdefault(name, len(names))
        found: I64 = codes[kind.reshape(-1)] if len(prefixes) else codes
        return found, list(names)

    def _clock(self, block: Lines, at: int, number: int, stream: str) -> Mark | None:
        line = bare(block.text(at))
        try:
            own = stamp_of(line.text)
        except StampError:
            own = None
        mark = timed(Mark(number, stream, own), line.collected)
        return None if mark.stamp is None else mark

    def _stream(self, block: Lines, at: int, column: int) -> str:
        """The stream of a line whose date begins at a column."""
        if column > 1:
            return bare(block.bytes_of(at, column).decode(errors="replace") + "2000-01-01").stream
        return bare(block.text(at)[:_PREFIXED]).stream


def _objects(block: Lines, first_line: int) -> tuple[list[Record], list[int]]:
    """The lines that are JSON objects, behind prefixes too: a program may print a log of ours among its text."""
    records: list[Record] = []
    lines: list[int] = []
    for at in block.braces().tolist():
        record = json_in(block.bytes_of(at, 1 << 24).decode(errors="surrogateescape"))
        if record is not None:
            records.append(record)
            lines.append(first_line + int(block.number[at]))
    return records, lines


def is_text(head: bytes, rules: Ruleset) -> bool:
    """Whether a document that begins like this is text and no JSON: a line of some rule is in it, or fewer than half of
    its lines are objects."""
    head = head[:SNIFFED]
    lines = [line for line in head.split(b"\n") if line.strip()]
    if not lines:
        return False
    others = [line for line in lines if not _OBJECT.match(line)]
    if 2 * len(others) > len(lines):
        return True
    return rules.knows(b"\n".join(others))
