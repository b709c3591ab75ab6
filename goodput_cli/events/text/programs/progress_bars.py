"""Progress bars of training (tqdm's), as Hugging Face's Trainer, Lightning and NeMo 1 draw them: so many steps, so long
after the bar began. They have no time of day; lines with one around them are their clock.

Programs draw many bars. Those of training are the ones of epochs and steps, and the one without a name that stays
longest, where the Trainer's own lines stand beside it. Beside step records of another format they say nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from goodput_cli.events.text.log_lines import ENDS, EventType, LineRule, LogLine, ParsedEvent, duration, pattern, whole
from goodput_cli.vocabulary.when import NS_PER_SECOND

NAME = "progress-bars"
_EVERY = 20
"""Seconds between two states of a bar that are kept: it shows whole seconds, and is drawn ten times in each."""
_FIRST = 3
_BURST = 60 * NS_PER_SECOND
"""What every node prints, all print within this time."""
_AGAIN = 4
_NODES = 64
"""So many bars are compared with one another."""
_BAR = pattern(
    r"^(?P<name>[^|%]*?)\d{1,3}%\|[^|]*\|\s*(?P<done>\d+)/(?P<total>\d+) \[(?P<elapsed>\d{1,9}(?::\d\d){1,2})<"
    r"(?P<rest>[^\]]*)"
)
_EPOCH = re.compile(r"epoch:? (\d{1,9})(?:/\d+)?", re.IGNORECASE)
_STEPS = re.compile(r"steps|train|training", re.IGNORECASE)
_OF_ALL_EPOCHS = ("", "steps")
"""Names of bars that count all of training: the Trainer's, and that of loops over steps. Others (`Training`) mostly
begin anew with each epoch."""
_TOTALS = {
    "tokens_total": re.compile(r"'num_input_tokens_seen': '?(\d{1,18}(?:\.\d{1,9})?)['},]"),
    "flops_total": re.compile(r"'total_flos': '?(\d{1,30}(?:\.\d{1,30})?(?:e\+?\d{1,3})?)['},]"),
}
"""Running counts of the Trainer."""
_MOST_WORK = 1e300
_GLOBAL_STEP = re.compile(r"global_step=(\d{1,15})(?!\d)")


@dataclass(frozen=True)
class _Bar:
    """A state of a progress bar. elapsed: s."""

    name: str
    done: int
    total: int
    elapsed: int
    global_step: int | None


def _read_bar(found: Any) -> ParsedEvent:
    elapsed = 0
    for part in found["elapsed"].split(":"):
        elapsed = 60 * elapsed + int(part)
    step = _GLOBAL_STEP.search(found["rest"])
    name = found["name"].strip().removesuffix(":").rstrip().removesuffix(":").strip()
    bar = _Bar(name, whole(found["done"]), whole(found["total"]), elapsed,
               None if step is None else int(step[1]))  # fmt: skip
    return ParsedEvent(NAME, EventType.ALIVE, name="bar", detail=(("bar", bar),))


def _read_loss(found: Any) -> ParsedEvent:
    epoch = _EPOCH_OF_TRAINER.search(found[0])
    detail = () if epoch is None else (("epoch", round(1_000_000 * float(epoch[1]))),)
    return ParsedEvent(NAME, EventType.ALIVE, name="trainer", detail=detail, metrics=_totals(found[0]))


def _totals(text: str) -> dict[str, float]:
    """What the Trainer has worked on since the beginning of the run, those before a resume too, as metrics."""
    found = ((name, total.search(text)) for name, total in _TOTALS.items())
    return {name: float(one[1]) for name, one in found if one is not None and 0 < float(one[1]) < _MOST_WORK}


RULES = (
    *(LineRule(NAME, rate, _BAR, _read_bar, "progress bar") for rate in ("it/s", "s/it", ", v_num=", ", global_step=")),
    LineRule(NAME, "***** Running training *****", pattern(r"\*\*\*\*\* Running training \*\*\*\*\*"),
             lambda _: ParsedEvent(NAME, EventType.START, name="trainer", once=True), "running training"),
    LineRule(NAME, "Continuing training from global step",
             pattern(r"Continuing training from global step (?P<step>\d+)"),
             lambda found: ParsedEvent(NAME, EventType.RESUME, whole(found["step"]), name="trainer"), "continuing"),
    LineRule(NAME, "{'train_runtime'", pattern(r"^\s*\{'train_runtime': .{0,1000}"),
             lambda found: ParsedEvent(NAME, EventType.FINISHED, name="trainer", metrics=_totals(found[0])), "runtime"),
    LineRule(NAME, "'eval_runtime'", pattern(r"'eval_runtime': '?(?P<took>[\d.]+)"),
             lambda found: ParsedEvent(NAME, EventType.EVAL, took=duration(found["took"]), name="trainer"),
             "evaluation"),
    LineRule(NAME, "{'loss': ", pattern(r"^\s*\{'loss': .{0,1000}"), _read_loss, "loss"),
)  # fmt: skip


def _bar(log_line: LogLine) -> _Bar | None:
    said = log_line.event
    return said.detail[0][1] if said is not None and said.format == NAME and said.name == "bar" else None


_EPOCH_OF_TRAINER = re.compile(r"'epoch': '?(\d+(?:\.\d+)?)")


def counted_step(said: ParsedEvent) -> int | None:
    """The number of the step that a line is about, those of a bar among them; of the Trainer's lines with a loss the
    epoch in millionths, which is all that they name; None: it is of none."""
    if said.type is EventType.STEP:
        return said.step
    if said.format != NAME:
        return None
    bar_or_epoch = said.detail[0][1] if said.detail else None
    found: int | None = bar_or_epoch.done if isinstance(bar_or_epoch, _Bar) else bar_or_epoch
    return found


def counted_bar(said: ParsedEvent) -> tuple[str, int] | None:
    """Name and total of the bar that a line draws a state of; None: it draws none."""
    if said.format != NAME or said.name != "bar":
        return None
    return said.detail[0][1].name, said.detail[0][1].total


@dataclass
class _Kept:
    """Of one bar in a block: the last state that stays, the last at all, and where that stands (-1: it stays too)."""

    stays: _Bar
    last: _Bar
    place: int = -1
    begun: int = 1
    """States since it began, at most `_FIRST`."""


def thinned(placed: Sequence[tuple[int, LogLine]]) -> list[tuple[int, LogLine]]:
    """Log lines of a block without most states of a bar: its first three stay, those far enough apart, and the last."""
    left_out: set[int] = set()
    seen: dict[tuple[str, str, int], _Kept] = {}
    for place, (_, log_line) in enumerate(placed):
        bar = _bar(log_line)
        if bar is None:
            continue
        kept = seen.get((log_line.stream, bar.name, bar.total))
        if kept is None or bar.elapsed < kept.last.elapsed or bar.done < kept.last.done:
            seen[log_line.stream, bar.name, bar.total] = _Kept(bar, bar)
            continue
        if (
            bar.done == kept.last.done and log_line.stamp is None
        ):  # drawn again, as when it is closed behind a traceback
            left_out.add(place)
            continue
        if kept.place >= 0:
            left_out.add(kept.place)
        stays = kept.begun < _FIRST or bar.elapsed >= kept.stays.elapsed + _EVERY
        kept.begun = min(kept.begun + 1, _FIRST)
        kept.stays, kept.place = (bar, -1) if stays else (kept.stays, place)
        kept.last = bar
    return [one for place, one in enumerate(placed) if place not in left_out] if left_out else list(placed)


def without_begun_elsewhere(parts: Sequence[list[LogLine]]) -> None:
    """Leave out starts of bars that the log before, of those that were rotated, shows already: it has steps below, in
    the time since the bar began. parts: the log lines of one job by source."""
    steps = [
        [
            (log_line.end, log_line.event.step or 0)
            for log_line in part
            if _is(log_line, EventType.STEP) and log_line.event
        ]
        for part in parts
    ]
    for own, part in zip(steps, parts, strict=True):
        start = next(
            (
                log_line
                for log_line in part
                if _is(log_line, EventType.START) and log_line.event and log_line.event.detail
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


def names_trainer(log_lines: Sequence[LogLine]) -> bool:
    """Whether lines of Hugging Face's Trainer stand among the log lines."""
    return any(
        log_line.event is not None and (log_line.event.format, log_line.event.name) == (NAME, "trainer")
        for log_line in log_lines
    )


