"""Make rules for lines and records from a declared mapping, and interpret their fields.

The records of a mapping are a log format (see `Format`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, Mask
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.formats.collected import CollectedFormat
from goodput_cli.events.inside import (
    JOB,
    LONGEST_NAME,
    MOST_PHASES,
    MOST_RANKS,
    STEP_TIME,
    PhaseName,
    PhaseTime,
    safe_name,
)
from goodput_cli.events.mappings.declared import (
    UNITS,
    Condition,
    Declared,
    DeclaredAt,
    DeclaredRule,
    JobOf,
    Time,
    Wanted,
)
from goodput_cli.events.mappings.patterns import cause_row, check_rule, compiled, phase_pattern
from goodput_cli.events.mappings.times import find_time, is_searched, read_time
from goodput_cli.events.mappings.toml import Mistake, TomlLocation
from goodput_cli.events.schema import RATE_SECONDS, Edge, SaveState
from goodput_cli.events.signs import RecoveryEventText, RecoveryPhase, UntimedRecoveryEvent
from goodput_cli.events.text.causes import CauseRow
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.interleaved_runs import InterleavedRunDetector
from goodput_cli.events.text.line_timestamps import Timestamp, TimestampError, Zone, strip_prefixes
from goodput_cli.events.text.log_lines import (
    ENDS,
    MAX_STEP,
    NO_STEP_YET,
    BadValueError,
    EventType,
    LineReading,
    LineRule,
    LogLine,
    ParsedEvent,
    Pattern,
    Running,
    duration,
    readings,
    save_detail,
    whole,
)
from goodput_cli.events.text.sign_lines import rank_of, sign, signs_in
from goodput_cli.events.text.step_columns import AnyFields, StepColumns
from goodput_cli.events.values import clock_seconds, number, round_to_us
from goodput_cli.vocabulary.text import safe
from goodput_cli.vocabulary.when import NS_PER_SECOND

Record = Mapping[str, Any]
_MISSING = object()
_NEEDED = ("step", "time", "text")
STEPPED = (
    EventType.STEP,
    EventType.SAVE,
    EventType.SAVED,
    EventType.RESTORE,
    EventType.RESUME,
    EventType.ROLLBACK,
    EventType.EVAL,
    EventType.ALIVE,
)
"""Events whose `step` is the number of completed steps, one more than the index of the last."""
_EDGES = {"point": Edge.POINT, "begin": Edge.BEGIN, "end": Edge.END}
_FASTEST = 1e300
"""Maximum rate, 1/s; higher ones are invalid."""
_LONGEST = 1 << 16
_DIGITS = 8
"""Of a rank."""
_SHOWN = 40
"""Number of characters quoted from a log."""
_SURELY_A_STEP = 15
"""Number of digits that cannot exceed `MAX_STEP`."""
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

    @property
    def known(self) -> frozenset[str]:
        """Return the first parts of all paths."""
        return frozenset(first_of(path) for paths in self.paths.values() for path in paths)

    @cached_property
    def needed(self) -> list[Sequence[str]]:
        """Return the alternative paths of each required field."""
        return [self.paths[name] for name in needed_fields(self.declared)]

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
    is_counted = rule.elapsed is not None or _is_of_some(rule)
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
    columns.step_time = None if _is_of_some(rule) else times.get("each")
    works = ((name + _PER[one.per], one.field or name) for name, one in rule.works)
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
        for at, record in enumerate(records.records):
            found = [*record_readings(self._rules, record), *record_readings(self._signs, record)]
            for reading in found:
                used[at] = True
                if reading.refused is not None:
                    reason = output.notes.bounded("bad_value", str(reading.refused))
                    output.report("bad_value", f"{reason}; dropped", records, [at])
                elif reading.event is not None:
                    stamp, reading.event.at = reading.event.at, None  # It is the time of the log line.
                    if stamp is None and records.stamp[at] >= 0:
                        stamp = Timestamp(int(records.stamp[at]), Zone.EXACT, False)
                    log_line = LogLine(int(records.origin.line[at]), "", stamp, reading.event)
                    signs += signs_in([log_line])
                    if reading.event.type is not EventType.SIGN:
                        log_lines.append(log_line)
                        _follow(turns, record, log_line.line, reading.event)
        output.texts.add(records.origin.source, TextPart(log_lines, interleaved=turns.found(), signs=signs))
        return used


def _follow(turns: InterleavedRunDetector, record: Record, line: int, event: ParsedEvent) -> None:
    """Follow the writers of step records."""
    if event.type is EventType.STEP and event.step is not None and not event.rank:
        turns.take(line, event.step, " ".join(f"{key}={value}" for key, value in record.items()))
    elif event.type in (EventType.START, EventType.RESUME, EventType.RESTORE, *ENDS):
        turns.restart()


class BadFieldError(BadValueError):
    """Raised for an invalid value; args: a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def meaning(
    declared: Declared, rule: DeclaredRule, time: Time, fields: Mapping[str, str], line: str = ""
) -> ParsedEvent:
    """Return the event of fields, with the time in the mapping's format in a field or the line.

    time: its format. line: text that may contain it; empty if none. Raises BadFieldError.
    """
    event = ParsedEvent(declared.name, rule.event, edge=_EDGES[rule.edge], begins=rule.begins, once=rule.once)
    event.label, event.rank = rule.label or fields.get("label", ""), fields.get("rank", "")
    if isinstance(declared.job, str):
        event.job = fields.get("job", "") or declared.job
    else:
        event.job = fields.get(declared.job.field or "job", "")
    event.running = _running(rule, fields)
    if "step" in fields:
        event.step = _step(declared, rule, fields, event.running)
    elif rule.event is EventType.ALIVE and rule.edge == "end" and event.running is not None:
        epoch, of = event.running.epoch, event.running.of
        event.step = None if epoch is None or of is None else (epoch + 1) * of
    event.epochs = _total(fields["epochs"]) if "epochs" in fields else None
    event.total = _total_steps(event, fields) if event.type is EventType.STEP else None
    if declared.steps == "start" and rule.event is EventType.STEP:
        event.type = EventType.STEP_START
    elif event.type is EventType.STEP and event.step == 0 and (event.running is None or event.running.of is None):
        event.type, event.step, event.once, event.name = EventType.START, None, True, NO_STEP_YET
    if "each" in fields and not _is_of_some(rule):
        event.step_time = _amount("each", fields, rule)
    event.usual = rule.each is not None and rule.each.of == "usual"
    event.since_line = rule.took is not None and rule.took.since is not None
    event.detail = save_detail(None if rule.state is None else SaveState(rule.state))
    if "took" in fields:
        event.took = _amount("took", fields, rule)
    _look_inside(event, rule, fields, line)
    event.signs = _signs(rule, fields)
    event.at = _time("time", time, fields.get(time.field), line)
    if event.at is not None and "end" in fields:
        end = _time("end", time, fields["end"], "")
        assert end is not None
        event.took, event.begins = max(end.ns - event.at.ns, 0), True
    return event


