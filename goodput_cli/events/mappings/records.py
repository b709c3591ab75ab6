"""Rules that read JSON objects and rows of tables, and a text inside of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.mappings.fields import meaning
from goodput_cli.events.text.marks import Said, What
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.rules import Pattern
from goodput_cli.events.text.stamps import Stamp

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
