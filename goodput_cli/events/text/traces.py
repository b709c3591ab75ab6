"""Add up the step spans of one process as its records come, in bounded memory: completed steps as columns, and other
events of the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, I64, Mask, alike
from goodput_cli.events.inside import NOT_LOGGED, is_too_long
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.vocabulary.when import NS_PER_SECOND

STEPS = ("step", "train_step")
SPAN_PHASES: dict[str, str] = {
    "gc_collect": "gc",
    "fetching_batch": "data",
    "fwd_bwd": "forward_backward",
    "forward_backward": "forward_backward",
    "optim": "optimizer",
    "optim_step": "optimizer",
    "collect_dist_metrics": "communication",
    "wait_for_training_batch": "wait",
    "generate": "generate",
    "blocking_trainer_push_model_state_dict": "sync",
    "blocking_generator_pull_model_state_dict": "sync",
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
"""Phase of each span inside a step; others are part of `other`."""
SPAN_EVENTS: dict[str, EventType] = {
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
SPANS = tuple(dict.fromkeys((*STEPS, *SPAN_PHASES, *SPAN_EVENTS)))
ENDED = {f"{name}_end": code for code, name in enumerate(SPANS)}
NOTHING, FIRST_START, ERROR, DONE = -1, -2, -10, -11
BEGAN = {f"{name}_start": FIRST_START - code for code, name in enumerate(STEPS)}
_EVENT_CODES = [ERROR, DONE, *(code for code, name in enumerate(SPANS) if name in SPAN_EVENTS)]
SAVED_TAG = "checkpoint_save"
"""Tag of a step with a checkpoint; the save span exists at every step."""
SHORTEST_SAVE_MS = 10.0
"""If no step is tagged, a shorter span saved nothing."""
ALIVE_NS = 10 * NS_PER_SECOND
_CLOSE_US = 50
"""Maximum difference between two clocks at the same time."""
CLOCKS_US = 5_000_000
"""Clocks that differ by more are set to that of the lowest rank."""
_BESIDE_US = 1000
"""A span that exceeds its step by more is not part of it."""
_FOLDED = 1 << 10
"""Number of spans kept before those of completed steps are added up."""

ProcessKey = tuple[str, int, int]
"""Pool, rank and process id."""


class SpanColumns(NamedTuple):
    """Columns with a row per record that ends a span or begins a step."""

    code: I64
    time: I64
    """us."""
    ms: F64
    step: I64
    relative: I64
    """Steps since its process began; 0: not logged."""
    line: I64
    task: I64

    def take(self, rows: Any) -> SpanColumns:
        return SpanColumns(*(column[rows] for column in self))


class TracedSteps(NamedTuple):
    """Completed steps: columns, and ns by span."""

    time: I64
    """End, ns."""
    took: I64
    step: I64
    relative: NDArray[np.int32]
    line: NDArray[np.int32]
    spans: dict[str, I64]


@dataclass
class TracedProcess:
    """Records of one process, added as they come, in bounded memory."""

    pool: str
    rank: int
    host: str
    begin: int
    """Time (us) of its first record."""
    first_line: int
    end: int
    last_line: int = 0
    waiting: list[SpanColumns] = field(default_factory=list)
    folded: list[TracedSteps] = field(default_factory=list)
    rare: list[SpanColumns] = field(default_factory=list)
    """Spans that are events, and errors."""
    begun: tuple[int, int, int] = (-1, 0, 0)
    """The last step that began, with us and line."""
    begun_relative: int = 0
    """Number of steps its process had begun by then."""
    tagged: set[int] = field(default_factory=set)
    """Steps with a saved checkpoint."""
    alive: list[tuple[int, int]] = field(default_factory=list)
    """us and line, one per 10 s."""
    has_steps: bool = False
    """True if it has spans of whole steps."""
    too_long: list[int] = field(default_factory=list)
    """Lines of spans that are too long for their steps."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Codes of asyncio tasks, within which spans are nested."""

    def add(self, spans: SpanColumns, alive: Sequence[tuple[int, int]]) -> None:
        """Add records of one shape, from a block of lines after all earlier ones or from the current block."""
        new_block = len(spans.line) > 0 and int(spans.line.min()) > self.last_line
        if new_block and sum(len(one.code) for one in self.waiting) > _FOLDED:
            self._fold()
        for us, line in alive:
            self.begin, self.first_line = min((self.begin, self.first_line), (us, line))
            self.end = max(self.end, us)
            if not self.alive or us - self.alive[-1][0] >= ALIVE_NS // 1000:
                self.alive.append((us, line))
        if len(spans.code):
            self.last_line = max(self.last_line, int(spans.line.max()))
            self._keep(spans)

    def _keep(self, spans: SpanColumns) -> None:
        of_steps = (spans.code > FIRST_START - len(STEPS)) & (spans.code < len(STEPS)) & (spans.code != NOTHING)
        self.has_steps |= bool(of_steps.any())
        begins = np.flatnonzero((spans.code <= FIRST_START) & (spans.code > FIRST_START - len(STEPS)))
        if len(begins):
            last = int(begins[np.argmax(spans.line[begins])])
            self.begun = max(self.begun, (int(spans.step[last]), int(spans.time[last]), int(spans.line[last])))
            self.begun_relative = int(spans.relative[last]) if self.begun[2] == int(spans.line[last]) else 0
        rare = np.isin(spans.code, _EVENT_CODES)
        if rare.any():
            self.rare.append(spans.take(rare))
        if (spans.code >= 0).any():
            self.waiting.append(spans.take(spans.code >= 0))

    def steps(self) -> TracedSteps | None:
        """Return the completed steps; None if there are none."""
        self._fold()
        if len(self.folded) > 1:
            self.folded = [_joined(self.folded)]
        if not self.has_steps and self.waiting:  # The last of them may be incomplete.
            rest = _added_up(_in_order(self.waiting), [])
            return _joined([*self.folded, rest]) if len(rest.step) else None
        return self.folded[0] if self.folded else None

    def events(self) -> SpanColumns:
        """Return spans that are events, and errors, in order of lines."""
        every = _concatenated(self.rare)
        return every.take(np.argsort(every.line, kind="stable"))

    def _fold(self) -> None:
        """Add up completed steps; keep the spans of others."""
        if not self.waiting:
            return
        spans = _in_order(self.waiting)
        if self.has_steps:
            whole = np.isin(spans.step, spans.step[(spans.code < len(STEPS)) & (spans.step >= 0)])
        else:
            whole = (spans.step >= 0) & (spans.step < int(spans.step.max(initial=0)))
        if whole.any():
            self.waiting = [spans.take(~whole)]
            self.folded.append(_added_up(spans.take(whole), self.too_long))


