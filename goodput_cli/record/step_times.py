"""Step breakdown: each rank adds up the time of its phases, and writes it in a line `phases` per 100 steps, or more
often for long steps (docs/record.md). It claims no time.

All of it runs in the thread that begins the steps, so that there is no lock; work of other threads overlaps steps.
"""

from __future__ import annotations

import os
import time
import weakref
from threading import get_ident

from .clock import NS, microseconds
from .lines import FIRST_STEP, PHASE_PREFIX, PHASES, SPARE, STEP, STEP_SECONDS, STEPS, epoch_seconds
from .names import host_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .writer import Writer

SIZES = (100, 25, 5, 1)
"""Steps per record: the largest number that takes at most `MOST_NS`. Each is a multiple of the next, and steps are
counted from the first of the process. So the records of all ranks end at the same steps, although their times
differ."""
MOST_NS = 60 * NS
MOST_NAMES = 64
NAME_CHARACTERS = 80
_MOST_WORK = 1e300
WITHIN = "/"
"""Separator between the name of a phase and that of its part."""
DATA = "data"


class OpenSpan:
    """A span inside a step that has begun. name: of the phase; "": it has a separate category, and is not part of the
    step time. begin: ns. away: ns of nested spans with a separate category."""

    __slots__ = ("away", "begin", "name")

    def __init__(self, name: str, begin: int) -> None:
        self.name = name
        self.begin = begin
        self.away = 0


class StepPhase:
    """A phase inside a step: the result of `recorder.step_phase(name)`."""

    __slots__ = ("_at", "_name", "_span", "_times", "_until")

    def __init__(self, times: StepTimeSums, name: object, at: object, until: object) -> None:
        self._times = times
        self._name = name
        self._at = at
        self._until = until
        self._span: OpenSpan | None = None

    def __enter__(self) -> StepPhase:
        self._span = self._times.enter_phase(self._name, self._at)
        return self

    def __exit__(self, *_: object) -> None:
        self._times.leave(self._span, self._until)