def as_records(log_lines: Sequence[LogLine], trainer: bool) -> list[LogLine]:
    """The log lines of one source, where states of the bars of training become step records that took their time.
    trainer: whether lines of Hugging Face's Trainer stand in it or in the file of its output, beside that of errors."""
    if not any(_bar(log_line) is not None for log_line in log_lines):
        return [*_clocks_of(log_lines)]
    log_lines = one_bar_each(log_lines)
    others = any(log_line.event is not None and log_line.event.type is EventType.STEP for log_line in log_lines)
    streams: defaultdict[str, list[LogLine]] = defaultdict(list)
    for log_line in log_lines:
        streams[log_line.stream].append(log_line)
    counted = {name: None if others else _counted(own, trainer) for name, own in streams.items()}
    stories = {name: _Story(evaluations_are_said=any(_is(log_line, EventType.EVAL) for log_line in own))
               for name, own in streams.items()}  # fmt: skip
    told: list[LogLine] = []
    ended: dict[str, tuple[int, LogLine]] = {}  # by stream, behind what its last evaluation stands, and its last state
    for log_line in log_lines:
        story = stories[log_line.stream]
        if log_line.event is not None and log_line.event.type is EventType.CRASHED:
            for name in stories if not log_line.stream else (log_line.stream,):
                stories[name].died = True
        told += _told(log_line, counted[log_line.stream], story)
        if story.other is not None and story.other is _bar(log_line):
            ended[log_line.stream] = (len(told), log_line)
    for stream, (place, log_line) in sorted(ended.items(), key=lambda one: -one[1][0]):
        told[place:place] = _evaluation(log_line, stories[stream])  # which no bar of training follows
    return [one for at, log_line in enumerate(told) for one in (*_resumed(told, at), log_line)]


