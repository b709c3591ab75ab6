"""The samples of a mapping: lines that have to be read as it says, whenever it is loaded; and rules that are never
asked, because an earlier one reads all that they would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from goodput_cli.errors import UsageError
from goodput_cli.events.json_documents import BadLineError, parse
from goodput_cli.events.mappings.declared import DeclaredRule, DeclaredSample
from goodput_cli.events.mappings.fields import BadFieldError
from goodput_cli.events.mappings.patterns import examples_of
from goodput_cli.events.mappings.rules import Mapped
from goodput_cli.events.text.marks import BadValueError, Said
from goodput_cli.events.text.stamps import Stamp, StampError, Zone, bare, stamp_of
from goodput_cli.vocabulary.units import NS_PER_SECOND


class SampleFailed(UsageError):
    """A sample is not read as it says."""


class Read(NamedTuple):
    """What a mapping made of a line or record."""

    rule: int
    """The number of the rule that reads it, from 0."""
    said: Said | None
    """None: nothing, though the line is known, or its values are wrong."""
    stamp: Stamp | None = None
    refused: str = ""
    """Why its values are wrong."""
    field: str = ""
    """Which of them is."""


def read_line(made: Mapped, line: str, overwritten: bool = False) -> Read | None:
    """What a mapping makes of a line; None if no rule reads it. overwritten: see `Ruleset.read`."""
    return next(_readings(made, line, overwritten), None)


def read_record(made: Mapped, record: Mapping[str, Any]) -> Read | None:
    """What a mapping makes of a JSON object, or of a row of a table."""
    return next(_readings_of_record(made, record), None)


def failed_samples(made: Mapped) -> list[UsageError]:
    """What is wrong with the samples, in their order."""
    found: list[UsageError] = []
    for sample in made.declared.samples:
        try:
            check_sample(made, sample)
        except UsageError as error:
            found.append(error)
    return found


def check_sample(made: Mapped, sample: DeclaredSample) -> None:
    """Raises SampleFailed where a sample is not read as it says, and UsageError for a rule that an earlier one
    shadows."""
    read = read_line(made, sample.line)
    wanted = sample.gives.get("event", "ignore" if not sample.gives else None)
    if read is None:
        raise sample.place.error("sample failed: no rule reads this line", SampleFailed)
    rules = made.declared.rules
    if read.refused:
        raise sample.place.error(f"sample failed: {read.refused}", SampleFailed)
    if read.said is None:
        if wanted not in (None, "ignore"):
            _check_shadow(made, sample, read)
            raise sample.place.error(
                f"sample failed: the rule in line {rules[read.rule].place.line} ignores it", SampleFailed
            )
        return
    values = shown(read.said, read.stamp)
    for key, value in sample.gives.items():
        if not _same(values[key], value):
            _check_shadow(made, sample, read)
            here = f"the rule in line {rules[read.rule].place.line} gives"
            raise sample.place.error(
                f"sample failed: `{key}` is {_as_written(value)} in `gives`, and {here} {_as_written(values[key])}",
                SampleFailed,
            )


def check_shadows(made: Mapped) -> None:
    """Raises UsageError for a rule of lines whose every line an earlier one reads."""
    rules = [rule for rule in made.declared.rules if not rule.of_records]
    for at, (rule, declared) in enumerate(zip(made.lines, rules, strict=True)):
        lines = examples_of(declared.line) if declared.line else []
        for earlier, before in zip(made.lines[:at], rules[:at], strict=True):
            same = earlier.name == rule.name
            if not earlier.also and (same or (lines and all(earlier.pattern.search(line) for line in lines))):
                raise shadowed(declared, before)
    of_records = [rule for rule in made.declared.rules if rule.of_records]
    for at, declared in enumerate(of_records):
        for before in of_records[:at]:
            if not before.also and _takes_all(before, declared):
                raise shadowed(declared, before)


def shadowed(rule: DeclaredRule, earlier: DeclaredRule) -> UsageError:
    """That a rule is never asked."""
    return rule.place.error(
        f"this rule is never asked: the rule in line {earlier.place.line} reads its lines before; put this one above "
        "it, or say `also = true` there"
    )


def shown(said: Said, stamp: Stamp | None) -> dict[str, Any]:
    """What a line gives, by the names that samples use; seconds and ISO times."""
    time = None
    if stamp is not None:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=stamp.ns // 1000)
        time = moment.replace(tzinfo=None).isoformat() + ("Z" if stamp.zone is Zone.EXACT else "")
        time = time[5:] if stamp.zone is Zone.YEARLESS else time
    elapsed = None if said.running is None else said.running.elapsed
    return {
        "event": said.what.value,
        "step": said.step,
        "each": None if said.step_time is None else said.step_time / NS_PER_SECOND,
        "took": None if said.took is None else said.took / NS_PER_SECOND,
        "elapsed": None if elapsed is None else elapsed / NS_PER_SECOND,
        "time": time,
        "label": said.label or None,
        "rank": said.rank or None,
        "edge": said.edge.name.lower(),
        "job": said.job or None,
    }


def record_of(line: str) -> Mapping[str, Any] | None:
    """The JSON object that a line is."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        return parse(line.encode())
    except BadLineError:
        return None


