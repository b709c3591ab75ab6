"""Counters in stretches of a document in which no rule reads a step: another program may train there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from goodput_cli.events.text.lines import LONGEST, OTHER_STEPS, Lines
from goodput_cli.events.text.log_lines import ParsedEvent, linear
from goodput_cli.events.text.programs.progress_bars import counted_step

_COUNTER = (
    rb"(?im)(?:^|[^a-z\n])(?:step|iter(?:ation)?|epoch|batch|episode|update|round)s?[ \t:=#\[(/]{1,4}(\d{1,9})(?:\D|$)"
)
"""Pattern of a line with a counter of training, in any format."""
_OF_TOTAL = rb"\[ ?(\d{1,9}) ?/ ?\d{1,9}\][^\n]*[^a-z](?:loss|acc|lr|reward|grad)"
"""The same for a number in brackets, next to a result of training."""
_EVALUATES = rb"(?i)(?:^|[^a-z])(?:eval|val|valid|test|dev|infer|predict|sampl|generat|validat)[a-z]*(?:[^a-z]|$)"
_MASK = bytes.maketrans(b"123456789", b"000000000")
_HEAD = 24
"""Number of bytes after the counter's begin that distinguish two formats."""
_MOST = 64
"""Maximum number of formats that are followed at a time."""


@dataclass
class _Counter:
    """Rising numbers of lines in one format."""

    first: int
    """Line of the first number."""
    step: int
    count: int = 1


class OtherCounters:
    """Finds lines with a rising number of steps or epochs where no rule reads a step."""

    def __init__(self) -> None:
        self._counters: dict[bytes, _Counter] = {}
        self._since = 0
        """Lines since the last step that a rule reads."""
        self._is_read = False
        """True since the first step that a rule reads: what precedes it is judged by `EvidenceOfLog.unread_steps`."""

    def feed(
        self, block: Lines, first_line: int, said: Mapping[int, Sequence[ParsedEvent]], meant: Sequence[int]
    ) -> dict[int, int]:
        """Return the first and last lines of counters with enough numbers in a block. said: events of lines that were
        read alone; meant: all lines that rules read."""
        quiet = [at for at, some in said.items() if not any(counted_step(one) is not None for one in some)]
        steps = np.setdiff1d(np.array(meant, dtype=np.int64), np.array(quiet, dtype=np.int64))
        if not self._is_read and not len(steps):
            return {}
        bounds = [-1, *steps.tolist(), len(block)]
        gaps = np.flatnonzero(np.diff(bounds) > 1)
        found: dict[int, int] = {}
        for gap in gaps.tolist():
            begin, end = bounds[gap] + 1, bounds[gap + 1]
            if gap:
                self._forget()
            elif not self._is_read:
                continue
            self._since += end - begin
            if self._since >= OTHER_STEPS or end == len(block):
                found |= self._follow(block, first_line, range(begin, end))
        self._is_read |= len(steps) > 0
        if len(steps) and steps[-1] == len(block) - 1:
            self._forget()
        return found

    def _forget(self) -> None:
        self._counters.clear()
        self._since = 0

    def _follow(self, block: Lines, first_line: int, lines: range) -> dict[int, int]:
        counts, of_total, evaluates, either = _compiled()
        found: dict[int, int] = {}
        for at in block.each_found(either, lines):
            raw = block.bytes_of(at, LONGEST)
            step = counts.search(raw) or of_total.search(raw)
            if step is None or evaluates.search(raw) is not None:
                continue
            key = raw[step.start() : step.start(1)].strip() + raw[step.end(1) :][:_HEAD].translate(_MASK)
            number, value = first_line + int(block.number[at]), int(step[1])
            counter = self._counters.get(key)
            if counter is None or value < counter.step:
                if len(self._counters) < _MOST:
                    self._counters[key] = _Counter(number, value)
            elif value > counter.step:
                counter.step, counter.count = value, counter.count + 1
                if counter.count >= OTHER_STEPS:
                    found[counter.first] = number
        return found


@cache
def _compiled() -> tuple[Any, ...]:
    """Return the patterns of counters, of counts next to a result, of evaluations, and of the first two together."""
    patterns = (_COUNTER, b"(?i)" + _OF_TOTAL, _EVALUATES, _COUNTER + b"|" + _OF_TOTAL)
    return tuple(linear().compile(one) for one in patterns)
