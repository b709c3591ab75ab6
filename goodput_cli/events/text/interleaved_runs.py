"""Detect several runs that print to one source: equal steps alternate with different losses."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64

_LOSS = re.compile(
    r"(?<![A-Za-z])(?:loss|cost|nll|ppl|perplexity|reward)(?:[ _-]?(?:mean|avg))?['\"]?[ \t]{0,4}[:=]?[ \t]{0,8}"
    r"[\['\"]{0,2}(-?\d{1,20}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?)",
    re.IGNORECASE,
)
REMEMBERED, _LANES, _PAIRS = 1024, 16, 32
"""Maximum number of stored steps per lane, lanes per program, and pairs of lines."""
_TURNS = 3
"""Number of alternations of equal steps with different losses before they are reported."""
_APART = 6
"""The same for runs without common steps."""
_MOST_WORDS, _MOSTLY = 80, 0.9
_TIMES = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ,]|\d{1,2}/\d\d/\d{2,4}[ ,]|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?")
_WORDS = re.compile(r"[A-Za-z]+|\d+(?:_\d+)+|\d+(?:\.\d+)?(?:[eE][+-]\d+)?")
_OF_RANKS = frozenset(
    "rank ranks r node nodes host hosts gpu gpus device devices cuda worker workers proc process processes replica pod "
    "task shard slice stage core tpu npu rank_ w n ip dp tp pp ep cp fsdp".split()
)
_OF_PARTS = frozenset(
    "micro microbatch microstep mb accum accumulation substep inner minibatch batch iter iteration epoch chunk part "
    "train training trn val valid validation eval evaluation test dev actor critic policy value generator "
    "discriminator gen disc g d student teacher encoder decoder main aux master chief leader launcher launch ema "
    "total mean avg last best worker trainer evaluator".split()
)
"""Words for the part of a run that a line is about, or for the process that wrote it."""
_OF_RUNS = frozenset("run runs exp experiment trial seed job fold config sweep array arm lr".split())
_OF_TIMES = frozenset("time times elapsed wall eta s sec secs ms took dt duration timestamp".split())
_DRAWN = re.compile(r"\d%[| ].{0,200}?\[\d{1,9}:\d\d|^\s*\{'loss': ")
"""States of bars, and lines that name a rounded epoch instead of a step."""
_CLOCKS = re.compile(r"\b\d{1,2}:\d\d:\d\d\b")
_HIGHEST_RANK, _TAG_DIGITS = 4096, 36


def loss_in(text: str) -> float | None:
    """Return the loss in a line; None if there is none."""
    found = _LOSS.search(text)
    return None if found is None else float(found[1])


class Interleaved(NamedTuple):
    """Location where two runs seem to alternate: a line of each, its step and its loss."""

    lines: tuple[int, int]
    steps: tuple[int, int]
    losses: tuple[float, float] | None
    """None if they have no common step."""
    is_question: bool = False
    """True if they may be one run: one bar may draw a step again with another loss, and ranks keep step."""

    @property
    def sentence(self) -> str:
        """Return the message with the assumption and the remedy."""
        step, other = self.steps
        shown = f"step {step} and step {other}, never the same step"
        if self.losses is not None:
            shown = f"step {step} with loss {self.losses[0]:g} and with loss {self.losses[1]:g}"
        so = ". They count as one job" if self.is_question else ", so goodput is not judged"
        then = "these numbers are wrong: " if self.is_question else ""
        return (
            f"found two interleaved step counters ({shown}){so}. If separate runs share this file, {then}use one file "
            "per run. If it is one job, confirm it with --job-name"
        )


class _StepLine(NamedTuple):
    line: int
    step: int
    text: str


class LineRun(NamedTuple):
    """Lines about steps that rise."""

    numbers: I64
    steps: I64
    line: Callable[[int], str]
    """Returns one of the last lines; `REMEMBERED` are kept."""
    head: str = ""
    """Prefix of each line."""

    def remembered(self) -> Iterator[tuple[int, tuple[int, str]]]:
        """Yield the steps and lines that a lane keeps."""
        for at in range(max(len(self.numbers) - REMEMBERED, 0), len(self.numbers)):
            yield int(self.steps[at]), (int(self.numbers[at]), self.text(at))

    def text(self, at: int) -> str:
        """Return a line by its index."""
        return self.head + self.line(at - max(len(self.numbers) - REMEMBERED, 0))


@dataclass(slots=True)
class _Lane:
    """Lines of rising steps, as one run prints them."""

    first: int
    last: int
    stride: int = 0
    lines: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By step."""
    final: str = ""
    """The last line of its last step, after a bar was redrawn."""
    first_of_step: tuple[str, str] | None = None
    """The first line of that step, and the last of the previous one."""
    waiting: deque[LineRun] = field(default_factory=deque)
    """Further lines, after those of `lines`."""
    held: int = 0
    """Number of waiting lines."""

    def is_carried(self, bar: bool) -> bool:
        """Return True if the first line of that step contains the loss of the previous one, as a bar's line may."""
        if self.first_of_step is None:
            return bar
        losses = loss_in(self.first_of_step[0]), loss_in(self.first_of_step[1])
        return losses[0] == losses[1] and (bar or losses[0] is not None)

    def add(self, line: int, step: int, text: str) -> None:
        self.first_of_step = text, self.final
        self.stride, self.last, self.final = step - self.last, step, text
        if self.waiting:
            self._queue(LineRun(np.array([line]), np.array([step]), lambda _: text))
            return
        lines = self.lines
        lines[step] = line, text
        if len(lines) > REMEMBERED:
            del lines[next(iter(lines))]

    def add_run(self, run: LineRun) -> None:
        """Add consecutive lines."""
        many = len(run.numbers)
        final = run.text(many - 1)
        self.first_of_step = final, run.text(many - 2) if many > 1 else self.final
        before = int(run.steps[-2]) if many > 1 else self.last
        self.last, self.final = int(run.steps[-1]), final
        self.stride = self.last - before
        self._queue(run)

    def _queue(self, run: LineRun) -> None:
        """Queue lines; drop the oldest beyond the limit."""
        self.waiting.append(run)
        self.held += len(run.numbers)
        while self.held - len(self.waiting[0].numbers) >= REMEMBERED:
            self.held -= len(self.waiting.popleft().numbers)
            self.lines.clear()

    def settle(self) -> None:
        """Process the queued lines."""
        for run in self.waiting:
            self.lines.update(run.remembered())
        self.waiting.clear()
        self.held = 0
        for step in list(self.lines)[:-REMEMBERED]:
            del self.lines[step]