def _readings(made: Mapped, line: str, overwritten: bool = False) -> Iterator[Read]:
    """What each rule of a mapping would make of a line, in order, up to the one behind which no more are asked."""
    text = bare(line).text
    numbers = [at for at, rule in enumerate(made.declared.rules) if not rule.of_records]
    for number, rule in zip(numbers, made.lines, strict=True):
        found = rule.pattern.search(text) if rule.anchor in text and (rule.split or not overwritten) else None
        if found is None:
            continue
        try:
            said = rule.read(found)
            yield Read(number, said, None if said is None else said.at or stamp_of(text))
        except (BadValueError, StampError) as error:
            yield _refused(number, error)
    record = record_of(text)
    if record is not None:
        yield from _readings_of_record(made, record)


def _readings_of_record(made: Mapped, record: Mapping[str, Any]) -> Iterator[Read]:
    numbers = [at for at, rule in enumerate(made.declared.rules) if rule.of_records]
    for number, rule in zip(numbers, made.records, strict=True):
        if rule.recognises(record):
            try:
                yield Read(number, *rule.read(record))
            except (BadValueError, StampError) as error:
                yield _refused(number, error)


def _refused(rule: int, error: ValueError) -> Read:
    return Read(rule, None, None, str(error), error.field if isinstance(error, BadFieldError) else "")


def _check_shadow(made: Mapped, sample: DeclaredSample, read: Read) -> None:
    """Raises UsageError if a later rule reads a sample as it says, and is not asked because of an earlier one."""
    rules = made.declared.rules
    if rules[read.rule].also:
        return
    for later in _readings(made, sample.line):
        if later.rule > read.rule and later.said is not None:
            values = shown(later.said, later.stamp)
            if all(_same(values[key], value) for key, value in sample.gives.items()):
                raise shadowed(rules[later.rule], rules[read.rule])


def _takes_all(earlier: DeclaredRule, later: DeclaredRule) -> bool:
    """Whether the earlier of two rules of records reads all that the later would."""
    if (earlier.line, earlier.regex) != (later.line, later.regex) and (earlier.line or earlier.regex):
        return False
    if not earlier.where.items() <= _hashable(later.where, earlier.where):
        return False
    needed = [name for name in earlier.keys if name in ("step", "time", "text") or len(earlier.keys) == 1]
    return all(name in later.keys and set(later.keys[name]) <= set(earlier.keys[name]) for name in needed)


def _hashable(where: Mapping[str, Any], like: Mapping[str, Any]) -> Any:
    return {key: like[key] for key, value in where.items() if key in like and like[key] == value}.items()


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(given, int | float):
        return abs(given - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, datetime):
        return str(given).rstrip("Z") == wanted.replace(tzinfo=None).isoformat()
    return bool(given == wanted)


def _as_written(value: Any) -> str:
    if value is None:
        return "nothing"
    return value.isoformat() if isinstance(value, datetime) else f'"{value}"' if isinstance(value, str) else str(value)
