"""Make rules for lines and records from a declared mapping.

The records of a mapping are a log format (see `Format`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.collected import CollectedFormat
from goodput_cli.events.mappings.declared import (
    Condition,
    Declared,
    DeclaredAt,
    DeclaredRule,
    JobOf,
    Time,
    Wanted,
)
from goodput_cli.events.mappings.fields import PER, STEPPED, is_of_some, meaning
from goodput_cli.events.mappings.patterns import cause_row, check_rule, compiled
from goodput_cli.events.mappings.record_columns import RecordStretch, StepReader, record_stretches
from goodput_cli.events.mappings.times import is_searched
from goodput_cli.events.mappings.toml import Mistake, TomlLocation
from goodput_cli.events.signs import UntimedRecoveryEvent
from goodput_cli.events.text.causes import CauseRow
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.interleaved_runs import REMEMBERED, InterleavedRunDetector, LineRun
from goodput_cli.events.text.line_timestamps import Timestamp, Zone, strip_prefixes
from goodput_cli.events.text.log_lines import (
    ENDS,
    MAX_STEP,
    EventType,
    LineReading,
    LineRule,
    LogLine,
    ParsedEvent,
    Pattern,
    event_of,
    readings,
)
from goodput_cli.events.text.sign_lines import signs_in
from goodput_cli.events.text.step_columns import AnyFields, StepColumns

Record = Mapping[str, Any]
_MISSING = object()
_NEEDED = ("step", "time", "text")
_LONGEST = 1 << 16
_PART = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, eq=False)
class DeclaredLineRule(LineRule):
    """A rule of a mapping for one kind of line."""

    number: int = 0
    """Index among the rules of its mapping."""


@dataclass(frozen=True, eq=False)
class RecordRule:
    """A rule for one kind of JSON object or table row."""

    number: int
    """Index among the rules of its mapping."""
    declared: DeclaredRule
    mapping: Declared
    time: Time
    """Format of its times."""
    pattern: Pattern | None = None
    """Pattern of the text in it."""
    anchor: str = ""

    @property
    def also(self) -> bool:
        """Return True if other rules may read the same record."""
        return self.declared.also

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Return the paths of each field; the first path that exists counts."""
        return self.declared.paths

    def step_reader(self, keys: frozenset[str]) -> StepReader | None:
        """Return the reader of columns for records with some keys; None if they are read one by one."""
        own = self.time.field
        paths = {own: (own,), **self.paths, **{name: (name,) for name in self.declared.amounts_inside}}
        found = {name: next((path for path in of if first_of(path) in keys), "") for name, of in paths.items()}
        key_of = {name: key for name, key in found.items() if key}
        time = key_of.pop(own, "")
        is_plain = self.pattern is None and _is_plain_step(self.mapping, self.declared, self.time)
        if not is_plain or not time or self.time.seconds or not keys.issuperset((time, *key_of.values())):
            return None
        columns = partial(_record_columns, self.mapping, self.declared, self.time)
        return StepReader(self.read, columns, key_of, time, self.time.format)

    @property
    def known(self) -> frozenset[str]:
        """Return the first parts of all paths."""
        return frozenset(first_of(path) for paths in self.paths.values() for path in paths)

    @cached_property
    def needed(self) -> list[Sequence[str]]:
        """Return the alternative paths of each required field."""
        return [self.paths[name] for name in needed_fields(self.declared)]

    @property
    def compared(self) -> frozenset[str]:
        """Return the paths whose values decide whether it reads a record: not only whether it has them."""
        return frozenset(path for path, wanted in self.declared.where.items() if wanted != "any")

    def has_keys(self, record: Record) -> bool:
        """Return True if a record has the required keys, whatever their values."""
        firsts = [{first_of(path) for path in paths} for paths in self.needed]
        where = {first_of(path) for path in self.declared.where}
        return all(not one.isdisjoint(record) for one in firsts) and all(one in record for one in where)

    def recognises(self, record: Record) -> bool:
        """Return True if a record has the fields in `keys` and satisfies `where`."""
        if any(all(value_at(record, path) is _MISSING for path in paths) for paths in self.needed):
            return False
        if not all(_is(value_at(record, path), wanted) for path, wanted in self.declared.where.items()):
            return False
        return self.pattern is None or self._match(record) is not None

    def read(self, record: Record) -> ParsedEvent | None:
        """Return the event of a record; None to ignore it. Raises BadValueError."""
        if self.declared.event is EventType.IGNORE:
            return None
        fields = {name: str(value) for name, value in self._values(record) if value is not None and name != "text"}
        if self.pattern is not None:
            found = self._match(record)
            fields |= {name: value for name, value in found.groupdict().items() if value is not None}
        event = meaning(self.mapping, self.declared, self.time, fields)
        event.common = _is_common(self.mapping, self.declared)
        return event

    def _match(self, record: Record) -> Any:
        text = next((value for path in self.paths["text"] if isinstance(value := value_at(record, path), str)), "")
        if self.pattern is None or self.anchor not in text:
            return None
        return self.pattern.search(strip_prefixes(text[:_LONGEST]).text)

    def _values(self, record: Record) -> Sequence[tuple[str, Any]]:
        paths = {**self.paths}
        own = self.time.field
        if own != "time" and "time" not in paths:
            paths[own] = (own,)
        paths |= {name: (name,) for name in self.declared.amounts_inside}
        return [
            (name, next((one for one in (value_at(record, path) for path in options) if one is not _MISSING), None))
            for name, options in paths.items()
        ]