def _in_order(parts: Sequence[SpanColumns]) -> SpanColumns:
    spans = _concatenated(parts)
    return spans.take(np.argsort(spans.line, kind="stable"))


def _concatenated(parts: Sequence[SpanColumns]) -> SpanColumns:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return SpanColumns(none, none, np.zeros(0), none, none, none, none)
    return SpanColumns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _added_up(spans: SpanColumns, too_long: list[int]) -> TracedSteps:
    """Return the time by span of each step. Spans within another one of their task are not counted again; spans outside
    of their step ran in the background and are not counted. Without spans of whole steps, return all spans of a step.

    too_long: receives the lines of spans that are left out.
    """
    is_step = spans.code < len(STEPS)
    if not is_step.any():
        return _without_steps(spans)
    steps, first = np.unique(spans.step[is_step], return_index=True)
    rows = np.flatnonzero(is_step)[first]
    inner = spans.take(~is_step)
    inner = inner.take(~_within_others(inner))
    at = np.searchsorted(steps, inner.step)
    within = _within(inner, spans.take(rows), at)
    inner, at = inner.take(within), at[within]
    took = np.rint(spans.ms[rows] * 1e6).astype(np.int64)
    ns = np.rint(inner.ms * 1e6).astype(np.int64)
    long = is_too_long(ns, took[at])
    if long.any():
        too_long += inner.line[long].tolist()
        inner, ns, at = inner.take(~long), ns[~long], at[~long]
    relative, line = (column[rows].astype(np.int32) for column in (spans.relative, spans.line))
    return TracedSteps(
        spans.time[rows] * 1000, took, steps, relative, line, _by_name(inner.code, ns, at, len(steps))
    )  # fmt: skip


def _by_name(codes: I64, ns: I64, at: I64, steps: int) -> dict[str, I64]:
    """Return the time of each span that is a phase, by step. at: the step of each span."""
    found: dict[str, I64] = {}
    for code in np.unique(codes).tolist():
        if SPANS[code] in SPAN_PHASES:
            own = codes == code
            column = np.full(steps, NOT_LOGGED, dtype=np.int64)
            column[at[own]] = 0
            np.add.at(column, at[own], ns[own])
            found[SPANS[code]] = column
    return found


def _within(inner: SpanColumns, whole: SpanColumns, at: I64) -> Mask:
    """Return True for spans within their step, to the precision of clocks in ms."""
    begin, first = (one.time - np.rint(one.ms * 1000).astype(np.int64) for one in (inner, whole))
    if not len(at):
        return np.zeros(0, dtype=np.bool_)
    return np.asarray((begin >= first[at] - _BESIDE_US) & (inner.time <= whole.time[at] + _BESIDE_US))


def _without_steps(spans: SpanColumns) -> TracedSteps:
    """Return the times by span if spans have a step, but the lengths of steps are unknown."""
    spans = spans.take(spans.step >= 0)
    spans = spans.take(~_within_others(spans))
    steps, at = np.unique(spans.step, return_inverse=True)
    ends, lines, relative = (np.zeros(len(steps), dtype=np.int64) for _ in range(3))
    for column, values in ((ends, spans.time), (lines, spans.line), (relative, spans.relative)):
        np.maximum.at(column, at, values)
    ns = np.rint(spans.ms * 1e6).astype(np.int64)
    took = np.full(len(steps), NOT_LOGGED, dtype=np.int64)
    found = _by_name(spans.code, ns, at, len(steps))
    return TracedSteps(ends * 1000, took, steps, relative.astype(np.int32), lines.astype(np.int32), found)


def _within_others(spans: SpanColumns) -> Mask:
    """Return True for spans within a later-ending one of the same task."""
    nested = np.zeros(len(spans.code), dtype=np.bool_)
    begin = spans.time - np.rint(spans.ms * 1000).astype(np.int64)
    for rows in alike(spans.task).values():
        own = begin[rows]
        later = np.minimum.accumulate(own[::-1])[::-1]
        nested[rows[:-1]] = later[1:] <= own[:-1] + _CLOSE_US
    return nested & (spans.ms * 1000 > _CLOSE_US)


def _joined(parts: Sequence[TracedSteps]) -> TracedSteps:
    names = tuple(dict.fromkeys(name for part in parts for name in part.spans))
    step = np.concatenate([part.step for part in parts])
    order = np.argsort(step, kind="stable")

    def column(name: str) -> I64:
        return np.concatenate(
            [part.spans.get(name, np.full(len(part.step), NOT_LOGGED, dtype=np.int64)) for part in parts]
        )[order]

    whole = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in TracedSteps._fields
        if name != "spans"
    }
    return TracedSteps(**whole, spans={name: column(name) for name in names})
