"""Convert states of training progress bars to step records with times.

Bars of training are those whose names contain an epoch or steps, the longest bar without a name if the Trainer's own
lines are next to it, or the only bar without a name that shows a loss. They are ignored next to step records of another
format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter

from goodput_cli.events.schema import OWN_END
from goodput_cli.events.text.counted_steps import epoch_of
from goodput_cli.events.text.log_lines import OTHER_RUN, EventType, LogLine, ParsedEvent
from goodput_cli.events.text.programs.bar_tracks import one_bar_each
from goodput_cli.events.text.programs.progress_bars import NAME, Bar, bar_of, header_of, is_of_bars
from goodput_cli.vocabulary.when import NS_PER_SECOND

_PACE = 10
"""Number of strides that show the pace of a bar whose clock counts seconds."""
_OF_LOOPS = "steps"
"""Name of bars that count the whole training, those of loops over steps; the Trainer's have none. Others (`Training`,
or no name in other programs) mostly restart with each epoch."""


def without_begun_elsewhere(parts: Sequence[list[LogLine]]) -> None:
    """Drop starts of bars that continue a rotated log, which has lower steps in the time since the bar began. parts:
    log lines of one job by source."""
    steps = [
        [
            (log_line.end, log_line.event.step or 0)
            for log_line in part
            if is_of_bars(log_line, EventType.STEP) and log_line.event
        ]
        for part in parts
    ]
    for own, part in zip(steps, parts, strict=True):
        start = next(
            (
                log_line
                for log_line in part
                if is_of_bars(log_line, EventType.START) and log_line.event and log_line.event.detail
            ),
            None,
        )
        if start is None or start.event is None or not own:
            continue
        first = min(own)
        begun = start.end - start.event.detail[0][1] * NS_PER_SECOND
        others = (one for other in steps if other is not own for one in other)
        if any(begun <= time < first[0] and step < first[1] for time, step in others):
            part.remove(start)


def first_epoch(sources: Iterable[Sequence[LogLine]]) -> int:
    """Return the number of the first epoch, 0 or 1, of the log lines of all sources."""
    numbers = (_epoch_number(log_line) for log_lines in sources for log_line in log_lines)
    return 1 if min((number for number in numbers if number is not None), default=0) == 1 else 0


def _epoch_number(log_line: LogLine) -> int | None:
    """Return the epoch in a bar of training or a line before one; None for other lines."""
    bar = bar_of(log_line)
    if bar is None:
        return header_of(log_line)
    return bar.epoch if bar.is_of_training else None


def as_records(log_lines: Sequence[LogLine], trainer: bool, first: int = 0) -> list[LogLine]:
    """Return the log lines of one source, with states of training bars turned into step records with times.

    trainer: True if lines of Hugging Face's Trainer are in it, or in the output file next to this error file. first:
    number of the first epoch.
    """
    if not any(bar_of(log_line) is not None for log_line in log_lines):
        return [*_clocks_of(log_lines)]
    announced = {name: total for name, own in _by_stream(log_lines).items() if (total := _announced(own)) is not None}
    log_lines = one_bar_each(_with_first_names(_with_epochs_of_headers(log_lines, announced)), announced)
    others = any(log_line.event is not None and log_line.event.type is EventType.STEP for log_line in log_lines)
    streams = _by_stream(log_lines)
    counted = {name: None if others else _counted(own, trainer) for name, own in streams.items()}
    stories = {name: _Story(first, ("", _OF_LOOPS) if trainer else (_OF_LOOPS,)) for name in streams}
    again = {at for name, own in streams.items() for at in _evaluations_again(own, counted[name] or ())}
    told: list[LogLine] = []
    bases: list[int] = []  # Number of steps before the bar of each.
    evaluations: list[tuple[int, LogLine]] = []  # With the number of lines before each.
    for log_line in log_lines:
        story = stories[log_line.stream]
        if log_line.event is not None and log_line.event.type is EventType.CRASHED:
            for name in stories if not log_line.stream else (log_line.stream,):
                stories[name].died = True
        if id(log_line) in again:
            told += _clocks_of([log_line])
            bases += [story.base] * (len(told) - len(bases))
            continue
        bar, training = bar_of(log_line), counted[log_line.stream]
        if bar is not None and training is not None and (bar.name, bar.total) not in training:
            story.see_other(bar, log_line, len(told), bool(training))
            continue
        evaluations += story.ended_evaluation() if bar is not None else ()
        told += _converted(log_line, training, story)
        bases += [story.base] * (len(told) - len(bases))
    evaluations += [one for story in stories.values() for one in story.ended_evaluation()]
    placed = ((place, 0, evaluation, 0) for place, evaluation in evaluations)
    ordered = sorted(
        (*placed, *((at, 1, *one) for at, one in enumerate(zip(told, bases, strict=True)))), key=itemgetter(0, 1)
    )
    told = [log_line for _, _, log_line, _ in ordered]
    return [one for at, (*_, log_line, base) in enumerate(ordered) for one in (*_resumed(told, at, base), log_line)]


def _evaluations_again(log_lines: Sequence[LogLine], training: Container[tuple[str, int]]) -> Iterator[int]:
    """Yield the id() of each log line of one stream that is about an evaluation that another line describes: bars of
    evaluations next to lines with their times, and such lines after the time of their bars. Buffered output comes
    later than the bars, so that a line counts only between the same steps as a bar. training: bars of training."""
    step, bars, lines = 0, list[LogLine](), list[LogLine]()
    gaps: list[tuple[list[LogLine], list[LogLine]]] = []
    has_begun = False
    for log_line in log_lines:
        bar = bar_of(log_line)
        if bar is not None and (bar.name, bar.total) in training:
            if has_begun and bar.done != step:
                gaps.append((bars, lines))
            if bar.done != step or not has_begun:
                bars, lines = [], []
            step, has_begun = bar.done, True
        elif bar is not None and bar.is_of_evaluation:
            bars.append(log_line)
        elif is_of_bars(log_line, EventType.EVAL):
            lines.append(log_line)
    gaps.append((bars, lines))
    are_drawn = has_begun and any(bars for bars, _ in gaps)
    for bars, lines in gaps:
        late = lines if are_drawn and len(lines) > _begun(bars) else ()
        yield from map(id, late or (bars if lines else ()))


def _begun(log_lines: Sequence[LogLine]) -> int:
    """Return the number of bars that some states are of."""
    bars = [bar for bar in map(bar_of, log_lines) if bar is not None]
    return sum(not two.is_same(one) or two.done < one.done for one, two in pairwise(bars)) + bool(bars)


def _clocks_of(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the log lines, with those of bars reduced to their timestamps."""
    for log_line in log_lines:
        if log_line.event is None or log_line.event.format != NAME:
            yield log_line
        elif log_line.stamp is not None:
            yield replace(log_line, event=None)