def needed_fields(rule: DeclaredRule) -> list[str]:
    """Return the fields that a record needs to match a rule."""
    return [name for name in rule.keys if name in _NEEDED or len(rule.keys) == 1]


def record_readings(rules: Iterable[RecordRule], record: Record) -> Iterator[LineReading[RecordRule]]:
    """Yield the results of rules for a record."""
    return readings((rule, record) for rule in rules if rule.recognises(record))


def first_of(path: str) -> str:
    """Return the first part of a path."""
    return path.split(".", 1)[0].split("[", 1)[0]


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path such as `a.b[0].c`, or of the key that equals the path."""
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
    """Return True if values are equal and of one kind: `true` does not equal 1. Cells of a table are text."""
    if isinstance(value, str) and not isinstance(wanted, str):
        return value == (str(wanted).lower() if isinstance(wanted, bool) else str(wanted))
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


@dataclass(frozen=True, eq=False)
class Mapped:
    """A mapping with compiled patterns, ready to read lines and records."""

    declared: Declared
    place: TomlLocation
    lines: tuple[DeclaredLineRule, ...]
    records: tuple[RecordRule, ...]
    causes: tuple[CauseRow, ...] = ()
    """Rows of evidence."""
    signs: tuple[DeclaredLineRule, ...] = ()
    """Rules for moments of recoveries, tried in addition to the others."""
    signs_of_records: tuple[RecordRule, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the format."""
        return self.declared.name

    def location_of(self, rule: int) -> TomlLocation:
        """Return the location of a rule. rule: its index."""
        return self.place.of("rule", rule)


def compile_mapping(mapping: DeclaredAt) -> Mapped:
    """Return the rules of a mapping without checking its samples. Raises UsageError with the location of a mistake."""
    declared, place = mapping
    lines: list[DeclaredLineRule] = []
    records: list[RecordRule] = []
    for row, rule in enumerate(declared.rule):
        try:
            if rule.of_records:
                records.append(_record_rule(row, declared, rule))
            else:
                lines.append(_line_rule(row, declared, rule))
        except Mistake as mistake:
            raise place.of("rule", row).error_of(mistake) from None
    causes: list[CauseRow] = []
    for row, cause in enumerate(declared.cause):
        try:
            causes.append(cause_row(f"{declared.name}:{row + 1}", cause))
        except Mistake as mistake:
            raise place.of("cause", row).error_of(mistake) from None
    signs, own = ([one for one in lines if _is_sign(declared, one.number) is wanted] for wanted in (True, False))
    of_records, others = ([one for one in records if _is_sign(declared, one.number) is kind] for kind in (True, False))
    return Mapped(declared, place, tuple(own), tuple(others), tuple(causes), tuple(signs), tuple(of_records))


def _is_sign(declared: Declared, number: int) -> bool:
    return declared.rule[number].event is EventType.SIGN


def _record_rule(row: int, declared: Declared, rule: DeclaredRule) -> RecordRule:
    time = declared.time_of(rule)
    if "text" in rule.keys:
        return RecordRule(row, rule, declared, time, *compiled(rule, time))
    if rule.event in (EventType.STEP, EventType.STEP_START) and "step" not in rule.keys:
        raise Mistake("a `step` rule needs a `step` among its `keys`", "keys")
    check_rule(rule, time, frozenset(rule.keys))
    return RecordRule(row, rule, declared, time)


def _is_common(declared: Declared, rule: DeclaredRule) -> bool:
    """Return True if other programs print the lines of a rule too, and another rule reads unambiguous lines."""
    return not rule.own and any(other.own for other in declared.rule)


