"""A declared mapping as rules that read lines and records."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from goodput_cli.events.mappings.declared import Declared, DeclaredRule, DeclaredSample
from goodput_cli.events.mappings.templates import TemplateError, as_pattern, literal_of, nested_repeat
from goodput_cli.events.schema import NS_PER_SECOND, Edge
from goodput_cli.events.text.marks import Said, What
from goodput_cli.events.text.prefixes import bare
from goodput_cli.events.text.rules import BadValueError, Rule, duration, whole
from goodput_cli.events.text.scan import linear
from goodput_cli.events.text.stamps import PLACEHOLDER_YEAR, Stamp, StampError, Zone, read_dated, stamp_of
from goodput_cli.events.values import number, round_to_us

LITERAL = 4
"""A rule is asked about a line only if a text of at least this length stands in it."""
_EDGES = {"point": Edge.POINT, "begin": Edge.BEGIN, "end": Edge.END}
_STEPPED = (What.STEP, What.SAVE, What.SAVED, What.RESTORE, What.RESUME, What.EVAL)
_EPOCH = {"epoch_s": 1.0, "epoch_ms": 1e-3, "epoch_us": 1e-6, "epoch_ns": 1e-9}
_MISSING = object()
Record = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RecordRule:
    """Reads one kind of JSON object or row of a table."""

    declared: DeclaredRule
    mapping: Declared

    @property
    def needed(self) -> frozenset[str]:
        """The first parts of the paths of which one has to be in a record."""
        return frozenset(_first(path) for paths in self.declared.keys.values() for path in paths)

    def recognises(self, record: Record) -> bool:
        """Whether the rule reads a record: it has what `keys` names, and is as `where` says."""
        keys = self.declared.keys
        named = (paths for name, paths in keys.items() if name in ("step", "time") or len(keys) == 1)
        if any(all(_at(record, path) is _MISSING for path in paths) for paths in named):
            return False
        return all(_is(_at(record, path), wanted) for path, wanted in self.declared.where.items())

    def read(self, record: Record) -> tuple[Said, Stamp | None]:
        """What a record says, and when. Raises BadValueError."""
        fields = {name: str(value) for name, value in self._values(record) if value is not None}
        return _said(self.mapping, self.declared, fields)

    def _values(self, record: Record) -> Sequence[tuple[str, Any]]:
        found = []
        for name, paths in self.declared.keys.items():
            value = next((one for one in (_at(record, path) for path in paths) if one is not _MISSING), None)
            found.append((name, value))
        return found


@dataclass(frozen=True, eq=False)
class Mapped:
    """A mapping that reads."""

    declared: Declared
    lines: tuple[Rule, ...]
    records: tuple[RecordRule, ...]

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.declared.name


def mapped(declared: Declared) -> Mapped:
    """Rules of a mapping, checked with its samples. Raises UsageError with the place of what is wrong."""
    lines: list[Rule] = []
    records: list[RecordRule] = []
    for rule in declared.rules:
        if rule.keys:
            _check_keys(rule)
            records.append(RecordRule(rule, declared))
        else:
            lines.append(_line_rule(declared, rule))
    made = Mapped(declared, tuple(lines), tuple(records))
    for sample in declared.samples:
        check_sample(made, sample)
    return made


def check_sample(made: Mapped, sample: DeclaredSample) -> None:
    """Raises UsageError where a sample is not read as it says."""
    said, stamp, rule = read_line(made, sample.line)
    wanted = sample.gives.get("event", "ignore")
    if said is None:
        if wanted != "ignore" or rule is None:
            raise sample.place.error(
                "sample failed: no rule reads this line" if rule is None else f"sample failed: {rule}"
            )
        return
    for key, value in sample.gives.items():
        given = shown(said, stamp)[key]
        if not _same(given, value):
            raise sample.place.error(f"sample failed: `{key}` is {given!r} and not {value!r}")


def read_line(made: Mapped, line: str) -> tuple[Said | None, Stamp | None, str | None]:
    """What a mapping makes of one line, with its stamp, and which rule did; of a bad value the reason."""
    text = bare(line).text
    for number_, rule in enumerate(made.lines, 1):
        found = rule.pattern.search(text) if rule.anchor in text else None
        if found is None:
            continue
        try:
            said = rule.read(found)
            stamp = None if said is None else said.at or stamp_of(text)
        except (BadValueError, StampError) as error:
            return None, None, str(error)
        return said, stamp, rule.name or f"rule {number_}"
    record = _record_of(line)
    for each in made.records if record is not None else ():
        if record is not None and each.recognises(record):
            try:
                said, stamp = each.read(record)
            except (BadValueError, StampError) as error:
                return None, None, str(error)
            return said, stamp, each.declared.event.value
    return None, None, None


def shown(said: Said, stamp: Stamp | None) -> dict[str, Any]:
    """What a line gives, by the names that samples use; seconds and ISO times."""
    time = None
    if stamp is not None:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=stamp.ns // 1000)
        time = moment.replace(tzinfo=None).isoformat() + ("Z" if stamp.zone is Zone.EXACT else "")
        time = time[5:] if stamp.zone is Zone.YEARLESS else time
    return {
        "event": said.what.value,
        "step": said.step,
        "each": None if said.step_time is None else said.step_time / NS_PER_SECOND,
        "took": None if said.took is None else said.took / NS_PER_SECOND,
        "time": time,
        "label": said.label or None,
        "rank": said.rank or None,
        "edge": said.edge.name.lower(),
        "job": said.job or None,
    }


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(given, int | float):
        return abs(given - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, datetime):
        return str(given).rstrip("Z") == wanted.replace(tzinfo=None).isoformat()
    return bool(given == wanted)


def _record_of(line: str) -> Record | None:
    from goodput_cli.events.json.lines import BadLineError, parse

    try:
        return parse(line.encode())
    except BadLineError:
        return None


def _check_keys(rule: DeclaredRule) -> None:
    if rule.event in (What.STEP, What.STEP_START) and "step" not in rule.keys:
        raise rule.place.error("a `step` rule needs a `step` among its `keys`")
    for name in rule.keys:
        if name not in ("step", "time", "end", "each", "took", "rank", "job", "label"):
            raise rule.place.error(f"`keys.{name}` is no field: step, time, end, each, took, rank, job or label")


def _line_rule(declared: Declared, rule: DeclaredRule) -> Rule:
    try:
        pattern = as_pattern(rule.line) if rule.line else rule.regex
        anchor = literal_of(pattern)
    except TemplateError as error:
        raise rule.place.error(str(error)) from None
    if rule.regex and nested_repeat(pattern):
        raise rule.place.error("a repeat inside a repeat, such as (a+)+, may take for ever; write it with one")
    if len(anchor) < LITERAL and not rule.slow:
        raise rule.place.error(
            f"no text of {LITERAL} characters stands in every line of this rule, so that it would be tried on every "
            "line; write more of the line, or `slow = true`"
        )
    try:
        compiled = _compiled(pattern)
    except Exception as error:  # of a module that is loaded when needed
        raise rule.place.error(f"no regular expression that takes linear time (RE2): {error}") from None
    if compiled.search("") is not None:
        raise rule.place.error("the rule matches an empty line")
    if rule.event in (What.STEP, What.STEP_START) and "step" not in compiled.groupindex:
        raise rule.place.error(f"a `{rule.event}` rule needs a field `step`")
    if rule.cursor and not {"each", "took"} & compiled.groupindex.keys():
        raise rule.place.error('`time = "cursor"` needs a field `each` or `took`')
    return Rule(declared.name, anchor, compiled, _reader(declared, rule), rule.line or rule.regex, rule.also)


def _compiled(pattern: str) -> Any:
    re2 = linear()
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _reader(declared: Declared, rule: DeclaredRule) -> Callable[[Any], Said | None]:
    def read(found: Any) -> Said | None:
        if rule.event is What.IGNORE:
            return None
        fields = {name: value for name, value in found.groupdict().items() if value is not None}
        said, stamp = _said(declared, rule, fields)
        said.at = _zoned(found.string, declared.zone) if stamp is None and declared.zone else stamp
        return said

    return read


def _said(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str]) -> tuple[Said, Stamp | None]:
    """What the fields of a line mean, and when, where they say so. Raises BadValueError."""
    said = Said(declared.name, rule.event, edge=_EDGES[rule.edge], begins=rule.begins, once=rule.once)
    said.label, said.rank = rule.label or fields.get("label", ""), fields.get("rank", "")
    said.job = fields.get(declared.job_field, "") if declared.job_field else fields.get("job", "") or declared.job
    if "step" in fields:
        said.step = _step(fields["step"]) + rule.add
        if declared.steps == "index" and rule.event in _STEPPED:
            said.step += 1
        if said.step < 0:
            raise BadValueError(f"{fields['step'][:40]} is no number of a step")
    if declared.steps == "start" and rule.event is What.STEP:
        said.what = What.STEP_START
    if "each" in fields:
        said.step_time = _amount(fields["each"], rule.units.get("each", 1.0))
    if "took" in fields:
        said.took = _amount(fields["took"], rule.units.get("took", 1.0))
    stamp = _time(declared, rule, fields)
    if stamp is not None and "end" in fields:
        end = _read_time(fields["end"], rule.time_format)
        said.took, said.begins = max(end.ns - stamp.ns, 0), True
    return said, stamp


def _step(text: str) -> int:
    value = number(text.replace(",", ""))
    if value is None or value != int(value) or value < 0:
        raise BadValueError(f"{text[:40]} is no number of a step")
    return whole(str(int(value)))


def _amount(text: str, unit: float) -> int:
    if unit > 0:
        return duration(text, unit)
    rate = number(text.replace(",", ""))
    if rate is None or rate <= 0:
        raise BadValueError(f"{text[:40]} is no rate")
    return round_to_us(1.0 / rate)


def _time(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str]) -> Stamp | None:
    text = fields.get(rule.time_field or "time")
    if text is None:
        return None
    stamp = _read_time(text, rule.time_format)
    if stamp.zone is Zone.NAIVE and declared.zone:
        stamp = _in_zone(stamp, declared.zone)
    return stamp._replace(ns=stamp.ns + int(rule.offset * NS_PER_SECOND)) if rule.offset else stamp


def _read_time(text: str, time_format: str) -> Stamp:
    """A time as a format says. Raises BadValueError."""
    if time_format in _EPOCH or (not time_format and number(text) is not None):
        seconds = number(text)
        if seconds is None or not 0 <= seconds * _EPOCH.get(time_format, 1.0) < 9e9:
            raise BadValueError(f"{text[:40]} is no time between 1970 and 2255")
        unit = _EPOCH.get(time_format, 1.0)
        ns = int(seconds) * round(unit * 1e9) if seconds == int(seconds) else round_to_us(seconds * unit)
        return Stamp(ns, Zone.EXACT, False)
    if time_format in ("", "iso"):
        return read_dated(text)
    if time_format == "glog":
        return _parsed(f"{PLACEHOLDER_YEAR} {text.lstrip('IWEFD')}", "%Y %m%d %H:%M:%S.%f")._replace(zone=Zone.YEARLESS)
    return _parsed(text, time_format)


def _parsed(text: str, time_format: str) -> Stamp:
    try:
        moment = datetime.strptime(text, time_format)
    except ValueError:
        raise BadValueError(f"{text[:40]} is no time as {time_format}") from None
    zone = Zone.NAIVE if moment.tzinfo is None else Zone.EXACT
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000
    return Stamp(ns, zone, moment.microsecond == 0 and "%f" not in time_format)


def _zoned(line: str, zone: str) -> Stamp | None:
    """The stamp of a line without a zone, in one; None where the line says its zone, or no time."""
    stamp = stamp_of(line)
    return _in_zone(stamp, zone) if stamp is not None and stamp.zone is Zone.NAIVE else None


def _in_zone(stamp: Stamp, zone: str) -> Stamp:
    from goodput_cli.events.timestamps.iso import TimestampReader
    from goodput_cli.vocabulary.zones import load_zone

    return stamp._replace(ns=TimestampReader(load_zone(zone)).from_local(stamp.ns), zone=Zone.EXACT)


def _first(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _at(record: Any, path: str) -> Any:
    """The value at a path such as `a.b[0].c`, or the value of a key that is the path itself."""
    if isinstance(record, Mapping) and path in record:
        value = record[path]
        return _MISSING if value is None or value == "" else value
    value = record
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return _MISSING if value is None else value


def _is(value: Any, wanted: Any) -> bool:
    if value is _MISSING:
        return False
    if wanted == "any":
        return True
    if isinstance(wanted, dict) and "in" in wanted:
        return value in wanted["in"]
    if isinstance(wanted, dict):
        return isinstance(value, str) and fnmatch.fnmatchcase(value, wanted["like"])
    return bool(value == wanted)
