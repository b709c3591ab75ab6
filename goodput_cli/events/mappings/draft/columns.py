"""What a mapping reads of steps, as columns: lines that differ in nothing but digits are read together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, Rows, alike
from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.mappings.draft.cells import Cells
from goodput_cli.events.mappings.draft.entries import NO_TIME, Entries, Entry
from goodput_cli.events.mappings.draft.text_entries import LONGEST, TextEntries, bytes_of
from goodput_cli.events.mappings.rules import STEPPED, DeclaredLineRule, Mapped
from goodput_cli.events.mappings.samples import read_line
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, ParsedEvent
from goodput_cli.events.text.templates import Fields, FirstRule
from goodput_cli.events.values import epoch_column

_STEPS = (EventType.STEP, EventType.STEP_START)
_FEW = 4
"""So many lines are read one by one sooner than together."""
_FIELDS = frozenset(("step", "epoch", "of", "each", "elapsed"))
_LONGEST_DURATION = 1e9
_S = 10**9


class StepColumns(NamedTuple):
    """Entries that are read as steps."""

    rows: I64
    """int64[n]: their rows, ascending."""
    done: I64
    """int64[n]: how many steps are done."""
    has_done: Mask
    """bool[n]: whether that is known."""
    each: F64
    """float64[n]: seconds of one step; nan: unknown."""
    elapsed: I64
    """int64[n]: ns since the clock in the line began; NO_TIME: it has none."""
    of: I64
    """int64[n]: of how many steps it is one; -1: unknown."""

    def take(self, kept: Mask | Rows) -> StepColumns:
        """Return some of the entries."""
        return StepColumns(
            self.rows[kept], self.done[kept], self.has_done[kept], self.each[kept], self.elapsed[kept], self.of[kept]
        )


def step_columns(found: Iterable[tuple[int, ParsedEvent]]) -> StepColumns:
    """Return what was read in single entries. found: the row of each."""
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
    if not isinstance(entries, TextEntries) or not made.lines or made.records:
        return step_columns(_read_single(made, entries, range(len(entries))))
    reader = FirstRule(made.lines)
    parts: list[StepColumns] = []
    single: list[int] = []
    may_read = entries.containing({rule.anchor for rule in made.lines})
    for template, places in alike(entries.template[may_read]).items():
        rows = may_read[places]
        fields = reader.fields_of(entries.text(int(rows[0])))
        if len(rows) <= _FEW or fields is None or entries.templates[template].length >= LONGEST:
            single += rows.tolist()
        elif fields and made.declared.rule[_rule(fields[0]).number].event in _STEPS:
            read, good = _read_together(made.declared, fields[0], entries, rows)
            parts.append(read.take(good))
            single += rows[~good].tolist()
    parts.append(step_columns(_read_single(made, entries, single)))
    found = StepColumns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return found.take(np.argsort(found.rows, kind="stable"))


def _rule(fields: Fields) -> DeclaredLineRule:
    assert isinstance(fields.rule, DeclaredLineRule)
    return fields.rule


def _read_single(made: Mapped, entries: Entries, rows: Iterable[int]) -> Iterator[tuple[int, ParsedEvent]]:
    """Yield what is read as steps, entry by entry. The time of an entry is known, and is not looked for again."""
    reader = FirstRule(made.lines)
    for row in rows:
        rule, said = _read_entry(made, reader, entries[row])
        if said is not None and made.declared.rule[rule].event in _STEPS:
            yield row, said


def _read_entry(made: Mapped, reader: FirstRule[DeclaredLineRule], one: Entry) -> tuple[int, ParsedEvent | None]:
    """Return the number of the rule that reads an entry, and what it says; (-1, None): none does."""
    if not made.lines or len(one.text) < len(one.line):
        read = read_line(made, one.line)
        return (-1, None) if read is None else (read.rule, read.event)
    reading = reader.read(one.text)
    return (-1, None) if reading is None else (reading.rule.number, reading.event)


def _read_together(
    declared: Declared, fields: Fields, entries: TextEntries, rows: Rows
) -> tuple[StepColumns, Mask]:  # fmt: skip
    """Return what a rule reads in the entries of a template, and bool[n], whether an entry could be read together with
    others."""
    rule = declared.rule[_rule(fields).number]
    text, count = entries.text(int(rows[0])), len(rows)
    cells = {
        str(name): entries.cells(rows, np.array([[bytes_of(text[: place.start]), bytes_of(text[: place.stop])]]))
        for name, place in fields.places.items() if place is not None
    }  # fmt: skip
    time = declared.time_of(rule)
    good = np.full(count, "step" in cells and _FIELDS.issuperset(cells) and time.field not in cells)
    if is_searched(time.format):
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
    """int64[n]: whole numbers. good: False where a text is none."""
    parsed = cells.parsed
    good &= parsed.good & (parsed.scale == 0) & ~parsed.negative
    return parsed.digits


def _duration(name: str, rule: DeclaredRule, cells: Cells, good: Mask) -> I64:
    """int64[n]: durations in ns. good: False where a text is none."""
    parsed = cells.parsed
    unit = rule.seconds_a_unit(name)
    good &= parsed.good & ~parsed.negative & (unit > 0)
    seconds = np.where(good, parsed.digits / 10.0**parsed.scale * unit, 0.0)
    good &= seconds < _LONGEST_DURATION
    ns, _ = epoch_column(np.where(good, seconds, 0.0).tolist())
    return ns
