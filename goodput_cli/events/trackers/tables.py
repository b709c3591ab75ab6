"""Rows of trackers without their folders: histories of Weights & Biases, and results of Ray's trials.

No row contains the start of a process. In a history, the time of a row minus its runtime is the start of its process,
or, since wandb 0.19.10, the time when the first process of its run would have started without downtime. In a trial, a
row contains the time since its restore.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from goodput_cli.arrays import Mask
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.accelerators.samples import TABLE, DevicePart, take
from goodput_cli.events.formats.base import RAY, SYSTEM, WANDB, Output, Records
from goodput_cli.events.text.collector import TextPart
from goodput_cli.events.text.jobs import stem_of_text
from goodput_cli.events.text.log_lines import EventType
from goodput_cli.events.trackers.runs import LoggedTime, ProcessOfRun, Row, TrackedRun
from goodput_cli.events.trackers.wandb import EARLIEST, TIMESTAMP, HistoryRow, as_row, ns_of, row_of, whole_of
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SAME_BASE = 5 * NS_PER_SECOND
"""Maximum difference between the start times derived from rows of one process."""
_ROUNDING = NS_PER_SECOND
"""Maximum loss of a runtime that continues: the SDK rounds it down to whole seconds at a resume."""
_ITERATION = "training_iteration"


class TrialRow(NamedTuple):
    """A result of a trial."""

    line: int
    time: int
    took: int | None
    """ns of the iteration."""
    iteration: int
    restored: bool
    """True for the first result since a restore, or since the start."""
    trial: str
    host: str
    done: bool


def collect_rows(tool: str, records: Records, output: Output) -> Mask:
    """Collect rows; report those without a time. Return bool[n], all true."""
    read = row_of if tool == WANDB else _trial_row
    rows = [read(int(line), record) for line, record in zip(records.origin.line, records.records, strict=True)]
    if tool == WANDB:
        _take_devices(records, output)
    missing = [at for at, row in enumerate(rows) if row is None]
    output.report("bad_value", "a tracker row without a valid time; dropped", records, missing)
    output.texts.add(records.origin.source, TextPart(tracked=[row for row in rows if row is not None]))
    return records.every()


def collect_events(records: Records, output: Output) -> Mask:
    """Collect rows of system metrics, which a Weights & Biases export keeps separate from the history."""
    _take_devices(records, output)
    return records.every()


def _take_devices(records: Records, output: Output) -> None:
    part = DevicePart()
    for line, record in zip(records.origin.line.tolist(), records.records, strict=True):
        time = ns_of(record.get(TIMESTAMP))
        for name in record if time is not None and time >= EARLIEST else ():
            if name.startswith(SYSTEM):
                take(part, line, name, time or 0, record[name])
    output.take_input(TABLE, records.origin.source, part)


def _trial_row(line: int, record: Mapping[str, Any]) -> TrialRow | None:
    time, iteration = ns_of(record.get("timestamp")), whole_of(record.get(_ITERATION))
    if time is None or time < EARLIEST or iteration is None:
        return None
    since = whole_of(record.get("iterations_since_restore"))
    trial, host = (str(record.get(key) or "") for key in ("trial_id", "hostname"))
    done = str(record.get("done")).lower() == "true"
    return TrialRow(line, time, ns_of(record.get("time_this_iter_s")), iteration, since == 1, trial, host, done)


def runs(tracked: Mapping[int, Sequence[object]], names: Sequence[str], notes: DiagnosticCollector) -> list[TrackedRun]:
    """Return the runs of all tables. tracked: the contents by source."""
    histories: list[tuple[int, list[HistoryRow]]] = []
    trials: defaultdict[tuple[int, str], list[TrialRow]] = defaultdict(list)
    for code, parts in tracked.items():
        rows = [part for part in parts if isinstance(part, HistoryRow)]
        if rows:
            histories.append((code, rows))
        for part in parts:
            if isinstance(part, TrialRow):
                trials[code, part.trial].append(part)
    jobs = _names([names[code] for code, _ in histories])
    found = [_of_history(job, code, rows, notes) for job, (code, rows) in zip(jobs, histories, strict=True)]
    nameless = [key for key in trials if not key[1]]
    stems = dict(zip(nameless, _names([names[code] for code, _ in nameless]), strict=True))
    by_job: defaultdict[str, list[tuple[int, TrialRow]]] = defaultdict(list)
    for key, of_trial in trials.items():
        by_job[key[1] or stems[key]] += [(key[0], row) for row in of_trial]
    return [*found, *(_of_trial(job, rows) for job, rows in by_job.items())]


def _names(paths: Sequence[str]) -> list[str]:
    """Return a name for each file: its file name, with its folder if two are equal."""
    stems = [stem_of_text(path) for path in paths]
    alike = {stem for stem in stems if stems.count(stem) > 1} if len(stems) < 1000 else set(stems)
    return [path.rpartition(".")[0] or path if stem in alike else stem for stem, path in zip(stems, paths, strict=True)]


def _of_history(job: str, code: int, rows: Sequence[HistoryRow], notes: DiagnosticCollector) -> TrackedRun:
    lives: list[ProcessOfRun] = []
    groups = _processes(rows)
    for group, begin in zip(groups, _begins(groups), strict=True):
        life = ProcessOfRun(rows=[as_row(row, code) for row in group], resumes=begin is None)
        if begin is not None:
            life.begin = LoggedTime(max(begin.time, lives[-1].last if lives else 0), code, begin.line)
        lives.append(life)
    if len(lives) > 1:
        message = "a history of several processes: redone steps may have been overwritten in it"
        notes.add("rewritten_history", message, code, [life.rows[0].at.line for life in lives[1:]])
    return TrackedRun(WANDB, job, lives=lives)


class _ProcessStart(NamedTuple):
    """The start of a process."""

    time: int
    """ns UTC."""
    line: int
    """The line that proves it."""


class _Resume(NamedTuple):
    """The transition from one process of a history to the next, in ns."""

    runtime_before: int
    """The highest runtime of the previous process."""
    last: int
    """The time of the last row of the previous process, ns UTC."""
    first: HistoryRow
    """The first row of the next process."""
    runtime: int
    """Its runtime."""

    @property
    def growth(self) -> int:
        """Return the growth of the runtime across the gap."""
        return max(self.runtime - self.runtime_before, 0)

    @property
    def continues(self) -> bool | None:
        """Return True if the next process continued the runtime of the previous one; None for unknown."""
        if self.runtime < self.runtime_before - _ROUNDING:
            return False
        return True if self.first.time - self.runtime < self.last - _SAME_BASE else None


def _begins(groups: Sequence[Sequence[HistoryRow]]) -> list[_ProcessStart | None]:
    """Return the start of each process of a history; None for unknown.

    A runtime that restarts counts from the start of its process. One that continues counts from its last value in the
    previous process.
    """
    runtimes = [[(row.time - row.base, row) for row in group if row.base is not None] for group in groups]
    begins = [
        min((_ProcessStart(row.time - runtime, row.line) for runtime, row in group), default=None) for group in runtimes
    ]
    known = [place for place, group in enumerate(runtimes) if group]
    resumes: dict[int, _Resume] = {}
    for before, after in pairwise(known):
        runtime, first = runtimes[after][0]
        highest = max(runtime for runtime, _ in runtimes[before])
        resumes[after] = _Resume(highest, groups[before][-1].time, first, runtime)
    stated = {resume.continues for resume in resumes.values()} - {None}
    for place, resume in resumes.items():
        continues = resume.continues
        if continues is None:  # most histories come from one version of the SDK
            continues = stated == {True} or (
                stated != {False} and _is_likely_to_continue(resume, runtimes[known[0]][0][0])
            )
        if continues:
            begins[place] = _ProcessStart(resume.first.time - resume.growth, resume.first.line)
    return begins


def _is_likely_to_continue(resume: _Resume, usual: int) -> bool:
    """Return True if the start-up of a runtime that continues is nearer to the usual one, as a ratio, than that of one
    that restarts. usual: the start-up of the first process, ns."""
    continued, restarted, usual = (max(time, NS_PER_SECOND) for time in (resume.growth, resume.runtime, usual))
    return max(continued, usual) * min(restarted, usual) < max(restarted, usual) * min(continued, usual)


def _processes(rows: Sequence[HistoryRow]) -> list[list[HistoryRow]]:
    """Return the rows of each process, in order of time. A repeated start time belongs to a second process of the same
    attempt, and a start before that of earlier rows to a clock set back: neither is a new attempt."""
    ordered = _without_late_runtimes(sorted(rows, key=lambda row: (row.time, row.line)))
    number_of = _clusters([row.base for row in ordered if row.base is not None])
    numbers = _nearest(
        [None if row.base is None else number_of(row.base) for row in ordered], [row.time for row in ordered]
    )
    last = {number: place for place, number in enumerate(numbers) if number is not None}
    groups: list[list[HistoryRow]] = []
    highest, open_until = -1, -1
    for place, (row, number) in enumerate(zip(ordered, numbers, strict=True)):
        if not groups or (number is not None and number > highest and place > open_until):
            groups.append([])
        if number is not None:
            highest = max(highest, number)
            open_until = max(open_until, last[number])
        groups[-1].append(row)
    return groups


def _without_late_runtimes(ordered: Sequence[HistoryRow]) -> list[HistoryRow]:
    """Return the rows, without the base of the first row of a process if its runtime is that of the next call.

    A program that passes its steps logs a row when the next step comes: `_runtime` is from that time, `_timestamp` is
    not. A first step that takes longer than others would begin a separate process.
    """
    found = list(ordered)
    for place, (row, after, behind) in enumerate(zip(ordered, ordered[1:], ordered[2:], strict=False)):
        before = ordered[place - 1].base if place else None
        if row.base is None or after.base is None or after.base - row.base <= _SAME_BASE:
            continue
        growth = (after.time - after.base) - (row.time - row.base)
        is_first = before is None or abs(row.base - before) > _SAME_BASE
        if is_first and abs(growth - (behind.time - after.time)) <= _ROUNDING:
            found[place] = row._replace(base=None)
    return found


def _nearest(numbers: Sequence[int | None], times: Sequence[int]) -> list[int | None]:
    """Return the numbers, where None is replaced by the number that is nearest in time. times: in order, ns."""
    places = np.array([place for place, number in enumerate(numbers) if number is not None], dtype=np.int64)
    if len(places) in (0, len(numbers)):
        return list(numbers)
    at, time = np.arange(len(numbers)), np.array(times, dtype=np.int64)
    after = np.searchsorted(places, at).clip(max=len(places) - 1)
    before = (np.searchsorted(places, at, side="right") - 1).clip(min=0)
    is_nearer = np.abs(time[places[after]] - time) < np.abs(time - time[places[before]])
    return [numbers[place] for place in places[np.where(is_nearer, after, before)].tolist()]


def _clusters(bases: Sequence[int]) -> Callable[[int], int]:
    """Return a function from a start time to the number of its process: processes differ by more than a few seconds."""
    ordered = sorted(set(bases))
    starts = [after for before, after in pairwise(ordered) if after - before > _SAME_BASE]
    edges = np.array(starts, dtype=np.int64)
    return lambda base: int(np.searchsorted(edges, base, side="right"))


def _of_trial(job: str, rows: Sequence[tuple[int, TrialRow]]) -> TrackedRun:
    """Return the run of a trial: an attempt per restore, a step per iteration with the duration in its row."""
    ordered = sorted(rows, key=lambda pair: (pair[1].time, pair[1].line))
    lives: list[ProcessOfRun] = []
    for (code, row), ended in zip(ordered, _ends([row for _, row in ordered]), strict=True):
        end = LoggedTime(ended, code, row.line)
        if not lives or (row.restored and lives[-1].rows):
            lives.append(ProcessOfRun(host=row.host))
        life = lives[-1]
        if not life.rows and row.took is not None:
            life.begin = LoggedTime(max(ended - row.took, lives[-2].last if len(lives) > 1 else 0), code, row.line)
        life.rows.append(Row(end, {_ITERATION: row.iteration}, True, row.took))
        if row.done:
            life.end, life.ended = end, EventType.FINISHED
    for life in lives[:-1]:
        life.end = life.ended = None
    return TrackedRun(RAY, job, lives=lives)


def _ends(rows: Sequence[TrialRow]) -> list[int]:
    """Return the ends of iterations (ns): in the whole second in each row, but no earlier than its duration after the
    previous row of the same process."""
    ends: list[int] = []
    for row in rows:
        before = ends[-1] if ends else 0
        soonest = before if row.restored or row.took is None else before + row.took
        latest = row.time + (NS_PER_SECOND - 1 if row.time % NS_PER_SECOND == 0 else 0)
        ends.append(max(min(max(row.time, soonest), latest), before))
    return ends
