"""What rules make of lines: each rule's matches over a log, what was refused, and everything about one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from goodput_cli.diagnostics.collector import DiagnosticCollector
from goodput_cli.events.formats.registry import all_formats
from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.mappings.samples import Read, read_line, read_record, record_of, shown
from goodput_cli.events.text.block import LONGEST
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.rules import BadValueError
from goodput_cli.events.text.stamps import StampError, stamp_of
from goodput_cli.events.wrapped_lines import json_in, wrapped_line

_RESULTS = 3
_SHAPE_DIGITS = str.maketrans("0123456789", "##########")
_SHAPES = 10_000
_SHAPE = 160
"""Characters of a line that tell its shape."""


class Line(NamedTuple):
    """A line of a log, or a row of a table."""

    source: str
    number: int
    text: str
    row: Mapping[str, Any] | None = None


class Refused(NamedTuple):
    """A line that a rule knows and whose values are wrong."""

    line: Line
    rule: str
    field: str
    reason: str


@dataclass
class RuleMatches:
    """What one rule of a mapping read."""

    rule: str
    at: int
    """Its line in the file of the mapping."""
    event: str
    lines: int = 0
    first: str | None = None
    """`file:line`, as `last`."""
    last: str | None = None
    results: list[str] = field(default_factory=list)
    """The first three, as `step=101 each=0.25`."""
    refused: int = 0


@dataclass
class Matches:
    """What a mapping reads of a log."""

    made: Mapped
    rules: list[RuleMatches]
    refused: list[Refused] = field(default_factory=list)
    near: list[Refused] = field(default_factory=list)
    """Lines that no rule reads, though the text of one stands in them."""

    @staticmethod
    def of(made: Mapped) -> Matches:
        """Nothing so far."""
        return Matches(
            made, [RuleMatches(rule.name, rule.place.line, rule.event.value) for rule in made.declared.rules]
        )

    @property
    def lines(self) -> int:
        """How many lines its rules read, refused ones too."""
        return sum(rule.lines + rule.refused for rule in self.rules)

    @property
    def finds_steps(self) -> bool:
        """Whether a rule for steps read a line; of a mapping without one, whether any rule did."""
        of_steps = [rule for rule in self.rules if rule.event in ("step", "step_start")]
        return any(rule.lines for rule in of_steps or self.rules)

    def add(self, line: Line) -> bool:
        """Whether a rule reads a line."""
        if line.row is None and not self._may_read(line.text):
            return False
        found = False
        for part, overwritten in _parts(line.text, self.made.declared.split):
            read = read_record(self.made, line.row) if line.row is not None else read_line(self.made, part, overwritten)
            if read is not None:
                found = True
                self._add(line, read)
        if not found and line.row is None:
            self._add_near(line)
        return found

    def _may_read(self, text: str) -> bool:
        """Most lines are noise, and hold the text of no rule."""
        return any(rule.anchor in text for rule in self.made.lines) or bool(self.made.records and "{" in text)

    def _add_near(self, line: Line) -> None:
        text = line.text[:LONGEST]
        near = next((rule for rule in self.made.lines if rule.anchor and rule.anchor in text), None)
        if near is not None:
            reason = f"`{near.anchor}` stands in it, but the rest is not as the rule says"
            self.near.append(Refused(line, near.name, "", reason))

    def _add(self, line: Line, read: Read) -> None:
        row = self.rules[read.rule]
        if read.refused:
            row.refused += 1
            self.refused.append(Refused(line, row.rule, read.field, read.refused))
            return
        row.lines += 1
        place = f"{line.source}:{line.number}"
        row.first, row.last = row.first or place, place
        if read.said is not None and len(row.results) < _RESULTS:
            row.results.append(" ".join(_gives(shown(read.said, read.stamp))))


def matches(mappings: Sequence[Mapped], lines: Iterable[Line]) -> tuple[list[Matches], Counter[str], dict[str, Line]]:
    """What each mapping reads of a log; how often each shape of line occurs that none reads, and an example of each."""
    found = [Matches.of(made) for made in mappings]
    rest: Counter[str] = Counter()
    examples: dict[str, Line] = {}
    for line in lines:
        readers = sum(one.add(line) for one in found)
        if not readers and line.text.strip():
            shape = line.text[:_SHAPE].translate(_SHAPE_DIGITS)
            if shape in rest or len(rest) < _SHAPES:
                rest[shape] += 1
                examples.setdefault(shape, line)
    return found, rest, examples


def explain(line: Line, mappings: Mappings) -> Iterator[str]:
    """Everything about one line, a sentence each."""
    written = line.text
    taken = bare(written)
    yield f"line: {taken.text}"
    if taken.text != written:
        before = written[: -len(taken.text)] if taken.text and written.endswith(taken.text) else written
        yield f"taken off before it: {before[:200]!r}"
    if taken.stream:
        yield f"written by: {taken.stream}"
    try:
        stamp = taken.collected or stamp_of(taken.text)
        yield f"its time: {shown_time(stamp)}"
    except StampError as error:
        yield f"its time: {error}"
    record = line.row if line.row is not None else record_of(taken.text)
    if record is not None:
        yield from _explain_record(record, mappings)
        return
    for part, overwritten in _parts(written, "\r" in written):
        if overwritten:
            yield f"before a carriage return: {bare(part).text[:200]}"
        yield from _explain_text(part, overwritten, mappings)


def shown_time(stamp: Any) -> str:
    """A stamp as people read it."""
    from goodput_cli.events.text.marks import Said, What

    return str(shown(Said("", What.ALIVE), stamp)["time"] or "none that is known")


def _explain_text(line: str, overwritten: bool, mappings: Mappings) -> Iterator[str]:
    text = bare(line).text
    tried: list[str] = []
    known = False
    for rule in mappings.ruleset.rules:
        asked = rule.anchor in text and (rule.split or not overwritten)
        found = rule.pattern.search(text) if asked else None
        if found is None:
            tried += [f"{rule.format}: {rule.name}"] if asked else []
            continue
        known = True
        yield f"read by: {rule.format}, rule {rule.name!r}"
        try:
            said = rule.read(found)
            stamp = None if said is None else said.at or stamp_of(text)
        except (BadValueError, StampError) as error:
            yield f"refused: {error}"
            return
        yield from _gives(shown(said, stamp), ": ") if said is not None else ["gives: nothing, though it is known"]
        if not rule.also:
            break
    if not known:
        yield "read by: no rule"
    if tried:
        yield f"tried before, since their text stands in the line: {'; '.join(tried)}"


def _explain_record(record: Mapping[str, Any], mappings: Mappings) -> Iterator[str]:
    """The same of a JSON object or a row."""
    for one in (*mappings.named, *mappings.shipped_of_records):
        read = read_record(one, record)
        if read is None:
            continue
        yield f"read by: {one.name}, rule {one.declared.rules[read.rule].name!r}"
        if read.refused:
            yield f"refused: {f'`{read.field}`: ' if read.field else ''}{read.refused}"
        elif read.said is None:
            yield "gives: nothing, though it is known"
        else:
            yield from _gives(shown(read.said, read.stamp), ": ")
        return
    own = next((one.name for one in all_formats(DiagnosticCollector()) if one.recognises(record)), None)
    wrapped = wrapped_line(frozenset(record))
    if own is not None:
        yield f"read by: {own}, a format that needs no mapping"
    elif wrapped is not None and isinstance(record[wrapped[0]], str):
        yield from _explain_wrapped(record[wrapped[0]], wrapped[0], mappings)
    else:
        yield "read by: no rule of a mapping"
        yield f"its keys: {', '.join(map(str, list(record)[:30]))}"


def _explain_wrapped(line: str, key: str, mappings: Mappings) -> Iterator[str]:
    """The same of a line that a collector keeps in a record."""
    text = line.rstrip("\n")[:LONGEST]
    yield f"the line in `{key}`: {text}"
    record = json_in(text)
    yield from _explain_text(text, False, mappings) if record is None else _explain_record(record, mappings)


def _gives(values: Mapping[str, object], between: str = "=") -> list[str]:
    given = {name: value for name, value in values.items() if value is not None and (name, value) != ("edge", "point")}
    if between == "=":
        given.pop("event", None)
    return [f"{name}{between}{value}" for name, value in given.items()]


def _parts(line: str, split: bool) -> list[tuple[str, bool]]:
    """The parts of a line between carriage returns, and whether each was overwritten."""
    if not split or "\r" not in line:
        return [(line, False)] if len(line) <= LONGEST else []
    parts = [part for part in line.split("\r") if part.strip()]
    return [(part, at < len(parts)) for at, part in enumerate(parts, 1) if len(part) <= LONGEST]
