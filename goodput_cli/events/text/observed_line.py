"""Lines without the prefixes of launchers and collectors: prepared for reading evidence, with the reason of an abort,
and collected for capabilities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.text.line_timestamps import Timestamp, strip_prefixes, timestamp_or_none
from goodput_cli.events.text.lines import Lines
from goodput_cli.events.text.log_lines import CollectedLine, CollectedRule, any_of, literals_of

_RAY = re.compile(r"\((?P<name>raylet|\w[^\s()]{0,80})(?: pid=(?P<pid>\d{1,9}))?(?:, ip=(?P<host>[\w.:]+))?\) ")
"""Prefix that Ray adds to lines of its processes."""
_NESTED = re.compile(r"^(?:\[[^\]]*\] ?)(?=\[(?:rank|default)\d+\]:)")
_ENTRY = re.compile(r"\[\d+\]:\s*$")
_ABORTS = re.compile(
    r"(?:\s*what\(\):\s+|.*\bthread terminated with exception: |Exception in device=\w+:\d+: "
    r"|F\d{4} [\d:.]+ +\d+ \S+:\d+\] |.*\b[Uu]n(?:caught|handled) exception(?: \w+){0,2}: (?:: )?)(?P<what>.+)"
)
"""Reason of an abort: an uncaught C++ exception, a fatal line of glog."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line prepared for reading evidence."""

    number: int
    text: str
    """Text without prefixes of launchers and collectors."""
    raw: str
    stream: str
    collected: Timestamp | None
    entry: int = -1
    job: str = ""
    host: str = ""
    pid: int | None = None

    @classmethod
    def of(cls, raw: str, number: int) -> Line:
        """Return a line of a document. A timestamp in brackets may precede the rank."""
        found = strip_prefixes(raw)
        entry = _ENTRY.search(raw) if not found.text.strip() else None
        if entry is not None:  # This is an entry of an agent's block, not a rank.
            return cls(number, entry[0], raw, found.stream.rpartition("/")[0], found.collected)
        ray = _RAY.match(found.text)
        if ray is not None and (ray["pid"] or ray["name"] == "raylet"):
            stream = "/".join(part for part in (found.stream, ray["name"], ray["pid"]) if part)
            pid = int(ray["pid"]) if ray["pid"] else None
            return cls(number, found.text[ray.end() :], raw, stream, found.collected, host=ray["host"] or "", pid=pid)
        nested = _NESTED.match(found.text)
        if nested is None:
            return cls(number, found.text, raw, found.stream, found.collected)
        inner = strip_prefixes(found.text[nested.end() :])
        stream = "/".join(part for part in (found.stream, inner.stream) if part)
        return cls(number, inner.text, raw, stream, found.collected)

    @property
    def stamp(self) -> Timestamp | None:
        """Return the timestamp of the line; None if it has none."""
        if self.collected is not None:
            return self.collected
        return timestamp_or_none(_RAY.sub("", strip_prefixes(self.raw).text, count=1))


def abort_reason(text: str) -> str:
    """Return the reason in a line of an abort; empty for other lines."""
    said = _ABORTS.match(text)
    return said["what"] if said is not None else ""


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
