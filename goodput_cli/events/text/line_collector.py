"""Collect the lines of a source that capabilities read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.text.collected_lines import CollectedLine, CollectedRule, literals_of
from goodput_cli.events.text.lines import Lines
from goodput_cli.events.text.log_lines import any_of
from goodput_cli.events.text.observed_line import Line

_LONGEST, _LONGEST_NEXT = 2_000, 500
"""Number of characters that are kept of a line, and of each line that belongs to it."""
_SILENT = 4
"""A block of lines ends after this multiple of its length, whoever wrote the lines in between."""


@dataclass
class _Open:
    """A line whose block may continue."""

    line: CollectedLine
    rule: CollectedRule
    left: int
    """Number of lines after which it ends."""


class LineCollector:
    """Collects the lines of one source, in their order."""

    def __init__(self, rules: Sequence[CollectedRule]) -> None:
        self._rules = rules
        self._open: dict[str, _Open] = {}
        """By stream, without the rank that a program itself prints."""

    def feed(self, block: Lines, first_line: int, hits: I64) -> list[CollectedLine]:
        """Return the lines that begin in a block; lines of the next blocks are added to them later. hits: lines with a
        literal of any rule, ascending."""
        found: list[CollectedLine] = []
        if not self._rules:
            return found
        cursor = 0
        begins = np.intersect1d(block.found(_anchors(tuple(self._rules))), hits, assume_unique=True)
        for at in [*begins.tolist(), len(block)]:
            while self._open and cursor < at:
                found += self._show(block, cursor, first_line)
                cursor += 1
            if cursor <= at < len(block):
                found += self._show(block, at, first_line)
            cursor = max(cursor, at + 1)
        return found

    def _show(self, block: Lines, at: int, first_line: int) -> Iterator[CollectedLine]:
        return self.take(Line.of(block.text(at), first_line + int(block.number[at])))

    def take(self, line: Line) -> Iterator[CollectedLine]:
        """Read a line; yield it if a rule reads it and it does not continue another one."""
        for stream, one in list(self._open.items()):
            one.left -= 1
            if one.left < 0:
                del self._open[stream]
        before = self._open.get(line.stream)
        if before is not None:
            assert before.rule.goes_on is not None
            if before.rule.goes_on.search(line.text):
                before.line.more.append(line.text[:_LONGEST_NEXT])
                if len(before.line.more) == before.rule.most:
                    del self._open[line.stream]
                return
            del self._open[line.stream]
        for rule in self._rules:
            if any(anchor in line.text for anchor in rule.anchors) and rule.begins.search(line.text):
                yield self._begin(line, rule)
                return

    def _begin(self, line: Line, rule: CollectedRule) -> CollectedLine:
        text = line.text[:_LONGEST]
        prefix = line.raw[: len(line.raw) - len(line.text)][-_LONGEST_NEXT:]
        found = CollectedLine(rule.name, line.number, text, prefix, line.stream, line.stamp, line.job)
        if rule.goes_on is not None:
            # Only the first line of a message has the rank that the program prints.
            for stream in {line.stream, line.stream.rpartition("/")[0]}:
                self._open[stream] = _Open(found, rule, _SILENT * rule.most)
        return found


@lru_cache(maxsize=16)
def _anchors(rules: tuple[CollectedRule, ...]) -> Any:
    return any_of(literals_of(rules))
