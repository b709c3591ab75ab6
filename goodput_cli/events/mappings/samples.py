"""Check the samples of a mapping when it is loaded: lines with expected values; and find rules that are never used
because an earlier one matches all their lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any, NamedTuple

from goodput_cli.errors import UsageError
from goodput_cli.events.json_documents import BadLineError, parse
from goodput_cli.events.mappings.declared import DeclaredRule, DeclaredSample
from goodput_cli.events.mappings.fields import BadFieldError
from goodput_cli.events.mappings.patterns import examples_of
from goodput_cli.events.mappings.rules import DeclaredLineRule, Mapped, RecordRule, needed_fields, record_readings
from goodput_cli.events.mappings.toml import TomlLocation
from goodput_cli.events.schema import SAVE_STATE
from goodput_cli.events.text.causes import CauseRows, shipped_rows
from goodput_cli.events.text.line_timestamps import Timestamp, TimestampError, Zone, strip_prefixes, timestamp_of
from goodput_cli.events.text.log_lines import EventType, LineReading, ParsedEvent, line_readings
from goodput_cli.vocabulary.when import NS_PER_SECOND


class SampleFailed(UsageError):
    """Raised for a sample with unexpected values."""


class Read(NamedTuple):
    """Result of a mapping for a line or record."""

    rule: int
    """Index of the rule that reads it."""
    event: ParsedEvent | None
    """None: the line is ignored, or its values are wrong."""
    stamp: Timestamp | None = None
    refused: str = ""
    """Reason why its values are wrong."""
    field: str = ""
    """Field with the wrong value."""


def read_line(made: Mapped, line: str, overwritten: bool = False) -> Read | None:
    """Return the result of a mapping for a line; None if no rule matches. overwritten: see `Ruleset.read`."""
    if not _may_read(made, line):
        return None
    text = strip_prefixes(line).text
    first = next(line_readings(made.lines, text, overwritten), None)
    if first is not None:
        return _read(first, text)
    record = record_of(text)
    read = None if record is None else read_record(made, record)
    return read or read_sign(made, line, overwritten)


_ALTERED = re.compile("[\x1b\b\r]")


def _may_read(made: Mapped, line: str) -> bool:
    """Return True unless no rule has its text in a line."""
    if made.records or made.signs_of_records or _ALTERED.search(line):
        return True
    return any(rule.anchor in line for rule in (*made.lines, *made.signs))


def read_sign(made: Mapped, line: str, overwritten: bool = False) -> Read | None:
    """Return the moment of a recovery that a mapping finds in a line; None if no rule matches."""
    text = strip_prefixes(line).text
    first = next(line_readings(made.signs, text, overwritten), None)
    if first is not None:
        return _read(first, text)
    record = record_of(text)
    return None if record is None else read_sign_of_record(made, record)


def read_sign_of_record(made: Mapped, record: Mapping[str, Any]) -> Read | None:
    """Return the moment of a recovery in a JSON object or table row; None if no rule matches."""
    first = next(record_readings(made.signs_of_records, record), None)
    return None if first is None else _read(first)


def read_record(made: Mapped, record: Mapping[str, Any]) -> Read | None:
    """Return the result of a mapping for a JSON object or table row; None if no rule matches."""
    first = next(record_readings(made.records, record), None)
    return None if first is None else _read(first)


def failed_samples(made: Mapped) -> list[UsageError]:
    """Return the errors of the samples, in order."""
    found: list[UsageError] = []
    for number in range(len(made.declared.sample)):
        try:
            _check_sample(made, number)
        except UsageError as error:
            found.append(error)
    return found


def _check_sample(made: Mapped, number: int) -> None:
    """Raise SampleFailed if a sample has unexpected values, and UsageError for a rule that an earlier one shadows."""
    sample, place = made.declared.sample[number], made.place.of("sample", number, "line")
    if sample.gives.cause is not None or not made.declared.rule:
        _check_evidence(made, sample, place)
        return
    wanted = read_sign if sample.gives.event is EventType.SIGN else read_line
    read = wanted(made, sample.line)
    if read is None:
        raise place.error("sample failed: no rule matches this line", SampleFailed)
    if read.refused:
        raise place.error(f"sample failed: {read.refused}", SampleFailed)
    gives = sample.gives.values
    values = {"event": EventType.IGNORE} if read.event is None else shown(read.event, read.stamp)
    wrong = next((key for key, value in gives.items() if not _same(values.get(key), value)), None)
    if wrong is None or (read.event is None and "event" not in gives):
        return
    _check_shadow(made, sample, read)
    rule = f"the rule in line {made.location_of(read.rule).line}"
    if read.event is None:
        raise place.error(f"sample failed: {rule} ignores it", SampleFailed)
    told, found = _as_written(gives[wrong]), _as_written(values.get(wrong))
    raise place.error(f"sample failed: `gives` has `{wrong}` = {told}, but {rule} gives {found}", SampleFailed)


def _check_evidence(made: Mapped, sample: DeclaredSample, place: TomlLocation) -> None:
    """Raise SampleFailed if a sample of evidence has unexpected values."""
    found = CauseRows((*made.causes, *shipped_rows().rows)).read(strip_prefixes(sample.line).text)
    if found is None:
        raise place.error("sample failed: no row of evidence matches this line", SampleFailed)
    values = {"cause": found.code, "role": found.role, **found.fields}
    for key, wanted in sample.gives.values.items():
        if str(values.get(key)) != str(wanted):
            told, given = _as_written(wanted), _as_written(values.get(key))
            raise place.error(
                f"sample failed: `gives` has `{key}` = {told}, but the row `{found.row}` gives {given}", SampleFailed
            )


def check_shadows(made: Mapped) -> None:
    """Raise UsageError for a rule whose lines or records are all read by an earlier one."""
    for rules in (made.lines, made.signs):
        _check_lines(made, rules)
    for records in (made.records, made.signs_of_records):
        for at, later in enumerate(records):
            for before in records[:at]:
                if not before.also and _takes_all(before.declared, later.declared):
                    raise _shadowed(made, later.number, before.number)


def _check_lines(made: Mapped, rules: Sequence[DeclaredLineRule]) -> None:
    for at, rule in enumerate(rules):
        template = made.declared.rule[rule.number].line
        lines = examples_of(template) if template else ()
        for earlier in rules[:at]:
            same = earlier.name == rule.name
            if not earlier.also and (same or (lines and all(earlier.pattern.search(line) for line in lines))):
                raise _shadowed(made, rule.number, earlier.number)


def _shadowed(made: Mapped, rule: int, earlier: int) -> UsageError:
    """Return the error for a rule that is never used."""
    return made.location_of(rule).error(
        f"this rule is never used: the rule in line {made.location_of(earlier).line} matches its lines first; move "
        "this rule above it, or write `also = true` there"
    )


def shown(said: ParsedEvent, stamp: Timestamp | None) -> dict[str, Any]:
    """Return the values of a line by the names used in samples; seconds and ISO times."""
    time = None
    if stamp is not None:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=stamp.ns // 1000)
        time = moment.replace(tzinfo=None).isoformat() + ("Z" if stamp.zone is Zone.EXACT else "")
        time = time[{Zone.YEARLESS: 5, Zone.DAYLESS: 11}.get(stamp.zone, 0) :]
    elapsed = None if said.running is None else said.running.elapsed
    phases: defaultdict[str, float] = defaultdict(float)
    for one in said.phases:
        phases[one.name.phase] += one.ns / NS_PER_SECOND
    return {
        "event": said.type.value,
        "step": said.step,
        "each": None if said.step_time is None else said.step_time / NS_PER_SECOND,
        "took": None if said.took is None else said.took / NS_PER_SECOND,
        "elapsed": None if elapsed is None else elapsed / NS_PER_SECOND,
        "time": time,
        "label": said.label or None,
        "rank": said.rank or None,
        "edge": said.edge.name.lower(),
        "state": dict(said.detail).get(SAVE_STATE),
        "job": said.job or None,
        "phases": {name: round(seconds, 9) for name, seconds in phases.items()} or None,
        "work": said.metrics or None,
        "no phase": "; ".join(said.bad_phases) or None,
        **_shown_signs(said),
    }


def _shown_signs(said: ParsedEvent) -> dict[str, Any]:
    """Return the values of the moment of a recovery in a line."""
    if said.type is not EventType.SIGN or not said.signs:
        return {}
    one = said.signs[0]
    facts: dict[str, Any] = dict(one.facts)
    waited = facts.pop("timeout_ns", None)
    timeout = None if waited is None else waited / NS_PER_SECOND
    return {"point": one.point.name.lower(), "host": one.host or None, **facts, "timeout": timeout}


def record_of(line: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a line; None if it is not one."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        return parse(line.encode())
    except BadLineError:
        return None


def _read(reading: LineReading[DeclaredLineRule] | LineReading[RecordRule], text: str = "") -> Read:
    """Return a result with the timestamp of the line if the rule has no time."""
    said, error = reading.event, reading.refused
    try:
        if error is None:
            stamp = None if said is None else said.at or (timestamp_of(text) if text else None)
            return Read(reading.rule.number, said, stamp)
    except TimestampError as no_time:
        error = no_time
    return Read(reading.rule.number, None, None, str(error), error.field if isinstance(error, BadFieldError) else "")


def _check_shadow(made: Mapped, sample: DeclaredSample, read: Read) -> None:
    """Raise UsageError if a later rule reads a sample as expected but an earlier one shadows it."""
    if made.declared.rule[read.rule].also:
        return
    for number in range(read.rule + 1, len(made.declared.rule)):
        later = read_line(_only(made, number), sample.line)
        if later is not None and later.event is not None:
            values = shown(later.event, later.stamp)
            if all(_same(values[key], value) for key, value in sample.gives.values.items()):
                raise _shadowed(made, number, read.rule)


def _only(made: Mapped, number: int) -> Mapped:
    """Return a mapping with only one of its rules."""
    kept: dict[str, Any] = {
        name: tuple(rule for rule in getattr(made, name) if rule.number == number) for name in _RULES
    }
    return replace(made, **kept)


_RULES = ("lines", "records", "signs", "signs_of_records")
"""Attributes of a mapping with rules."""


def _takes_all(earlier: DeclaredRule, later: DeclaredRule) -> bool:
    """Return True if the earlier of two record rules reads all records of the later one."""
    if earlier.text not in ("", later.text):
        return False
    if any(key not in later.where or later.where[key] != value for key, value in earlier.where.items()):
        return False
    fields = needed_fields(earlier)
    return all(name in later.keys and set(later.paths[name]) <= set(earlier.paths[name]) for name in fields)


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(given, int | float):
        return abs(given - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(_same(given.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, datetime | time_of_day):
        return str(given).rstrip("Z") == wanted.replace(tzinfo=None).isoformat()
    return bool(given == wanted)


def _as_written(value: Any) -> str:
    if value is None:
        return "nothing"
    return (
        value.isoformat()
        if isinstance(value, datetime | time_of_day)
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )
