"""Explain the effect of rules on lines: matches of each rule in a log, rejected values, and all about one line.

Lines of sources are read one by one, as text and as table rows, for the tools that help to write a mapping.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.documents import cells, delimiter_of
from goodput_cli.events.evidence import UntimedEvidence
from goodput_cli.events.formats.registry import all_formats
from goodput_cli.events.json_documents import json_in, wrapped_line
from goodput_cli.events.mappings.draft.lines import batches_of
from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import (
    Read,
    read_line,
    read_record,
    read_sign,
    read_sign_of_record,
    record_of,
    shown,
)
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.text.evidence_reader import Observer
from goodput_cli.events.text.line_timestamps import TimestampError, strip_prefixes, timestamp_of
from goodput_cli.events.text.lines import LONGEST
from goodput_cli.events.text.log_lines import EventType, ParsedEvent, asked_of, line_readings
from goodput_cli.events.text.observed_line import Line as Observed
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.text import file_line, seconds_text

AROUND = 2_000
"""Number of lines before and after a line that are read to find its block."""
_BACK = 20
"""Number of lines that a row may look back."""
_FIELDS = ("rank", "local_rank", "host", "device", "pid", "exit", "peer", "process", "identity")
"""Fields of evidence other than its code."""
_MOST_SUSPECTS = 20
_NOT_READ = "read by: no rule"
_OF_BLOCK = "evidence: no separate row; it is part of a block, such as a traceback, that is read as a whole"
_NO_EVIDENCE = "evidence: no row"
_RESULTS = 3
_SHAPE_DIGITS = str.maketrans("0123456789", "##########")
_SHAPES = 10_000
_SHAPE = 160
"""Number of characters of a line in its shape."""


class SourceLine(NamedTuple):
    """A line of a log, or a row of a table."""

    source: str
    number: int
    text: str
    row: Mapping[str, Any] | None = None


class Refused(NamedTuple):
    """A line that matches a rule but has wrong values."""

    line: SourceLine
    rule: str
    field: str
    reason: str


@dataclass
class RuleMatches:
    """Matches of one rule of a mapping."""

    rule: str
    at: int
    """Its line in the mapping file."""
    event: str
    lines: int = 0
    first: str | None = None
    """First match, `file:line`, like `last`."""
    last: str | None = None
    results: list[str] = field(default_factory=list)
    """The first three, such as `step=101 each=0.25`."""
    refused: int = 0


@dataclass
class Matches:
    """Matches of a mapping in a log."""

    made: Mapped
    rules: list[RuleMatches]
    refused: list[Refused] = field(default_factory=list)
    near: list[Refused] = field(default_factory=list)
    """Lines that contain the text of a rule but match no rule."""

    @staticmethod
    def of(made: Mapped) -> Matches:
        """Return empty counts."""
        rules = enumerate(made.declared.rule)
        return Matches(
            made, [RuleMatches(rule.name, made.location_of(at).line, rule.event.value) for at, rule in rules]
        )

    @property
    def lines(self) -> int:
        """Return the number of matched lines, including rejected ones."""
        return sum(rule.lines + rule.refused for rule in self.rules)

    @property
    def finds_steps(self) -> bool:
        """Return True if a step rule, or any rule of a mapping without one, matched a line."""
        of_steps = [rule for rule in self.rules if rule.event in ("step", "step_start")]
        return any(rule.lines for rule in of_steps or self.rules)

    def add(self, line: SourceLine) -> bool:
        """Count the matches of a line; return True if there are any."""
        if line.row is None and not self._may_read(line.text):
            return False
        found = False
        for part, overwritten in _parts(line.text, self.made.declared.split is not None):
            for read in self._readings(line, part, overwritten):
                found = True
                self._add(line, read)
        if not found and line.row is None:
            self._add_near(line)
        return found

    def _readings(self, line: SourceLine, part: str, overwritten: bool) -> list[Read]:
        """Return the event of a line, and the moment of a recovery in it."""
        if line.row is not None:
            both = read_record(self.made, line.row), read_sign_of_record(self.made, line.row)
        else:
            both = read_line(self.made, part, overwritten), read_sign(self.made, part, overwritten)
        return list({one.rule: one for one in both if one is not None}.values())

    def _may_read(self, text: str) -> bool:
        """Return True if a line contains the text of a rule; most lines do not."""
        made = self.made
        of_records = made.records or made.signs_of_records
        return any(rule.anchor in text for rule in (*made.lines, *made.signs)) or bool(of_records and "{" in text)

    def _add_near(self, line: SourceLine) -> None:
        text = line.text[:LONGEST]
        rules = (*self.made.lines, *self.made.signs)
        near = next((rule for rule in rules if rule.anchor and rule.anchor in text), None)
        if near is not None:
            reason = f"it contains `{near.anchor}`, but the rest does not match the rule"
            self.near.append(Refused(line, near.name, "", reason))

    def _add(self, line: SourceLine, read: Read) -> None:
        row = self.rules[read.rule]
        if read.refused:
            row.refused += 1
            self.refused.append(Refused(line, row.rule, read.field, read.refused))
            return
        row.lines += 1
        place = file_line(line.source, line.number)
        row.first, row.last = row.first or place, place
        if read.event is not None and len(row.results) < _RESULTS:
            row.results.append(" ".join(_gives(shown(read.event, read.stamp))))


def matches(
    mappings: Sequence[Mapped], lines: Iterable[SourceLine]
) -> tuple[list[Matches], Counter[str], dict[str, SourceLine]]:
    """Return the matches of each mapping in a log; the number of unmatched lines by shape, and an example of each."""
    found = [Matches.of(made) for made in mappings]
    rest: Counter[str] = Counter()
    examples: dict[str, SourceLine] = {}
    for line in lines:
        readers = sum(one.add(line) for one in found)
        if not readers and line.text.strip():
            shape = line.text[:_SHAPE].translate(_SHAPE_DIGITS)
            if shape in rest or len(rest) < _SHAPES:
                rest[shape] += 1
                examples.setdefault(shape, line)
    return found, rest, examples


def explain(
    line: SourceLine, mappings: Mappings, above: Sequence[SourceLine] = (), below: Sequence[SourceLine] = ()
) -> Iterator[str]:
    """Yield all about one line, a sentence each. above, below: lines around it, which may be part of its block."""
    written = line.text
    taken = strip_prefixes(written)
    yield f"line: {taken.text[:LONGEST]}"
    if taken.text != written:
        before = written[: -len(taken.text)] if taken.text and written.endswith(taken.text) else written
        yield f"removed prefix: {before[:200]!r}"
    if taken.stream:
        yield f"written by: {taken.stream}"
    try:
        stamp = taken.collected or timestamp_of(taken.text)
        yield f"its time: {shown(ParsedEvent('', EventType.ALIVE), stamp)['time'] or 'unknown'}"
    except TimestampError as error:
        yield f"its time: {error}"
    record = line.row if line.row is not None else record_of(taken.text)
    said = [*(_explain_printed(written, mappings) if record is None else _explain_record(record, mappings))]
    yield from said
    if _words(line) is not None:
        yield from _evidence(line, mappings, [*above, line, *below]) or [_NO_EVIDENCE] * (_NOT_READ in said)


def _explain_printed(written: str, mappings: Mappings) -> Iterator[str]:
    for part, overwritten in _parts(written, "\r" in written):
        if overwritten:
            yield f"before a carriage return: {strip_prefixes(part).text[:200]}"
        yield from _explain_text(part, overwritten, mappings)


def _words(line: SourceLine) -> str | None:
    """Return the printed text: the line, or the text in a collector's record; None for other records and rows."""
    record = None if line.row is not None else record_of(strip_prefixes(line.text).text)
    if record is None:
        return None if line.row is not None else line.text
    wrapped = wrapped_line(frozenset(record))
    words = None if wrapped is None else record[wrapped[0]]
    return words.rstrip("\n") if isinstance(words, str) and json_in(words) is None else None