@dataclass
class _Track:
    """A bar, as one process draws it. Times are those of a clock that no state contradicts, ns."""

    begin: int
    last: _Bar
    rows: list[int]
    """Of its states among the log lines."""
    since: int
    """The last time that a line shows before its first state, ns."""
    until: int | None = None
    """The first time that a line shows behind its last state, ns."""

    @property
    def end(self) -> int:
        return self.begin + self.last.elapsed * NS_PER_SECOND

    def is_over(self, same: Sequence[_Track]) -> bool:
        """Whether another bar of its name began behind its last state and was drawn again and again: bars of nodes take
        turns."""
        later = (track for track in reversed(same) if track.rows[0] > self.rows[-1])
        return any(len(track.rows) >= _AGAIN and track.last.elapsed >= _EVERY for track in later)

    def goes_on(self, bar: _Bar, now: int) -> bool:
        """Whether a state may be of this bar, which counts all time since its last one. now: the last time that a line
        shows before the state, ns."""
        if bar.done < self.last.done or bar.elapsed < self.last.elapsed:
            return False
        since = (bar.elapsed - self.last.elapsed) * NS_PER_SECOND
        return self.until is None or now - self.until <= since + _BURST

    def beside(self, other: _Track) -> bool:
        """Whether another process drew a bar at the same time: their states alternate, one behind the other they would
        take longer than the lines around them show, or their times overlap by over half of the shorter."""
        first, second = sorted((self, other), key=lambda one: one.rows[0])
        if second.rows[0] < first.rows[-1]:
            return True
        both = (first.last.elapsed + second.last.elapsed) * NS_PER_SECOND
        if second.until is not None and both > second.until - first.since + _BURST:
            return True
        shorter = min(first.end - first.begin, second.end - second.begin)
        return 2 * (min(first.end, second.end) - max(first.begin, second.begin)) > shorter


def one_bar_each(log_lines: Sequence[LogLine]) -> list[LogLine]:
    """The log lines of one source, where of bars that the processes of several nodes drew of the same steps, without a
    rank in front, that with most states is left; what these processes said beside their bars counts once."""
    streams: defaultdict[str, list[int]] = defaultdict(list)
    for row, log_line in enumerate(log_lines):
        streams[log_line.stream].append(row)
    dropped: set[int] = set()
    for rows in streams.values():
        tracks, clock = _tracks(log_lines, rows)
        others = [row for same in tracks.values() for track in _repeated(same) for row in track.rows]
        dropped.update(others)
        dropped.update(_said_again(log_lines, [row for row in rows if row not in dropped], clock))
    return [
        replace(log_line, event=None) if row in dropped else log_line
        for row, log_line in enumerate(log_lines)
        if row not in dropped or log_line.stamp is not None
    ]


