"""Merge two views of one job: event files, and the output of the same processes (docs/formats.md, Jobs of text).

Steps are taken from text with times, otherwise from event files, otherwise from text without a clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, alike
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.schema import Kind
from goodput_cli.events.tensorboard import folder_of
from goodput_cli.events.text.jobs import reading_folder
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, event_of
from goodput_cli.sources.blocks import is_event_file

_OF_TRACKERS = frozenset("runs tb tensorboard tb_logs tensorboard_logs lightning_logs logs events summaries".split())
"""Common names of the folder of event files, next to which the job's output lies."""
_NEARLY_ALL = 0.9
_KEPT = ENDS - {EventType.FINISHED, EventType.EXITED}
Parts = Sequence[tuple[int, list[LogLine]]]
"""Sources, each with its log lines."""


@dataclass(frozen=True)
class _ViewedProcess:
    """A process in one view."""

    lines: list[LogLine]
    """In line order."""
    steps: dict[int, int]
    """Time (ns UTC) at which each step was completed."""

    @classmethod
    def of(cls, lines: list[LogLine]) -> _ViewedProcess:
        return cls(lines, {event_of(one).step or 0: one.end for one in lines if event_of(one).type is EventType.STEP})

    @property
    def begin(self) -> int:
        return self.lines[0].time

    @property
    def end(self) -> int:
        return max(one.end for one in self.lines)

    @property
    def last(self) -> int:
        return max(self.steps)

    @property
    def interval(self) -> int:
        """Return the usual distance of two records, in steps."""
        numbers = sorted(self.steps)
        return int(median(b - a for a, b in pairwise(numbers))) if len(numbers) > 1 else 1


def output_folders(name: str) -> tuple[str, ...]:
    """Return the folders that may contain the output of the processes of an event file: its own folder and the
    tracker's parent folder. name: of the file."""
    folder = folder_of(name)
    above, _, base = folder.rpartition("/")
    return (folder, above) if base.lower() in _OF_TRACKERS else (folder,)


def placed_by_steps(
    parts: Parts, unclocked: Mapping[int, list[LogLine]], names: Sequence[str]
) -> dict[int, str | None]:
    """Match text sources without a clock to event files of the same processes.

    Return the folder of the event files by source; None if processes or last steps differ. Matching lines become
    activity at the times in the event files; later steps stay. parts: of the event files. unclocked: log lines by
    source.
    """
    found: dict[int, str | None] = {}
    for code, lines in unclocked.items():
        ours = _processes(lines)
        near: defaultdict[str, list[_ViewedProcess]] = defaultdict(list)
        for other, one in parts:
            process = _ViewedProcess.of(sorted(one, key=lambda log_line: (log_line.time, log_line.line)))
            if len(process.steps) > 1 and reading_folder(names[code]) in output_folders(names[other]):
                near[folder_of(names[other])].append(process)
        if not ours or len(near) != 1:
            continue
        ((folder, theirs),) = near.items()
        theirs.sort(key=lambda one: one.begin)
        found[code] = folder if _agree(ours, theirs) else None
        if found[code] is not None:
            following = [*(process.begin for process in theirs[1:]), None]
            for own, same, begin in zip(ours, theirs, following, strict=True):
                _set_times(own, same, begin)
    return found


def _processes(lines: Sequence[LogLine]) -> list[_ViewedProcess]:
    """Return the processes with steps in a text."""
    found: list[list[LogLine]] = [[]]
    for one in sorted(lines, key=lambda log_line: log_line.line):
        if event_of(one).type is EventType.START and any(event_of(other).type is EventType.STEP for other in found[-1]):
            found.append([])
        found[-1].append(one)
    processes = [_ViewedProcess.of(one) for one in found if one]
    return [one for one in processes if one.steps]


