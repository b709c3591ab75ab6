"""Megatron-LM and its kin (Megatron-Bridge, NeMo-RL, MindSpeed, Megatron-DeepSpeed): stdout, and progress.txt.

The last rank prints iterations, rank 0 the rest: all ranks of a source tell one story.

What the lines of Megatron mean together: where a process starts, what a timer is of, which save a line ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.inside import FEWEST, MOST, MOST_RANKS, PhaseName, PhaseTime
from goodput_cli.events.schema import ASYNCHRONOUS, BATCH_SIZE, EVAL_LABEL, Edge
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
from goodput_cli.events.text.meaning import said
from goodput_cli.events.text.stamps import read_dated
from goodput_cli.events.values import number
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "megatron"
PROGRESS = "megatron-progress"
_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
_LATE_NS = 300 * NS_PER_SECOND
_MEANT = pattern(r"exiting program (?:after [\d.]+ minutes|at iteration \d+)")
_LEFT = ("exit", "told to exit")
"""Names of lines that say that it left before it was done."""
_UNITS = {"ms": 0.001, "s": 1.0}
_SIZES = {
    BATCH_SIZE: pattern(r"global batch size:\s*(?P<value>\d{1,12})(?!\d)"),
    "tflops": pattern(r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*(?P<value>\d{1,12}(?:\.\d{1,12})?)(?!\d)"),
    "tokens_per_second_accelerator": pattern(r"tokens/sec/GPU:\s*(?P<value>\d{1,12}(?:\.\d{1,12})?)(?!\d)"),
}
"""What a line of an iteration says of work, as metrics."""
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
    """The old form: all on one line. Of two on a line, the one that is not training counts."""
    for part in found["timers"].split("|"):
        name, _, value = part.partition(":")
        if name.strip() in ("save-checkpoint", "load-checkpoint", "evaluate"):
            return _timer({"name": name.strip(), "most": value.strip()})
    return None


_TIMERS: dict[str, tuple[str, str]] = {
    "forward-backward": ("forward_backward", ""),
    "optimizer": ("optimizer", ""),
    "batch-generator": ("data", "forward_backward"),
    "forward-compute": ("forward", "forward_backward"),
    "backward-compute": ("backward", "forward_backward"),
    "params-all-gather": ("communication", "optimizer"),
}
"""Timers inside an iteration: the phase of each, and that which holds it."""
_COMMUNICATION = ("-recv", "-send", "-all-reduce", "-reduce-scatter", "-sync", "-all-gather")
"""How other timers of a forward and backward pass end that move data between ranks."""
_HEADINGS = ("-backward:", "-compute:", "-generator:", "optimizer", *(f"{end}:" for end in _COMMUNICATION))
_TIMER_NAME = r"(?P<name>[a-z][a-z0-9-]{2,60})"


def _phase_of(name: str) -> PhaseName | None:
    """The phase of a timer; None for one that is none of an iteration."""
    if name in _TIMERS:
        return PhaseName(name, *_TIMERS[name])
    if name.startswith("optimizer-"):
        return PhaseName(name, "optimizer", "optimizer")
    return PhaseName(name, "communication", "forward_backward") if name.endswith(_COMMUNICATION) else None


def _timing(found: Any) -> ParsedEvent | None:
    """A timer inside an iteration: the least and the most of all ranks, or the most, or a heading above those of each
    rank."""
    name = _phase_of(found["name"])
    if name is None:
        return None
    groups = found.groupdict()
    said_of = ((FEWEST, groups.get("least")), (MOST, groups.get("most")))
    times = tuple(PhaseTime(name, duration(text, 0.001), rank=rank) for rank, text in said_of if text)
    return ParsedEvent(NAME, EventType.IGNORE, name="timing" if times else "timed", label=found["name"], phases=times)


def _rank(text: str) -> int:
    rank = whole(text)
    if rank >= MOST_RANKS:
        raise BadValueError(f"{text} is no rank")
    return rank


def _timed_rank(found: Any) -> ParsedEvent:
    time = PhaseTime(PhaseName("", ""), duration(found["took"], 0.001), rank=_rank(found["rank"]))
    return ParsedEvent(NAME, EventType.IGNORE, name="timed_rank", phases=(time,))


def _saved(name: str, edge: Edge = Edge.END) -> Any:
    return lambda found: ParsedEvent(NAME, EventType.SAVE, whole(found["step"]), edge=edge, name=name)


_SIZE_ARGUMENTS = {"seq_length": "sequence_length", "world_size": "world_size"}
"""Arguments that are sizes of the job, and the metrics that they become."""


def _argument(found: Any) -> ParsedEvent | None:
    key, value = found["key"], found["value"].strip()
    if key in _SIZE_ARGUMENTS:
        size = number(value) if value.isdigit() and len(value) < _SIZE_DIGITS else None
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
             pattern(r"time \(ms\) \| (?P<timers>.*(?:save-checkpoint|load-checkpoint|evaluate): .*)"),
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
    """Leave out starts of progress.txt behind one of stdout: it is written once the program is initialised. parts: the
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
    """A checkpoint that was saved while training waited is the end of its step too."""
    out: list[LogLine] = []
    for log_line in log_lines:
        one = log_line.event
        if one is not None and one.type is EventType.SAVED and not one.detail:
            out.append(replace(log_line, event=replace(one, type=EventType.STEP_FINISHED)))
        out.append(log_line)
    return out


