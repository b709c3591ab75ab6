"""What the marks of one source mean together: those of each program, and signs of life beside its steps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from goodput_cli.events.text.marks import ENDS, Mark, Said, What
from goodput_cli.events.text.meaning import meant, said
from goodput_cli.events.text.programs import launcher, megatron, megatron_process, mllog
from goodput_cli.events.text.to_rows import ONE_STORY

TRANSLATORS: dict[str, Callable[[Sequence[Mark]], list[Mark]]] = {
    megatron.NAME: megatron_process.translate,
    megatron.PROGRESS: megatron.translate_progress,
    launcher.NAME: launcher.translate,
    mllog.NAME: mllog.translate,
}
"""By format: what its lines mean together, where a line alone does not say it."""

_ON_THE_WAY = (What.INIT, What.PREP, What.DATA, What.RESTORE, What.RESUME, What.REINIT, What.ALIVE)
_DEATHS = (What.CRASHED, What.TERMINATED, What.PREEMPTED)


def meaning_of(marks: Sequence[Mark]) -> list[Mark]:
    """What the marks of one source mean, in order of lines within a format, then of time."""
    by_format: defaultdict[str, list[Mark]] = defaultdict(list)
    alive: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        if mark.said is None:
            alive[mark.stream].append(mark)
        else:
            by_format[mark.said.format].append(mark)
    translated: list[Mark] = []
    for name, own in by_format.items():
        translator = TRANSLATORS.get(name)
        translated += translator(own) if translator is not None else own
    end_with_time(sorted(translated, key=lambda mark: mark.line))
    events = [mark for mark in meant(translated) if said(mark).what is not What.IGNORE]
    events = [mark for mark in events if not mark.borrowed]
    _done_before(events)
    return [*events, *_signs_of_life(events, alive)]


def _done_before(events: Sequence[Mark]) -> None:
    """A record that stands before a start line of the same instant is of the life before: it is put right before."""
    starts: dict[tuple[str, int], int] = {}
    for mark in events:
        if said(mark).what is What.START:
            key = mark.stream, mark.time
            starts[key] = max(mark.line, starts.get(key, mark.line))
    for mark in events if starts else ():
        if said(mark).what is What.STEP and mark.line < starts.get((mark.stream, mark.end), mark.line):
            mark.end -= 1
            mark.time = min(mark.time, mark.end)


def end_with_time(marks: Sequence[Mark]) -> None:
    """A death whose line has no time is at the end with one that follows: a process dies, and then its launcher writes
    that it did. marks: in the order in which they were said; only steps and starts stand between two lives."""
    following: Mark | None = None
    for mark in reversed(marks):
        what = said(mark).what
        if what in ENDS and not mark.odd:
            following = mark
        elif what in _DEATHS and following is not None:
            mark.time = mark.end = max(mark.time, following.time)
        elif what in (What.START, What.STEP, What.STEP_START):
            following = None


def first_begin(marks: Sequence[Mark]) -> list[Mark]:
    """In a text without a clock the job was alive when its first record began."""
    first = next((mark for mark in marks if mark.said is not None and mark.said.what is What.STEP), None)
    if first is None or first.time == first.end:
        return []
    return [Mark(first.line, first.stream, None, Said(said(first).format, What.ALIVE), first.time, first.time)]


def _signs_of_life(events: Sequence[Mark], alive: dict[str, list[Mark]]) -> list[Mark]:
    """Stamps beside step records, as heartbeats; not those of a process that is about to start."""
    steps = {mark.stream: said(mark).format for mark in events if said(mark).what is What.STEP}
    whole = next((name for name in steps.values() if name in ONE_STORY), None)
    by_stream: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in events:
        by_stream[mark.stream].append(mark)
    told = [mark for stream in alive if whole or stream in steps for mark in alive[stream]]
    early = _starting(events, told) if whole else set()
    for stream, marks in alive.items():
        if stream in by_stream and (whole is None or len(by_stream) > 1):
            early |= _starting(by_stream[stream], marks)
    return [
        Mark(mark.line, mark.stream, mark.stamp, Said(whole or steps[mark.stream], What.ALIVE), mark.time, mark.time)
        for mark in told
        if id(mark) not in early
    ]


def _starting(events: Iterable[Mark], alive: Iterable[Mark]) -> set[int]:
    """What a process says on its way to its start line is no sign of the life before: lines before the first start, and
    those before a later one of which the first is nearer to that start than to what was said before."""
    quiet = sorted(alive, key=_end)
    times = [mark.end for mark in quiet]
    early: set[int] = set()
    before, highest = -1, -1
    for mark in sorted(events, key=_end):
        one = said(mark)
        step = one.step if one.what is What.STEP and one.step is not None else None
        if one.what is What.START or (step is not None and step <= highest):
            low, high = bisect_right(times, before), bisect_left(times, mark.time)
            if low < high and (before < 0 or 2 * times[low] > before + mark.time):
                early.update(map(id, quiet[low:high]))
            highest = -1
        highest = highest if step is None else max(highest, step)
        before = before if one.what in _ON_THE_WAY else mark.end
    return early


def _end(mark: Mark) -> tuple[int, int]:
    return mark.end, mark.line


def without_preludes(parts: Sequence[list[Mark]]) -> None:
    """Leave out signs of life before the first event of a file, where a start in another file stands between them: the
    file is of the process that started. parts: the marks of one job by source."""
    starts = sorted(mark.time for part in parts for mark in part if said(mark).what is What.START)
    for part in parts if starts else ():
        first = min((mark.end for mark in part if said(mark).what not in _ON_THE_WAY), default=0)
        before = bisect_right(starts, first)
        if before:
            start = starts[before - 1]
            part[:] = [mark for mark in part if mark.time >= start or not _says_nothing(mark)]


def _says_nothing(mark: Mark) -> bool:
    return said(mark).what is What.ALIVE and not said(mark).name