def _look_inside(event: ParsedEvent, rule: DeclaredRule, fields: Mapping[str, str], line: str) -> None:
    """Set the phases inside steps, work and sizes from fields and the line."""
    if rule.phases or rule.phase_pattern is not None:
        found = [*_phases(rule, fields, line)]
        event.phases = tuple(one for one in found if not isinstance(one, str))
        event.bad_phases = tuple(one for one in found if isinstance(one, str))
    event.metrics = {**_work(rule, fields), **_sizes(rule, fields)} if rule.work or rule.size else {}
    if event.metrics and event.took:  # The time of its rates.
        event.metrics[RATE_SECONDS] = event.took / NS_PER_SECOND


def _signs(rule: DeclaredRule, fields: Mapping[str, str]) -> tuple[RecoveryEventText, ...]:
    """Return the moment of a recovery in a line, without invalid facts."""
    if rule.point is None:
        return ()
    found = {name: fields.get(own) for name, own in rule.facts.items()}
    left, of, used = (rank_of(found.get(name)) for name in ("left", "of", "used"))
    if of is None and left is not None and used is not None:
        of = left + used
    timeout = found.get("timeout")
    waited = None if timeout is None else _phase_ns(timeout, 1.0)
    event = sign(
        RecoveryPhase[rule.point.upper()], host=fields.get("host", ""), rank=fields.get("rank"), by=rule.by,
        left=left, of=of, used=used, timeout_ns=waited, allocation=found.get("allocation"),
    )  # fmt: skip
    return (event,)


