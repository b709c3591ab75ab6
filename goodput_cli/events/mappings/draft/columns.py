"""Read the steps of a mapping as columns: lines that differ only in digits are read together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, Rows, alike
from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.mappings.draft.cells import Cells, cells_of
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry
from goodput_cli.events.mappings.draft.records import DEPTH
from goodput_cli.events.mappings.draft.text_entries import TextEntries, bytes_of
from goodput_cli.events.mappings.rules import STEPPED, DeclaredLineRule, Mapped, RecordRule
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, ParsedEvent
from goodput_cli.events.text.templates import Fields, FirstRule
from goodput_cli.events.values import epoch_column

_STEPS = (EventType.STEP, EventType.STEP_START)
_FEW = 4
"""Minimum number of lines for which reading them together is faster."""
_FIELDS = frozenset(("step", "epoch", "of", "each", "elapsed", "total", "epochs"))
_LONGEST_DURATION = 1e9
_S = 10**9


class StepColumns(NamedTuple):
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

    def take(self, kept: Mask | Rows) -> StepColumns:
        """Return some of the entries."""
        if kept.dtype == np.bool_ and kept.all():
            return self
        return StepColumns(
            self.rows[kept], self.done[kept], self.has_done[kept], self.each[kept], self.elapsed[kept], self.of[kept]
        )


def step_columns(found: Iterable[tuple[int, ParsedEvent]]) -> StepColumns:
    """Return the steps read in single entries. found: the row of each."""
    rows = [_columns_of(row, said) for row, said in found]
    kinds = (np.int64, np.int64, np.bool_, np.float64, np.int64, np.int64)
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return StepColumns(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def _columns_of(row: int, said: ParsedEvent) -> tuple[int, int, bool, float, int, int]:
    done = 0 if said.type is EventType.START else said.step
    each = math.nan if said.step_time is None else said.step_time / _S
    elapsed, of = (None, None) if said.running is None else (said.running.elapsed, said.running.of)
    return row, done or 0, done is not None, each, NO_TIME if elapsed is None else elapsed, -1 if of is None else of


def read_columns(made: Mapped, entries: Entries) -> StepColumns:
    """Return the entries that a mapping reads as steps."""
    if isinstance(entries, TextEntries):
        kinds, single = _kinds_of_texts(made, entries)
    else:
        kinds, single = _kinds_of_records(made, entries)
    parts = []
    for kind in kinds:
        if made.declared.rule[kind.rule].event not in _STEPS:
            continue
        if len(kind.rows) > _FEW:
            read, good = _read_together(made.declared, kind, entries)
            parts.append(read.take(good))
            single += kind.rows[~good].tolist()
        else:
            single += kind.rows.tolist()
    parts.append(step_columns(_read_single(made, entries, single)))
    found = StepColumns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return found if (np.diff(found.rows) > 0).all() else found.take(np.argsort(found.rows, kind="stable"))


class _Kind(NamedTuple):
    """Entries that one rule reads alike."""

    rule: int
    rows: Rows
    fields: Callable[[], Mapping[str, Cells]]
    """Gives the fields of the rule."""


def _kinds_of_texts(made: Mapped, entries: TextEntries) -> tuple[list[_Kind], list[int]]:
    """Return texts by their templates, and the rows of entries that have to be read one by one."""
    rules = _rules_of_texts(made, entries.texts.key)
    if not rules:
        return [], list(range(len(entries)))
    reader = FirstRule(rules)
    kinds: list[_Kind] = []
    single: list[int] = []
    may_read = entries.containing({rule.anchor for rule in rules})
    single += may_read[entries.is_long[may_read]].tolist()
    may_read = may_read[~entries.is_long[may_read]]
    for places in alike(entries.template[may_read]).values():
        rows = may_read[places]
        found = reader.fields_of(entries.text(int(rows[0]))) if len(rows) > _FEW else None
        if found is None:
            single += rows.tolist()
        elif found:
            assert isinstance(found[0].rule, DeclaredLineRule)
            kinds.append(_Kind(found[0].rule.number, rows, partial(_fields_of_texts, found[0], entries, rows)))
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


def _fields_of_texts(found: Fields, entries: TextEntries, rows: Rows) -> Mapping[str, Cells]:
    text = entries.text(int(rows[0]))
    spans = {
        str(name): np.array([[bytes_of(text[: place.start]), bytes_of(text[: place.stop])]])
        for name, place in found.places.items() if place is not None
    }  # fmt: skip
    return {name: entries.cells(rows, span) for name, span in spans.items()}


def _kinds_of_records(made: Mapped, entries: Entries) -> tuple[list[_Kind], list[int]]:
    """Return records by the keys that rules look for, and the rows of entries that have to be read one by one."""
    paths = sorted({path for rule in made.records for of in (*rule.paths.values(), (rule.time.field,)) for path in of})
    where = sorted({path for rule in made.records for path in rule.declared.where})
    if made.lines or not all(map(_is_flat, (*paths, *where))) or any(rule.pattern is not None for rule in made.records):
        return [], list(range(len(entries)))
    of_kind: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, one in enumerate(entries):
        values = one.values
        of_kind[
            *[values.get(path, "") != "" for path in paths],
            *[(type(values.get(path)), values.get(path)) for path in where],
        ].append(row)
    kinds = []
    for some in of_kind.values():
        first, rows = entries[some[0]].values, np.array(some, dtype=np.int64)
        rule = next((rule for rule in made.records if rule.recognises(first)), None)
        if rule is not None:
            kinds.append(_Kind(rule.number, rows, partial(_fields_of_records, rule, entries, rows)))
    return kinds, []


def _is_flat(path: str) -> bool:
    """Return True if values at a path are taken out of their containers."""
    return "[" not in path and path.count(".") < DEPTH


def _fields_of_records(rule: RecordRule, entries: Entries, rows: Rows) -> Mapping[str, Cells]:
    records = [entries[row].values for row in rows.tolist()]
    own = rule.time.field
    paths = {**rule.paths, own: rule.paths.get(own) or (own,)} if "time" not in rule.paths else rule.paths
    named = {name: next((path for path in of if records[0].get(path, "") != ""), "") for name, of in paths.items()}
    return {name: cells_of([str(one[path]) for one in records]) for name, path in named.items() if path}


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


def _read_together(declared: Declared, kind: _Kind, entries: Entries) -> tuple[StepColumns, Mask]:
    """Return what a rule reads in entries, and bool[n], whether an entry could be read together with others."""
    rule, rows, count = declared.rule[kind.rule], kind.rows, len(kind.rows)
    cells = kind.fields()
    time = declared.time_of(rule)
    good = np.full(count, "step" in cells and (_FIELDS | {time.field}).issuperset(cells))
    if is_searched(time.format) or time.field in cells:
        good &= entries.timed[rows]
    none, zero = np.full(count, -1), np.zeros(count, dtype=np.int64)
    epoch, of, done = none, none, zero
    if good.any():
        done = _whole(cells["step"], good) + (0 if rule.step is None else rule.step.add)
        done += declared.steps == "index" and rule.event in STEPPED
    if "epoch" in cells:
        epoch = np.maximum(0, _whole(cells["epoch"], good) - (1 if rule.epoch is None else rule.epoch.first))
    if "of" in cells:
        of = _whole(cells["of"], good)
    elif rule.epoch is not None and rule.epoch.steps is not None:
        of = np.full(count, rule.epoch.steps)
    done = np.where((epoch >= 0) & (of >= 0), done + epoch * of, done)
    good &= (done >= 0) & (done <= MAX_STEP)
    elapsed = _duration("elapsed", rule, cells["elapsed"], good) if "elapsed" in cells else np.full(count, NO_TIME)
    each = np.full(count, math.nan)
    if "each" in cells:
        took = _duration("each", rule, cells["each"], good)
        each = each if rule.each is not None and rule.each.of in ("last", "all") else took / _S
    return StepColumns(rows, done, np.ones(count, dtype=np.bool_), each, elapsed, of), good


def _whole(cells: Cells, good: Mask) -> I64:
    """Return integers, int64[n]. good: set to False for invalid texts."""
    parsed = cells.parsed()
    found, rest = np.divmod(parsed.digits, parsed.power)
    good &= parsed.good & ~parsed.negative & (rest == 0)
    return found


def _duration(name: str, rule: DeclaredRule, cells: Cells, good: Mask) -> I64:
    """Return durations in ns, int64[n]. good: set to False for invalid texts."""
    parsed = cells.parsed()
    unit = rule.seconds_a_unit(name)
    good &= parsed.good & ~parsed.negative & (unit > 0)
    seconds = np.where(good, parsed.digits / parsed.power * unit, 0.0)
    good &= seconds < _LONGEST_DURATION
    ns, _ = epoch_column(np.where(good, seconds, 0.0).tolist())
    return ns
