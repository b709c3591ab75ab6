"""What the fields of a line or a record mean.

Times as a mapping says that they are written: by name, or in a format of `strptime`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache

from goodput_cli.events.mappings.declared import Declared, DeclaredRule
from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import BadValueError, Running, Said, What, duration, whole
from goodput_cli.events.text.stamps import HEAD, PLACEHOLDER_YEAR, Stamp, StampError, Zone, read_dated
from goodput_cli.events.values import number, round_to_us
from goodput_cli.vocabulary.text import likeliest
from goodput_cli.vocabulary.units import NS_PER_SECOND

EPOCHS = {"epoch_s": 1.0, "epoch_ms": 1e-3, "epoch_us": 1e-6, "epoch_ns": 1e-9}
NAMED = (*EPOCHS, "iso", "glog")
_MAX_EPOCH = 9e9
_LONGEST = 100
_TRIED = datetime(2026, 11, 22, 21, 43, 56, 123456, tzinfo=UTC)
_PATTERNS = {
    "Y": r"\d{4}", "y": r"\d\d", "m": r"\d{1,2}", "d": r"[ \d]?\d", "H": r"[ \d]?\d", "I": r"[ \d]?\d", "M": r"\d\d",
    "S": r"\d\d", "f": r"\d{1,9}", "p": r"[AaPp]\.?[Mm]\.?", "b": r"[A-Za-z]{3}", "B": r"[A-Za-z]{3,9}",
    "a": r"[A-Za-z]{3}", "A": r"[A-Za-z]{6,9}", "j": r"\d{1,3}", "z": r"(?:Z|UTC|[+-]\d\d:?\d\d)",
    "Z": r"(?:Z|UTC|GMT)", "%": "%",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_YEARS, _DAYS = frozenset("Yy"), frozenset("dj")


class ClockError(ValueError):
    """A format of times that cannot be used; args: a sentence."""


def check_format(written: str) -> None:
    """Raises ClockError for a format in which no time can be read."""
    if not written or written in NAMED:
        return
    if "%" not in written:
        named = " or ".join(likeliest(written, NAMED) or NAMED)
        raise ClockError(f"`{written[:40]}` is no format: write {named}, or one of strptime such as %d/%m/%Y %H:%M:%S")
    if len(written) > _LONGEST:
        raise ClockError(f"a format of times has at most {_LONGEST} characters")
    directives = frozenset(_DIRECTIVE.findall(written.replace("%%", "")))
    unknown = sorted(directives - _PATTERNS.keys())
    if unknown or written.replace("%%", "").endswith("%"):
        named = f"%{unknown[0]}" if unknown else "%"
        raise ClockError(f"`{named}` is nothing that is read in a time; %Y %m %d %H %M %S %f %z %b %j %p are")
    if not directives & _DAYS:
        raise ClockError(
            "a time of day without its day cannot be placed; leave `time` out, and let `each`, `took` or `elapsed` "
            'count the time (`time = "cursor"`)'
        )
    try:
        read_time(_TRIED.strftime(written.replace("%y", "26") if "%Y" in written else written), written)
    except (BadValueError, ValueError) as error:
        raise ClockError(f"no time is read as `{written}`: {error}") from None


def read_time(text: str, written: str) -> Stamp:
    """A time as a format says. Raises BadValueError, or StampError."""
    if written in EPOCHS or (not written and number(text) is not None):
        return _of_epoch(text, EPOCHS.get(written, 1.0))
    if written in ("", "iso"):
        return read_dated(text)
    if written == "glog":
        return _parsed(f"{text.lstrip('IWEFD')}", "%m%d %H:%M:%S.%f")
    return _parsed(text.strip(), written)


def find_time(line: str, written: str) -> Stamp | None:
    """The time in a format of `strptime` at the beginning of a line. Raises BadValueError for a month 13."""
    found = pattern_of(written).search(line, 0, HEAD + _LONGEST)
    return None if found is None or found.start() >= HEAD else _parsed(found[0], written)


def is_searched(written: str) -> bool:
    """Whether lines are searched for times of a format."""
    return "%" in written


@cache
def pattern_of(written: str) -> re.Pattern[str]:
    """What times of a format look like: no repeat in it is without a bound."""
    parts = [
        _PATTERNS[part[1]] if len(part) == 2 and part[0] == "%" else r"\s{1,3}" if part.isspace() else re.escape(part)
        for part in re.findall(r"%.|\s+|[^%\s]+", written, re.DOTALL)
    ]
    return re.compile(r"(?<!\d)" + "".join(parts) + r"(?!\d)", re.ASCII)


def _of_epoch(text: str, unit: float) -> Stamp:
    seconds = number(text)
    if seconds is None or not 0 <= seconds < _MAX_EPOCH / unit:  # an integer may have thousands of digits
        raise BadValueError(f"{text[:40]} is no time between 1970 and 2255")
    ns = int(seconds) * round(unit * 1e9) if seconds == int(seconds) else round_to_us(seconds * unit)
    return Stamp(ns, Zone.EXACT, False)


def _parsed(text: str, written: str) -> Stamp:
    """A time in a format of `strptime`; one without a year is of the placeholder."""
    directives = _DIRECTIVE.findall(written.replace("%%", ""))
    yearless = not _YEARS.intersection(directives)
    read, as_written = text, written
    if "Z" in directives or "z" in directives:
        read = re.sub(r"(?:UTC|GMT|Z)\b", "+0000", read)
        as_written = as_written.replace("%Z", "%z")
    if "f" in directives:
        read = re.sub(r"([.,]\d{6})\d{1,3}(?!\d)", r"\1", read)
    if yearless:
        read, as_written = f"{PLACEHOLDER_YEAR} {read}", f"%Y {as_written}"
    try:
        moment = datetime.strptime(read, as_written)
    except ValueError:
        raise BadValueError(f"{text[:40]} is no time as {written}") from None
    zone = Zone.YEARLESS if yearless else Zone.NAIVE if moment.tzinfo is None else Zone.EXACT
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000
    if ns < 0:
        raise BadValueError(f"{text[:40]} is no time between 1970 and 2255")
    return Stamp(ns, zone, "f" not in directives)


STEPPED = (What.STEP, What.SAVE, What.SAVED, What.RESTORE, What.RESUME, What.EVAL)
"""Events whose `step` says how many are done: one more than the index of the last."""
_EDGES = {"point": Edge.POINT, "begin": Edge.BEGIN, "end": Edge.END}
_CLOCK = re.compile(r"(?:(?:(\d+) ?d(?:ays?)?,? )?(\d+):)?(\d{1,2}):(\d\d(?:\.\d{1,9})?)", re.ASCII)


class BadFieldError(BadValueError):
    """A value that cannot be; args: a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def meaning(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str], line: str) -> tuple[Said, Stamp | None]:
    """What fields mean, and when, where they or the line say so in the mapping's own way. line: in which a time of such
    a way may stand; "" for none. Raises BadFieldError."""
    said = Said(declared.name, rule.event, edge=_EDGES[rule.edge], begins=rule.begins, once=rule.once)
    said.label, said.rank = rule.label or fields.get("label", ""), fields.get("rank", "")
    said.job = fields.get(declared.job.field, "") if declared.job.field else fields.get("job", "") or declared.job.fixed
    said.running = _running(rule, fields)
    if "step" in fields:
        said.step = _step(declared, rule, fields, said.running)
    if declared.steps == "start" and rule.event is What.STEP:
        said.what = What.STEP_START
    elif said.what is What.STEP and said.step == 0 and (said.running is None or said.running.of is None):
        said.what, said.once, said.step = What.START, True, None  # a bar that has just begun: no step is done yet
    if "each" in fields and not rule.last:
        said.step_time = _amount("each", fields, rule)
    if "took" in fields:
        said.took = _amount("took", fields, rule)
    stamp = _time("time", rule, fields, line)
    if stamp is not None and "end" in fields:
        end = _time("end", rule, fields, "")
        assert end is not None
        said.took, said.begins = max(end.ns - stamp.ns, 0), True
    return said, stamp