def _phases(rule: DeclaredRule, fields: Mapping[str, str], line: str) -> Iterator[PhaseTime | str]:
    """Yield phases inside steps, or why one is invalid; the line counts nevertheless."""
    whose, host = _whose(fields.get("rank", "")), fields.get("host", "")[:LONGEST_NAME]
    if whose is None:
        yield f"{fields['rank'][:_SHOWN]} is not a rank; its phases are ignored"
        return
    for name, one in rule.phases.items():
        text = fields.get(one.field or name)
        if text is not None:
            ns = _phase_ns(text, UNITS[one.unit])
            found = PhaseName(safe_name(name), name)
            yield _no_time(name, text) if ns is None else PhaseTime(found, ns, one.of, whose, host)
    if rule.phase_pattern is None:
        return
    names = dict(rule.names)
    for text, others in rule.names_beside.items():
        names |= others if text in line else {}
    for match in phase_pattern(rule.phase_pattern).each(line, MOST_PHASES):
        name, text = match["phase"] or "", match["value"] or ""
        phase = names.get(name, "" if names else name)
        if phase and phase != STEP_TIME:
            ns = _phase_ns(text, UNITS[rule.phase_unit])
            found = PhaseName(safe_name(name), safe_name(phase))
            yield _no_time(name, text) if ns is None else PhaseTime(found, ns, "each", whose, host)


def _whose(rank: str) -> int | None:
    """Return a rank; JOB for other text, such as a node name; None if out of range."""
    if not rank.isascii() or not rank.lstrip("-").isdigit():
        return JOB
    return int(rank) if len(rank) < _DIGITS and 0 <= int(rank) < MOST_RANKS else None


def _no_time(name: str, text: str) -> str:
    return f"`{safe(name[:_SHOWN])}` is not a duration: {safe(text[:_SHOWN])}; ignored"


def _phase_ns(text: str, unit: float) -> int | None:
    try:
        return duration(text, unit) if unit > 0 else None
    except (BadValueError, OverflowError):
        return None


_ONE_OF = re.compile(r"(?P<step>\d{1,15}) ?/ ?(?P<of>\d{1,15})", re.ASCII)
"""A count with its total."""
_PER = {
    "step": "_per_step",
    "second": "_per_second",
    "second_accelerator": "_per_second_accelerator",
    "total": "_total",
}
"""Suffix of the metric of an amount of work, by kind."""


def _work(rule: DeclaredRule, fields: Mapping[str, str]) -> dict[str, float]:
    """Return amounts of work as metrics."""
    found = ((name + _PER[one.per], fields.get(one.field or name)) for name, one in rule.works)
    return {name: value for name, text in found if text is not None and (value := _positive(text)) is not None}


def _sizes(rule: DeclaredRule, fields: Mapping[str, str]) -> dict[str, float]:
    """Return sizes of the job as metrics."""
    found = ((name, fields.get(own)) for name, own in rule.size.items())
    return {name: value for name, text in found if text is not None and (value := _positive(text)) is not None}


def _positive(text: str) -> float | None:
    value = number(text.replace(",", ""))
    return float(value) if value is not None and 0 < value < _FASTEST else None


def _is_of_some(rule: DeclaredRule) -> bool:
    return rule.each is not None and rule.each.of in ("last", "all")


