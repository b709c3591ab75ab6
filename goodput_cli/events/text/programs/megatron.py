"""Megatron-LM and its kin (Megatron-Bridge, NeMo-RL, MindSpeed, Megatron-DeepSpeed): stdout, and progress.txt.

The last rank prints iterations, rank 0 the rest: all ranks of a source tell one story.

What the lines of Megatron mean together: where a process starts, what a timer is of, which save a line ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.schema import ASYNCHRONOUS, Edge
from goodput_cli.events.text.marks import ENDS, Mark, Rule, Said, What, duration, pattern, whole
from goodput_cli.events.text.meaning import said
from goodput_cli.events.text.stamps import read_dated
from goodput_cli.events.values import number
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "megatron"
PROGRESS = "megatron-progress"
_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
EVAL_LABEL = "EVAL_STEP"
_LATE_NS = 300 * NS_PER_SECOND
_UNITS = {"ms": 0.001, "s": 1.0}
_MOST_DIGITS = 32
"""Of a throughput: an int of hundreds has no float."""
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
    one = Said(NAME, What.STEP, step, step_time=each, name="iteration", detail=(("total", total),))
    digits = found["throughput"] or ""
    throughput = number(digits) if 0 < len(digits) <= _MOST_DIGITS else None
    if throughput is not None:
        one.metrics["tflops"] = float(throughput)
        one.detail += (("unit", "TFLOP/s"),)
    return one


def _moment(found: Any) -> Said:
    what = found["what"]
    if what.startswith("exiting program"):
        return Said(NAME, What.TERMINATED, name="exit", at=read_dated(found["time"]))
    name = _PHASES.get(what, "initialized" if what.startswith("after in-process setup") else "other")
    return Said(NAME, What.ALIVE, name=name, at=read_dated(found["time"]), earlier=name == "launched")


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


def _saved(name: str, edge: Edge = Edge.END) -> Any:
    return lambda found: Said(NAME, What.SAVE, whole(found["step"]), edge=edge, name=name)


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
    size = {"world_size": float(found["gpus"])} if what is What.START else {}
    detail = ASYNCHRONOUS if what is What.SAVED and "async" in found["what"] else ()
    return Said(PROGRESS, what, step, detail=detail, metrics=size)


RULES = (
    Rule(
        NAME,
        "elapsed time per iteration (",
        pattern(
            r"iteration\s+(?P<step>[^\s/]+)/\s*(?P<total>\S+) \|.{0,1000}?elapsed time per iteration "
            r"\((?P<unit>ms|s)\):\s*(?P<each>[^\s|/]+)"
            r"(?:.*?(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*(?P<throughput>[\d.]+))?"
        ),
        _iteration,
        "iteration",
    ),
    Rule(NAME, "] datetime: ",
         pattern(rf"\[(?P<what>(?!Start training\])[^\[\]]+)\] datetime: (?P<time>{_TIME})"), _moment, "datetime"),
    Rule(NAME, "using world size:", pattern(r"using world size:\s*(?P<size>[1-9]\d{0,6})(?:,|\s|$)"),
         lambda found: Said(NAME, What.IGNORE, name="world", metrics={"world_size": float(found["size"])}), "world"),
    Rule(NAME, "time to initialize megatron", pattern(r"time to initialize megatron \(seconds\):\s*(?P<took>\S+)"),
         lambda found: Said(NAME, What.INIT, took=duration(found["took"]), name="took_to_initialize", counted=False),
         "initialize"),
    Rule(NAME, "saving checkpoint at", pattern(r"(?<!successfully )saving checkpoint at iteration\s+(?P<step>\S+) to"),
         _saved("saving", Edge.BEGIN), "saving"),
    Rule(NAME, "successfully saved",
         pattern(r"successfully saved (?:local )?checkpoint (?:from|at) iteration\s+(?P<step>[^\s,]+)"),
         _saved("saved"), "saved"),
    Rule(NAME, "scheduled an async checkpoint",
         pattern(r"scheduled an async checkpoint save at iteration\s+(?P<step>[^\s,]+)"),
         _saved("scheduled"), "scheduled"),
    Rule(NAME, "successfully loaded checkpoint",
         pattern(r"successfully loaded checkpoint from .{0,1000}? at iteration\s+(?P<step>\d+)"),
         lambda found: Said(NAME, What.RESUME, whole(found["step"]), name="loaded"), "loaded"),
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
    *(
        Rule(NAME, text, pattern(rf"{text} (?P<step>\d+)"),
             lambda found: Said(NAME, What.EVAL, whole(found["step"]), name="validation"), "validation")
        for text in ("validation loss at iteration", "valid loss at iteration")
    ),
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
    last: int | None = None
    late: set[int] = set()
    for mark in sorted((mark for part in parts for mark in part), key=lambda mark: mark.time):
        time, one = mark.time, mark.said
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


def translate(marks: Sequence[Mark]) -> list[Mark]:
    """The marks of one source as marks with a meaning of their own, in order of lines."""
    return _Process().read(marks)


class _Process:
    """Follows the processes in one source: which lines begin one, and what belongs together."""

    def __init__(self) -> None:
        self._out: list[Mark] = []
        self._stage = 0  # how far the start of the process came: 1 launched, 2 initialised, 3 in its loop; 0: iterating
        self._initialising: int | None = None  # ns that it took
        self._loading: list[Mark] = []  # a load and its timer, until the model is built
        self._saving: Mark | None = None
        self._timed_saves: set[int] = set()
        self._iteration: Mark | None = None
        self._interval: int | None = None  # of the log, where the arguments say it
        self._size: dict[str, float] = {}  # of the process that starts, until its first iteration

    def read(self, marks: Sequence[Mark]) -> list[Mark]:
        for mark in marks:
            reader = getattr(self, f"_on_{said(mark).name}", None)
            if reader is not None:
                reader(mark)
            elif said(mark).what is not What.IGNORE:
                self._out.append(mark)
        self._flush_load(None)
        self._leave_open(Edge.BEGIN)
        _without_first_counted_twice([one for one in self._out if said(one).name == "iteration"], self._interval)
        return self._out

    def _add(self, mark: Mark, what: What, time: int, end: int | None = None, **more: Any) -> None:
        one = Said(NAME, what, **more)
        self._out.append(Mark(mark.line, mark.stream, mark.stamp, one, time, time if end is None else end))

    def _begins(self, stage: int) -> bool:
        """Whether a line of this stage of starting is the first of its process."""
        new = self._stage == 0 or stage <= self._stage
        self._stage = stage
        if new:
            self._leave_open(Edge.BEGIN)
        return new

    def _leave_open(self, edge: Edge) -> None:
        """A save that no line ends: a begin where the process went no further, else a point."""
        begun, self._saving = self._saving, None
        if begun is not None:
            self._add(begun, What.SAVE, begun.time, edge=edge, step=said(begun).step)

    def _on_world(self, mark: Mark) -> None:
        self._size = said(mark).metrics

    def _on_log_interval(self, mark: Mark) -> None:
        interval = said(mark).job
        self._interval = int(interval) if interval.isdigit() else None

    def _on_launched(self, mark: Mark) -> None:
        if self._begins(1):
            self._add(mark, What.START, mark.time)
            self._add(mark, What.INIT, mark.time, edge=Edge.BEGIN)

    def _on_took_to_initialize(self, mark: Mark) -> None:
        self._initialising = said(mark).took

    def _on_initialized(self, mark: Mark) -> None:
        launched = self._stage == 1
        if self._begins(2):
            start = mark.time - (self._initialising or 0)
            self._add(mark, What.START, start)
            if self._initialising:
                self._add(mark, What.INIT, start, edge=Edge.BEGIN)
                self._add(mark, What.INIT, mark.time, edge=Edge.END)
        elif launched:
            self._add(mark, What.INIT, mark.time, edge=Edge.END)
        self._add(mark, What.PREP, mark.time, edge=Edge.BEGIN)
        self._initialising = None

    def _on_looping(self, mark: Mark) -> None:
        before = self._stage
        if self._begins(3):
            self._start_in_loop(mark)
            return
        self._flush_load(mark)
        if before == 2:
            self._add(mark, What.PREP, mark.time, edge=Edge.END)

    def _start_in_loop(self, mark: Mark) -> None:
        """A log whose lines of initialization are missing: a load before the loop is of the process that loops."""
        before = len(self._out)
        self._flush_load(mark)
        loads = self._out[before:]
        if loads and loads[0].stamp is None and loads[0].time == loads[0].end:  # its time is that of a line before
            loads = [replace(loads[0], time=mark.time, end=mark.time)]
        first = loads[0] if loads else mark
        del self._out[before:]
        self._add(first, What.START, first.time)
        self._out += loads

    def _on_loaded(self, mark: Mark) -> None:
        self._loading.append(mark)

    def _on_built(self, mark: Mark) -> None:
        self._add(mark, What.ALIVE, mark.time)
        self._flush_load(mark)

    def _flush_load(self, built: Mark | None) -> None:
        """A load ends where the model is built, right behind it."""
        if not self._loading:
            return
        loaded = next((mark for mark in self._loading if said(mark).name == "loaded"), None)
        took = next((said(mark).took for mark in self._loading if said(mark).name == "timer"), None)
        self._loading = []
        if loaded is None:
            return
        if built is None or not took:
            self._out.append(loaded)
            return
        self._add(loaded, What.RESTORE, built.time - took, built.time, step=said(loaded).step)

    def _on_timer(self, mark: Mark) -> None:
        what, took = said(mark).what, said(mark).took or 0
        if what is What.RESTORE:
            self._loading.append(mark)
            return
        if what is What.SAVE and self._stamped_save():
            return
        step = None if self._iteration is None else said(self._iteration).step
        if what is What.SAVE:
            self._saving = None
        begin = mark.time if mark.odd else mark.time - took
        end = mark.end if mark.odd else mark.time
        self._out = [one for one in self._out if not self._marks_same(one, what)]
        self._add(mark, what, begin, end, step=step, label=EVAL_LABEL if what is What.EVAL else "")

    def _stamped_save(self) -> bool:
        """Whether the save that this timer is of stands in the log with its own times."""
        last = next((one for one in reversed(self._out) if said(one).what is What.SAVE), None)
        if last is None or self._iteration is None:
            return False
        return last.end > last.time and last.line > self._iteration.line

    def _marks_same(self, one: Mark, what: What) -> bool:
        """Whether an earlier mark only says that there was what a timer now gives the time of."""
        since = -1 if self._iteration is None else self._iteration.line
        return said(one).what is what and one.line > since and one.end == one.time

    def _on_saving(self, mark: Mark) -> None:
        self._saving = mark

    def _on_saved(self, mark: Mark) -> None:
        step = said(mark).step
        if step in self._timed_saves:  # the end of a save that went on behind training
            self._add(mark, What.ALIVE, mark.time)
            return
        begun, self._saving = self._saving, None
        start = mark.time
        if begun is not None and said(begun).step == step and begun.stamp is not None and mark.stamp is not None:
            start = begun.time
        self._add(mark, What.SAVE, start, mark.time, step=step)
        if said(mark).name == "scheduled" and step is not None:
            self._timed_saves.add(step)

    _on_scheduled = _on_saved

    def _on_validation(self, mark: Mark) -> None:
        since = -1 if self._iteration is None else self._iteration.line
        if not any(said(one).what is What.EVAL and one.line > since for one in self._out):
            self._add(mark, What.EVAL, mark.time, step=said(mark).step, label=EVAL_LABEL)

    def _on_iteration(self, mark: Mark) -> None:
        self._stage = 0
        self._leave_open(Edge.POINT)
        self._iteration = mark
        self._out.append(mark)
        if self._size:
            self._add(mark, What.ALIVE, mark.time, name="world", metrics=self._size)
            self._size = {}

    def _on_done(self, mark: Mark) -> None:
        last = None if self._iteration is None else said(self._iteration)
        total = dict(last.detail).get("total") if last is not None else None
        exited = any(said(one).name == "exit" for one in self._out[-4:])
        short = last is not None and last.step is not None and total is not None and last.step < total
        self._add(mark, What.TERMINATED if exited and short else What.FINISHED, mark.time)


def _without_first_counted_twice(records: Sequence[Mark], interval: int | None) -> None:
    """A process prints its first iteration by itself, and counts it again in the mean of the next line: at an interval
    of 10, a run that resumes from 500 prints 501, and 510 with the mean of all ten."""
    for at in range(len(records) - 1):
        first, second = records[at].said, records[at + 1].said
        before = records[at - 1].said if at else None
        later = records[at + 2].said if at + 2 < len(records) else None
        if first is None or second is None or first.step is None or second.step is None:
            continue
        counted = interval or (later.step - second.step if later and later.step else None)
        is_first = before is None or before.step is None or first.step != before.step + (counted or 0)
        apart = second.step - first.step
        if not is_first or counted is None or counted < 3 or apart != counted - 1 or second.step % counted:
            continue
        mean = counted * (second.step_time or 0) - (first.step_time or 0)
        if mean > 0:
            second.step_time = mean // apart