def translate(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """The log lines of one source as log lines with a meaning of their own, in order of lines."""
    return _Process().read(log_lines)


class _Process:
    """Follows the processes in one source: which lines begin one, and what belongs together."""

    def __init__(self) -> None:
        self._out: list[LogLine] = []
        self._stage = 0  # how far the start of the process came: 1 launched, 2 initialised, 3 in its loop; 0: iterating
        self._initialising: int | None = None  # ns that it took
        self._loading: list[LogLine] = []  # a load and its timer, until the model is built
        self._saving: LogLine | None = None
        self._timed_saves: set[int] = set()
        self._iteration: LogLine | None = None
        self._interval: int | None = None  # of the log, where the arguments say it
        self._size: dict[str, float] = {}  # of the process that starts, until its first iteration
        self._timer: PhaseName | None = None  # whose times of ranks follow

    def read(self, log_lines: Sequence[LogLine]) -> list[LogLine]:
        for log_line in log_lines:
            reader = getattr(self, f"_on_{said(log_line).name}", None)
            if reader is not None:
                reader(log_line)
            elif said(log_line).type is not EventType.IGNORE:
                self._out.append(log_line)
        self._flush_load(None)
        self._leave_open(Edge.BEGIN)
        _without_first_counted_twice([one for one in self._out if said(one).name == "iteration"], self._interval)
        return self._out

    def _add(self, log_line: LogLine, what: EventType, time: int, end: int | None = None, **more: Any) -> None:
        one = ParsedEvent(NAME, what, **more)
        self._out.append(
            LogLine(log_line.line, log_line.stream, log_line.stamp, one, time, time if end is None else end)
        )

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
            self._add(begun, EventType.SAVE, begun.time, edge=edge, step=said(begun).step)

    def _on_world(self, log_line: LogLine) -> None:
        self._size = said(log_line).metrics

    def _on_log_interval(self, log_line: LogLine) -> None:
        interval = said(log_line).job
        self._interval = int(interval) if interval.isdigit() else None

    def _on_launched(self, log_line: LogLine) -> None:
        if self._begins(1):
            self._add(log_line, EventType.START, log_line.time)
            self._add(log_line, EventType.INIT, log_line.time, edge=Edge.BEGIN)

    def _on_took_to_initialize(self, log_line: LogLine) -> None:
        self._initialising = said(log_line).took

    def _on_initialized(self, log_line: LogLine) -> None:
        launched = self._stage == 1
        if self._begins(2):
            start = log_line.time - (self._initialising or 0)
            self._add(log_line, EventType.START, start)
            if self._initialising:
                self._add(log_line, EventType.INIT, start, edge=Edge.BEGIN)
                self._add(log_line, EventType.INIT, log_line.time, edge=Edge.END)
        elif launched:
            self._add(log_line, EventType.INIT, log_line.time, edge=Edge.END)
        self._add(log_line, EventType.PREP, log_line.time, edge=Edge.BEGIN)
        self._initialising = None

    def _on_looping(self, log_line: LogLine) -> None:
        before = self._stage
        if self._begins(3):
            self._start_in_loop(log_line)
            return
        self._flush_load(log_line)
        if before == 2:
            self._add(log_line, EventType.PREP, log_line.time, edge=Edge.END)

    def _start_in_loop(self, log_line: LogLine) -> None:
        """A log whose lines of initialization are missing: a load before the loop is of the process that loops."""
        before = len(self._out)
        self._flush_load(log_line)
        loads = self._out[before:]
        if loads and loads[0].stamp is None and loads[0].time == loads[0].end:  # its time is that of a line before
            loads = [replace(loads[0], time=log_line.time, end=log_line.time)]
        first = loads[0] if loads else log_line
        del self._out[before:]
        self._add(first, EventType.START, first.time)
        self._out += loads

    def _on_loaded(self, log_line: LogLine) -> None:
        self._loading.append(log_line)

    def _on_built(self, log_line: LogLine) -> None:
        self._add(log_line, EventType.ALIVE, log_line.time)
        self._flush_load(log_line)

    def _flush_load(self, built: LogLine | None) -> None:
        """A load ends where the model is built, right behind it."""
        if not self._loading:
            return
        loaded = next((log_line for log_line in self._loading if said(log_line).name == "loaded"), None)
        took = next((said(log_line).took for log_line in self._loading if said(log_line).name == "timer"), None)
        self._loading = []
        if loaded is None:
            return
        if built is None or not took:
            self._out.append(loaded)
            return
        self._add(loaded, EventType.RESTORE, built.time - took, built.time, step=said(loaded).step)

    def _on_timer(self, log_line: LogLine) -> None:
        what, took = said(log_line).type, said(log_line).took or 0
        if what is EventType.RESTORE:
            self._loading.append(log_line)
            return
        if what is EventType.SAVE and self._stamped_save():
            return
        step = None if self._iteration is None else said(self._iteration).step
        if what is EventType.SAVE:
            self._saving = None
        begin = log_line.time if log_line.odd else log_line.time - took
        end = log_line.end if log_line.odd else log_line.time
        self._out = [one for one in self._out if not self._marks_same(one, what)]
        self._add(log_line, what, begin, end, step=step, label=EVAL_LABEL if what is EventType.EVAL else "")

    def _stamped_save(self) -> bool:
        """Whether the save that this timer is of stands in the log with its own times."""
        last = next((one for one in reversed(self._out) if said(one).type is EventType.SAVE), None)
        if last is None or self._iteration is None:
            return False
        return last.end > last.time and last.line > self._iteration.line

    def _marks_same(self, one: LogLine, what: EventType) -> bool:
        """Whether an earlier log line only says that there was what a timer now gives the time of."""
        since = -1 if self._iteration is None else self._iteration.line
        return said(one).type is what and one.line > since and one.end == one.time

    def _on_saving(self, log_line: LogLine) -> None:
        self._saving = log_line

    def _on_saved(self, log_line: LogLine) -> None:
        step = said(log_line).step
        if step in self._timed_saves:  # the end of a save that went on behind training
            self._add(log_line, EventType.ALIVE, log_line.time)
            return
        begun, self._saving = self._saving, None
        start = log_line.time
        if begun is not None and said(begun).step == step and begun.stamp is not None and log_line.stamp is not None:
            start = begun.time
        self._add(log_line, EventType.SAVE, start, log_line.time, step=step)
        if said(log_line).name == "scheduled" and step is not None:
            self._timed_saves.add(step)

    _on_scheduled = _on_saved

    def _on_validation(self, log_line: LogLine) -> None:
        since = -1 if self._iteration is None else self._iteration.line
        if not any(said(one).type is EventType.EVAL and one.line > since for one in self._out):
            self._add(log_line, EventType.EVAL, log_line.time, step=said(log_line).step, label=EVAL_LABEL)

    def _on_iteration(self, log_line: LogLine) -> None:
        self._stage = 0
        self._leave_open(Edge.POINT)
        self._timer = None
        self._iteration = replace(log_line, event=replace(said(log_line), phases=()))  # those of timers are added to it
        self._out.append(self._iteration)
        if self._size:
            self._add(log_line, EventType.ALIVE, log_line.time, name="world", metrics=self._size)
            self._size = {}

    def _on_timing(self, log_line: LogLine) -> None:
        if self._iteration is not None:
            iteration = said(self._iteration)
            iteration.phases += said(log_line).phases

    def _on_timed(self, log_line: LogLine) -> None:
        self._timer = _phase_of(said(log_line).label)

    def _on_timed_rank(self, log_line: LogLine) -> None:
        if self._iteration is not None and self._timer is not None:
            iteration = said(self._iteration)
            iteration.phases += tuple(one._replace(name=self._timer) for one in said(log_line).phases)

    def _on_exit(self, log_line: LogLine) -> None:
        """It leaves by the clock or at an iteration, as it was told to: an end that was meant, if it has saved."""
        since = -1 if self._iteration is None else self._iteration.line
        saved = any(
            said(one).type is EventType.SAVE and one.line > since and said(one).edge is not Edge.BEGIN
            for one in self._out
        )
        what = EventType.STOPPED if saved else EventType.TERMINATED
        self._add(log_line, what, log_line.time, name="exit", at=said(log_line).at)

    def _on_done(self, log_line: LogLine) -> None:
        last = None if self._iteration is None else said(self._iteration)
        exited = next((said(one).type for one in self._out[-4:] if said(one).name in _LEFT), None)
        short = last is not None and last.step is not None and last.total is not None and last.step < last.total
        self._add(log_line, exited if exited is not None and short else EventType.FINISHED, log_line.time)


def _without_first_counted_twice(records: Sequence[LogLine], interval: int | None) -> None:
    """A process prints its first iteration by itself, and counts it again in the mean of the next line: at an interval
    of 10, a run that resumes from 500 prints 501, and 510 with the mean of all ten."""
    for at in range(len(records) - 1):
        first, second = records[at].event, records[at + 1].event
        before = records[at - 1].event if at else None
        later = records[at + 2].event if at + 2 < len(records) else None
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