def _tracks(
    log_lines: Sequence[LogLine], rows: Sequence[int]
) -> tuple[dict[tuple[str, int], list[_Track]], dict[int, int]]:
    """The bars of one stream by name and total, and when (ns) each log line of it was written at the earliest."""
    tracks: defaultdict[tuple[str, int], list[_Track]] = defaultdict(list)
    clock: dict[int, int] = {}
    now = shown = next(
        (log_line.stamp.ns for log_line in map(log_lines.__getitem__, rows) if log_line.stamp is not None), 0
    )
    drawn: list[_Track] = []  # since the last stamp
    for row in rows:
        log_line, bar = log_lines[row], _bar(log_lines[row])
        if log_line.stamp is not None:
            shown, now = max(shown, log_line.stamp.ns), max(now, log_line.stamp.ns)
            for track in drawn:
                track.until = shown
            drawn = []
        if bar is not None:
            same = tracks[bar.name, bar.total]
            going = [track for track in same[-_NODES:] if track.goes_on(bar, shown) and not track.is_over(same)]
            if going:
                track = max(going, key=lambda one: (one.last.elapsed, one.last.done))
                track.last, track.until = bar, None if log_line.stamp is None else shown
                track.rows.append(row)
                now = max(now, track.end)
            else:
                track = _Track(
                    now - bar.elapsed * NS_PER_SECOND, bar, [row], shown, None if log_line.stamp is None else shown
                )
                same.append(track)
            drawn.append(track)
        clock[row] = now
    return tracks, clock


def _repeated(tracks: Sequence[_Track]) -> list[_Track]:
    """Of some bars in order those that show what another one shows, which has more states."""
    groups: list[list[_Track]] = []
    for track in tracks:
        group = next((group for group in groups[-_NODES:] if any(track.beside(one) for one in group)), None)
        if group is None:
            groups.append([track])
        else:
            group.append(track)
    best = {id(max(group, key=lambda one: (len(one.rows), one.last.done))) for group in groups}
    return [track for track in tracks if id(track) not in best]


def _said_again(log_lines: Sequence[LogLine], rows: Sequence[int], clock: dict[int, int]) -> set[int]:
    """Lines of the Trainer that every node prints: of starts in a burst the first counts, of ends the last, and of
    evaluations without a step in between, which took about as long, the longest."""
    again: set[int] = set()
    started: int | None = None
    finished: int | None = None
    evaluated: int | None = None
    for row in rows:
        log_line = log_lines[row]
        if log_line.event is not None and log_line.event.type in ENDS and not _is(log_line, EventType.FINISHED):
            started = None
        elif _is(log_line, EventType.START):
            if started is not None and clock[row] - clock[started] <= _BURST and finished is None:
                again.add(row)
            else:
                started, finished, evaluated = row, None, None
        elif _is(log_line, EventType.FINISHED):
            if finished is not None and clock[row] - clock[finished] <= _BURST:
                again.add(finished)
            finished, evaluated = row, None
        elif _is(log_line, EventType.EVAL):
            shorter, longer = sorted(
                (row if evaluated is None else evaluated, row), key=lambda at: _took(log_lines[at])
            )
            if evaluated is not None and 10 * _took(log_lines[shorter]) >= 9 * _took(log_lines[longer]):
                again.add(shorter)
            evaluated = longer
        elif _bar(log_line) is not None:
            evaluated = None
    return again


def _took(log_line: LogLine) -> int:
    return log_line.event.took or 0 if log_line.event is not None else 0


