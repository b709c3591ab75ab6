"""MLPerf's `:::MLLOG` lines: a run is a file, and its blocks between evaluations are records. Times are exact."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.rules import MAX_STEP, BadValueError, Rule, pattern
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.events.values import MAX_SECONDS, number, whole_number

NAME = "mllog"
_STEP_KEYS = ("block_stop", "epoch_stop", "tracked_stats", "eval_accuracy", "train_loss")
_COUNTS = ("step_num", "samples_count", "epoch_num", "epoch_count", "first_epoch_num", "step")
_SETTINGS = ("global_batch_size", "train_samples", "submission_benchmark", "submission_platform")


def _read(found: Any) -> Said | None:
    try:
        entry = json.loads(found["json"])
    except (ValueError, RecursionError):
        raise BadValueError("`:::MLLOG` without a JSON object behind it") from None
    milliseconds = number(entry.get("time_ms"))
    if milliseconds is None or not 0 <= milliseconds < MAX_SECONDS * 1000:
        raise BadValueError("`time_ms` is no time between 1970 and 2255")
    metadata = entry.get("metadata") if isinstance(entry.get("metadata"), dict) else {}
    detail: list[tuple[str, Any]] = [(name, whole_number(metadata[name])) for name in _COUNTS if name in metadata]
    detail.append(("status", str(metadata.get("status", ""))))
    value = entry.get("value")
    detail.append(("value", value if isinstance(value, str | int | float) else None))
    stamp = Stamp(int(milliseconds * 1_000_000), Zone.EXACT, False)
    return Said(NAME, What.ALIVE, at=stamp, name=str(entry.get("key", "")), detail=tuple(detail))


RULES = (Rule(NAME, ":::MLLOG ", pattern(r":::MLLOG (?P<json>\{.*\})\s*$"), _read, "mllog"),)


def translate(marks: Sequence[Mark]) -> list[Mark]:
    """A run. Every rank writes the same within seconds and out of order: of a phase, the first begin and the last end
    count."""
    ordered = sorted(marks, key=lambda mark: (mark.time, mark.line))
    out = [_made(ordered[0], What.START)]
    out += _phase(ordered, "init", What.PREP)
    out += _phase(ordered, "eval", What.EVAL)
    out += _records(ordered)
    stops = [mark for mark in ordered if _said(mark).name == "run_stop"]
    if stops:
        aborted = _values(stops[-1]).get("status") == "aborted"
        out.append(_made(stops[-1], What.STOPPED if aborted else What.FINISHED))
    return [*out, _made(ordered[-1], What.ALIVE)]


def job_of(marks: Sequence[Mark], source: str) -> str:
    """`benchmark/platform`, or the name of the file, and the number of the result: each file is a run of its own."""
    settings = {one.name: dict(one.detail).get("value") for one in map(_said, marks) if one.name in _SETTINGS}
    names = [settings.get(f"submission_{part}") for part in ("benchmark", "platform")]
    stem = source.rpartition("/")[2].partition(".")[0]
    number_ = re.search(r"(\d+)$", stem)
    name = "/".join(map(str, names)) if all(names) else stem[: number_.start()].rstrip("-_") if number_ else stem
    return f"{name}#{number_[1]}" if number_ else str(name)


def _records(ordered: Sequence[Mark]) -> list[Mark]:
    """A record a progress number that is above those before it."""
    settings = {name: _setting(ordered, name) for name in ("global_batch_size", "train_samples")}
    blocks = {_values(mark).get("samples_count") for mark in ordered if _said(mark).name == "block_stop"}
    out: list[Mark] = []
    highest = 0
    for mark in ordered:
        if _said(mark).name not in _STEP_KEYS:
            continue
        step = _steps(_values(mark), settings["global_batch_size"], settings["train_samples"], blocks)
        if step is not None and highest < step <= MAX_STEP:
            highest = step
            out.append(_made(mark, What.STEP, step=step))
    return out


def _steps(values: dict[str, Any], size: int | None, epoch: int | None, blocks: set[Any]) -> int | None:
    """Steps that are done: as written, or by samples or epochs, rounded half to even."""
    if values.get("step_num") is not None:
        return int(values["step_num"])
    samples = values.get("samples_count")
    if samples is None and values.get("step") in blocks:
        samples = values.get("step")
    if samples is not None:
        return round(samples / size) if size else int(samples)
    epochs = values.get("epoch_num")
    if values.get("first_epoch_num") is not None and values.get("epoch_count") is not None:
        epochs = values["first_epoch_num"] + values["epoch_count"]
    if epochs is None:
        return None
    return round(epochs * epoch / size) if size and epoch else int(epochs)


def _setting(ordered: Sequence[Mark], name: str) -> int | None:
    values = (whole_number(_values(mark).get("value")) for mark in ordered if _said(mark).name == name)
    return next((value for value in values if value), None)


def _phase(ordered: Sequence[Mark], name: str, what: What) -> list[Mark]:
    """From the first begin to the last end before the next begin."""
    out: list[Mark] = []
    begin: Mark | None = None
    end: Mark | None = None
    for mark in [*ordered, None]:
        key = None if mark is None else _said(mark).name
        if begin is not None and (mark is None or (key == f"{name}_start" and end is not None)):
            out.append(_made(begin, what, edge=Edge.BEGIN))
            out += [_made(end, what, edge=Edge.END)] if end is not None else []
            begin = end = None
        if key == f"{name}_start" and begin is None:
            begin = mark
        elif key == f"{name}_stop" and begin is not None:
            end = mark
    return out


def _made(mark: Mark, what: What, **more: Any) -> Mark:
    return Mark(mark.line, "", mark.stamp, Said(NAME, what, **more), mark.time, mark.time)


def _said(mark: Mark) -> Said:
    assert mark.said is not None
    return mark.said


def _values(mark: Mark) -> dict[str, Any]:
    return dict(_said(mark).detail)
