"""Skip states of progress bars that `thinned` drops: the next state of the bar shows more, and none is due yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goodput_cli.arrays import I64
from goodput_cli.events.text.lines import Hit
from goodput_cli.events.text.log_lines import LogLine
from goodput_cli.events.text.programs.progress_bars import (
    EVERY,
    FIRST,
    Bar,
    bar_of,
    has_count_after_rate,
    is_bar_rule,
    until_next,
)
from goodput_cli.events.text.templates import Fields, Template

MOST_DIGITS = 15
"""Longer numbers are read by the rule."""


class _State(NamedTuple):
    """Fields of a line that draws a bar."""

    name: str
    total: str
    done: int
    elapsed: int


@dataclass
class _Drawn:
    """One bar of a block, as `thinned` follows it."""

    bar: Bar
    """Its first state."""
    done: int
    elapsed: int
    """Count and clock of its last state."""
    stays: int
    """Seconds at its last state that stays."""
    kept: int
    """Count of that state."""
    begun: int = 1
    """States since it began that stay, at most `FIRST`."""
    waiting: Hit | None = None
    """Its last state, if that was not read; it is dropped as soon as another one follows."""

    def draw(self, done: int, elapsed: int) -> bool:
        """Take the next state, which shows more; return True if it stays."""
        stays = elapsed >= self.stays + until_next(self.begun, self.kept, self.stays)
        self.begun += stays and self.begun < FIRST
        self.done, self.elapsed = done, elapsed
        if stays:
            self.stays, self.kept = elapsed, done
        return stays


class CalmBars:
    """Follows the bars of a block without ranks and timestamps, and finds the states that need not be read."""

    def __init__(self) -> None:
        self.skipped: list[int] = []
        """Lines of the block."""
        self._bars: dict[tuple[str, int | None, int], _Drawn] = {}
        self._current: _Drawn | None = None
        """The bar that was drawn last."""
        self._fields: tuple[str, str] | None = None
        """Name and total as that bar draws them."""
        self._is_drawn = False
        """True if the state that is read next was already followed."""

    def skipped_state(self, hit: Hit, template: Template | None) -> tuple[Bar, int] | None:
        """Return the bar of a state that need not be read, and how many steps are done by it; None for others."""
        drawn = self._current
        if drawn is None or template is None or drawn.begun < FIRST:
            return None
        state = _state_in(hit, template)
        if state is None or state[:2] != self._fields or state.done <= drawn.done or state.elapsed < drawn.elapsed:
            return None
        self._leave_out(drawn)
        if drawn.draw(state.done, state.elapsed):
            self._is_drawn = True
            return None
        drawn.waiting = hit
        return drawn.bar, state.done

    def next_states(self, fields: tuple[str, str], done: I64, elapsed: I64) -> tuple[Bar, int] | None:
        """Return the bar of the next states, each with more steps than the one before, and how many of them need not be
        read; None if the first one is to be looked at by itself."""
        drawn = self._current
        if drawn is None or drawn.begun < FIRST or fields != self._fields:
            return None
        if done[0] <= drawn.done or elapsed[0] < drawn.elapsed:
            return None
        count = int(np.searchsorted(elapsed, drawn.stays + EVERY))
        return (drawn.bar, count) if count else None

    def skip(self, hits: Iterator[Hit], lines: I64, done: int, elapsed: int) -> None:
        """Skip states; the last of them waits. hits: of the last one. done, elapsed: of the last one."""
        drawn = self._current
        assert drawn is not None
        self._leave_out(drawn)
        self.skipped += lines[:-1].tolist()
        drawn.waiting = next(hits)
        drawn.done, drawn.elapsed = done, elapsed

    def follow(self, hit: Hit, template: Template | None, log_lines: Sequence[LogLine]) -> Hit | None:
        """Follow a line that was read; return a state before it that has to be read as well."""
        is_drawn, self._is_drawn = self._is_drawn, False
        bar = bar_of(log_lines[0]) if log_lines else None
        if bar is None or is_drawn:
            return None
        self._current = None
        if len(log_lines) > 1 or log_lines[0].stream:
            return None
        state = None if template is None else _state_in(hit, template)
        self._fields = None if state is None else state[:2]
        key = bar.name, bar.epoch, bar.total
        drawn = self._bars.get(key)
        waiting = None if drawn is None else drawn.waiting
        if drawn is None or bar.elapsed < drawn.elapsed or bar.done < drawn.done:
            drawn = self._bars[key] = _Drawn(bar, bar.done, bar.elapsed, bar.elapsed, bar.done)
        elif bar.done == drawn.done and log_lines[0].stamp is None:
            drawn.waiting = None
        else:
            self._leave_out(drawn)
            waiting = None
            drawn.draw(bar.done, bar.elapsed)
        self._current = drawn
        return waiting

    def waiting(self) -> Iterator[Hit]:
        """Yield the last states of bars that were not read."""
        return (one.waiting for one in self._bars.values() if one.waiting is not None)

    def _leave_out(self, drawn: _Drawn) -> None:
        if drawn.waiting is not None:
            self.skipped.append(drawn.waiting.at)
            drawn.waiting = None


def _state_in(hit: Hit, template: Template) -> _State | None:
    """Return the state that a line draws; None if that is not its only content."""
    fields = plain_bar(template)
    if fields is None:
        return None
    text = hit.raw.decode(errors="replace")
    name, total, done, clock = (text[fields.places[key] or slice(0)] for key in FIELDS)
    if len(done) > MOST_DIGITS or len(total) > MOST_DIGITS or has_count_after_rate(text):
        return None
    elapsed = 0
    for part in clock.split(":"):
        elapsed = 60 * elapsed + int(part)
    return _State(name, total, int(done), elapsed)


def plain_bar(template: Template) -> Fields | None:
    """Return where the fields of a bar are in the lines of a template; None if a bar is not their only content."""
    is_bar = template.is_plain and len(template.rules) == 1 and is_bar_rule(template.rules[0].rule)
    return template.rules[0] if is_bar else None


FIELDS = ("name", "total", "done", "elapsed")
