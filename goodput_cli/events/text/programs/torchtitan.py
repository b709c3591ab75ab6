"""torchtitan's structured logs: a file of JSON lines a process, a line where each span begins and ends.

The spans of the lowest rank of a launch are the job's events; those of all ranks are phases inside steps
(docs/inside-steps.md). The times are the host's, which launches kernels and goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import F64, I64, Mask, alike
from goodput_cli.events.formats.base import Output, Records
from goodput_cli.events.inside import LONGEST_NAME, MOST_RANKS, NOT_LOGGED, PhaseName, RankSteps, is_too_long
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.log_lines import MAX_STEP, EventType, LogLine, ParsedEvent
from goodput_cli.events.text.stamps import Stamp, Zone
from goodput_cli.events.values import MAX_NS, number
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "torchtitan"

_STEPS = ("step", "train_step")
_PHASES: dict[str, str] = {
    "gc_collect": "gc",
    "fetching_batch": "data",
    "fwd_bwd": "forward_backward",
    "forward_backward": "forward_backward",
    "optim": "optimizer",
    "optim_step": "optimizer",
    "collect_dist_metrics": "communication",
    "wait_for_training_batch": "wait",
    "generate": "generate",
    "trainer_push_model_state_dict": "sync",
    "generator_pull_model_state_dict": "sync",
    "push_model_state_dict": "sync",
    "pull_model_state_dict": "sync",
    "checkpoint_save": "save",
    "save_checkpoint": "save",
    "trainer_save_checkpoint": "save",
    "eval": "evaluation",
    "validate": "evaluation",
}
"""Spans inside a step, and their phases; others are part of `other`."""
_EVENTS: dict[str, EventType] = {
    "torch_distributed_init": EventType.INIT,
    "model_parallelism_init": EventType.PREP,
    "build_model": EventType.PREP,
    "vllm_init": EventType.PREP,
    "checkpoint_load": EventType.RESTORE,
    "checkpoint_save": EventType.SAVE,
    "trainer_save_checkpoint": EventType.SAVE,
    "eval": EventType.EVAL,
    "validate": EventType.EVAL,
}
"""Spans that are events of the job, from the lowest rank."""
_NAMES = tuple(dict.fromkeys((*_STEPS, *_PHASES, *_EVENTS)))
_ENDS = {f"{name}_end": code for code, name in enumerate(_NAMES)}
_STARTS = {f"{name}_start": -2 - code for code, name in enumerate(_STEPS)}
_NOTHING, _ERROR, _DONE = -1, -10, -11
_TAG = "checkpoint_save"
"""The tag of a step at which a checkpoint is saved: the span is there at every step."""
_SHORTEST_SAVE_MS = 10.0
"""Where no step is tagged, a span of less saved nothing."""
_ALIVE_NS = 10 * NS_PER_SECOND
_CLOSE_US = 50
"""Two clocks tell one instant so far apart."""
_FOLDED = 1 << 13
"""So many spans are kept before those of whole steps are added up."""

ProcessKey = tuple[str, int, int]
"""Pool, rank and process id."""


class _Spans(NamedTuple):
    """Columns: a row a record that ends a span or begins a step."""

    code: I64
    time: I64
    """us."""
    ms: F64
    step: I64
    relative: I64
    """Steps since its process began; 0: not said."""
    line: I64
    task: I64

    def take(self, rows: Any) -> _Spans:
        return _Spans(*(column[rows] for column in self))


class _Folded(NamedTuple):
    """Steps that are over: columns, and ns by span."""

    time: I64
    step: I64
    took: I64
    relative: I64
    spans: dict[str, I64]


@dataclass
class TracedProcess:
    """What one process wrote: added to as its records come, in bounded memory."""

    pool: str
    rank: int
    host: str
    begin: int
    """us of its first record."""
    first_line: int
    end: int
    last_line: int = 0
    waiting: list[_Spans] = field(default_factory=list)
    folded: list[_Folded] = field(default_factory=list)
    rare: list[_Spans] = field(default_factory=list)
    """Spans that are events, the begins of steps, and errors."""
    tagged: set[int] = field(default_factory=set)
    """Steps at which a checkpoint was saved."""
    alive: list[tuple[int, int]] = field(default_factory=list)
    """us and line, one each 10 s."""
    too_long: list[int] = field(default_factory=list)
    """Lines of spans that are longer than their steps can be."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Codes of asyncio's tasks, within which spans are nested."""

    def add(self, spans: _Spans, alive: Sequence[tuple[int, int]]) -> None:
        """Further records, of one shape and of a block of lines that begins behind all before, or is the same."""
        new_block = len(spans.line) > 0 and int(spans.line.min()) > self.last_line
        if new_block and sum(len(one.code) for one in self.waiting) > _FOLDED:
            self._fold()
        for us, line in alive:
            self.begin, self.first_line = min((self.begin, self.first_line), (us, line))
            self.end = max(self.end, us)
            if not self.alive or us - self.alive[-1][0] >= _ALIVE_NS // 1000:
                self.alive.append((us, line))
        if len(spans.code):
            self.last_line = max(self.last_line, int(spans.line.max()))
            events = np.array([_NAMES[code] in _EVENTS if code >= 0 else True for code in range(-16, len(_NAMES))])
            rare = events[spans.code + 16]
            self.rare.append(spans.take(rare))
            self.waiting.append(spans.take(spans.code >= 0))

    def steps(self) -> _Folded | None:
        """The steps that are over."""
        self._fold()
        return None if not self.folded else _joined(self.folded)

    def events(self) -> _Spans:
        """Spans that are events, begins of steps and errors, in order of lines."""
        every = _concatenated(self.rare)
        return every.take(np.argsort(every.line, kind="stable"))

    def _fold(self) -> None:
        """Add up the steps that are over; of others the spans are kept."""
        if not self.waiting:
            return
        spans = _concatenated(self.waiting)
        spans = spans.take(np.argsort(spans.line, kind="stable"))
        of_step = spans.code < len(_STEPS)
        over = np.unique(spans.step[of_step & (spans.step >= 0)])
        whole = np.isin(spans.step, over)
        self.waiting = [spans.take(~whole)] if of_step.any() else self.waiting
        if whole.any():
            self.folded.append(_added_up(spans.take(whole), self.too_long))


