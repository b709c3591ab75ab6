"""What the lines of Megatron mean together: where a process starts, what a timer is of, which save a line ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodput_cli.events.schema import Edge
from goodput_cli.events.text.marks import Mark, Said, What
from goodput_cli.events.text.programs.megatron import EVAL_LABEL, NAME


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

    def read(self, marks: Sequence[Mark]) -> list[Mark]:
        for mark in marks:
            assert mark.said is not None
            reader = getattr(self, f"_on_{mark.said.name}", None)
            if reader is not None:
                reader(mark)
            elif mark.said.what is not What.IGNORE:
                self._out.append(mark)
        self._flush_load(None)
        _without_first_counted_twice(
            [one for one in self._out if one.said and one.said.name == "iteration"], self._interval
        )
        return self._out

    def _add(self, mark: Mark, what: What, time: int, end: int | None = None, **more: Any) -> None:
        said = Said(NAME, what, **more)
        self._out.append(Mark(mark.line, mark.stream, mark.stamp, said, time, time if end is None else end))

    def _begins(self, stage: int) -> bool:
        """Whether a line of this stage of starting is the first of its process."""
        new = self._stage == 0 or stage <= self._stage
        self._stage = stage
        return new

    def _on_log_interval(self, mark: Mark) -> None:
        assert mark.said is not None
        self._interval = int(mark.said.job) if mark.said.job.isdigit() else None

    def _on_launched(self, mark: Mark) -> None:
        if self._begins(1):
            self._add(mark, What.START, mark.time)
            self._add(mark, What.INIT, mark.time, edge=Edge.BEGIN)

    def _on_took_to_initialize(self, mark: Mark) -> None:
        assert mark.said is not None
        self._initialising = mark.said.took

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
        self._flush_load(mark)
        if self._stage == 2:
            self._add(mark, What.PREP, mark.time, edge=Edge.END)
        if self._begins(3):
            self._add(mark, What.START, mark.time)

    def _on_loaded(self, mark: Mark) -> None:
        self._loading.append(mark)

    def _on_built(self, mark: Mark) -> None:
        self._add(mark, What.ALIVE, mark.time)
        self._flush_load(mark)

    def _flush_load(self, built: Mark | None) -> None:
        """A load ends where the model is built, right behind it."""
        if not self._loading:
            return
        loaded = next((mark for mark in self._loading if mark.said and mark.said.name == "loaded"), None)
        timer = next((mark for mark in self._loading if mark.said and mark.said.name == "timer"), None)
        self._loading = []
        if loaded is None or loaded.said is None:
            return
        if timer is None or timer.said is None or built is None or not timer.said.took:
            self._out.append(loaded)
            return
        start = built.time - timer.said.took
        self._add(loaded, What.RESTORE, start, built.time, step=loaded.said.step)

    def _on_timer(self, mark: Mark) -> None:
        said = mark.said
        assert said is not None
        if said.what is What.RESTORE:
            self._loading.append(mark)
            return
        if said.what is What.SAVE and self._stamped_save():
            return
        step = None if self._iteration is None or self._iteration.said is None else self._iteration.said.step
        begin = mark.time if mark.odd else mark.time - (said.took or 0)
        end = mark.end if mark.odd else mark.time
        self._out = [one for one in self._out if not self._marks_same(one, said.what)]
        self._add(mark, said.what, begin, end, step=step, label=EVAL_LABEL if said.what is What.EVAL else "")

    def _stamped_save(self) -> bool:
        """Whether the save that this timer is of stands in the log with its own times."""
        last = next((one for one in reversed(self._out) if one.said and one.said.what is What.SAVE), None)
        return (
            last is not None
            and last.end > last.time
            and self._iteration is not None
            and (last.line > self._iteration.line)
        )

    def _marks_same(self, one: Mark, what: What) -> bool:
        """Whether an earlier mark only says that there was what a timer now gives the time of."""
        since = -1 if self._iteration is None else self._iteration.line
        return one.said is not None and one.said.what is what and one.line > since and one.end == one.time

    def _on_saving(self, mark: Mark) -> None:
        self._saving = mark

    def _on_saved(self, mark: Mark) -> None:
        assert mark.said is not None
        step = mark.said.step
        if step in self._timed_saves:  # the end of a save that went on behind training
            self._add(mark, What.ALIVE, mark.time)
            return
        begun, self._saving = self._saving, None
        timed = begun is not None and begun.said is not None and begun.said.step == step
        timed = timed and begun is not None and begun.stamp is not None and mark.stamp is not None
        start = begun.time if timed and begun is not None else mark.time
        self._add(mark, What.SAVE, start, mark.time, step=step)
        if mark.said.name == "scheduled" and step is not None:
            self._timed_saves.add(step)

    _on_scheduled = _on_saved

    def _on_validation(self, mark: Mark) -> None:
        since = -1 if self._iteration is None else self._iteration.line
        evals = (one for one in self._out if one.said and one.said.what is What.EVAL and one.line > since)
        if next(evals, None) is None:
            assert mark.said is not None
            self._add(mark, What.EVAL, mark.time, step=mark.said.step, label=EVAL_LABEL)

    def _on_iteration(self, mark: Mark) -> None:
        self._stage = 0
        self._saving = None
        self._iteration = mark
        self._out.append(mark)

    def _on_done(self, mark: Mark) -> None:
        said = None if self._iteration is None else self._iteration.said
        total = dict(said.detail).get("total") if said is not None else None
        exited = any(one.said and one.said.name == "exit" for one in self._out[-4:])
        short = said is not None and said.step is not None and total is not None and said.step < total
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
