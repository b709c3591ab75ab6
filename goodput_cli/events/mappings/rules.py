"""A declared mapping as rules that read lines and records.

The records of a mapping are a log format (see `Format`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.mappings.declared import Condition, Declared, DeclaredAt, DeclaredRule, Time, Wanted
from goodput_cli.events.mappings.fields import meaning
from goodput_cli.events.mappings.patterns import cause_row, check_rule, compiled
from goodput_cli.events.mappings.places import Mistake, Place
from goodput_cli.events.text.causes import CauseRow
from goodput_cli.events.text.marks import Mark, Pattern, Reading, Rule, Said, TextPart, What, readings
from goodput_cli.events.text.stamps import Stamp, Zone, bare

Record = Mapping[str, Any]
_MISSING = object()
_NEEDED = ("step", "time", "text")
_LONGEST = 1 << 16
_PART = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, eq=False)
class LineRule(Rule):
    """Reads one kind of line as a mapping says."""

    number: int = 0
    """Among the rules of its mapping, from 0."""


@dataclass(frozen=True, eq=False)
class RecordRule:
    """Reads one kind of JSON object or row of a table."""

    number: int
    """Among the rules of its mapping, from 0."""
    declared: DeclaredRule
    mapping: Declared
    time: Time
    """How its times are written."""
    pattern: Pattern | None = None
    """What the text in it looks like."""
    anchor: str = ""

    @property
    def also(self) -> bool:
        """Whether further rules may read the same record."""
        return self.declared.also

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Where each field is; of several paths the first that leads to something counts."""
        return self.declared.paths

    @property
    def known(self) -> frozenset[str]:
        """The first parts of the paths of which one may be in a record."""
        return frozenset(first_of(path) for paths in self.paths.values() for path in paths)

    @cached_property
    def needed(self) -> list[Sequence[str]]:
        """Of each of these, one path has to lead to something."""
        return [self.paths[name] for name in needed_fields(self.declared)]

    def has_keys(self, record: Record) -> bool:
        """Whether a record has the keys that the rule needs, whatever their values are."""
        firsts = [{first_of(path) for path in paths} for paths in self.needed]
        where = {first_of(path) for path in self.declared.where}
        return all(not one.isdisjoint(record) for one in firsts) and all(one in record for one in where)

    def recognises(self, record: Record) -> bool:
        """Whether the rule reads a record: it has what `keys` names, and is as `where` says."""
        if any(all(value_at(record, path) is _MISSING for path in paths) for paths in self.needed):
            return False
        if not all(_is(value_at(record, path), wanted) for path, wanted in self.declared.where.items()):
            return False
        return self.pattern is None or self._match(record) is not None

    def read(self, record: Record) -> Said | None:
        """What a record says; None: nothing, though it is known. Raises BadValueError."""
        if self.declared.event is What.IGNORE:
            return None
        fields = {name: str(value) for name, value in self._values(record) if value is not None and name != "text"}
        if self.pattern is not None:
            found = self._match(record)
            fields |= {name: value for name, value in found.groupdict().items() if value is not None}
        return meaning(self.mapping, self.declared, self.time, fields)

    def _match(self, record: Record) -> Any:
        text = next((value for path in self.paths["text"] if isinstance(value := value_at(record, path), str)), "")
        return (
            self.pattern.search(bare(text[:_LONGEST]).text)
            if self.pattern is not None and self.anchor in text
            else None
        )

    def _values(self, record: Record) -> Sequence[tuple[str, Any]]:
        paths = {**self.paths}
        own = self.time.field
        if own != "time" and "time" not in paths:
            paths[own] = (own,)
        return [
            (name, next((one for one in (value_at(record, path) for path in options) if one is not _MISSING), None))
            for name, options in paths.items()
        ]


def needed_fields(rule: DeclaredRule) -> list[str]:
    """The fields without which a rule reads no record."""
    return [name for name in rule.keys if name in _NEEDED or len(rule.keys) == 1]


def record_readings(rules: Iterable[RecordRule], record: Record) -> Iterator[Reading[RecordRule]]:
    """What rules say of a record."""
    return readings((rule, record) for rule in rules if rule.recognises(record))