def _resumed(log_lines: Sequence[LogLine], at: int, base: int) -> Iterator[LogLine]:
    """Yield the resumption of a process whose bar began at 0. A first record that jumps ahead of its time continues
    from a checkpoint, at most one stride before the record and at most the steps that its time allows. base: number of
    steps before the bar."""
    first = log_lines[at]
    if first.event is None or not is_of_bars(first, EventType.STEP):
        return
    before = (log_lines[row] for row in range(at - 1, -1, -1))
    start = next((log_line for log_line in before if log_line.event is not None), None)
    if start is None or not is_of_bars(start, EventType.START):
        return
    step = first.event.step or 0
    stride, steps, took = _pace_after(log_lines, at)
    allowed = (first.event.took or 0) * steps // took if took else step
    ahead = min(stride or step, max(1, allowed))
    began = step - ahead if step > 1.5 * ahead else 0
    resumed = base if not took or 2 * allowed >= step - base else began
    yield replace(first, event=ParsedEvent(NAME, EventType.RESUME, resumed, counted=False))


def _pace_after(log_lines: Sequence[LogLine], at: int) -> tuple[int, int, int]:
    """Return the steps of the first record after a record of its process, and the steps and time (ns) of the records
    that show its pace; 0 without any."""
    stride = steps = took = 0
    first = log_lines[at].event
    last = 0 if first is None else first.step or 0
    for row in range(at + 1, len(log_lines)):
        log_line = log_lines[row]
        one = log_line.event
        if one is None or log_line.stream != log_lines[at].stream or not is_of_bars(log_line, EventType.STEP):
            continue
        if one.step is None or one.step <= last or steps >= _PACE * max(stride, 1):
            break
        stride = stride or one.step - last
        steps, took, last = steps + one.step - last, took + (one.took or 0), one.step
    return stride, steps, took