def _running(rule: DeclaredRule, fields: Mapping[str, str]) -> Running | None:
    epochs = rule.epoch
    elapsed = _amount("elapsed", fields, rule) if "elapsed" in fields else None
    epoch = None
    if "epoch" in fields:
        epoch = max(0, _whole("epoch", fields["epoch"]) - (1 if epochs is None else epochs.first))
    of = _whole("of", fields["of"]) if "of" in fields else None if epochs is None else epochs.steps
    some = _amount("each", fields, rule) if _is_of_some(rule) and "each" in fields else None
    if epoch is None and of is None and elapsed is None and some is None:
        return None
    of_all = rule.each is not None and rule.each.of == "all"
    begins = rule.elapsed is not None and rule.elapsed.begins
    return Running(epoch, of, elapsed, begins, None if of_all else some, some if of_all else None)


def _step(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str], running: Running | None) -> int:
    step = _whole("step", fields["step"]) + (0 if rule.step is None else rule.step.add)
    if declared.steps == "index" and rule.event in STEPPED:
        step += 1
    if running is not None and running.epoch is not None and running.of is not None:
        step += running.epoch * running.of
    if not 0 <= step <= MAX_STEP:
        raise BadFieldError("step", f"{fields['step'][:40]} is not a step number")
    return step


def _total_steps(event: ParsedEvent, fields: Mapping[str, str]) -> int | None:
    """Return the total number of steps of the training, if a line contains it."""
    epoch, of = (None, None) if event.running is None else (event.running.epoch, event.running.of)
    if (epoch, of) == (None, None):
        return _total(fields["total"]) if "total" in fields else None
    return None if epoch is None or of is None or event.epochs is None else of * event.epochs


def _total(text: str) -> int | None:
    """Return the total number of steps; None if the line does not know it (`?`, `-1`, `inf`)."""
    try:
        return _whole("total", text)
    except BadFieldError:
        return None


def _whole(field: str, text: str) -> int:
    """Return an integer; for `10/438`, the part that the field is about."""
    plain = text.replace(",", "")
    if "/" in plain and (both := _ONE_OF.fullmatch(plain)) is not None:
        plain = both["of" if field in ("of", "total") else "step"]
    if plain.isascii() and plain.isdigit() and len(plain) <= _SURELY_A_STEP:
        return int(plain)
    value = number(plain)
    if value is None or value != int(value) or value < 0:
        raise BadFieldError(field, f"{text[:40]} is not {'an epoch' if field == 'epoch' else 'a step'} number")
    try:
        return whole(str(int(value)))
    except BadValueError as error:
        raise BadFieldError(field, str(error)) from None


def _amount(field: str, fields: Mapping[str, str], rule: DeclaredRule) -> int:
    """Convert a duration, a rate, or a clock such as 1:02:03 or `1h 02m 03s` to ns."""
    text, unit = fields[field], rule.seconds_a_unit(field)
    clock = clock_seconds(text)
    try:
        if clock is not None:
            return duration(str(clock))
        if unit > 0:
            return duration(text, unit)
    except BadValueError as error:
        raise BadFieldError(field, str(error)) from None
    except OverflowError:
        raise BadFieldError(field, f"{text[:40]} is not a duration") from None
    rate = number(text.replace(",", ""))
    if rate is None or not 0 < rate < _FASTEST or 1.0 / rate >= 1e9:
        raise BadFieldError(field, f"{text[:40]} is not a rate")
    return round_to_us(1.0 / rate)


def _time(field: str, time: Time, text: str | None, line: str) -> Timestamp | None:
    """Return the time in the text of a field, otherwise in a line; None if there is none."""
    try:
        if text is not None:
            stamp: Timestamp | None = read_time(text, time.format)
        else:
            stamp = find_time(line, time.format) if line and is_searched(time.format) else None
    except (BadValueError, TimestampError) as error:
        raise BadFieldError(field, str(error)) from None
    return None if stamp is None else stamp._replace(ns=stamp.ns + round(time.seconds * NS_PER_SECOND))