def _evidence(line: SourceLine, mappings: Mappings, around: Sequence[SourceLine]) -> list[str]:
    """Return the row of evidence of a line and its fields (docs/causes.md); empty if there is none. around: the lines
    around it, including itself, in order."""
    texts = [(one.number, words) for one in around if (words := _words(one)) is not None and len(words) <= LONGEST]
    observer, seen, in_block = Observer(mappings.ruleset.causes, line.source), list[UntimedEvidence](), False
    last: deque[str] = deque(maxlen=_BACK)
    for number, words in texts:
        observer.epoch = number  # A unique epoch prevents merging with an earlier equal line.
        _, part = observer.take(Observed.of(words, number), lambda count: list(last)[-count:])
        last.append(words)
        in_block |= part and number == line.number
        seen += observer.fresh()
    observer.finish()
    seen += observer.fresh()
    found = next((one for one in seen if one.line == line.number), None)
    if found is not None:
        row = f"evidence: row {found.row!r}, code {found.code}, role {found.role}, printed by: {found.speaker}"
        return [row, *_fields(found)]
    return [_OF_BLOCK] if in_block else []


def _fields(one: UntimedEvidence) -> Iterator[str]:
    values = {name: getattr(one, name) for name in _FIELDS}
    yield from (f"{name.replace('_', ' ')}: {value}" for name, value in values.items() if value not in (None, ""))
    if one.suspects:
        yield f"waited for: {', '.join(map(str, one.suspects[:_MOST_SUSPECTS]))}"
    if one.waited_ns is not None:
        yield f"waited: {seconds_text(one.waited_ns)} s"