def _counted(log_lines: Sequence[LogLine], trainer: bool) -> set[tuple[str, int]]:
    """Return the bars of training by name and total."""
    bars = [bar for bar in map(bar_of, log_lines) if bar is not None]
    named = {(bar.name, bar.total) for bar in bars if bar.is_of_training}
    if named:
        return named
    if not trainer:
        losses: set[tuple[str, int]] = {("", bar.total) for bar in bars if bar.has_loss and not bar.name}
        return losses if len(losses) == 1 else set()
    longest: dict[int, int] = {}
    for bar in bars:
        if not bar.name:
            longest[bar.total] = max(longest.get(bar.total, 0), bar.elapsed)
    return {("", max(longest, key=lambda total: (longest[total], total)))} if longest else set()


def _with_epochs_of_headers(log_lines: Sequence[LogLine], announced: Mapping[str, int]) -> Sequence[LogLine]:
    """Return the log lines of one source, with the epochs that lines announce in the bars after them. announced: totals
    of these bars by stream."""
    if not announced:
        return log_lines
    epochs: dict[str, int] = {}
    found: list[LogLine] = []
    for log_line in log_lines:
        header, bar, event = header_of(log_line), bar_of(log_line), log_line.event
        if header is not None:
            epochs[log_line.stream] = header
        epoch = epochs.get(log_line.stream)
        if bar is not None and event is not None and not bar.name and bar.total == announced.get(log_line.stream):
            named = bar._replace(epoch=epoch)
            log_line = replace(log_line, event=replace(event, detail=(("bar", named),)))
        found.append(log_line)
    return found