class StepTimeSums:
    """The sums of the steps of one attempt of this process; nothing is written before the first phase or amount of
    work.

    open_writer: returns the writer of this process's lines; None if it writes none. now: ns.
    """

    def __init__(
        self, open_writer: Callable[[], Writer | None], now: Callable[[], int], warn: Callable[[str], None]
    ) -> None:
        self._open_writer = open_writer
        self._now = now
        self._warn = warn
        self._said: set[str] = set()
        self.writer: Writer | None = None
        """The writer of its lines, from the first phase on."""
        self.off = False
        """True if recording has stopped."""
        self._names: dict[object, str] = {}
        # The current step.
        self._number: Any = 0
        self._begin: int | None = None
        self._ended: int | None = None
        """When the program marked the end of the step, or when the next span after it ended; None during the step."""
        self._thread = 0
        self._open: list[OpenSpan] = []
        self._claimed = 0
        self._phases: dict[str, int] = {}
        self._work: dict[str, float] = {}
        # Completed steps that are not written yet.
        self._first: Any = None
        self._done = 0
        self._clear()
        _live.add(self)

    def _clear(self) -> None:
        self._steps = self._took = self._since = self._until = 0
        self._last: Any = None
        self._sums: dict[str, int] = {}
        self._amounts: dict[str, float] = {}

    # Interface for the recorder, called at each step.

    def begin(self, number: Any, at: object = None) -> None:
        """Begin a step, and end the previous one."""
        now = self._now() if at is None else self._at(at)
        if self._begin is not None:
            self._finish(now)
        elif self._first is None:
            self._first = number
        self._number, self._begin, self._ended, self._thread = number, now, None, get_ident()

    def end(self) -> None:
        """Mark that the program has left the step. The time before the next one begins still belongs to it."""
        self._ended = self._now()

    def give_up(self) -> None:
        """Drop the step after an exception: it was not completed."""
        self._begin = None
        self._phases, self._work, self._claimed = {}, {}, 0

    # Spans inside steps.

    def enter_phase(self, name: object, at: object) -> OpenSpan | None:
        """Begin a phase; return None if it is not counted."""
        if self.off or not self._starts():
            return None
        if self._begin is None or self._ended is not None:
            self._warn_once("a phase outside a step is not recorded: use step_phase within a step")
            return None
        if get_ident() != self._thread:
            self._warn_once("a phase in a thread other than the steps' thread overlaps them and is not recorded")
            return None
        known = self._names.get(name) if isinstance(name, str) else None
        return self._enter(known or self._name(name), at)

    def enter_data(self, at: object) -> OpenSpan | None:
        """Begin data loading, in a step or between two."""
        return self._enter(DATA, at) if self._counts() else None

    def enter_claimed(self, at: object) -> OpenSpan | None:
        """Begin a span with a separate category: a save, an evaluation."""
        return self._enter("", at) if self._counts() else None

    def leave(self, span: OpenSpan | None, until: object) -> None:
        """End a span."""
        if span is None or span not in self._open:
            return
        now = self._at(until)
        if self._begin is not None:
            self._count(span, now)
        self._open.remove(span)
        if self._ended is not None:
            self._ended = max(self._ended, now)

    def work(self, amounts: dict[str, Any]) -> None:
        """Add the amount of work of the whole job in this step, on rank 0."""
        if self.off or not self._starts() or self.writer is None or self.writer.rank:
            return
        if self._begin is None:
            self._warn_once("work outside a step is not recorded: report it within a step")
            return
        for name, amount in amounts.items():
            value = None if amount is None else _positive(amount)
            if value is not None:
                self._work[name] = self._work.get(name, 0.0) + value
            elif amount is not None:
                self._warn_once(f"an amount of {name} is not recorded: expected a number above 0")

    # End of the process, or of the recorder.

    def close(self) -> None:
        """Write the completed steps, and nothing more."""
        try:
            if not self.off and self.writer is not None:
                if self._begin is not None and self._ended is not None:
                    self._finish(self._ended)
                self.flush()
        except Exception as error:
            self._warn_once(f"the last phases could not be recorded ({type(error).__name__})")
        self.off = True

    def silence(self) -> None:
        """Stop writing: the sums belong to the process from which this one was forked."""
        self.off = True

    def flush(self) -> None:
        """Write the completed steps."""
        steps, until, writer = self._steps, self._until, self.writer
        last, first = _whole(self._last), _whole(self._first)
        fields: dict[str, object] = {STEP: last, STEPS: steps, FIRST_STEP: first}
        sums, amounts, took = dict(self._sums), dict(self._amounts), self._took
        self._clear()
        if writer is None or not steps or last is None or first is None:
            return
        amounts = {name: value for name, value in amounts.items() if value < _MOST_WORK}
        fields |= {"run_id": writer.run_id, "rank": writer.rank, "host": host_name()}
        fields[STEP_SECONDS] = epoch_seconds(took // 1000)
        fields |= {PHASE_PREFIX + name: epoch_seconds(ns // 1000) for name, ns in sums.items()}
        us = until // 1000
        writer.write(writer.lines.native(PHASES, us, {**fields, **amounts}), SPARE, us)

    # Sums.

    def _starts(self) -> bool:
        """Return True if this process writes lines; from the first phase on it has a writer. Earlier steps are left
        out."""
        if self.writer is None:
            self.writer = self._open_writer()
            if self.writer is None:
                self.off = True
                return False
            self.writer.before_close = self.close
        return True

    def _counts(self) -> bool:
        return not self.off and self._begin is not None and get_ident() == self._thread

    def _enter(self, name: str, at: object) -> OpenSpan:
        span = OpenSpan(name, self._at(at))
        self._open.append(span)
        return span

    def _count(self, span: OpenSpan, now: int) -> None:
        """Add the elapsed time of a span. Time inside a span with a separate category counts for that span; a part of a
        part is not distinguished."""
        above = self._open[: self._open.index(span)]
        ns = max(now - span.begin, 0)
        span.begin = now
        if any(not one.name for one in above):
            return
        if not span.name:
            self._claimed += ns
            for one in above:
                one.away += ns
            return
        ns, span.away = max(ns - span.away, 0), 0
        if len(above) > 1 or (above and above[0].name == span.name):
            return
        name = f"{above[0].name}{WITHIN}{span.name}" if above else span.name
        if name in self._phases or len(self._phases) < MOST_NAMES:
            self._phases[name] = self._phases.get(name, 0) + ns
        else:
            self._warn_once(f"more than {MOST_NAMES} phase names: further ones are not recorded")

    def _finish(self, now: int) -> None:
        """Complete the step."""
        for span in self._open:
            self._count(span, now)
        begin, self._begin = self._begin or now, None
        phases, self._phases = self._phases, {}
        work, self._work = self._work, {}
        claimed, self._claimed = self._claimed, 0
        self._done += 1
        if self.writer is None or self.off:
            return
        self._since = self._since or begin
        self._last, self._until = self._number, now
        self._steps += 1
        self._took += max(now - begin - claimed, 0)
        for name, ns in phases.items():
            if name in self._sums or len(self._sums) < MOST_NAMES:
                self._sums[name] = self._sums.get(name, 0) + ns
        for name, value in work.items():
            self._amounts[name] = self._amounts.get(name, 0.0) + value
        mean = (now - self._since) / self._steps
        size = next((one for one in SIZES if one * mean <= MOST_NS), 1)
        if (self._done - 1) % size == 0:  # the first step, which compiles, is a separate record
            self.flush()

    def _at(self, at: object) -> int:
        """Return ns of the given time, otherwise of now."""
        us = None if at is None else microseconds(at)
        return self._now() if us is None else us * 1000

    def _name(self, given: object) -> str:
        """Return the name of a phase as written: 80 printable characters without the separator of parts."""
        try:
            text = str(given)[:NAME_CHARACTERS]
        except Exception:
            text = ""
        name = "".join("_" if one == WITHIN else one if one.isprintable() else "?" for one in text) or "unnamed"
        if isinstance(given, str) and len(self._names) < MOST_NAMES:
            self._names[given] = name
        return name

    def _warn_once(self, sentence: str) -> None:
        """Print a message the first time."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._warn(sentence)


_live: weakref.WeakSet[StepTimeSums] = weakref.WeakSet()


def _silence_all() -> None:
    for one in list(_live):
        one.silence()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence_all)


def steady_clock() -> Callable[[], int]:
    """Return a clock of ns since 1970 UTC: the current wall clock plus the elapsed time, so that it is never set."""
    begin, passed = time.time_ns() - time.monotonic_ns(), time.monotonic_ns
    return lambda: begin + passed()


def _positive(amount: Any) -> float | None:
    try:
        value = float(amount)
    except Exception:
        return None
    return value if 0 < value < _MOST_WORK else None


def _whole(number: Any) -> int | None:
    try:
        return int(number)
    except Exception:
        return None