def _line_rule(row: int, declared: Declared, rule: DeclaredRule) -> DeclaredLineRule:
    time, common = declared.time_of(rule), _is_common(declared, rule)

    def read(found: Any) -> ParsedEvent | None:
        if rule.event is EventType.IGNORE:
            return None
        fields = {name: value for name, value in found.groupdict().items() if value is not None}
        event = meaning(declared, rule, time, fields, found.string)
        event.common = common
        return event

    pattern, anchor = compiled(rule, time)
    split = declared.split is not None
    columns = partial(_record_columns, declared, rule, time) if _is_plain_step(declared, rule, time) else None
    return DeclaredLineRule(declared.name, anchor, pattern, read, rule.text, rule.also, split, columns, row)


def _is_plain_step(declared: Declared, rule: DeclaredRule, time: Time) -> bool:
    """Return True if the lines of a rule are records of steps that contain no more than numbers."""
    if rule.event is not EventType.STEP or declared.steps == "start" or rule.edge != "point":
        return False
    is_counted = rule.elapsed is not None or is_of_some(rule)
    has_more = rule.phases or rule.phase_pattern is not None or rule.point is not None or rule.state is not None
    return not (is_counted or has_more or is_searched(time.format))


_OF_OTHER_LINES = frozenset({"label", "rank", "job", "elapsed", "took", "end", "host", "time"})
"""Fields of lines that are read one by one."""
_COUNTS = ("step", "total", "epochs", "epoch", "of")
_MOST_EPOCHS = 1 << 31
"""Lines with more epochs, or more steps of one, are read one by one."""


def _record_columns(declared: Declared, rule: DeclaredRule, time: Time, found: AnyFields) -> StepColumns | None:
    """Return what `meaning` makes of lines of one template, as columns; None if they are read one by one."""
    own_job = {declared.job.field} if isinstance(declared.job, JobOf) else set()
    is_plain = found.names.isdisjoint(_OF_OTHER_LINES | {time.field} | own_job)
    return step_columns(declared, rule, found) if is_plain else None


def step_columns(declared: Declared, rule: DeclaredRule, found: AnyFields) -> StepColumns | None:
    """Return the steps and amounts in lines or records with the same fields, as columns; None if these are not plain
    numbers."""
    names = found.names
    if "step" not in names:
        return None
    columns = _counted_columns(declared, rule, {name: found.whole(name) for name in _COUNTS if name in names})
    if columns is None:
        return None
    times = {name: _amounts(rule, name, found) for name in ("each", "elapsed") if name in names}
    if any(one is None for one in times.values()):
        return None
    columns.elapsed = times.get("elapsed")
    columns.step_time = None if is_of_some(rule) else times.get("each")
    works = ((name + PER[one.per], one.field or name) for name, one in rule.works)
    for name, own in (*works, *rule.size.items()):
        if own in names:
            values = found.decimal(own)
            if values is None:
                return None
            columns.metrics[name] = np.where(values > 0, values, np.nan)
    return columns


def _amounts(rule: DeclaredRule, name: str, found: AnyFields) -> I64 | None:
    """Return durations in ns, or the times of rates."""
    unit = rule.seconds_a_unit(name)
    return found.duration(name, unit) if unit > 0 else found.time_per(name)


def _counted_columns(declared: Declared, rule: DeclaredRule, numbers: Mapping[str, I64 | None]) -> StepColumns | None:
    """Return the steps of records, and what they are counted within. numbers: the fields that the lines have."""
    same = {name: values for name, values in numbers.items() if values is not None}
    if len(same) < len(numbers):
        return None
    step = same.pop("step") + (0 if rule.step is None else rule.step.add)
    step = step + (declared.steps == "index" and rule.event in STEPPED)
    if rule.epoch is not None and rule.epoch.steps is not None:
        same.setdefault("of", np.full(len(step), rule.epoch.steps))
    good = np.ones(len(step), dtype=np.bool_)
    for name in same.keys() - {"total"}:
        good &= same[name] < _MOST_EPOCHS
    if "epoch" in same:
        same["epoch"] = np.maximum(same["epoch"] - (1 if rule.epoch is None else rule.epoch.first), 0)
        same.pop("total", None)
        if "of" in same:
            step = step + np.where(good, same["epoch"] * same["of"], 0)
        if "of" in same and "epochs" in same:
            same["total"] = np.where(good, same["of"] * same["epochs"], 0)
    good &= (step > 0) & (step <= MAX_STEP)
    if "total" in same:
        good &= step != same["total"]
    return StepColumns(step, good, same=same)