def _with_first_names(log_lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the log lines of one source, with the first name of each bar in all of its states. Programs set another
    name while the bar goes on, such as `Epoch 1/3, step 5/79 completed` after `Epoch 1`."""
    drawn: dict[tuple[str, int, int], Bar] = {}
    found: list[LogLine] = []
    for log_line in log_lines:
        bar, event = bar_of(log_line), log_line.event
        if bar is not None and event is not None and bar.epoch is not None and bar.is_of_training:
            key = log_line.stream, bar.epoch, bar.total
            before = drawn.get(key)
            if before is not None and bar.name != before.name and _goes_on(bar, before):
                bar = bar._replace(name=before.name)
                log_line = replace(log_line, event=replace(event, detail=(("bar", bar),)))
            drawn[key] = bar
        found.append(log_line)
    return found


def _goes_on(bar: Bar, before: Bar) -> bool:
    """Return True if a state may be of the same bar as the one before. A full bar is only drawn again at its end."""
    most = before.elapsed + 1 if before.is_full else bar.elapsed
    return bar.done >= before.done and before.elapsed <= bar.elapsed <= most


def _by_stream(log_lines: Sequence[LogLine]) -> Mapping[str, list[LogLine]]:
    streams: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        streams[log_line.stream].append(log_line)
    return streams


def _announced(log_lines: Sequence[LogLine]) -> int | None:
    """Return the total of the bar without a name that one process draws once after each line that announces an epoch,
    before all others; None if bars follow only one such line, or several processes draw them."""
    firsts: list[tuple[str, int]] = []
    before: Bar | None = None
    epoch: int | None = None
    is_announced = False
    for log_line in log_lines:
        bar, header = bar_of(log_line), header_of(log_line)
        if header is not None:
            if header == epoch and before is not None and before.is_full:
                return None
            epoch, is_announced = header, True
        if bar is None:
            continue
        begins = before is None or not bar.is_same(before) or bar.done < before.done
        before = bar
        if is_announced:
            firsts.append((bar.name, bar.total))
        elif begins and firsts and (bar.name, bar.total) == firsts[0]:
            return None
        is_announced = False
    is_one = len(firsts) > 1 and len(set(firsts)) == 1 and not firsts[0][0]
    return firsts[0][1] if is_one else None


@dataclass
class _Story:
    """State of the bars of one stream."""

    first: int
    """Number of the first epoch."""
    whole_names: Collection[str] = (_OF_LOOPS,)
    """Names, in lower case, of bars that count the whole training."""
    bar: Bar | None = None
    step: int = 0
    epoch: int = 0
    base: int = 0
    """Steps of the epochs before."""
    is_next: bool = False
    """True if the next record is the first of a bar that follows another one of the same process."""
    is_recorded: bool = False
    """True if a record of the bar precedes the next one."""
    has_fallen: bool = False
    """True if the next record is the first one after steps fell."""
    header: int | None = None
    """Epoch in a line since the last state."""
    is_named: bool = False
    """True if the name of the bar, or a line before it, states its epoch."""
    evaluated: int = 0
    """Time (ns) of evaluations since the last record, which the bar's time includes."""
    started: bool = False
    restored: bool = False
    """True if a checkpoint was loaded since the last state."""
    died: bool = False
    """True if a death was logged since the last state."""
    other: tuple[int, LogLine] | None = None
    """The last state of an evaluation bar after a training record, and the number of lines before it."""
    others: int = 0
    """Seconds of evaluations after the same record."""

    def see_other(self, bar: Bar, log_line: LogLine, place: int, has_training: bool) -> None:
        """Add a state of another bar. has_training: True if there are bars of training."""
        if not has_training or self.bar is None or not bar.is_of_evaluation:
            return
        before = None if self.other is None else bar_of(self.other[1])
        goes_on = before is not None and bar.is_same(before) and bar.elapsed >= before.elapsed
        self.others += bar.elapsed - (before.elapsed if goes_on and before is not None else 0)
        self.other = place, log_line

    def ended_evaluation(self) -> Iterator[tuple[int, LogLine]]:
        """Yield the evaluations whose bars follow the last training record, with the number of lines before each."""
        other, elapsed = self.other, self.others
        self.other, self.others = None, 0
        if other is not None and elapsed > 0:
            self.evaluated += elapsed * NS_PER_SECOND
            took = ParsedEvent(NAME, EventType.EVAL, took=elapsed * NS_PER_SECOND)
            yield other[0], replace(other[1], event=took)


def _converted(log_line: LogLine, counted: set[tuple[str, int]] | None, story: _Story) -> Iterator[LogLine]:
    """Yield the log lines that a line becomes. counted: the bars of training; None if another format counts."""
    bar, event = bar_of(log_line), log_line.event
    if counted is None:
        yield from _clocks_of([log_line])
    elif bar is not None:
        yield from _record(log_line, bar, story)
    elif (header := header_of(log_line)) is not None:
        story.header = header
        yield from _clocks_of([log_line])
    else:
        if event is not None and event.format == NAME and event.type is EventType.EVAL:
            story.evaluated += event.took or 0
        story.started |= event is not None and event.type is EventType.START
        loads = event is not None and event.type in (EventType.RESTORE, EventType.RESUME)
        story.restored |= loads
        # Other programs may count from 0 in checkpoint names: the bar shows where its process continues.
        is_named = loads and event is not None and event.format != NAME and event.step is not None
        yield replace(log_line, event=replace(event, step=None)) if is_named and event is not None else log_line


def _count_epochs(bar: Bar, story: _Story, *, new: bool) -> None:
    """Set the epoch of a state, and the number of steps before it.

    The epoch is in the bar's name or a line before it; otherwise a full bar that restarts is the next epoch, unless a
    process began or died in between. Another process continues in the previous epoch only if it loaded a checkpoint.
    """
    before, named = story.bar, bar.epoch if bar.epoch is not None else story.header
    if before is None and bar.epoch is None and bar.name.lower() in story.whole_names:
        named = None  # The line before it announces an epoch that the bar continues through.
    named, story.header = None if named is None else max(named - story.first, 0), None
    if not new:
        return
    begun = story.started or story.died or bar.is_resumed or bar.counts_epochs  # No epoch follows all of them.
    same = before is not None and (before.name, before.total) == (bar.name, bar.total)
    was_full = before is not None and before.is_full and (same or named is not None)
    epoch = epoch_of(named, story.epoch, was_full=was_full, begun=begun, restored=story.restored or bar.is_resumed)
    follows = before is not None and was_full and not begun and epoch == story.epoch + 1
    story.is_named = named is not None
    story.base = story.base + before.done if follows and before is not None else epoch * bar.total
    story.epoch = epoch


def _goes_back(bar: Bar, before: Bar) -> bool:
    """Return True if the count of a bar falls while its clock continues: its process returned to an earlier step."""
    return bar.is_same(before) and 0 < bar.done < before.done and bar.elapsed >= before.elapsed


def _record(log_line: LogLine, bar: Bar, story: _Story) -> Iterator[LogLine]:
    before, new = story.bar, story.bar is None
    if before is not None:
        new = not bar.is_same(before) or bar.elapsed < before.elapsed or bar.done < before.done
    if before is not None and before.is_full and bar.is_same(before) and bar.done == 0 and bar.epoch is not None:
        return  # It is drawn once before the name of the next epoch is set.
    _count_epochs(bar, story, new=new)
    step = bar.done + story.base if bar.global_step is None else bar.global_step + 1
    if before is not None and new and _goes_back(bar, before) and not (story.started or story.died):
        story.step, story.bar = step, bar
        took = (bar.elapsed - before.elapsed) * NS_PER_SECOND
        yield replace(log_line, event=ParsedEvent(NAME, EventType.ROLLBACK, took=took))
        yield replace(log_line, event=ParsedEvent(NAME, EventType.RESUME, step, counted=False))
        return
    again = new and (before is None or step < story.step or (step == story.step and bar.done > 0))
    again |= new and story.died and bar.done == 0  # This is the next epoch, of another process.
    falls = before is not None and bar.elapsed < before.elapsed and bar.done < before.done
    begins = bar.done == 0 or falls or (before is None and bar.elapsed > 0)
    # After a whole epoch, the first one may be that of the next run: the count shows both readings.
    begins &= before is None or not before.is_full or not story.is_named or story.died
    resumes = new and before is not None and bar.is_resumed
    opens = (again and begins) or resumes or story.started
    if opens and before is not None and before.is_full and bar.counts_epochs and not story.died:
        yield replace(log_line, event=ParsedEvent(NAME, EventType.FINISHED, name=OTHER_RUN, detail=OWN_END))
    if opens and not story.started:
        seen = (("elapsed", bar.elapsed),) if before is None and step > 1 else ()
        yield replace(log_line, event=ParsedEvent(NAME, EventType.START, once=True, detail=seen))
    if resumes:
        yield replace(log_line, event=ParsedEvent(NAME, EventType.RESUME, step, counted=False))
    story.step = step if resumes else 0 if again else story.step
    story.started = story.restored = False
    story.died &= not new and before is not None and bar.done == before.done
    if new:  # The time of a restarted bar does not include evaluations before it.
        story.is_recorded = False
        story.evaluated, story.is_next = 0, before is not None and not again
        story.has_fallen = before is not None and again and not opens
    since = 0 if new or before is None else before.elapsed
    story.bar = bar if new or step > story.step or before is None else before
    if step <= story.step or (again and bar.done == 0):  # An epoch whose first state is 0 may be resumed in its middle.
        return
    # A bar counts whole seconds. The first record of a run is after the last one of the run before.
    took = max((bar.elapsed - since) * NS_PER_SECOND - story.evaluated, int(story.has_fallen))
    ahead, story.step, story.evaluated = step - story.step, step, 0
    whole_training = story.base == 0 and bar.epoch is None and bar.global_step is None
    total = bar.total if whole_training and bar.name.lower() in story.whole_names else None
    # The time between two bars is not part of steps.
    step_time = took // ahead if story.is_next and took else None
    story.is_next = story.has_fallen = False
    goes_on, story.is_recorded = story.is_recorded and not new, True
    event = ParsedEvent(NAME, EventType.STEP, step, step_time, took, total=total, since_record=goes_on)
    yield replace(log_line, event=event)