def _explain_text(line: str, overwritten: bool, mappings: Mappings) -> Iterator[str]:
    text = strip_prefixes(line).text
    asked = [*asked_of(mappings.ruleset.rules, text, overwritten)]
    read = [*line_readings(asked, text, overwritten)]
    for rule, said, refused in (*read, *line_readings(mappings.ruleset.signs, text, overwritten)):
        yield f"read by: {rule.format}, rule {rule.name!r}"
        try:
            stamp = None if said is None else said.at or timestamp_of(text)
        except TimestampError as error:
            refused = error
        if refused is not None:
            yield f"refused: {refused}"
            return
        yield from _gives(shown(said, stamp), ": ") if said is not None else ["gives: nothing (ignored on purpose)"]
    if not read:
        yield _NOT_READ
    readers = [reading.rule for reading in read]
    tried = asked[: asked.index(readers[-1])] if readers and not readers[-1].also else asked
    without = [f"{rule.format}: {rule.name}" for rule in tried if rule not in readers]
    if without:
        yield f"tried before, because the line contains their text: {'; '.join(without)}"


def _explain_record(record: Mapping[str, Any], mappings: Mappings) -> Iterator[str]:
    """Yield the same for a JSON object or row, and for the line in a collector's record."""
    for one in (*mappings.named, *mappings.shipped_of_records):
        read = read_record(one, record) or read_sign_of_record(one, record)
        if read is None:
            continue
        yield f"read by: {one.name}, rule {one.declared.rule[read.rule].name!r}"
        if read.refused:
            yield f"refused: {f'`{read.field}`: ' if read.field else ''}{read.refused}"
        elif read.event is None:
            yield "gives: nothing (ignored on purpose)"
        else:
            yield from _gives(shown(read.event, read.stamp), ": ")
        return
    own = next((one.name for one in all_formats(DiagnosticCollector()) if one.recognises(record)), None)
    wrapped = wrapped_line(frozenset(record))
    if own is not None:
        yield f"read by: {own}, a format that needs no mapping"
    elif wrapped is not None and isinstance(record[wrapped[0]], str):
        text = record[wrapped[0]].rstrip("\n")[:LONGEST]
        yield f"the line in `{wrapped[0]}`: {text}"
        inner = json_in(text)
        yield from _explain_text(text, False, mappings) if inner is None else _explain_record(inner, mappings)
    else:
        yield "read by: no rule of a mapping"
        yield f"its keys: {', '.join(map(str, list(record)[:30]))}"


def _gives(values: Mapping[str, object], between: str = "=") -> list[str]:
    given = {name: value for name, value in values.items() if value is not None and (name, value) != ("edge", "point")}
    if between == "=":
        given.pop("event", None)
    phases, work = given.pop("phases", None), given.pop("work", None)
    if isinstance(phases, dict):
        given |= {f"phase {name}": seconds for name, seconds in phases.items()}
    given |= work if isinstance(work, dict) else {}
    return [f"{name}{between}{value}" for name, value in given.items()]


def _parts(line: str, split: bool) -> list[tuple[str, bool]]:
    """Return the parts of a line between carriage returns, and True for overwritten ones."""
    if not split or "\r" not in line:
        return [(line, False)] if len(line) <= LONGEST else []
    parts = [part for part in line.split("\r") if part.strip()]
    return [(part, at < len(parts)) for at, part in enumerate(parts, 1) if len(part) <= LONGEST]


MOST_LINES = 1_000_000
"""Maximum number of lines read from a log."""


def lines_of(
    sources: Iterable[str],
    mappings: Iterable[Mapped] = (),
    is_log: Callable[[bytes], bool] | None = None,
    stdin: BinaryIO | None = None,
    hints: ReadingOptions | None = None,
) -> Iterator[SourceLine]:
    """Yield the numbered lines of sources, at most `MOST_LINES`. mappings: those whose tables are read as rows. is_log:
    decides from its beginning if a file of a folder is read; default: all. stdin: the stream for `-`, default: standard
    input. hints: as for `batches_of`. Raises SourceError."""
    tables = [one for one in mappings if one.declared.delimiter]
    return islice(_lines(batches_of(sources, is_log, stdin, hints), tables), MOST_LINES)


def _lines(batches: Iterable[RawBatch], tables: list[Mapped]) -> Iterator[SourceLine]:
    header: list[str] = []
    delimiter: str | None = None
    for batch in batches:
        if batch.first_line == 1:
            header, delimiter = [], _delimiter(batch.data, tables)
        data = batch.data.decode(errors="replace")
        for number, text in enumerate(data.removesuffix("\n").split("\n"), batch.first_line):
            line = SourceLine(batch.source, number, text.removesuffix("\r"))
            if delimiter is not None and text.strip():
                values = cells(text, delimiter)
                if not header or values == header:
                    header = values
                    continue
                row = {key: value for key, value in zip(header, values, strict=False) if value != ""}
                line = line._replace(row=row if len(values) == len(header) else None)
            yield line


def _delimiter(data: bytes, tables: list[Mapped]) -> str | None:
    def is_header(delimiter: str, columns: frozenset[str]) -> bool:
        row = dict.fromkeys(columns, "1")
        of_it = [
            rule
            for one in tables
            if one.declared.delimiter == delimiter
            for rule in (*one.records, *one.signs_of_records)
        ]
        return any(rule.has_keys(row) for rule in of_it)

    return delimiter_of(data, is_header, dict.fromkeys(one.declared.delimiter for one in tables))