class MappedRecords(CollectedFormat):
    """Reads the JSON objects and table rows that a mapping declares."""

    restores_are_inferred = False
    reads_columns = True
    """False to read each record alone, for tests."""

    def __init__(self, made: Mapped) -> None:
        self.name = made.name
        self._rules, self._signs = made.records, made.signs_of_records
        self.keys = frozenset().union(*(rule.known for rule in (*self._rules, *self._signs)))

    def recognises(self, record: Mapping[str, Any]) -> bool:
        """Return True if some rule finds its keys; `where` is checked when the record is read."""
        return any(rule.has_keys(record) for rule in (*self._rules, *self._signs))

    def translate(self, records: Records, output: Output) -> Mask:
        """Collect a log line for each rule that reads a record; return True for the matched records."""
        used = np.zeros(len(records), dtype=np.bool_)
        log_lines: list[LogLine] = []
        signs: list[UntimedRecoveryEvent] = []
        turns = output.texts.turns.setdefault((records.origin.source, self.name), InterleavedRunDetector())
        stretches = {int(one.rows[0]): one for one in self._stretches(records)}
        is_column = np.zeros(len(records), dtype=np.bool_)
        last: LogLine | None = None
        for at in range(len(records)):
            one = stretches.get(at)
            if one is not None and last is not None and _keep_columns(one, last, records, turns):
                is_column[one.rows] = True
            if is_column[at]:
                continue
            found = self._read(records, at, output)
            used[at] = found is not None
            for log_line in found or ():
                signs += signs_in([log_line])
                if event_of(log_line).type is not EventType.SIGN:
                    log_lines.append(log_line)
                    last = log_line if event_of(log_line).type is EventType.STEP else last
                    _follow(turns, records.records[at], log_line.line, event_of(log_line))
        used |= is_column
        output.texts.add(records.origin.source, TextPart(log_lines, interleaved=turns.found(), signs=signs))
        return used

    def _read(self, records: Records, at: int, output: Output) -> list[LogLine] | None:
        """Return the log lines of a record; None if no rule matches it."""
        record, found = records.records[at], list[LogLine]()
        every = [*record_readings(self._rules, record), *record_readings(self._signs, record)]
        for reading in every:
            if reading.refused is not None:
                reason = output.notes.bounded("bad_value", str(reading.refused))
                output.report("bad_value", f"{reason}; dropped", records, [at])
            elif reading.event is not None:
                stamp, reading.event.at = reading.event.at, None  # It is the time of the log line.
                if stamp is None and records.stamp[at] >= 0:
                    stamp = Timestamp(int(records.stamp[at]), Zone.EXACT, False)
                found.append(LogLine(int(records.origin.line[at]), "", stamp, reading.event))
        return found if every else None

    def _stretches(self, records: Records) -> Iterator[RecordStretch]:
        """Yield the stretches of records of steps that one rule reads, and no other one could."""
        rules = [rule for rule in (*self._rules, *self._signs) if rule.has_keys(dict.fromkeys(records.keys))]
        paths = sorted({path for rule in rules for path in (*rule.declared.where, *chain(*rule.paths.values()))})
        paths = [path for path in paths if first_of(path) in records.keys]
        texts = [path for path in paths if path in records.keys and "" in records.column(path)]
        if not self.reads_columns or records.loose or texts or any(rule.pattern is not None for rule in rules):
            return
        where = sorted({path for rule in rules for path in rule.compared})
        if not all(path in records.keys for path in (*paths, *where)):
            return

        def reader_of(record: Record) -> StepReader | None:
            own = next((rule for rule in self._rules if rule.recognises(record)), None)
            is_sign = any(rule.recognises(record) for rule in self._signs)
            return None if own is None or own.also or is_sign else own.step_reader(records.keys)

        yield from record_stretches(records, where, reader_of)


def _keep_columns(one: RecordStretch, before: LogLine, records: Records, turns: InterleavedRunDetector) -> bool:
    """Add a stretch to the log line of the record before it, and follow its steps; return False if its records have to
    be read one by one."""
    stretch, said = one.stretch, event_of(before)
    follows = before.line == one.line_before and said.step == stretch.first - stretch.stride
    if not follows or before.inner is not None or turns.goes_on(stretch.steps[:2]) < 2:
        return False
    rows = one.rows[-REMEMBERED:].tolist()
    turns.take_run(LineRun(stretch.line, stretch.steps, lambda at: _text_of(records.records[rows[at]])))
    before.inner = stretch
    return True


def _text_of(record: Record) -> str:
    """Return the values of a record as a line."""
    return " ".join(f"{key}={value}" for key, value in record.items())


def _follow(turns: InterleavedRunDetector, record: Record, line: int, event: ParsedEvent) -> None:
    """Follow the writers of step records."""
    if event.type is EventType.STEP and event.step is not None and not event.rank:
        turns.take(line, event.step, _text_of(record))
    elif event.type in (EventType.START, EventType.RESUME, EventType.RESTORE, *ENDS):
        turns.restart()