def first_of(path: str) -> str:
    """The first part of a path."""
    return path.split(".", 1)[0].split("[", 1)[0]


def value_at(record: Any, path: str) -> Any:
    """The value at a path such as `a.b[0].c`, or the value of a key that is the path itself."""
    if isinstance(record, Mapping) and path in record:
        value = record[path]
        return _MISSING if value is None or value == "" else value
    value = record
    for part in _PART.findall(path):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return _MISSING if value is None or value == "" else value


def _is(value: Any, wanted: Wanted) -> bool:
    if value is _MISSING:
        return False
    if not isinstance(wanted, Condition):
        return wanted == "any" or _equal(value, wanted)
    if wanted.like is None:
        return any(_equal(value, one) for one in wanted.among or ())
    return isinstance(value, str) and len(value) <= _LONGEST and fnmatch.fnmatchcase(value, wanted.like)


def _equal(value: Any, wanted: Any) -> bool:
    """Equal, and of one kind: `true` is no 1. The cells of a table are texts."""
    if isinstance(value, str) and not isinstance(wanted, str):
        return value == (str(wanted).lower() if isinstance(wanted, bool) else str(wanted))
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


@dataclass(frozen=True, eq=False)
class Mapped:
    """A mapping whose patterns are compiled: ready to read lines and records."""

    declared: Declared
    place: Place
    lines: tuple[LineRule, ...]
    records: tuple[RecordRule, ...]
    causes: tuple[CauseRow, ...] = ()
    """What its lines say about deaths."""

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.declared.name

    def place_of(self, rule: int) -> Place:
        """Where the rule of a number stands."""
        return self.place.of("rule", rule)


def made_of(mapping: DeclaredAt) -> Mapped:
    """The rules of a mapping; its samples are not looked at. Raises UsageError with the place of what is wrong."""
    declared, place = mapping
    lines: list[LineRule] = []
    records: list[RecordRule] = []
    for number, rule in enumerate(declared.rule):
        try:
            if rule.of_records:
                records.append(_record_rule(number, declared, rule))
            else:
                lines.append(_line_rule(number, declared, rule))
        except Mistake as mistake:
            raise place.of("rule", number).error_of(mistake) from None
    causes: list[CauseRow] = []
    for number, cause in enumerate(declared.cause):
        try:
            causes.append(cause_row(f"{declared.name}:{number + 1}", cause))
        except Mistake as mistake:
            raise place.of("cause", number).error_of(mistake) from None
    return Mapped(declared, place, tuple(lines), tuple(records), tuple(causes))


def _record_rule(number: int, declared: Declared, rule: DeclaredRule) -> RecordRule:
    time = declared.time_of(rule)
    if "text" in rule.keys:
        return RecordRule(number, rule, declared, time, *compiled(rule, time))
    if rule.event in (What.STEP, What.STEP_START) and "step" not in rule.keys:
        raise Mistake("a `step` rule needs a `step` among its `keys`", "keys")
    check_rule(rule, time, frozenset(rule.keys))
    return RecordRule(number, rule, declared, time)


def _line_rule(number: int, declared: Declared, rule: DeclaredRule) -> LineRule:
    time = declared.time_of(rule)

    def read(found: Any) -> Said | None:
        if rule.event is What.IGNORE:
            return None
        fields = {name: value for name, value in found.groupdict().items() if value is not None}
        return meaning(declared, rule, time, fields, found.string)

    pattern, anchor = compiled(rule, time)
    split = declared.split is not None
    return LineRule(declared.name, anchor, pattern, read, rule.text, rule.also, split, number)


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
            for reading in record_readings(self._rules, record):
                used[at] = True
                if reading.refused is not None:
                    reason = output.notes.bounded("bad_value", str(reading.refused))
                    output.report("bad_value", f"{reason}; dropped", records, [at])
                elif reading.said is not None:
                    stamp, reading.said.at = reading.said.at, None  # it is the time of the mark
                    if stamp is None and records.stamp[at] >= 0:
                        stamp = Stamp(int(records.stamp[at]), Zone.EXACT, False)
                    marks.append(Mark(int(records.origin.line[at]), "", stamp, reading.said))
        output.texts.add(records.origin.source, TextPart(marks))
        return used
