"""A declared mapping as rules that read lines and records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.mappings.fields import meaning
from goodput_cli.events.mappings.patterns import check_rule, compiled
from goodput_cli.events.mappings.records import RecordRule
from goodput_cli.events.text.marks import Said, What
from goodput_cli.events.text.rules import Rule


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
