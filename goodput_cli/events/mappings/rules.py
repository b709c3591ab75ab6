"""A declared mapping as rules that read lines and records.

Rules that read JSON objects and rows of tables, and a text inside of them.

The records of a mapping as a log format (see `Format`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.mappings.fields import meaning
from goodput_cli.events.mappings.patterns import check_rule, compiled
from goodput_cli.events.text.marks import BadValueError, Mark, Pattern, Rule, Said, What
from goodput_cli.events.text.parts import TextPart
from goodput_cli.events.text.stamps import Stamp, StampError, Zone, bare

Record = Mapping[str, Any]
_MISSING = object()
_NEEDED = ("step", "time", "text")
_LONGEST = 1 << 16
_PART = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, eq=False)
class RecordRule:
    """Reads one kind of JSON object or row of a table."""

    declared: DeclaredRule
    mapping: Declared
    pattern: Pattern | None = None
    """What the text in it looks like."""
    anchor: str = ""

    @property
    def known(self) -> frozenset[str]:
        """The first parts of the paths of which one may be in a record."""
        return frozenset(first_of(path) for paths in self.declared.keys.values() for path in paths)

    @property
    def needed(self) -> list[Sequence[str]]:
        """Of each of these, one path has to lead to something."""
        keys = self.declared.keys
        return [paths for name, paths in keys.items() if name in _NEEDED or len(keys) == 1]

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

    def read(self, record: Record) -> tuple[Said | None, Stamp | None]:
        """What a record says, and when; None: nothing, though it is known. Raises BadValueError."""
        if self.declared.event is What.IGNORE:
            return None, None
        fields = {name: str(value) for name, value in self._values(record) if value is not None and name != "text"}
        if self.pattern is not None:
            found = self._match(record)
            fields |= {name: value for name, value in found.groupdict().items() if value is not None}
        return meaning(self.mapping, self.declared, fields, "")

    def _match(self, record: Record) -> Any:
        text = next(
            (value for path in self.declared.keys["text"] if isinstance(value := value_at(record, path), str)), ""
        )
        return (
            self.pattern.search(bare(text[:_LONGEST]).text)
            if self.pattern is not None and self.anchor in text
            else None
        )

    def _values(self, record: Record) -> Sequence[tuple[str, Any]]:
        paths = {**self.declared.keys}
        own = self.declared.time.field
        if own != "time" and "time" not in paths:
            paths[own] = (own,)
        return [
            (name, next((one for one in (value_at(record, path) for path in options) if one is not _MISSING), None))
            for name, options in paths.items()
        ]


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


def _is(value: Any, wanted: Any) -> bool:
    if value is _MISSING:
        return False
    if wanted == "any":
        return True
    if isinstance(wanted, dict) and "in" in wanted:
        return any(_equal(value, one) for one in wanted["in"])
    if isinstance(wanted, dict):
        return isinstance(value, str) and len(value) <= _LONGEST and fnmatch.fnmatchcase(value, wanted["like"])
    return _equal(value, wanted)


def _equal(value: Any, wanted: Any) -> bool:
    """Equal, and of one kind: `true` is no 1. The cells of a table are texts."""
    if isinstance(value, str) and not isinstance(wanted, str):
        return value == (str(wanted).lower() if isinstance(wanted, bool) else str(wanted))
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


@dataclass(frozen=True, eq=False)
class Mapped:
    """A mapping whose patterns are compiled: ready to read lines and records."""

    declared: Declared
    lines: tuple[Rule, ...]
    records: tuple[RecordRule, ...]

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.declared.name


def made_of(declared: Declared) -> Mapped:
    """The rules of a mapping; its samples are not looked at. Raises UsageError with the place of what is wrong."""
    lines: list[Rule] = []
    records: list[RecordRule] = []
    for rule in declared.rules:
        if rule.of_records:
            records.append(_record_rule(declared, rule))
        else:
            lines.append(_line_rule(declared, rule))
    return Mapped(declared, tuple(lines), tuple(records))


def _record_rule(declared: Declared, rule: DeclaredRule) -> RecordRule:
    if "text" in rule.keys:
        found = compiled(rule)
        return RecordRule(rule, declared, found.pattern, found.anchor)
    if rule.event in (What.STEP, What.STEP_START) and "step" not in rule.keys:
        raise rule.place.of("keys").error("a `step` rule needs a `step` among its `keys`")
    check_rule(rule, frozenset(rule.keys))
    return RecordRule(rule, declared)


def _line_rule(declared: Declared, rule: DeclaredRule) -> Rule:
    found = compiled(rule)
    name = f"{rule.line or rule.regex}"
    return Rule(declared.name, found.anchor, found.pattern, _reader(declared, rule), name, rule.also, declared.split)


def _reader(declared: Declared, rule: DeclaredRule) -> Callable[[Any], Said | None]:
    def read(found: Any) -> Said | None:
        if rule.event is What.IGNORE:
            return None
        fields = {name: value for name, value in found.groupdict().items() if value is not None}
        said, stamp = meaning(declared, rule, fields, found.string)
        said.at = stamp
        return said

    return read


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