def _agree(ours: Sequence[_ViewedProcess], theirs: Sequence[_ViewedProcess]) -> bool:
    """Return True if the processes of two views are the same: same number, same last step to within a record, and no
    two at the same time."""
    apart = all(before.end <= after.begin for before, after in pairwise(theirs))
    return len(ours) == len(theirs) and apart and all(
        abs(own.last - other.last) <= max(own.interval, other.interval)
        for own, other in zip(ours, theirs, strict=True)
    )  # fmt: skip


def _set_times(own: _ViewedProcess, other: _ViewedProcess, following: int | None) -> None:
    """Set the times of a process without a clock from another view. following: begin of the next process."""
    moved = other.begin - own.begin
    latest = other.end if following is None else following - 1
    for one in own.lines:
        event = event_of(one)
        one.time = min(max(one.time + moved, other.begin), latest)
        if event.type in _KEPT or (event.type is EventType.STEP and (event.step or 0) > other.last):
            one.time = min(max(one.time, other.end + 1), max(latest, other.end + 1))
        else:
            one.event = replace(event, type=EventType.ALIVE, step=None, step_time=None, took=None)
        one.end = one.time


def one_job_each(
    parts: Parts,
    named: Sequence[str],
    placed: Mapping[int, str | None],
    names: Sequence[str],
    recorded: Mapping[str, RecordedSteps],
    notes: DiagnosticCollector,
) -> tuple[str, ...]:
    """Return the job of each part, with the views of one run merged.

    A job with the same steps at the same times as an event log is merged into its job; event files are merged into the
    job of text that is a view of the same processes. Steps and starts are taken from the better view; evaluations,
    saves, deaths and activity from both. placed: result of `placed_by_steps`. names: of the sources. recorded: steps of
    jobs in event logs.
    """
    of_job: defaultdict[str, list[int]] = defaultdict(list)
    for at, job in enumerate(named):
        of_job[job].append(at)
    lines = {job: [one for at in rows for one in parts[at][1]] for job, rows in of_job.items()}
    kinds = {job: {is_event_file(names[parts[at][0]]) for at in rows} for job, rows in of_job.items()}
    if not recorded and not any(kind == {True} for kind in kinds.values()):
        return tuple(named)  # No source is a view of another one.
    texts = [job for job, kind in kinds.items() if kind == {False}]
    renamed: dict[str, str] = {}
    for job, rows in of_job.items():
        own = steps_of(lines[job])
        logged = [one for one, steps in recorded.items() if steps.has(own)]
        better = job if job in logged else logged[0] if len(logged) == 1 else ""
        if better:
            _turn_into_activity(lines[job], _OF_VIEW)
        elif kinds[job] == {True}:
            folders = {folder_of(names[parts[at][0]]) for at in rows}
            better = next((named[at] for at, (code, _) in enumerate(parts) if placed.get(code) in folders), "")
            if not better:
                same = [text for text in texts if are_same(own, steps_of(lines[text]))]
                better = same[0] if len(same) == 1 else ""  # Jobs that were started together look the same.
                _turn_into_activity(lines[job] if better else (), _OF_VIEW | _starts_to_keep(lines.get(better, ())))
        if better and better != job:
            renamed[job] = better
            message = (
                f"{notes.bounded('job', job)} is the same run as {notes.bounded('job', better)}: they count as one job"
            )
            notes.add("same_run_twice", message, parts[rows[0]][0], [1])
    return tuple(renamed.get(job, job) for job in named)


_OF_VIEW = frozenset(EventType) - {
    EventType.STEP, EventType.STEP_START, EventType.STEP_FINISHED, EventType.START, EventType.RESTORE,
    EventType.FINISHED, EventType.EXITED,
}  # fmt: skip
"""Events that count in a view whose steps are in a better one."""


def _starts_to_keep(lines: Iterable[LogLine]) -> frozenset[EventType]:
    """Return the start event if text has none, so that starts in event files count."""
    return frozenset() if any(event_of(one).type is EventType.START for one in lines) else frozenset({EventType.START})


