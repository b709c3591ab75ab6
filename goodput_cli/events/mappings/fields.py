"""What the fields of a line or a record mean."""

from __future__ import annotations

import re
from collections.abc import Mapping

from goodput_cli.events.mappings.declared import Declared, DeclaredRule, Time
from goodput_cli.events.mappings.times import find_time, is_searched, read_time
from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import BadValueError, Running, Said, What, duration, whole
from goodput_cli.events.text.stamps import Stamp, StampError
from goodput_cli.events.values import number, round_to_us
from goodput_cli.vocabulary.when import NS_PER_SECOND

STEPPED = (What.STEP, What.SAVE, What.SAVED, What.RESTORE, What.RESUME, What.EVAL)
"""Events whose `step` says how many are done: one more than the index of the last."""
_EDGES = {"point": Edge.POINT, "begin": Edge.BEGIN, "end": Edge.END}
_CLOCK = re.compile(r"(?:(?:(\d+) ?d(?:ays?)?,? )?(\d+):)?(\d{1,2}):(\d\d(?:\.\d{1,9})?)", re.ASCII)


class BadFieldError(BadValueError):
    """A value that cannot be; args: a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def meaning(declared: Declared, rule: DeclaredRule, time: Time, fields: Mapping[str, str], line: str = "") -> Said:
    """What fields mean, with the time that they or the line say in the mapping's own way. time: how it is written;
    line: in which it may stand; "" for none. Raises BadFieldError."""
    said = Said(declared.name, rule.event, edge=_EDGES[rule.edge], begins=rule.begins, once=rule.once)
    said.label, said.rank = rule.label or fields.get("label", ""), fields.get("rank", "")
    if isinstance(declared.job, str):
        said.job = fields.get("job", "") or declared.job
    else:
        said.job = fields.get(declared.job.field or "job", "")
    said.running = _running(rule, fields)
    if "step" in fields:
        said.step = _step(declared, rule, fields, said.running)
    if declared.steps == "start" and rule.event is What.STEP:
        said.what = What.STEP_START
    elif said.what is What.STEP and said.step == 0 and (said.running is None or said.running.of is None):
        said.what, said.once, said.step = What.START, True, None  # a bar that has just begun: no step is done yet
    if "each" in fields and not _is_of_some(rule):
        said.step_time = _amount("each", fields, rule)
    if "took" in fields:
        said.took = _amount("took", fields, rule)
    said.at = _time("time", time, fields.get(time.field), line)
    if said.at is not None and "end" in fields:
        end = _time("end", time, fields["end"], "")
        assert end is not None
        said.took, said.begins = max(end.ns - said.at.ns, 0), True
    return said


def _is_of_some(rule: DeclaredRule) -> bool:
    return rule.each is not None and rule.each.of != "mean"


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


_FASTEST = 1e300
"""A rate, 1/s; beyond it is what no float can be."""


def _amount(field: str, fields: Mapping[str, str], rule: DeclaredRule) -> int:
    """ns of a duration, of a rate, or of a clock such as 1:02:03."""
    text, unit = fields[field], rule.seconds_a_unit(field)
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock is not None:
            days, hours, minutes = (int(part or 0) for part in clock.groups()[:3])
            return duration(str(((days * 24 + hours) * 60 + minutes) * 60 + float(clock[4])))
        if unit > 0:
            return duration(text, unit)
    except BadValueError as error:
        raise BadFieldError(field, str(error)) from None
    except OverflowError:
        raise BadFieldError(field, f"{text[:40]} is no duration") from None
    rate = number(text.replace(",", ""))
    if rate is None or not 0 < rate < _FASTEST or 1.0 / rate >= 1e9:
        raise BadFieldError(field, f"{text[:40]} is no rate")
    return round_to_us(1.0 / rate)


def _time(field: str, time: Time, text: str | None, line: str) -> Stamp | None:
    """A time in the text of a field, or, where there is none, in a line."""
    try:
        if text is not None:
            stamp: Stamp | None = read_time(text, time.format)
        else:
            stamp = find_time(line, time.format) if line and is_searched(time.format) else None
    except (BadValueError, StampError) as error:
        raise BadFieldError(field, str(error)) from None
    return None if stamp is None else stamp._replace(ns=stamp.ns + round(time.seconds * NS_PER_SECOND))
