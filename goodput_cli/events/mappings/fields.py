"""Interpret the fields of a line or record by its declared rule: an event with its time, phases and work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

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
    Declared,
    DeclaredRule,
    Time,
)
from goodput_cli.events.mappings.patterns import phase_pattern
from goodput_cli.events.mappings.times import find_time, is_searched, read_time
from goodput_cli.events.schema import RATE_SECONDS, Edge, SaveState
from goodput_cli.events.signs import RecoveryEventText, RecoveryPhase
from goodput_cli.events.text.line_timestamps import Timestamp, TimestampError
from goodput_cli.events.text.log_lines import (
    MAX_STEP,
    NO_STEP_YET,
    BadValueError,
    EventType,
    ParsedEvent,
    Running,
    duration,
    save_detail,
    whole,
)
from goodput_cli.events.text.sign_lines import rank_of, sign
from goodput_cli.events.values import clock_seconds, number, round_to_us
from goodput_cli.vocabulary.text import safe
from goodput_cli.vocabulary.when import NS_PER_SECOND

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
_DIGITS = 8
"""Of a rank."""
_SHOWN = 40
"""Number of characters quoted from a log."""
_SURELY_A_STEP = 15
"""Number of digits that cannot exceed `MAX_STEP`."""


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
    event.running = _running(declared, rule, fields)
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
    if "each" in fields and not is_of_some(rule):
        event.step_time = _amount("each", fields, rule)
    event.usual = rule.each is not None and rule.each.of == "usual"
    event.since_line = rule.took is not None and rule.took.since == "line"
    event.since_step = rule.took is not None and rule.took.since == "step"
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


PER = {
    "step": "_per_step",
    "second": "_per_second",
    "second_accelerator": "_per_second_accelerator",
    "total": "_total",
}
"""Suffix of the metric of an amount of work, by kind."""


def _work(rule: DeclaredRule, fields: Mapping[str, str]) -> dict[str, float]:
    """Return amounts of work as metrics."""
    found = ((name + PER[one.per], fields.get(one.field or name)) for name, one in rule.works)
    return {name: value for name, text in found if text is not None and (value := _positive(text)) is not None}


def _sizes(rule: DeclaredRule, fields: Mapping[str, str]) -> dict[str, float]:
    """Return sizes of the job as metrics."""
    found = ((name, fields.get(own)) for name, own in rule.size.items())
    return {name: value for name, text in found if text is not None and (value := _positive(text)) is not None}


def _positive(text: str) -> float | None:
    value = number(text.replace(",", ""))
    return float(value) if value is not None and 0 < value < _FASTEST else None


def is_of_some(rule: DeclaredRule) -> bool:
    """Return True if the time in a line is not the mean of the steps since the line before."""
    return rule.each is not None and rule.each.of in ("last", "all", "running")


def _running(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str]) -> Running | None:
    epochs = rule.epoch
    elapsed = _amount("elapsed", fields, rule) if "elapsed" in fields else None
    epoch = None
    if "epoch" in fields:
        epoch = max(0, _whole("epoch", fields["epoch"]) - (1 if epochs is None else epochs.first))
    of = _whole("of", fields["of"]) if "of" in fields else None if epochs is None else epochs.steps
    some = _amount("each", fields, rule) if is_of_some(rule) and "each" in fields else None
    if some is not None and rule.each is not None and rule.each.of == "running" and "step" in fields:
        elapsed, some = some * (_whole("step", fields["step"]) + (declared.steps == "index")), None
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