def _turn_into_activity(lines: Iterable[LogLine], kept: frozenset[EventType]) -> None:
    """Keep the given event types of lines; turn others into activity."""
    for one in lines:
        event = event_of(one)
        if event.type not in kept:
            one.event = replace(event, type=EventType.ALIVE, step=None, step_time=None)


@dataclass(frozen=True)
class RecordedSteps:
    """Steps of a job in an event log, sorted by number; each lasts until the next one begins."""

    number: I64
    begin: I64
    end: I64
    pace: int
    """Median time (ns) between two steps."""

    @classmethod
    def of(cls, number: I64, time: I64) -> RecordedSteps:
        order = np.argsort(time, kind="stable")
        number, time = number[order], time[order]
        pace = int(np.median(np.diff(time))) if len(time) > 1 else 0
        end = np.append(time[1:], time[-1:] + pace)
        by_number = np.argsort(number, kind="stable")
        return cls(number[by_number], time[by_number], end[by_number], pace)

    def has(self, steps: Mapping[int, int]) -> bool:
        """Return True if rows of a tracker, times (ns) by step, are of this job: the time ranges overlap by over half
        of the shorter one, and nine in ten common steps are within one logging interval."""
        if len(steps) < 2 or len(self.number) < 2:
            return False
        if not overlap((int(self.begin.min()), int(self.end.max())), window(steps)):
            return False
        within = max(self.pace, distance(steps))
        far = [away for number, time in steps.items() if (away := self._away(number, time)) is not None]
        return len(far) >= 2 and sum(away <= within for away in far) >= _NEARLY_ALL * len(far)

    def _away(self, number: int, time: int) -> int | None:
        """Return the distance (ns) of a time from the nearest occurrence of a step; None without the step."""
        first, stop = np.searchsorted(self.number, [number, number + 1])
        if first == stop:
            return None
        rows = slice(int(first), int(stop))
        return int(np.maximum(np.maximum(self.begin[rows] - time, time - self.end[rows]), 0).min())


def recorded_steps(recorded: Mapping[str, Any], jobs: Sequence[str]) -> dict[str, RecordedSteps]:
    """Return the steps of jobs in event logs. recorded: columns of their events. jobs: names by code."""
    rows = np.flatnonzero(np.asarray(recorded["kind"]) == Kind.STEP)
    codes, numbers, times = (np.asarray(recorded[name])[rows] for name in ("job", "step", "time"))
    return {jobs[code]: RecordedSteps.of(numbers[some], times[some]) for code, some in alike(codes).items()}


def steps_of(lines: Iterable[LogLine]) -> dict[int, int]:
    """Return the time (ns UTC) of the first record of each step."""
    steps: dict[int, int] = {}
    for one in sorted((one for one in lines if event_of(one).type is EventType.STEP), key=lambda one: one.end):
        steps.setdefault(event_of(one).step or 0, one.end)
    return steps


def are_same(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Return True if steps are of one run: the time ranges overlap by over half of the shorter one, and common steps
    are within one logging interval. One may count from 0 and the other from 1."""
    if len(one) < 2 or len(other) < 2:
        return False
    shared = one.keys() & other.keys()
    if len(shared) < 2 or not overlap(window(one), window(other)):
        return False
    far = max(distance(one), distance(other))
    return all(abs(one[step] - other[step]) <= far for step in shared)


def window(steps: Mapping[int, int]) -> tuple[int, int]:
    """Return the times of the first and last row (ns UTC)."""
    return min(steps.values()), max(steps.values())


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if two time ranges overlap by over half of the shorter one."""
    shorter = min(one[1] - one[0], other[1] - other[0])
    return 2 * (min(one[1], other[1]) - max(one[0], other[0])) > shorter


def distance(steps: Mapping[int, int]) -> int:
    """Return the median time (ns) between rows."""
    times = sorted(steps.values())
    lengths = sorted(after - before for before, after in pairwise(times))
    return lengths[len(lengths) // 2]