class InterleavedRunDetector:
    """Follows the steps in lines of one stream and program, and detects several runs.

    There are several if one repeatedly continues after another one printed steps that do not follow it, with different
    losses. A restart never returns to the previous attempt.
    """

    def __init__(self) -> None:
        self._lanes: list[_Lane] = []  # The last one is the most recently used.
        self._same, self._other = 0, 0  # Numbers of equal steps with the same and with a different loss.
        self._apart: list[tuple[_StepLine, _StepLine]] = []
        self._pairs: list[tuple[_StepLine, _StepLine]] = []
        self._most = 1

    def restart(self) -> None:
        """Forget all lanes, as a process began or died."""
        self._lanes = []

    def take(self, line: int, step: int, text: str, bar: bool = False, rounded: bool = False) -> None:
        """Add the next line about a step. bar: True for a progress bar, which is redrawn with the loss of its step.
        rounded: True if several steps have one number."""
        current = self._lanes[-1] if self._lanes else None
        if current is not None and step - current.last == current.stride > 0:
            current.add(line, step, text)
            return
        if current is not None and step == current.last and (rounded or self._is_redrawn(current, text, bar)):
            current.final = text
            return
        lane = self._lane_of(step)
        if lane is None:
            self._lanes.append(_Lane(step, step, 0, {step: (line, text)}, text))
            del self._lanes[:-_LANES]
            self._most = max(self._most, len(self._lanes))
            return
        if lane is not current and current is not None:
            self._compare(current, lane, _StepLine(line, step, text))
            self._lanes.remove(lane)
            self._lanes.append(lane)
        lane.add(line, step, text)

    def goes_on(self, steps: I64) -> int:
        """Return how many lines belong to what was printed last, whatever they contain. steps: of lines, rising."""
        if not self._lanes or steps[0] <= self._lanes[-1].last:
            return 0
        current = self._lanes[-1]
        if len(self._lanes) == 1:
            return len(steps)
        steps = steps[:REMEMBERED]
        others = np.flatnonzero(np.diff(steps, prepend=current.last) != current.stride)
        return int(others[0]) if len(others) else len(steps)

    def take_run(self, run: LineRun) -> None:
        """Add the next consecutive lines about steps."""
        self._lanes[-1].add_run(run)

    def found(self) -> Interleaved | None:
        """Return an example if several runs seem to print; None otherwise."""
        if self._other >= max(_TURNS, self._same + 1) and not _are_parts_of_one_run(self._pairs, self._most):
            one, other = self._pairs[-1]
            losses = loss_in(one.text), loss_in(other.text)
            assert losses[0] is not None
            assert losses[1] is not None
            is_question = _draw(one, other) or _keep_step(self._pairs)
            shown = losses[0], losses[1]
            return Interleaved((one.line, other.line), (one.step, other.step), shown, is_question)
        rare = len(self._apart) > self._same + self._other
        if len(self._apart) >= _APART and rare and not _are_parts_of_one_run(self._apart, self._most):
            one, other = self._apart[-1]
            return Interleaved((one.line, other.line), (one.step, other.step), None, _draw(one, other))
        return None

    def _lane_of(self, step: int) -> _Lane | None:
        """Return the lane that a step continues: at its usual distance, otherwise the nearest, with preference for the
        current one; None if there is none. Only the very next step returns to another lane."""
        below = [lane for lane in reversed(self._lanes) if lane.last < step]
        if self._lanes and step <= self._lanes[-1].last:
            below = [lane for lane in below if not lane.stride or step - lane.last <= 2 * lane.stride]
        exact = [lane for lane in below if step - lane.last == lane.stride]
        if exact:
            return exact[0] if exact[0] is self._lanes[-1] else exact[-1]
        return min(below, key=lambda lane: step - lane.last, default=None)

    def _is_redrawn(self, lane: _Lane, text: str, bar: bool) -> bool:
        return lane.is_carried(bar) or (bar and loss_in(text) == loss_in(lane.final))

    def _compare(self, left: _Lane, lane: _Lane, said: _StepLine) -> None:
        """Record the result when another lane is continued."""
        if said.step == left.last and said.step - lane.last >= 2 * left.stride > 0:
            return  # An evaluation every few records prints the step again.
        left.settle()
        other = left.lines.get(said.step)
        if other is None:
            if said.step < left.first and lane.last < left.first and len(self._apart) < _PAIRS:
                self._apart.append((_StepLine(left.lines[left.last][0], left.last, left.lines[left.last][1]), said))
            return
        line, text = other
        losses = loss_in(text), loss_in(said.text)
        if losses[0] == losses[1]:
            self._same += 1
        elif None not in losses:
            self._other += 1
            if len(self._pairs) < _PAIRS:
                self._pairs.append((_StepLine(line, said.step, text), said))


