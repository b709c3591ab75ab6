"""Marks that have a time -> what they mean for the job: step ends, saves, evaluations, starts, ends.

What all formats of text share: a start is counted once a process, a save or evaluation without a duration takes the gap
between two step records that it stands in, and a step that two formats print is one record.

What programs measured (MFU, TFLOP/s, throughput, the step time that they report), by job and name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from goodput_cli.events.schema import NO_STEP, Edge, Metric
from goodput_cli.events.text.marks import ENDS, Mark, Said, What
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SAME_RECORD = 2 * NS_PER_SECOND
_TOLERANCE = 100
"""A gap is at least this part of the time of the steps behind it."""
_GAP_KINDS = (What.SAVE, What.EVAL)
_ENDS = (What.STEP, What.STEP_START, *ENDS)


def meant(marks: Sequence[Mark]) -> list[Mark]:
    """The marks of one source, in order of time, as those that become events."""
    ordered = sorted((mark for mark in marks if mark.said is not None), key=_order)
    ordered = list(_once(ordered))
    ordered = list(_paired(ordered))
    ordered = list(_recorded_once(ordered))
    return list(_with_gaps(ordered))


def said(mark: Mark) -> Said:
    """The parsed content of a mark that has one."""
    assert mark.said is not None
    return mark.said


def _order(mark: Mark) -> tuple[int, int]:
    return mark.end if said(mark).what is What.STEP else mark.time, mark.line


def _once(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Of starts of one format that follow each other with nothing done in between, the first."""
    begun: set[tuple[str, str]] = set()
    for mark in marks:
        one = said(mark)
        key = (one.format, mark.stream)
        if one.what is What.START and one.once:
            if key in begun:
                yield replace(mark, said=replace(one, what=What.ALIVE))
                continue
            begun.add(key)
        elif one.what in _ENDS:
            begun.discard(key)
        yield mark


def _paired(marks: Sequence[Mark]) -> Iterator[Mark]:
    """The begin and the end line of a save or a restore as one interval; one that has no end, and that no step follows,
    stays a begin."""
    begun_by: dict[tuple[str, str, What], Mark] = {}
    for mark in marks:
        one = said(mark)
        key = (one.format, mark.stream, one.what)
        if one.what not in (What.SAVE, What.RESTORE) or one.edge is Edge.POINT or mark.end > mark.time:
            yield mark
        elif one.edge is Edge.BEGIN:
            if key in begun_by:
                yield _point(begun_by[key]) if _is_passed(begun_by[key], marks) else begun_by[key]
            begun_by[key] = mark
        else:
            begun = begun_by.pop(key, None)
            exact = begun is not None and not begun.odd and not mark.odd
            step = one.step if one.step is not None or begun is None else said(begun).step
            start = begun.time if begun is not None and exact else mark.time
            yield replace(mark, time=start, end=mark.time, said=replace(one, edge=Edge.POINT, step=step))
    yield from (_point(begun) if _is_passed(begun, marks) else begun for begun in begun_by.values())


def _is_passed(begun: Mark, marks: Sequence[Mark]) -> bool:
    """Whether its process did a step behind a begin without an end, which was over then."""
    later = (mark for mark in marks if mark.stream == begun.stream and mark.time > begun.time)
    following = next((mark for mark in later if said(mark).what in (What.STEP, What.START, *ENDS)), None)
    return following is not None and said(following).what is What.STEP


def _point(mark: Mark) -> Mark:
    return replace(mark, said=replace(said(mark), edge=Edge.POINT))


def _recorded_once(marks: Sequence[Mark]) -> Iterator[Mark]:
    """A step that two formats print is one record: that with a duration, else the first."""
    records: defaultdict[int, list[Mark]] = defaultdict(list)
    for mark in marks:
        if said(mark).what is What.STEP and said(mark).step is not None:
            records[int(said(mark).step or 0)].append(mark)
    dropped: set[int] = set()
    for same in records.values():
        if len({said(mark).format for mark in same}) < 2:
            continue
        same = sorted(same, key=lambda mark: said(mark).step_time is None)
        kept: list[Mark] = []
        for mark in same:
            others = (one for one in kept if said(one).format != said(mark).format)
            if any(abs(one.end - mark.end) <= _SAME_RECORD for one in others):
                dropped.add(id(mark))
            else:
                kept.append(mark)
    return (mark for mark in marks if id(mark) not in dropped)


def _with_gaps(marks: Sequence[Mark]) -> Iterator[Mark]:
    """A save or evaluation of which only a point is known takes the gap between two records with means, if nothing else
    stands in it. marks: in order of time."""
    before: Mark | None = None
    waiting: list[Mark] = []
    claimed = False
    for mark in marks:
        one = said(mark)
        if one.what in _GAP_KINDS and one.edge is Edge.POINT:
            timed = mark.end > mark.time or bool(one.took)
            claimed |= timed
            if not timed:
                waiting.append(mark)
                continue
        elif one.what is What.STEP:
            yield from _gap(before, mark, waiting, claimed)
            before, waiting, claimed = mark, [], False
        elif one.what in (What.START, What.CRASHED, What.TERMINATED, What.PREEMPTED):
            yield from waiting
            before, waiting, claimed = None, [], False
        yield mark
    yield from waiting


def _gap(before: Mark | None, behind: Mark, waiting: Sequence[Mark], claimed: bool) -> Iterator[Mark]:
    """The marks between two records: one kind takes all of the gap; of two, a save takes it from its stamp on."""
    gap = None if before is None else _gap_between(before, behind)
    kinds = {said(mark).what for mark in waiting}
    if gap is None or claimed or not kinds:
        yield from waiting
        return
    if len(kinds) == 1:
        first, *rest = waiting
        begin = gap[0]
    else:
        first, *rest = sorted(waiting, key=lambda mark: said(mark).what is not What.SAVE)
        begin = first.time if not first.odd and gap[0] <= first.time <= gap[1] else (gap[0] + gap[1]) // 2
    yield replace(first, time=begin, end=gap[1])
    yield from rest


def _gap_between(before: Mark, behind: Mark) -> tuple[int, int] | None:
    """[begin, end) of what is no training between two records, where the second says how long its steps took."""
    one, other = said(before), said(behind)
    if other.step_time is None or one.step is None or other.step is None or other.step <= one.step:
        return None
    trained = (other.step - one.step) * other.step_time
    begin, end = before.end, behind.end - trained
    whole = any(mark.stamp is not None and mark.stamp.whole for mark in (before, behind))
    if end - begin <= trained // _TOLERANCE + (2 * NS_PER_SECOND if whole else 0):
        return None
    return begin, end


_BEYOND_ALL = 2**62
"""A time or a step that is none."""


def metrics_of(job: str, marks: Sequence[Mark]) -> list[Metric]:
    """The metrics in marks of a job, each in order of time; what was written twice counts once."""
    found: defaultdict[str, dict[tuple[int, int, float], None]] = defaultdict(dict)
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mark in marks:
        one = said(mark)
        if abs(mark.time) >= _BEYOND_ALL:
            continue
        step = NO_STEP if one.step is None or abs(one.step) >= _BEYOND_ALL else one.step
        for name, value in one.metrics.items():
            found[name][mark.time, step, value] = None
            units[name][str(dict(one.detail).get("unit", ""))] += 1
    return [
        Metric(job, name, units[name].most_common(1)[0][0], *_columns(sorted(rows)))
        for name, rows in sorted(found.items())
    ]


def _columns(rows: Sequence[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    time, step, value = zip(*rows, strict=True)
    return np.array(time, dtype=np.int64), np.array(step, dtype=np.int64), np.array(value, dtype=np.float64)