def _concatenated(parts: Sequence[_Spans]) -> _Spans:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return _Spans(none, none, np.zeros(0), none, none, none, none)
    return _Spans(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _added_up(spans: _Spans, too_long: list[int]) -> _Folded:
    """The time by span of each step; what lies within another span of its task is not counted again. too_long: takes
    the lines of spans that are left out."""
    is_step = spans.code < len(_STEPS)
    steps, first = np.unique(spans.step[is_step], return_index=True)
    rows = np.flatnonzero(is_step)[first]
    inner = spans.take(~is_step)
    inner = inner.take(~_within_others(inner))
    at = np.searchsorted(steps, inner.step)
    took = np.rint(spans.ms[rows] * 1e6).astype(np.int64)
    ns = np.rint(inner.ms * 1e6).astype(np.int64)
    long = is_too_long(ns, took[at])
    if long.any():
        too_long += inner.line[long].tolist()
        inner, ns, at = inner.take(~long), ns[~long], at[~long]
    found: dict[str, I64] = {}
    for code in np.unique(inner.code).tolist():
        if _NAMES[code] in _PHASES:
            own = inner.code == code
            column = np.full(len(steps), NOT_LOGGED, dtype=np.int64)
            column[at[own]] = 0
            np.add.at(column, at[own], ns[own])
            found[_NAMES[code]] = column
    return _Folded(spans.time[rows] * 1000, steps, took, spans.relative[rows], found)


def _within_others(spans: _Spans) -> Mask:
    """Which spans lie within one that ends later, of the same task: the inner one ends first."""
    nested = np.zeros(len(spans.code), dtype=np.bool_)
    begin = spans.time - np.rint(spans.ms * 1000).astype(np.int64)
    for rows in alike(spans.task).values():
        own = begin[rows]
        later = np.minimum.accumulate(own[::-1])[::-1]
        nested[rows[:-1]] = later[1:] <= own[:-1] + _CLOSE_US
    return nested & (spans.ms * 1000 > _CLOSE_US)


def _joined(parts: Sequence[_Folded]) -> _Folded:
    names = tuple(dict.fromkeys(name for part in parts for name in part.spans))
    step = np.concatenate([part.step for part in parts])
    order = np.argsort(step, kind="stable")

    def column(name: str) -> I64:
        return np.concatenate(
            [part.spans.get(name, np.full(len(part.step), NOT_LOGGED, dtype=np.int64)) for part in parts]
        )[order]

    time, step, took, relative = (np.concatenate(one)[order] for one in zip(*(part[:4] for part in parts), strict=True))
    return _Folded(time, step, took, relative, {name: column(name) for name in names})


def collect(records: Records, output: Output) -> Mask:
    """Collect the spans of processes; which records are good."""
    code, good = _codes(records), records.every()
    time, timed = _whole(records, "time_us", MAX_NS // 1000)
    good &= timed
    ms = _numbers(records, "value")
    bad = (code >= 0) & ~((ms >= 0) & (ms < 1e12))
    output.report("bad_phase", "a span without a length that can be; dropped", records, bad & good)
    output.report("bad_value", "`time_us` is no time; dropped", records, ~timed)
    step, relative = _whole(records, "step", MAX_STEP)[0], _whole(records, "relative_step", MAX_STEP)[0]
    tags = records.column("step_tags") if "step_tags" in records.keys else None
    source = records.origin.source
    part = TextPart()
    known = output.texts.sources[source].processes if source in output.texts.sources else {}
    for key, rows in _by_process(records).items():
        chosen = rows[good[rows]]
        if not len(chosen) or not 0 <= key[1] < MOST_RANKS:
            continue
        line = np.asarray(records.origin.line)[chosen].astype(np.int64)
        process = known.get(key)
        if process is None:
            host = str(records.records[int(chosen[0])].get("host_name", ""))
            process = TracedProcess(key[0], key[1], host[:LONGEST_NAME], int(time[chosen[0]]), int(line[0]), 0)
        tasks = _tasks(records, process, chosen)
        spans = _Spans(code[chosen], time[chosen], ms[chosen], step[chosen], relative[chosen], line, tasks)
        if tags is not None:
            process.tagged |= {
                int(step[at]) for at in chosen.tolist() if isinstance(tags[at], list) and _TAG in tags[at]
            }
        said = spans.code != _NOTHING
        process.add(spans.take(said & ~bad[chosen]), _alive(spans))
        part.processes[key] = process
    output.texts.add(source, part)
    return records.every()


def _codes(records: Records) -> I64:
    types = records.column("log_type_name")
    if "log_type" in records.keys and records.same("log_type") != "event":
        of_event = [one == "event" for one in records.column("log_type")]
        types = [name if event else "" for name, event in zip(types, of_event, strict=True)]
    return np.array([_code(name) for name in types], dtype=np.int64)


def _code(name: Any) -> int:
    if not isinstance(name, str):
        return _NOTHING
    if name in _ENDS:
        return _ENDS[name]
    if name in _STARTS:
        return _STARTS[name]
    if name.endswith("_error"):
        return _ERROR
    return _DONE if name == "torch_distributed_teardown_start" else _NOTHING


def _alive(spans: _Spans) -> list[tuple[int, int]]:
    """us and line of the first and the last record, and of one each 10 s between."""
    order = np.argsort(spans.line, kind="stable")
    time, line = spans.time[order], spans.line[order]
    _, first = np.unique(time // (_ALIVE_NS // 1000), return_index=True)
    rows = np.union1d(first, [len(time) - 1])
    return list(zip(time[rows].tolist(), line[rows].tolist(), strict=True))


def _tasks(records: Records, process: TracedProcess, rows: I64) -> I64:
    if "task_name" not in records.keys:
        return np.zeros(len(rows), dtype=np.int64)
    names = records.column("task_name")
    codes = process.tasks
    return np.array([codes.setdefault(str(names[at]), len(codes) + 1) for at in rows.tolist()], dtype=np.int64)


def _by_process(records: Records) -> dict[ProcessKey, I64]:
    size = len(records)
    columns = [records.column(key) if key in records.keys else [None] * size for key in ("source", "rank", "pid")]
    found: defaultdict[ProcessKey, list[int]] = defaultdict(list)
    for at, (pool, rank, pid) in enumerate(zip(*columns, strict=True)):
        key = (
            pool if isinstance(pool, str) else "",
            rank if type(rank) is int else 0,
            pid if type(pid) is int else 0,
        )
        found[key].append(at)
    return {(pool[:LONGEST_NAME], rank, pid): np.array(rows) for (pool, rank, pid), rows in found.items()}


def _whole(records: Records, key: str, most: int) -> tuple[I64, Mask]:
    """Whole numbers from 0 to `most`, -1 for others; and which are ones."""
    if key not in records.keys:
        return np.full(len(records), -1, dtype=np.int64), np.zeros(len(records), dtype=np.bool_)
    values = [one if type(one) is int and 0 <= one <= most else -1 for one in records.column(key)]
    column = np.array(values, dtype=np.int64)
    return column, column >= 0


def _numbers(records: Records, key: str) -> F64:
    """Numbers; NaN for what is none."""
    if key not in records.keys:
        return np.full(len(records), np.nan)
    values = records.column(key)
    return np.array([one if type(one) is float else _or_nan(one) for one in values], dtype=np.float64)


def _or_nan(value: Any) -> float:
    found = None if isinstance(value, bool) else number(value)
    return np.nan if found is None else float(found)


class Traced(NamedTuple):
    """A process with the launch that it is of."""

    source: int
    process: TracedProcess
    resumed: int
    """From which step; 0: from the beginning."""
    turn: int
    """How often its rank had resumed from there before."""


def launches(processes: Iterable[tuple[int, TracedProcess]]) -> list[Traced]:
    """Processes with the launch that they are of: the step that they resumed from, and how often their rank had done
    that before. So ranks of one launch meet without clocks."""
    turns: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    found: list[Traced] = []
    for source, process in sorted(processes, key=lambda one: (one[1].begin, one[0])):
        resumed = _resumed_from(process)
        key = process.pool, process.rank, resumed
        found.append(Traced(source, process, resumed, turns[key]))
        turns[key] += 1
    return found


def _resumed_from(process: TracedProcess) -> int:
    events = process.events()
    said = (events.step >= 0) & (events.relative > 0)
    return max(int((events.step - events.relative)[said].min()), 0) if said.any() else 0


def log_lines_of(processes: Iterable[tuple[int, TracedProcess]]) -> dict[int, list[LogLine]]:
    """What the processes of one job say of it, by source: the lowest rank of each launch its events, others that they
    were alive."""
    every = launches(processes)
    lowest: dict[tuple[int, int], Traced] = {}
    for one in every:
        if _has_steps(one.process):
            key = one.resumed, one.turn
            if key not in lowest or one.process.rank < lowest[key].process.rank:
                lowest[key] = one
    leaders = {id(one) for one in lowest.values()}
    found: defaultdict[int, list[LogLine]] = defaultdict(list)
    for one in every:
        lines = _lines_of_leader(one) if id(one) in leaders else _signs(one)
        found[one.source] += lines
    return dict(found)


def _has_steps(process: TracedProcess) -> bool:
    return any(((part.code <= -2) & (part.code > -2 - len(_STEPS))).any() for part in process.rare)


def _line(one: Traced, us: int, line: int, what: EventType, **more: Any) -> LogLine:
    stamp = Stamp(us * 1000, Zone.EXACT, False)
    event = ParsedEvent(NAME, what, rank=one.process.host, **more)
    return LogLine(line, "", stamp, event)


def _signs(one: Traced) -> list[LogLine]:
    process = one.process
    ends = [(process.begin, process.first_line), *process.alive, (process.end, max(process.last_line, 1))]
    return [_line(one, us, line, EventType.ALIVE) for us, line in dict.fromkeys(ends)]


def _lines_of_leader(one: Traced) -> list[LogLine]:
    """The events of a launch."""
    process, events = one.process, one.process.events()
    lines = [_line(one, process.begin, process.first_line, EventType.START)]
    if one.resumed:
        lines.append(_line(one, process.begin, process.first_line, EventType.RESUME, step=one.resumed))
    last_step, ended = int(events.step.max(initial=-1)), False
    for code, us, ms, step, line in zip(
        *(column.tolist() for column in (events.code, events.time, events.ms, events.step, events.line)), strict=True
    ):
        if -2 - len(_STEPS) < code <= -2:
            lines.append(_line(one, us, line, EventType.STEP_START, step=max(step, 0)))
        elif code == _ERROR and step == last_step:
            lines.append(_line(one, us, line, EventType.CRASHED))
            ended = True
            break
        elif code == _DONE:
            lines.append(_line(one, us, line, EventType.FINISHED))
            ended = True
        elif code >= 0:
            lines += _of_span(one, _NAMES[code], us, ms, step, line)
    steps = process.steps()
    if not ended and steps is not None and len(steps.step) and int(steps.step[-1]) == last_step:
        us = int(steps.time[-1]) // 1000  # its loop goes on to the next step at once
        lines.append(_line(one, us, process.last_line, EventType.STEP_START, step=last_step + 1))
    lines += _signs(one)
    return lines


def _of_span(one: Traced, name: str, us: int, ms: float, step: int, line: int) -> list[LogLine]:
    what, took = _EVENTS.get(name), round(ms * 1e6)
    if what is None or (what is EventType.RESTORE and not one.resumed):
        return []
    if what is EventType.SAVE and not (step in one.process.tagged if one.process.tagged else ms >= _SHORTEST_SAVE_MS):
        return []
    number_of = one.resumed if what is EventType.RESTORE else step if step >= 0 else None
    return [_line(one, us, line, what, step=number_of, took=took)]


def inside_of(job: str, processes: Iterable[tuple[int, TracedProcess]], names: Sequence[str]) -> list[RankSteps]:
    """The time by phase of each process of a job. names: of the sources."""
    found: list[RankSteps] = []
    for source, process, resumed, turn in launches(processes):
        steps = process.steps()
        if steps is None or not len(steps.step):
            continue
        spans = list(steps.spans)
        table = [steps.spans[name] for name in spans]
        found.append(
            RankSteps(
                job, process.pool, process.rank, process.host, (resumed, turn),
                time=steps.time,
                step=steps.step,
                count=np.ones(len(steps.step), dtype=np.int64),
                first=np.asarray(steps.relative == 1),
                took=steps.took,
                names=tuple(PhaseName(name, _PHASES[name]) for name in spans),
                ns=np.column_stack(table) if table else np.zeros((len(steps.step), 0), dtype=np.int64),
                source=names[source],
            )
        )  # fmt: skip
    return found