def _clocks_of(log_lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """The same log lines, where those of bars show only what time it is."""
    for log_line in log_lines:
        if log_line.event is None or log_line.event.format != NAME:
            yield log_line
        elif log_line.stamp is not None:
            yield replace(log_line, event=None)


def _resumed(log_lines: Sequence[LogLine], at: int) -> Iterator[LogLine]:
    """Where a process began whose bar began at 0: it jumps to a step behind a checkpoint, and goes on in smaller steps
    from there. It made no more of them before than then, and no more than its time allows."""
    first = log_lines[at]
    start = (
        next((log_line for log_line in reversed(log_lines[:at]) if log_line.event is not None), None)
        if _is(first, EventType.STEP)
        else None
    )
    if start is None or not _is(start, EventType.START) or not _is(first, EventType.STEP) or first.event is None:
        return
    later = next((one for one in log_lines[at + 1 :] if one.stream == first.stream and _is(one, EventType.STEP)), None)
    step = first.event.step or 0
    ahead = step
    if later is not None and later.event is not None and later.event.step:
        ahead = later.event.step - step
        ahead = min(ahead, max(1, (first.event.took or 0) * ahead // max(later.event.took or 0, 1)))
    yield replace(
        first, event=ParsedEvent(NAME, EventType.RESUME, step - ahead if step > 1.5 * ahead else 0, counted=False)
    )


def _is(log_line: LogLine, what: EventType) -> bool:
    return log_line.event is not None and log_line.event.format == NAME and log_line.event.type is what


def _counted(log_lines: Sequence[LogLine], trainer: bool) -> set[tuple[str, int]]:
    """The bars of training, by name and total; an epoch's by any total."""
    bars = [bar for bar in map(_bar, log_lines) if bar is not None]
    named = {(bar.name, bar.total) for bar in bars if _EPOCH.fullmatch(bar.name) or _STEPS.fullmatch(bar.name)}
    if named or not trainer:
        return named
    longest: dict[int, int] = {}
    for bar in bars:
        if not bar.name:
            longest[bar.total] = max(longest.get(bar.total, 0), bar.elapsed)
    return {("", max(longest, key=lambda total: (longest[total], total)))} if longest else set()


@dataclass
class _Story:
    """What the bars of one stream showed so far."""

    bar: _Bar | None = None
    step: int = 0
    evaluated: int = 0
    """ns of evaluations since the last record, which the bar's time holds too."""
    started: bool = False
    died: bool = False
    """Whether a line said since the last state that its process died."""
    evaluations_are_said: bool = False
    """Whether lines say how long evaluations took; else their bars do."""
    other: _Bar | None = None
    """The last state of a bar of an evaluation behind a record of training."""


def _told(log_line: LogLine, counted: set[tuple[str, int]] | None, story: _Story) -> Iterator[LogLine]:
    """What a log line says behind those of a story. counted: the bars of training; None where another format counts."""
    bar, said = _bar(log_line), log_line.event
    if counted is None:
        yield from _clocks_of([log_line])
    elif bar is not None:
        if (bar.name, bar.total) in counted:
            yield from _evaluation(log_line, story)
            yield from _record(log_line, bar, story)
        elif counted and story.bar is not None and not story.evaluations_are_said and _is_of_evaluation(bar):
            story.other = bar
    else:
        if said is not None and said.format == NAME and said.type is EventType.EVAL:
            story.evaluated += said.took or 0
        story.started |= said is not None and said.type is EventType.START
        yield log_line


def _is_of_evaluation(bar: _Bar) -> bool:
    """The Trainer's has no name, as that of training has none; Lightning's is called by what it loads."""
    return not bar.name or bar.name.startswith(("Validation", "Evaluat"))


def _evaluation(log_line: LogLine, story: _Story) -> Iterator[LogLine]:
    """The evaluation whose bar stood between two states of that of training."""
    other, story.other = story.other, None
    if other is not None and other.elapsed > 0:
        took = other.elapsed * NS_PER_SECOND
        story.evaluated += took
        yield replace(log_line, event=ParsedEvent(NAME, EventType.EVAL, took=took))


def _record(log_line: LogLine, bar: _Bar, story: _Story) -> Iterator[LogLine]:
    before, new = story.bar, story.bar is None
    if before is not None:
        new = bar.name != before.name or bar.elapsed < before.elapsed or bar.done < before.done
    epoch = _EPOCH.fullmatch(bar.name)
    step = bar.done + (int(epoch[1]) * bar.total if epoch else 0)
    step = step if bar.global_step is None else bar.global_step + 1
    again = new and (before is None or step < story.step or (step == story.step and bar.done > 0))
    again |= new and story.died and bar.done == 0  # the next epoch, of another process
    falls = before is not None and bar.elapsed < before.elapsed and bar.done < before.done
    begins = bar.done == 0 or falls or (before is None and bar.elapsed > 0)
    if again and begins and not story.started:
        seen = (("elapsed", bar.elapsed),) if before is None and step > 1 else ()
        yield replace(log_line, event=ParsedEvent(NAME, EventType.START, once=True, detail=seen))
    story.step = 0 if again else story.step
    story.started = False
    story.died &= not new and before is not None and bar.done == before.done
    if new:  # a bar that begins anew does not hold what was before it
        story.evaluated = 0
    since = 0 if new or before is None else before.elapsed
    story.bar = bar if new or step > story.step else before
    if step <= story.step or (again and bar.done == 0):  # an epoch whose first state is 0 may be resumed in its middle
        return
    took = max((bar.elapsed - since) * NS_PER_SECOND - story.evaluated, 0)
    story.step, story.evaluated = step, 0
    whole_training = not epoch and bar.global_step is None and bar.name.lower() in _OF_ALL_EPOCHS
    total = bar.total if whole_training else None
    yield replace(log_line, event=ParsedEvent(NAME, EventType.STEP, step, took=took, total=total))
