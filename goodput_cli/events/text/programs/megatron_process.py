"""Combine lines of Megatron: the start of a process, the context of a timer, the begin and end of a save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.events.inside import PhaseName
from goodput_cli.events.schema import OWN_END, Edge, SaveState
from goodput_cli.events.text.log_lines import EventType, LogLine, ParsedEvent, changed, event_of, save_detail
from goodput_cli.events.text.programs.megatron import LEFT, NAME, phase_of
from goodput_cli.events.text.stretches import last_of
from goodput_cli.vocabulary.categories import EVAL_LABEL

_ABOUT = 1.1
"""Maximum ratio between the times of unlogged steps and of those before."""
_FEWEST = 3
"""Number of iterations of a process that reveal its log interval, whatever its last steps are."""


def translate(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the log lines of one source with their own meaning, in line order."""
    return _Process().read(log_lines)


class _Process:
    """Follows the processes in one source: which lines begin one, and which belong together."""

    def __init__(self) -> None:
        self._out: list[LogLine] = []
        self._stage = 0  # Stage of the start: 1 launched, 2 initialized, 3 in its loop; 0: iterating.
        self._initialising: int | None = None  # Time (ns) of the initialization.
        self._loading: list[LogLine] = []  # A load and its timer, until the model is built.
        self._saving: LogLine | None = None
        self._in_background: set[int] = set()  # Steps whose saves continued during training.
        self._iteration: LogLine | None = None
        self._place = 0  # After the last iteration in `_out`.
        self._interval: int | None = None  # Log interval, if the arguments contain it.
        self._logged = 0  # Iterations of the process.
        self._saved: int | None = None  # Step of a save after the last iteration.
        self._size: dict[str, float] = {}  # Sizes of the starting process, until its first iteration.
        self._timer: PhaseName | None = None  # The timer of the following times of ranks.

    def read(self, log_lines: Sequence[LogLine]) -> list[LogLine]:
        for log_line in log_lines:
            reader = getattr(self, f"_on_{event_of(log_line).name}", None)
            if reader is not None:
                reader(log_line)
            elif event_of(log_line).type is not EventType.IGNORE:
                self._out.append(log_line)
        self._flush_load(None)
        self._leave_open(Edge.BEGIN)
        _without_first_counted_twice([one for one in self._out if event_of(one).name == "iteration"], self._interval)
        return self._out

    def _add(self, log_line: LogLine, what: EventType, time: int, end: int | None = None, **more: Any) -> None:
        one = ParsedEvent(NAME, what, **more)
        self._out.append(
            LogLine(log_line.line, log_line.stream, log_line.stamp, one, time, time if end is None else end)
        )

    def _begins(self, stage: int) -> bool:
        """Return True if a line of this start stage is the first of its process."""
        new = self._stage == 0 or stage <= self._stage
        self._stage = stage
        if new:
            self._logged = 0
            self._leave_open(Edge.BEGIN)
            self._in_background.clear()
        return new

    def _leave_open(self, edge: Edge) -> None:
        """Add a save without an end line: a begin if the process ended there, otherwise a point."""
        begun, self._saving = self._saving, None
        if begun is not None:
            detail, step = save_detail(SaveState.BEGUN), event_of(begun).step
            if edge is Edge.POINT and step is not None:
                self._in_background.add(step)
            self._add(begun, EventType.SAVE, begun.time, edge=edge, step=step, detail=detail)

    def _on_world(self, log_line: LogLine) -> None:
        self._size = event_of(log_line).metrics

    def _on_log_interval(self, log_line: LogLine) -> None:
        interval = event_of(log_line).job
        self._interval = int(interval) if interval.isdecimal() else None

    def _on_launched(self, log_line: LogLine) -> None:
        if self._begins(1):
            self._add(log_line, EventType.START, log_line.time)
            self._add(log_line, EventType.INIT, log_line.time, edge=Edge.BEGIN)

    def _on_took_to_initialize(self, log_line: LogLine) -> None:
        self._initialising = event_of(log_line).took

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
        """Start a process whose initialization lines are missing; a load before the loop belongs to it."""
        before = len(self._out)
        self._flush_load(log_line)
        loads = self._out[before:]
        if loads and loads[0].stamp is None and loads[0].time == loads[0].end:  # Its time is that of a line before.
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
        """Add a load, which ends when the model is built."""
        if not self._loading:
            return
        loaded = next((log_line for log_line in self._loading if event_of(log_line).name == "loaded"), None)
        took = next((event_of(log_line).took for log_line in self._loading if event_of(log_line).name == "timer"), None)
        self._loading = []
        if loaded is None:
            return
        if built is None or not took:
            self._out.append(loaded)
            return
        self._add(loaded, EventType.RESTORE, built.time - took, built.time, step=event_of(loaded).step)

    def _on_timer(self, log_line: LogLine) -> None:
        what, took = event_of(log_line).type, event_of(log_line).took or 0
        if what is EventType.RESTORE:
            self._loading.append(log_line)
            return
        if what is EventType.SAVE and self._stamped_save():
            return
        step = None if self._iteration is None else event_of(self._iteration).step
        if what is EventType.SAVE:
            self._saving, step = None, step if self._saved is None else self._saved
        begin = log_line.time if log_line.odd else log_line.time - took
        end = log_line.end if log_line.odd else log_line.time
        first = self._first_since_iteration()
        marks = [one for one in self._out[first:] if self._marks_same(one, what)]
        self._out[first:] = [one for one in self._out[first:] if not self._marks_same(one, what)]
        detail = event_of(marks[-1]).detail if marks else ()
        label = EVAL_LABEL if what is EventType.EVAL else ""
        self._add(log_line, what, begin, end, step=step, label=label, detail=detail)

    def _stamped_save(self) -> bool:
        """Return True if the log contains the save of this timer with its own times."""
        last = next((one for one in reversed(self._out) if event_of(one).type is EventType.SAVE), None)
        if last is None or self._iteration is None:
            return False
        return last.end > last.time and last.line > self._iteration.line

    def _first_since_iteration(self) -> int:
        """Return the index of the first log line after the last iteration; 0 for entries, which may be in any order."""
        one = self._iteration
        return 0 if one is None or one.entry >= 0 else self._place

    def _marks_same(self, one: LogLine, what: EventType) -> bool:
        """Return True if an earlier log line only reports the event that a timer now measures."""
        since = -1 if self._iteration is None else self._iteration.line
        return event_of(one).type is what and one.line > since and one.end == one.time

    def _on_saving(self, log_line: LogLine) -> None:
        self._saving, self._saved = log_line, event_of(log_line).step

    def _on_saved(self, log_line: LogLine) -> None:
        step = event_of(log_line).step
        if step in self._in_background:
            self._add(log_line, EventType.SAVED, log_line.time, step=step)
            return
        self._saved = step
        self._add_save(log_line, self._save_begun(log_line, step), step, SaveState.COMPLETE)

    def _on_scheduled(self, log_line: LogLine) -> None:
        self._saved = step = event_of(log_line).step
        if step is not None:
            self._in_background.add(step)
        self._add_save(log_line, self._save_begun(log_line, step), step, SaveState.BLOCKING_DONE)

    def _save_begun(self, log_line: LogLine, step: int | None) -> int:
        """Return when (ns) a completed save began; the line's own time if no begin line with a timestamp matches."""
        begun, self._saving = self._saving, None
        if (
            begun is not None
            and event_of(begun).step == step
            and begun.stamp is not None
            and log_line.stamp is not None
        ):
            return begun.time
        return log_line.time

    def _add_save(self, log_line: LogLine, begin: int, step: int | None, state: SaveState) -> None:
        self._add(log_line, EventType.SAVE, begin, log_line.time, step=step, detail=save_detail(state))

    def _on_validation(self, log_line: LogLine) -> None:
        since = -1 if self._iteration is None else self._iteration.line
        behind = self._out[self._first_since_iteration() :]
        if not any(event_of(one).type is EventType.EVAL and one.line > since for one in behind):
            self._add(log_line, EventType.EVAL, log_line.time, step=event_of(log_line).step, label=EVAL_LABEL)

    def _on_iteration(self, log_line: LogLine) -> None:
        self._stage, self._saved, self._logged = 0, None, self._logged + 1
        self._leave_open(Edge.POINT)
        self._timer = None
        one = event_of(log_line)
        # Phases of timers are added to it.
        event = changed(one, phases=(), metrics={**self._size, **one.metrics})
        self._iteration = replace(log_line, event=event)
        self._out.append(self._iteration)
        self._place = len(self._out)
        self._size = {}

    def _on_timing(self, log_line: LogLine) -> None:
        if self._iteration is not None:
            iteration = event_of(self._iteration)
            iteration.phases += event_of(log_line).phases

    def _on_timed(self, log_line: LogLine) -> None:
        self._timer = phase_of(event_of(log_line).label)

    def _on_timed_rank(self, log_line: LogLine) -> None:
        if self._iteration is not None and self._timer is not None:
            iteration = event_of(self._iteration)
            iteration.phases += tuple(one._replace(name=self._timer) for one in event_of(log_line).phases)

    def _on_exit(self, log_line: LogLine) -> None:
        """Handle an exit by time limit or at an iteration: a planned end if it has saved."""
        since = -1 if self._iteration is None else self._iteration.line
        saved = any(
            event_of(one).type is EventType.SAVE and one.line > since and event_of(one).edge is not Edge.BEGIN
            for one in self._out
        )
        self._trained_until(log_line)
        what = EventType.STOPPED if saved else EventType.TERMINATED
        self._add(log_line, what, log_line.time, name="exit", at=event_of(log_line).at, detail=OWN_END if saved else ())

    def _trained_until(self, log_line: LogLine) -> None:
        """Add the steps between the last logged iteration and a save after it, with the step time of that iteration.
        log_line: the exit."""
        last = None if self._iteration is None else event_of(self._iteration)
        if last is None or self._iteration is None or last.step is None or self._saved is None or not last.step_time:
            return
        if self._logged < _FEWEST:
            return
        since = [one for one in self._out if one.line > self._iteration.line]
        paused = sum(one.end - one.time for one in since if event_of(one).type in (EventType.SAVE, EventType.EVAL))
        steps, room = self._saved - last.step, log_line.time - self._iteration.end - paused
        if steps > 0 and steps * last.step_time <= room * _ABOUT:
            each = min(last.step_time, room // steps)
            end = min(self._iteration.end + paused + steps * each, log_line.time - 1)  # Before it exited.
            self._add(log_line, EventType.STEP, end, step=self._saved, step_time=each, total=last.total)

    def _on_done(self, log_line: LogLine) -> None:
        self._trained_until(log_line)
        last = None if self._iteration is None else event_of(self._iteration)
        exited = next((event_of(one).type for one in self._out[-4:] if event_of(one).name in LEFT), None)
        short = last is not None and last.step is not None and last.total is not None and last.step < last.total
        self._add(log_line, exited if exited is not None and short else EventType.FINISHED, log_line.time)


def _without_first_counted_twice(records: Sequence[LogLine], interval: int | None) -> None:
    """Correct a record that counts the first iteration of a process a second time.

    For example, with an interval of 10, a run that resumes from 500 prints 501, and then 510 with the mean of all ten.
    """
    for at in range(len(records) - 1):
        if records[at].inner is not None:  # The next record is neither of these two.
            continue
        first, second = records[at].event, records[at + 1].event
        before = last_of(records[at - 1])[1] if at else None
        later = records[at + 2].event if at + 2 < len(records) else None
        if first is None or second is None or first.step is None or second.step is None:
            continue
        counted = interval or (later.step - second.step if later and later.step else None)
        is_first = before is None or first.step != before + (counted or 0)
        apart = second.step - first.step
        if not is_first or counted is None or counted < 3 or apart != counted - 1 or second.step % counted:
            continue
        mean = counted * (second.step_time or 0) - (first.step_time or 0)
        if mean > 0:
            second.step_time = mean // apart
