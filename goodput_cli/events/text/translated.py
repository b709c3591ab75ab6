"""What the marks of one source mean together: those of each program, and signs of life beside its steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

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
    return [*events, *_signs_of_life(events, alive)]


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
    """Stamps beside step records, as heartbeats."""
    steps = {mark.stream: said(mark).format for mark in events if said(mark).what is What.STEP}
    whole = next((name for name in steps.values() if name in ONE_STORY), None)
    chosen: list[Mark] = []
    for stream, marks in alive.items():
        name = whole or steps.get(stream)
        if name is None:
            continue
        for mark in marks:
            chosen.append(Mark(mark.line, mark.stream, mark.stamp, Said(name, What.ALIVE), mark.time, mark.time))
    return chosen
