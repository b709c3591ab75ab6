"""Several runs of training that one file has one after the other (accounting §10, Runs)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from goodput_cli.events.schema import OWN_END
from goodput_cli.events.text.log_lines import ENDS, OTHER_RUN, EventType, LogLine, ParsedEvent, SourceText, event_of
from goodput_cli.events.text.programs.progress_bars import NAME as BARS
from goodput_cli.events.text.stretches import count_of

_LOADS = (EventType.RESTORE, EventType.RESUME)
_CLEAN = (EventType.FINISHED, EventType.STOPPED)


@dataclass
class _Run:
    """The lines of a source from the first step of training to the next one that begins from there."""

    rows: list[LogLine] = field(default_factory=list)
    first: int | None = None
    """Its first step."""
    last: LogLine | None = None
    """Its last record."""
    stride: int = 0
    """Steps between its last two records that rise."""
    totals: dict[str, set[int]] = field(default_factory=lambda: {"steps": set(), "epochs": set()})
    """Total numbers of steps and epochs in its lines."""
    epoch: int | None = None
    """The last epoch that a line names, from 0."""

    def add(self, log_line: LogLine) -> None:
        one = event_of(log_line)
        self.rows.append(log_line)
        if one.epochs:
            self.totals["epochs"].add(one.epochs)
        if one.running is not None and one.running.epoch is not None:
            self.epoch = one.running.epoch
        if one.type is EventType.STEP and one.step is not None:
            ahead = one.step - self.last_step
            self.stride = ahead if self.last is not None and ahead > 0 else self.stride
            self.first = one.step if self.first is None else self.first
            self.last = log_line
            if one.total:
                self.totals["steps"].add(one.total)

    @property
    def is_complete(self) -> bool:
        """Return True if its last step, or its last epoch, is the last of all."""
        if self.last is None:
            return False
        last, epochs = event_of(self.last), max(self.totals["epochs"], default=0)
        return ((last.total or 0) > 1 and last.step == last.total) or (epochs > 1 and self.epoch == epochs - 1)

    def begins_again(self, step: int) -> bool:
        """Return True if a step is that of a first record: not above its own, or within one stride of 0."""
        return self.first is not None and (step <= self.first or step <= min(self.stride, self.last_step))

    @property
    def last_line(self) -> int:
        """Line of its last record; 0 without any."""
        return 0 if self.last is None else self.last.line

    @property
    def last_step(self) -> int:
        """Step of its last record; 0 without any."""
        return 0 if self.last is None else event_of(self.last).step or 0

    @property
    def first_record(self) -> LogLine:
        """Its first record, or its first line without any."""
        return next((one for one in self.rows if event_of(one).type is EventType.STEP), self.rows[0])

    @property
    def rows_at_end(self) -> list[LogLine]:
        """Its last record and the lines after it."""
        return [one for one in self.rows if one.line >= self.last_line]

    @property
    def has_exit(self) -> bool:
        """Return True if its process exits after the last record."""
        return any(event_of(one).type is EventType.EXITED for one in self.rows_at_end)

    @property
    def has_total(self) -> bool:
        """Return True if a line states the number of its steps or epochs."""
        return any(self.totals.values())

    def has_other_total(self, other: _Run) -> bool:
        """Return True if two runs take other numbers of steps or epochs."""
        pairs = ((self.totals[name], other.totals[name]) for name in self.totals)
        return any(own and others and own.isdisjoint(others) for own, others in pairs)


def ends_of_runs(log_lines: Sequence[LogLine], died: Callable[[int, int], bool]) -> Iterator[LogLine]:
    """Yield the end of each run of one source that another run follows.

    The next run's steps begin at their first number again, without a checkpoint load. The run was complete, without a
    death after it, or the next known total differs, or another run of the source was complete and no death follows this
    one. Ends that a line states are not repeated. log_lines: events of one source. died: returns True if a process died
    between two lines.
    """
    runs = _runs(log_lines)
    survived = [not died(run.last_line, following.rows[0].line) for run, following in pairwise(runs)]
    complete = _complete_runs(runs, survived)
    for at, alive in enumerate(survived):
        run, rows = runs[at], runs[at].rows_at_end
        following = next((one for one in runs[at + 1 :] if one.has_total), runs[-1])
        is_ended = alive and any(complete)
        if any(event_of(one).type in _CLEAN for one in rows) or not (is_ended or run.has_other_total(following)):
            continue
        what = EventType.FINISHED if complete[at] else EventType.STOPPED
        last = _line_before_silence(rows, runs[at + 1].first_record)
        yield _end_at(last, what, rows[0])


def _end_at(last: LogLine, what: EventType, record: LogLine) -> LogLine:
    """Return the end of a run at a line. record: its last record."""
    event = ParsedEvent(event_of(record).format, what, name=OTHER_RUN, detail=OWN_END)
    return LogLine(last.line, record.stream, last.stamp, event, last.end, last.end, last.entry)


def without_later_programs(
    log_lines: Sequence[LogLine], died: Callable[[int, int], bool]
) -> tuple[list[LogLine], list[LogLine]]:
    """Return the events of one source without those of programs that start after its last run was complete and do no
    step, such as evaluations of the result, and the end of that run. Both are unchanged if none does."""
    runs = _runs(log_lines)
    if not runs or not _complete_runs(runs, [True] * len(runs))[-1]:
        return list(log_lines), []
    rows = runs[-1].rows_at_end
    starts = (one for one in rows if event_of(one).type is EventType.START and one.line > runs[-1].last_line)
    start = next(starts, None)
    before = [one for one in rows if start is not None and one.line < start.line]
    if start is None or died(runs[-1].last_line, start.line):
        return list(log_lines), []
    kept = [one for one in _in_order(log_lines) if one.line < start.line]
    if any(event_of(one).type in ENDS for one in before):
        return kept, []
    return kept, [_end_at(before[-1], EventType.FINISHED, rows[0])]


def _complete_runs(runs: Sequence[_Run], survived: Sequence[bool]) -> list[bool]:
    """Return True for each run that came to its total, or exited after its last step. survived: False for each run that
    a death ended; the last run can be left out."""
    return [alive and (run.is_complete or run.has_exit) for run, alive in zip(runs, survived, strict=False)]


def _runs(log_lines: Sequence[LogLine]) -> Sequence[_Run]:
    """Return the lines of each run with a step, which begins at the first step again or resumes at step 0."""
    writer = _main_writer(log_lines)
    runs, loads, started = [_Run()], set[bool](), list[LogLine]()  # loads: True for one of a step above 0.
    for log_line in _in_order(log_lines):
        one, run = event_of(log_line), runs[-1]
        loads |= {one.step != 0} if one.type in _LOADS else set()
        if (one.format, log_line.stream) == writer and one.type is EventType.STEP and one.step is not None:
            if True not in loads and (run.begins_again(one.step) or (loads and run.first is not None)):
                runs.append(_Run())
            loads = set()
            _move(started, runs[-1])
            runs[-1].add(log_line)
        elif one.type is EventType.START or started:
            started.append(log_line)
        else:
            run.add(log_line)
    _move(started, runs[-1])
    return [run for run in runs if run.last is not None]


def _in_order(log_lines: Sequence[LogLine]) -> list[LogLine]:
    return sorted(log_lines, key=lambda one: one.line)


def _move(rows: list[LogLine], run: _Run) -> None:
    """Add lines of a process to the run that its steps are of."""
    for one in rows:
        run.add(one)
    rows.clear()


def _main_writer(log_lines: Sequence[LogLine]) -> tuple[str, str] | None:
    """Return the format and stream with most records of steps whose number is that of all training."""
    counts: Counter[tuple[str, str]] = Counter()
    for log_line in log_lines:
        one = event_of(log_line)
        is_whole = one.running is None or one.running.of is None or one.running.epoch is not None
        if one.type is EventType.STEP and one.format != BARS and is_whole:
            counts[one.format, log_line.stream] += count_of([log_line])
    return counts.most_common(1)[0][0] if counts else None


_SAVES = (EventType.SAVE, EventType.SAVED)


def with_starts_of_saves(log_lines: Sequence[LogLine], of: SourceText) -> list[LogLine]:
    """Add a start for each process that saves again from the first saved step, in a source without step records."""
    return [*log_lines, *_starts_of_saves(log_lines, of.shown)]


def _starts_of_saves(log_lines: Sequence[LogLine], shown: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield a start for each process that saves again from the first saved step, in a source without step records. The
    process began after the longest silence before that save. log_lines: events of one source. shown: its other timed
    lines."""
    if any(event_of(one).type in (EventType.STEP, EventType.STEP_START) for one in log_lines):
        return
    first: dict[EventType, int] = {}
    last: dict[EventType, int] = {}
    ordered = sorted([*log_lines, *shown], key=lambda one: one.line)
    since = 0  # Index of the last save.
    for place, log_line in enumerate(ordered):
        one = log_line.event
        if one is None or one.type not in _SAVES or one.step is None:
            continue
        if one.step <= first.setdefault(one.type, one.step) and one.step < last.get(one.type, 0):
            begin = _line_after_silence(ordered[since : place + 1])
            yield LogLine(begin.line, log_line.stream, begin.stamp, ParsedEvent(one.format, EventType.START),
                          begin.time, begin.time)  # fmt: skip
            first, last = {one.type: one.step}, {}
        last[one.type] = one.step
        since = place


def _line_before_silence(rows: Sequence[LogLine], following: LogLine) -> LogLine:
    """Return the line before the longest time without a line: a run ended there. rows: lines from its last record on.
    following: the first record of the next run."""
    pairs = pairwise([*sorted(rows, key=lambda one: (one.end, one.line)), following])
    return max(pairs, key=lambda pair: pair[1].time - pair[0].end, default=(rows[0], rows[0]))[0]


def _line_after_silence(log_lines: Sequence[LogLine]) -> LogLine:
    """Return the line after the longest time between two timestamped lines."""
    stamped = [one for one in log_lines if one.stamp is not None]
    last = log_lines[-1]
    return max(pairwise(stamped), key=lambda pair: pair[1].time - pair[0].end, default=(last, last))[1]
