"""Megatron-LM and its kin (Megatron-Bridge, NeMo-RL, MindSpeed, Megatron-DeepSpeed): stdout, and progress.txt.

The last rank prints iterations, rank 0 the rest: all ranks of a source tell one story.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.schema import ASYNCHRONOUS, Edge
from goodput_cli.events.text.marks import ENDS, Mark, Said, What
from goodput_cli.events.text.rules import Rule, duration, pattern, whole
from goodput_cli.events.text.stamps import read_dated
from goodput_cli.events.values import number
from goodput_cli.vocabulary.units import NS_PER_SECOND

NAME = "megatron"
PROGRESS = "megatron-progress"
_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
EVAL_LABEL = "EVAL_STEP"
_LATE_NS = 300 * NS_PER_SECOND
_UNITS = {"ms": 0.001, "s": 1.0}
_PHASES = {
    "before library-setup": "launched",
    "after megatron is initialized": "initialized",
    "after model, optimizer, and learning rate scheduler are built": "built",
    "before the start of training step": "looping",
    "after training is done": "done",
}


def _iteration(found: Any) -> Said:
    each = duration(found["each"], _UNITS[found["unit"]])
    step, total = whole(found["step"]), whole(found["total"])
    said = Said(NAME, What.STEP, step, step_time=each, name="iteration", detail=(("total", total),))
    throughput = number(found["throughput"]) if found["throughput"] else None
    if throughput is not None:
        said.metrics["tflops"] = float(throughput)
        said.detail += (("unit", "TFLOP/s"),)
    return said


def _moment(found: Any) -> Said:
    what = found["what"]
    if what.startswith("exiting program"):
        return Said(NAME, What.TERMINATED, name="exit", at=read_dated(found["time"]))
    name = _PHASES.get(what, "initialized" if what.startswith("after in-process setup") else "other")
    return Said(NAME, What.ALIVE, name=name, at=read_dated(found["time"]), earlier=name == "launched")


def _initialised(found: Any) -> Said:
    return Said(NAME, What.INIT, took=duration(found["took"]), name="took_to_initialize", counted=False)


def _timer(found: Any) -> Said | None:
    what = {"evaluate": What.EVAL, "load-checkpoint": What.RESTORE}.get(found["name"], What.SAVE)
    return Said(NAME, what, took=duration(found["most"], 0.001), name="timer", counted=what is not What.RESTORE)


def _timers(found: Any) -> Said | None:
    """The old form: all on one line. Of two on a line, the one that is not training counts."""
    for part in found["timers"].split("|"):
        name, _, value = part.partition(":")
        if name.strip() in ("save-checkpoint", "load-checkpoint", "evaluate"):
            return _timer({"name": name.strip(), "most": value.strip()})
    return None


def _loaded(found: Any) -> Said:
    return Said(NAME, What.RESUME, whole(found["step"]), name="loaded")


def _saving(found: Any) -> Said:
    return Said(NAME, What.SAVE, whole(found["step"]), edge=Edge.BEGIN, name="saving")


def _saved(name: str) -> Any:
    return lambda found: Said(NAME, What.SAVE, whole(found["step"]), edge=Edge.END, name=name)


def _argument(found: Any) -> Said | None:
    key, value = found["key"], found["value"].strip()
    if value in ("", "None"):
        return None
    job = value if key == "wandb_exp_name" else value.rstrip("/").rpartition("/")[2]
    return Said(NAME, What.IGNORE, name=key, job=job)


def _progress(found: Any) -> Said | None:
    what = {
        "Starting job": What.START,
        "Saved checkpoint": What.SAVED,
        "Saving async checkpoint": What.STEP_FINISHED,
        "Saved async checkpoint": What.SAVED,
    }.get(found["what"])
    if what is None:
        return Said(PROGRESS, What.IGNORE)
    step = None if what is What.START else whole(found["step"] or "")
    detail = ASYNCHRONOUS if what is What.SAVED and "async" in found["what"] else ()
    return Said(PROGRESS, what, step, detail=detail)


RULES = (
    Rule(
        NAME,
        "elapsed time per iteration (",
        pattern(
            r"iteration\s+(?P<step>\S+?)/\s*(?P<total>\S+) \|.*?elapsed time per iteration \((?P<unit>ms|s)\):"
            r"\s*(?P<each>[^\s|/]+)(?:.*?(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*(?P<throughput>[\d.]+))?"
        ),
        _iteration,
        "iteration",
    ),
    Rule(NAME, "] datetime: ", pattern(rf"\[(?P<what>[^\]]+)\] datetime: (?P<time>{_TIME})"), _moment, "datetime"),
    Rule(NAME, "time to initialize megatron", pattern(r"time to initialize megatron \(seconds\):\s*(?P<took>\S+)"),
         _initialised, "initialize"),
    Rule(NAME, "saving checkpoint at", pattern(r"(?<!successfully )saving checkpoint at iteration\s+(?P<step>\S+) to"),
         _saving, "saving"),
    Rule(NAME, "successfully saved",
         pattern(r"successfully saved (?:local )?checkpoint (?:from|at) iteration\s+(?P<step>[^\s,]+)"),
         _saved("saved"), "saved"),
    Rule(NAME, "scheduled an async checkpoint",
         pattern(r"scheduled an async checkpoint save at iteration\s+(?P<step>[^\s,]+)"),
         _saved("scheduled"), "scheduled"),
    Rule(NAME, "successfully loaded checkpoint",
         pattern(r"successfully loaded checkpoint from .*? at iteration\s+(?P<step>\d+)"), _loaded, "loaded"),
    Rule(NAME, "could not find the metadata file", pattern("could not find the metadata file"),
         lambda _: Said(NAME, What.IGNORE, name="fresh"), "fresh"),
    *(
        Rule(NAME, f"{name} ..", pattern(rf"^\s*(?P<name>{name}) \.+: \(?(?:[\d.]+, )?(?P<most>[^\s)]+)\)?"),
             _timer, name)
        for name in ("save-checkpoint", "save-checkpoint-non-persistent", "load-checkpoint", "evaluate")
    ),
    Rule(NAME, "time (ms) | ",
         pattern(r"time \(ms\) \| (?P<timers>.*(?:save-checkpoint|load-checkpoint|evaluate): .*)"),
         _timers, "timers"),
    Rule(NAME, "validation loss at iteration", pattern(r"validation loss at iteration (?P<step>\d+)"),
         lambda found: Said(NAME, What.EVAL, whole(found["step"]), name="validation"), "validation"),
    Rule(NAME, "valid loss at iteration", pattern(r"valid loss at iteration (?P<step>\d+)"),
         lambda found: Said(NAME, What.EVAL, whole(found["step"]), name="validation"), "validation"),
    *(
        Rule(NAME, f" {key} ..", pattern(rf"^\s*(?P<key>{key}) \.{{2,}} (?P<value>.*)$"), _argument, key)
        for key in ("save", "wandb_exp_name", "log_interval")
    ),
    Rule(PROGRESS, "\t# GPUs: ",
         pattern(r"\tJob ID: \S*\t# GPUs: (?P<gpus>\d+)\t(?P<what>[^\t]+)(?:\tIteration: (?P<step>\S+))?"),
         _progress, "progress"),
)  # fmt: skip


def late_starts(parts: Sequence[list[Mark]]) -> None:
    """Leave out starts of progress.txt behind one of stdout: it is written once the program is initialised. parts: the
    marks of one job by source."""
    every = sorted(((mark.time, mark) for part in parts for mark in part), key=lambda one: one[0])
    last: int | None = None
    late: set[int] = set()
    for time, mark in every:
        one = mark.said
        if one is None or one.what not in (What.START, What.STEP, *ENDS):
            continue
        if one.what is What.START and one.format == PROGRESS and last is not None and time - last <= _LATE_NS:
            late.add(id(mark))
        else:
            last = time if one.what is What.START else None
    for part in parts:
        part[:] = [mark for mark in part if id(mark) not in late]


def translate_progress(marks: Sequence[Mark]) -> list[Mark]:
    """A checkpoint that was saved while training waited is the end of its step too."""
    out: list[Mark] = []
    for mark in marks:
        one = mark.said
        if one is not None and one.what is What.SAVED and not one.detail:
            out.append(replace(mark, said=replace(one, what=What.STEP_FINISHED)))
        out.append(mark)
    return out