def _running(rule: DeclaredRule, fields: Mapping[str, str]) -> Running | None:
    epochs = rule.epochs
    elapsed = _amount("elapsed", fields, rule) if "elapsed" in fields else None
    epoch = None
    if "epoch" in fields:
        epoch = max(0, _whole("epoch", fields["epoch"]) - (1 if epochs is None else epochs.first))
    of = _whole("of", fields["of"]) if "of" in fields else None if epochs is None else epochs.steps
    last = _amount("each", fields, rule) if rule.last and "each" in fields else None
    if epoch is None and of is None and elapsed is None and last is None:
        return None
    return Running(epoch, of, elapsed, rule.clock_begins, last)


def _step(declared: Declared, rule: DeclaredRule, fields: Mapping[str, str], running: Running | None) -> int:
    step = _whole("step", fields["step"]) + rule.add
    if declared.steps == "index" and rule.event in STEPPED:
        step += 1
    if running is not None and running.epoch is not None and running.of is not None:
        step += running.epoch * running.of
    if step < 0:
        raise BadFieldError("step", f"{fields['step'][:40]} is no number of a step")
    return whole(str(step))


def _whole(field: str, text: str) -> int:
    value = number(text.replace(",", ""))
    if value is None or value != int(value) or value < 0:
        raise BadFieldError(field, f"{text[:40]} is no number of {'an epoch' if field == 'epoch' else 'a step'}")
    try:
        return whole(str(int(value)))
    except BadValueError as error:
        raise BadFieldError(field, str(error)) from None


def _amount(field: str, fields: Mapping[str, str], rule: DeclaredRule) -> int:
    """ns of a duration, of a rate, or of a clock such as 1:02:03."""
    text, unit = fields[field], rule.units.get(field, 1.0)
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock is not None:
            days, hours, minutes = (int(part or 0) for part in clock.groups()[:3])
            return duration(str(((days * 24 + hours) * 60 + minutes) * 60 + float(clock[4])))
        if unit > 0:
            return duration(text, unit)
    except BadValueError as error:
        raise BadFieldError(field, str(error)) from None
    rate = number(text.replace(",", ""))
    if rate is None or rate <= 0 or 1.0 / rate >= 1e9:
        raise BadFieldError(field, f"{text[:40]} is no rate")
    return round_to_us(1.0 / rate)


def _time(field: str, rule: DeclaredRule, fields: Mapping[str, str], line: str) -> Stamp | None:
    time = rule.time
    text = fields.get(time.field if field == "time" else field)
    try:
        if text is not None:
            stamp: Stamp | None = read_time(text, time.format)
        else:
            stamp = find_time(line, time.format) if line and field == "time" and is_searched(time.format) else None
    except (BadValueError, StampError) as error:
        raise BadFieldError(field, str(error)) from None
    if stamp is None or not time.offset:
        return stamp
    return stamp._replace(ns=stamp.ns + round(time.offset * NS_PER_SECOND))