def _keep_step(pairs: Sequence[tuple[_StepLine, _StepLine]]) -> bool:
    """Return True if the lines of nearly all pairs were written in the same second, and differ in nothing but decimal
    numbers: as those of ranks, which wait for one another."""
    same = sum(_second_and_words(one.text) == _second_and_words(other.text) for one, other in pairs)
    return same >= _MOSTLY * len(pairs) and bool(_CLOCKS.search(pairs[-1][0].text))


def _second_and_words(text: str) -> tuple[list[str], list[str]]:
    return _CLOCKS.findall(text), [word for word in _words(text) if "." not in word]


def _draw(*said: _StepLine) -> bool:
    return any(_DRAWN.search(one.text) for one in said)


def _are_parts_of_one_run(pairs: Sequence[tuple[_StepLine, _StepLine]], lanes: int) -> bool:
    """Return True if the words or numbers of such lines show that they are of ranks, micro-batches, an evaluation
    during training, or another part of one run."""
    rows = [(_words(one.text), _words(other.text)) for one, other in pairs]
    named = [{word.lower() for word in {*a} ^ {*b} if word.isalpha()} for a, b in rows]
    if sum(map(bool, named)) > _MOSTLY * len(rows):
        return all(words <= _OF_PARTS | _OF_RANKS for words in named)
    shapes = [(_shape(a), _shape(b)) for a, b in rows]
    usual = Counter(shape for pair in shapes for shape in pair).most_common(1)[0][0]
    alike = [at for at, pair in enumerate(shapes) if pair == (usual, usual)]
    if len(alike) < _TURNS:
        return False
    lines = [(pairs[at][0].line, pairs[at][1].line) for at in alike]
    columns = ([(rows[at][0][place], rows[at][1][place]) for at in alike] for place in range(len(usual)))
    return any(_is_tag(column, lines, _name_before(usual, place), lanes) for place, column in enumerate(columns))


def _shape(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word if word.isalpha() else "0" for word in words)


def _words(text: str) -> list[str]:
    return _WORDS.findall(_TIMES.sub(" ", text))[:_MOST_WORDS]


def _name_before(row: Sequence[str], at: int) -> str:
    """Return the word before a number."""
    return next((word.lower() for word in reversed(row[:at]) if word.isalpha()), "")


def _is_tag(values: Sequence[tuple[str, str]], lines: Sequence[tuple[int, int]], name: str, lanes: int) -> bool:
    """Return True if the numbers at a position identify the part of a run: a few distinct ones (ranks, micro-batches),
    or a count that rises from line to line. lines: line numbers of the pairs."""
    if any(a == b or not (a + b).isdecimal() or len(a + b) > _TAG_DIGITS for a, b in values):
        return False
    numbers = [int(one) for pair in values for one in pair]
    few = {*numbers}
    if len(few) <= max(2, lanes) and max(few) < _HIGHEST_RANK and name not in _OF_RUNS:
        return name in _OF_RANKS | _OF_PARTS or (min(few) <= 1 and max(few) - min(few) < len(few))
    placed = sorted(dict(zip((line for pair in lines for line in pair), numbers, strict=True)).items())
    return name not in _OF_TIMES and all(after > before for (_, before), (_, after) in pairwise(placed))
