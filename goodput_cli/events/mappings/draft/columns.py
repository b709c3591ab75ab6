"""Read the steps of a mapping as columns: lines that differ only in digits are read together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, Rows
from goodput_cli.events.mappings.declared import Declared
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry
from goodput_cli.events.mappings.draft.record_entries import DEPTH, RecordEntries
from goodput_cli.events.mappings.draft.text_entries import TextEntries
from goodput_cli.events.mappings.record_columns import ValueFields
from goodput_cli.events.mappings.rules import DeclaredLineRule, Mapped, RecordRule
from goodput_cli.events.mappings.rules import step_columns as columns_of_rule
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.text.log_lines import EventType, ParsedEvent
from goodput_cli.events.text.step_columns import AnyFields
from goodput_cli.events.text.templates import FirstRule

_STEPS = (EventType.STEP, EventType.STEP_START)
_FEW = 4
"""Minimum number of lines for which reading them together is faster."""
_FIELDS = frozenset(("step", "epoch", "of", "each", "elapsed", "total", "epochs"))
_S = 10**9


class EntriesOfSteps(NamedTuple):
    """Entries that are read as steps."""

    rows: I64
    """Their rows, ascending, int64[n]."""
    done: I64
    """Number of completed steps, int64[n]."""
    has_done: Mask
    """True if that is known, bool[n]."""
    each: F64
    """Seconds per step, float64[n]; nan: unknown."""
    elapsed: I64
    """Time (ns) since the clock in the line began, int64[n]; NO_TIME if it has none."""
    of: I64
    """Total number of steps, int64[n]; -1: unknown."""

    def take(self, kept: Mask | Rows) -> EntriesOfSteps:
        """Return some of the entries."""
        if kept.dtype == np.bool_ and kept.all():
            return self
        return EntriesOfSteps(
            self.rows[kept], self.done[kept], self.has_done[kept], self.each[kept], self.elapsed[kept], self.of[kept]
        )


def step_columns(found: Iterable[tuple[int, ParsedEvent]]) -> EntriesOfSteps:
    """Return the steps read in single entries. found: the row of each."""
    rows = [_columns_of(row, said) for row, said in found]
    kinds = (np.int64, np.int64, np.bool_, np.float64, np.int64, np.int64)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return EntriesOfSteps(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def _columns_of(row: int, said: ParsedEvent) -> tuple[int, int, bool, float, int, int]:
    done = 0 if said.type is EventType.START else said.step
    each = math.nan if said.step_time is None else said.step_time / _S
    elapsed, of = (None, None) if said.running is None else (said.running.elapsed, said.running.of)
    return row, done or 0, done is not None, each, NO_TIME if elapsed is None else elapsed, -1 if of is None else of


def read_columns(made: Mapped, entries: Entries) -> EntriesOfSteps:
    """Return the entries that a mapping reads as steps."""
    if isinstance(entries, TextEntries):
        kinds, single = _kinds_of_texts(made, entries)
    else:
        kinds, single = _kinds_of_records(made, entries)
    parts = []
    for kind in kinds:
        if made.declared.rule[kind.rule].event not in _STEPS:
            continue
        read, alone = _read_together(made.declared, kind, entries)
        parts.append(read)
        single += alone.tolist()
    parts = [one for one in (*parts, step_columns(_read_single(made, entries, single))) if len(one.rows)]
    if not parts:
        return step_columns([])
    found = parts[0] if len(parts) == 1 else EntriesOfSteps(*map(np.concatenate, zip(*parts, strict=True)))
    return found if (np.diff(found.rows) > 0).all() else found.take(np.argsort(found.rows, kind="stable"))


class _Kind(NamedTuple):
    """Entries that one rule reads alike."""

    rule: int
    rows: Rows
    fields: AnyFields
    """The fields of the rule."""


def _kinds_of_texts(made: Mapped, entries: TextEntries) -> tuple[list[_Kind], list[int]]:
    """Return texts by their templates, and the rows of entries that have to be read one by one."""
    rules = _rules_of_texts(made, entries.texts.key)
    if not rules:
        return [], list(range(len(entries)))
    reader = FirstRule(rules)
    kinds: list[_Kind] = []
    single: list[int] = []
    for rows in entries.rows_of_templates.values():
        is_long = entries.is_long[rows]
        single += rows[is_long].tolist()
        rows = rows[~is_long]
        if not len(rows):
            continue
        text = entries.text(int(rows[0]))
        if not any(rule.anchor in text for rule in rules):
            continue
        found = reader.fields_of(text) if len(rows) > _FEW else None
        if found is None:
            single += rows.tolist()
        elif found:
            assert isinstance(found[0].rule, DeclaredLineRule)
            kinds.append(_Kind(found[0].rule.number, rows, entries.fields(found[0], rows)))
    return kinds, single


def _rules_of_texts(made: Mapped, key: str) -> Sequence[DeclaredLineRule]:
    """Return the rules that read texts; empty if they read more than one text of an entry. key: that of the texts in
    JSON objects; "": they are lines."""
    if not key:
        return () if made.records else made.lines
    if made.lines or any(rule.pattern is None or rule.declared.where for rule in made.records):
        return ()
    if any(rule.paths["text"] != (key,) or not rule.paths.keys() <= {"text", "time"} for rule in made.records):
        return ()
    return [
        DeclaredLineRule(made.name, one.anchor, one.pattern, one.read, one.declared.text, one.also, number=one.number)
        for one in made.records
        if one.pattern is not None
    ]


def _kinds_of_records(made: Mapped, entries: Entries) -> tuple[list[_Kind], list[int]]:
    """Return records by the keys that rules look for, and the rows of entries that have to be read one by one."""
    paths = {path for rule in made.records for of in (*rule.paths.values(), (rule.time.field,)) for path in of}
    paths |= {path for rule in made.records for path in rule.declared.where}
    where = sorted({path for rule in made.records for path in rule.compared})
    is_plain = isinstance(entries, RecordEntries) and not made.lines and all(map(_is_flat, (*paths, *where)))
    if not is_plain or any(rule.pattern is not None for rule in made.records):
        return [], list(range(len(entries)))
    assert isinstance(entries, RecordEntries)
    kinds = []
    for rows in entries.alike(sorted(paths), where):
        first = entries.record(int(rows[0]))
        rule = next((rule for rule in made.records if rule.recognises(first)), None)
        if rule is not None:
            kinds.append(_Kind(rule.number, rows, _fields_of_records(rule, entries, rows)))
    return kinds, []


def _is_flat(path: str) -> bool:
    """Return True if values at a path are taken out of their containers."""
    return "[" not in path and path.count(".") < DEPTH


def _fields_of_records(rule: RecordRule, entries: RecordEntries, rows: Rows) -> ValueFields:
    first = entries.record(int(rows[0]))
    own = rule.time.field
    paths = {**rule.paths, own: rule.paths.get(own) or (own,)} if "time" not in rule.paths else rule.paths
    named = {name: next((path for path in of if first.get(path, "") != ""), "") for name, of in paths.items()}
    return ValueFields({name: entries.column(path, rows) for name, path in named.items() if path})


def _read_single(made: Mapped, entries: Entries, rows: Iterable[int]) -> Iterator[tuple[int, ParsedEvent]]:
    """Yield the steps of entries one by one. The time of an entry is known and is not read again."""
    reader = FirstRule(made.lines)
    for row in rows:
        rule, said = _read_entry(made, reader, entries[row])
        if said is not None and made.declared.rule[rule].event in _STEPS:
            yield row, said


def _read_entry(made: Mapped, reader: FirstRule[DeclaredLineRule], one: Entry) -> tuple[int, ParsedEvent | None]:
    """Return the index of the rule that matches an entry, and its event; (-1, None) if none matches."""
    if not made.lines or len(one.text) < len(one.line):
        read = read_line(made, one.line)
        return (-1, None) if read is None else (read.rule, read.event)
    reading = reader.read(one.text)
    return (-1, None) if reading is None else (reading.rule.number, reading.event)


def _read_together(declared: Declared, kind: _Kind, entries: Entries) -> tuple[EntriesOfSteps, Rows]:
    """Return what a rule reads in entries, and the rows of entries that have to be read one by one."""
    rule, rows = declared.rule[kind.rule], kind.rows
    time = declared.time_of(rule)
    is_plain = (_FIELDS | {time.field}).issuperset(kind.fields.names)
    read = columns_of_rule(declared, rule, kind.fields) if is_plain and len(rows) > _FEW else None
    if read is None:
        return step_columns([]), rows
    good = read.good
    if is_searched(time.format) or time.field in kind.fields.names:
        good &= entries.timed[rows]
    count = len(rows)
    each = np.broadcast_to(math.nan, count) if read.step_time is None else read.step_time / _S
    elapsed = np.broadcast_to(np.int64(NO_TIME), count) if read.elapsed is None else read.elapsed
    of = read.same.get("of", np.broadcast_to(np.int64(-1), count))
    found = EntriesOfSteps(rows, read.step, np.broadcast_to(np.True_, count), each, elapsed, of)
    return found.take(good), rows[~good]
