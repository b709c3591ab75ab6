"""Read stdout and progress.txt of Megatron-LM and its derivatives (Megatron-Bridge, NeMo-RL, MindSpeed,
Megatron-DeepSpeed).

The last rank prints iterations, rank 0 the rest, so all ranks of a source are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goodput_cli.arrays import F64
from goodput_cli.events.inside import FEWEST, MOST, MOST_RANKS, PhaseName, PhaseTime
from goodput_cli.events.schema import ASYNCHRONOUS, BATCH_SIZE, Edge
from goodput_cli.events.text.line_timestamps import read_dated
from goodput_cli.events.text.log_lines import (
    ENDS,
    BadValueError,
    EventType,
    LineRule,
    LogLine,
    ParsedEvent,
    duration,
    pattern,
    whole,
)
from goodput_cli.events.text.step_columns import FieldColumns, StepColumns
from goodput_cli.events.values import number
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "megatron"
JOINT_FORMATS = frozenset({NAME})
"""Formats whose ranks are read together: lines of all ranks are one stream."""
PROGRESS = "megatron-progress"
_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
_LATE_NS = 300 * NS_PER_SECOND
_MEANT = pattern(r"exiting program (?:after [\d.]+ minutes|at iteration \d+)")
LEFT = ("exit", "told to exit")
"""Names of lines about an exit before the end of training."""
_UNITS = {"ms": 0.001, "s": 1.0}
_SIZES = {
    BATCH_SIZE: pattern(r"global batch size:\s*(?P<value>\d{1,12})(?!\d)"),
    "tflops": pattern(r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*(?P<value>\d{1,12}(?:\.\d{1,12})?)(?!\d)"),
    "tokens_per_second_accelerator": pattern(r"tokens/sec/GPU:\s*(?P<value>\d{1,12}(?:\.\d{1,12})?)(?!\d)"),
}
"""Sizes of work in an iteration line, as metrics."""
_SIZE_DIGITS = 12
_PHASES = {
    "before library-setup": "launched",
    "after megatron is initialized": "initialized",
    "after model, optimizer, and learning rate scheduler are built": "built",
    "before the start of training step": "looping",
    "after training is done": "done",
}


def _iteration(found: Any) -> ParsedEvent:
    each = duration(found["each"], _UNITS[found["unit"]])
    step, total = whole(found["step"]), whole(found["total"])
    one = ParsedEvent(NAME, EventType.STEP, step, step_time=each, name="iteration", total=total)
    rest = found["rest"]
    for name, size in _SIZES.items():
        said_size = size.search(rest)
        value = number(said_size["value"]) if said_size is not None else None
        if value is not None and value > 0:
            one.metrics[name] = float(value)
    return one


def _iterations(found: FieldColumns) -> StepColumns | None:
    """Read iterations as columns."""
    unit, step, total = _UNITS[found.word("unit") or ""], found.whole("step"), found.whole("total")
    each = found.duration("each", unit)
    if step is None or total is None or each is None:
        return None
    good = (step > 0) & (step != total)
    place = found.position("rest")
    metrics: dict[str, F64] = {}
    for name, size in _SIZES.items():
        said_size = size.search(found.text, place.start, place.stop)
        if said_size is None:
            continue
        values = found.decimal_at(slice(*said_size.span("value")))
        if values is None:
            return None
        metrics[name] = np.where(values > 0, values, np.nan)
    return StepColumns(step, good, each, same={"total": total}, metrics=metrics)


def _moment(found: Any) -> ParsedEvent:
    what = found["what"]
    if what.startswith("exiting program"):
        name = "exit" if _MEANT.match(what) else "told to exit"
        return ParsedEvent(NAME, EventType.TERMINATED, name=name, at=read_dated(found["time"]))
    name = _PHASES.get(what, "initialized" if what.startswith("after in-process setup") else "other")
    return ParsedEvent(NAME, EventType.ALIVE, name=name, at=read_dated(found["time"]), earlier=name == "launched")


def _timer(found: Any) -> ParsedEvent | None:
    what = {"evaluate": EventType.EVAL, "load-checkpoint": EventType.RESTORE}.get(found["name"], EventType.SAVE)
    return ParsedEvent(
        NAME, what, took=duration(found["most"], 0.001), name="timer", counted=what is not EventType.RESTORE
    )


def _timers(found: Any) -> ParsedEvent | None:
    """Read the old form, with all timers on one line. If it contains a save, a load or an evaluation, that counts."""
    times: list[PhaseTime] = []
    for part in found["timers"].split("|"):
        name, _, value = (word.strip() for word in part.partition(":"))
        if name in ("save-checkpoint", "load-checkpoint", "evaluate"):
            return _timer({"name": name, "most": value})
        phase = phase_of(name)
        if phase is not None:
            times.append(PhaseTime(phase, duration(value, 0.001), rank=MOST))
    return ParsedEvent(NAME, EventType.IGNORE, name="timing", phases=tuple(times)) if times else None


_TIMERS: dict[str, tuple[str, str]] = {
    "forward-backward": ("forward_backward", ""),
    "optimizer": ("optimizer", ""),
    "batch-generator": ("data", "forward_backward"),
    "forward-compute": ("forward", "forward_backward"),
    "backward-compute": ("backward", "forward_backward"),
    "params-all-gather": ("communication", "optimizer"),
}
"""Timers inside an iteration: phase, and the phase that contains it."""
_COMMUNICATION = ("-recv", "-send", "-all-reduce", "-reduce-scatter", "-sync", "-all-gather")
"""Suffixes of other timers of the forward and backward pass that move data between ranks."""
_HEADINGS = ("-backward:", "-compute:", "-generator:", "optimizer", *(f"{end}:" for end in _COMMUNICATION))
_TIMER_NAME = r"(?P<name>[a-z][a-z0-9-]{2,60})"


def phase_of(name: str) -> PhaseName | None:
    """Return the phase of a timer; None if it is not part of an iteration."""
    if name in _TIMERS:
        return PhaseName(name, *_TIMERS[name])
    if name.startswith("optimizer-"):
        return PhaseName(name, "optimizer", "optimizer")
    return PhaseName(name, "communication", "forward_backward") if name.endswith(_COMMUNICATION) else None


def _timing(found: Any) -> ParsedEvent | None:
    """Read a timer inside an iteration: the minimum and maximum over ranks, the maximum, or a heading before the times
    of ranks."""
    name = phase_of(found["name"])
    if name is None:
        return None
    groups = found.groupdict()
    said_of = ((FEWEST, groups.get("least")), (MOST, groups.get("most")))
    times = tuple(PhaseTime(name, duration(text, 0.001), rank=rank) for rank, text in said_of if text)
    return ParsedEvent(NAME, EventType.IGNORE, name="timing" if times else "timed", label=found["name"], phases=times)


def _rank(text: str) -> int:
    rank = whole(text)
    if rank >= MOST_RANKS:
        raise BadValueError(f"{text} is not a rank")
    return rank


def _timed_rank(found: Any) -> ParsedEvent:
    time = PhaseTime(PhaseName("", ""), duration(found["took"], 0.001), rank=_rank(found["rank"]))
    return ParsedEvent(NAME, EventType.IGNORE, name="timed_rank", phases=(time,))


def _saved(name: str, edge: Edge = Edge.END) -> Any:
    return lambda found: ParsedEvent(NAME, EventType.SAVE, whole(found["step"]), edge=edge, name=name)


_SIZE_ARGUMENTS = {"seq_length": "sequence_length", "world_size": "world_size"}
"""Arguments with sizes of the job, and their metrics."""


def _argument(found: Any) -> ParsedEvent | None:
    key, value = found["key"], found["value"].strip()
    if key in _SIZE_ARGUMENTS:
        size = number(value) if value.isdecimal() and len(value) < _SIZE_DIGITS else None
        return None if not size else ParsedEvent(NAME, EventType.PHASE, metrics={_SIZE_ARGUMENTS[key]: float(size)})
    if value in ("", "None"):
        return None
    job = value if key == "wandb_exp_name" else value.rstrip("/").rpartition("/")[2]
    return ParsedEvent(NAME, EventType.IGNORE, name=key, job=job)


def _progress(found: Any) -> ParsedEvent | None:
    what = {
        "Starting job": EventType.START,
        "Saved checkpoint": EventType.SAVED,
        "Saving async checkpoint": EventType.STEP_FINISHED,
        "Saved async checkpoint": EventType.SAVED,
    }.get(found["what"])
    if what is None:
        return ParsedEvent(PROGRESS, EventType.IGNORE)
    step = None if what is EventType.START else whole(found["step"] or "")
    size = {"world_size": float(found["gpus"])} if what is EventType.START else {}
    detail = ASYNCHRONOUS if what is EventType.SAVED and "async" in found["what"] else ()
    return ParsedEvent(PROGRESS, what, step, detail=detail, metrics=size)


RULES = (
    LineRule(
        NAME,
        "elapsed time per iteration (",
        pattern(
                r"iteration\s+(?P<step>[^\s/]+)/\s*(?P<total>\S+) \|.{0,1000}?elapsed time per iteration "
                r"\((?P<unit>ms|s)\):\s*(?P<each>[^\s|/]+)"
                r"(?P<rest>.{0,1000})"
        ),
        _iteration,
        "iteration",
        columns=_iterations,
    ),
    LineRule(NAME, "] datetime: ",
             pattern(rf"\[(?P<what>(?!Start training\])[^\[\]]+)\] datetime: (?P<time>{_TIME})"), _moment, "datetime"),
    LineRule(NAME, "using world size:", pattern(r"using world size:\s*(?P<size>[1-9]\d{0,6})(?:,|\s|$)"),
             lambda found: ParsedEvent(NAME, EventType.IGNORE, name="world",
                 metrics={"world_size": float(found["size"])}), "world"),
    LineRule(NAME, "time to initialize megatron", pattern(r"time to initialize megatron \(seconds\):\s*(?P<took>\S+)"),
             lambda found: ParsedEvent(NAME, EventType.INIT, took=duration(found["took"]), name="took_to_initialize",
                 counted=False),
             "initialize"),
    LineRule(NAME, "saving checkpoint at",
             pattern(r"(?<!successfully )saving checkpoint at iteration\s+(?P<step>\S+) to"),
             _saved("saving", Edge.BEGIN), "saving"),
    LineRule(NAME, "successfully saved",
             pattern(r"successfully saved (?:local )?checkpoint (?:from|at) iteration\s+(?P<step>[^\s,]+)"),
             _saved("saved"), "saved"),
    LineRule(NAME, "scheduled an async checkpoint",
             pattern(r"scheduled an async checkpoint save at iteration\s+(?P<step>[^\s,]+)"),
             _saved("scheduled"), "scheduled"),
    LineRule(NAME, "successfully loaded checkpoint",
             pattern(r"successfully loaded checkpoint from .{0,1000}? at iteration\s+(?P<step>\d+)"),
             lambda found: ParsedEvent(NAME, EventType.RESUME, whole(found["step"]), name="loaded"), "loaded"),
    LineRule(NAME, "could not find the metadata file", pattern("could not find the metadata file"),
             lambda _: ParsedEvent(NAME, EventType.IGNORE, name="fresh"), "fresh"),
    *(
        LineRule(NAME, f"{name} ..", pattern(rf"^\s*(?P<name>{name}) \.+: \(?(?:[\d.]+, )?(?P<most>[^\s)]+)\)?"),
             _timer, name)
        for name in ("save-checkpoint", "save-checkpoint-non-persistent", "load-checkpoint", "evaluate")
    ),
    LineRule(NAME, "..: ",
             pattern(rf"(?:^|\s){_TIMER_NAME} \.+: (?:\((?P<least>[\d.]+), )?(?P<most>[\d.]+)\)?\s*$"),
             _timing, "timing"),
    *(
        LineRule(NAME, heading, pattern(rf"(?:^|\s){_TIMER_NAME}:\s*$"), _timing, "timed")
        for heading in _HEADINGS
    ),
    LineRule(NAME, " rank ", pattern(r"^\s*rank\s+(?P<rank>\d{1,7}): (?P<took>[\d.]+)\s*$"), _timed_rank, "timed_rank"),
    LineRule(NAME, "time (ms) | ",
             pattern(r"time \(ms\) \| (?P<timers>(?:.* )?(?:save-checkpoint|load-checkpoint|evaluate|forward-compute|"
                     r"forward-backward|backward-compute|batch-generator): .*)"),
             _timers, "timers"),
    *(
        LineRule(NAME, text, pattern(rf"{text} (?P<step>\d+)"),
             lambda found: ParsedEvent(NAME, EventType.EVAL, whole(found["step"]), name="validation"), "validation")
        for text in ("validation loss at iteration", "valid loss at iteration")
    ),
    *(
        LineRule(NAME, f" {key} ..", pattern(rf"^\s*(?P<key>{key}) \.{{2,}} (?P<value>.*)$"), _argument, key)
        for key in ("save", "wandb_exp_name", "log_interval", "seq_length", "world_size")
    ),
    LineRule(PROGRESS, "\t# GPUs: ",
             pattern(r"\tJob ID: \S*\t# GPUs: (?P<gpus>\d+)\t(?P<what>[^\t]+)(?:\tIteration: (?P<step>\S+))?"),
             _progress, "progress"),
)  # fmt: skip


def late_starts(parts: Sequence[list[LogLine]]) -> None:
    """Drop starts of progress.txt after a start in stdout: the file is written once the program is initialized. parts:
    log lines of one job by source."""
    last: int | None = None
    late: set[int] = set()
    for log_line in sorted((log_line for part in parts for log_line in part), key=lambda log_line: log_line.time):
        time, one = log_line.time, log_line.event
        if one is None or one.type not in (EventType.START, EventType.STEP, *ENDS):
            continue
        if one.type is EventType.START and one.format == PROGRESS and last is not None and time - last <= _LATE_NS:
            late.add(id(log_line))
        else:
            last = time if one.type is EventType.START else None
    for part in parts:
        part[:] = [log_line for log_line in part if id(log_line) not in late]


def translate_progress(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Add the end of the step for each checkpoint that was saved synchronously."""
    out: list[LogLine] = []
    for log_line in log_lines:
        one = log_line.event
        if one is not None and one.type is EventType.SAVED and not one.detail:
            out.append(replace(log_line, event=replace(one, type=EventType.STEP_FINISHED)))
        out.append(log_line)
    return out
