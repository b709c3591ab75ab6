"""The runs of all trackers in what was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from goodput_cli.arrays import I64, alike
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import RAY, Output
from goodput_cli.events.schema import Kind
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.text.meaning import said
from goodput_cli.events.trackers import mlflow, tables, wandb
from goodput_cli.events.trackers.runs import Run, with_marks
from goodput_cli.vocabulary.when import NS_PER_SECOND


def runs_of(
    tracked: Mapping[int, Sequence[object]], names: Sequence[str], job_name: str | None, output: Output
) -> list[Run]:
    """The runs, with their log lines. tracked: by source, what its document said. names: of the sources. job_name:
    the one that was asked for: a run that alone is shown under it has it for its own."""
    found = wandb.runs(tracked, names, output.clock.from_local, output.notes)
    found += mlflow.runs(tracked, output.notes)
    found += tables.runs(tracked, names, output.notes)
    shown = [run for run in found if run.name == job_name]
    if len(shown) == 1 and all(run.job != job_name for run in found):
        shown[0].job = shown[0].name
    return [run for run in (with_marks(one, output.notes) for one in found) if run.log_lines]


def same_runs(
    runs: Sequence[Run], others: Mapping[str, Sequence[LogLine]], notes: DiagnosticCollector
) -> dict[str, str]:
    """Jobs of text and event files that a tracker has too, and the run's name that they get. The steps of such a run
    are those of the first of text, event files, Weights & Biases and MLflow; of its others only starts, ends and signs
    of life are left."""
    renamed: dict[str, str] = {}
    by_job = {job: _steps(log_lines) for job, log_lines in others.items()}
    for run in runs:
        own = _steps_of(run)
        for job, steps in by_job.items():
            if job not in renamed and _are_same(own, steps):
                renamed[job] = run.job
                _note_same(run, job, notes)
                _give_up_steps(run, steps)
                break
    for place, run in enumerate(runs):
        for other in runs[:place]:
            same = other.tool != run.tool and other.job != run.job
            if same and _are_same(_steps_of(other), _steps_of(run)):
                _note_same(other, run.job, notes)
                run.job = other.job
                _give_up_steps(run, _steps_of(other))
                break
    return renamed


def without_recorded(
    runs: Sequence[Run], recorded: Mapping[str, Any], jobs: Sequence[str], notes: DiagnosticCollector
) -> list[Run]:
    """The runs without those that a log of events has too: such a log says all of it, and better. recorded: its
    columns. jobs: names of the codes in them."""
    steps = np.flatnonzero(np.asarray(recorded["kind"]) == Kind.STEP)
    codes, numbers, times = (np.asarray(recorded[name])[steps] for name in ("job", "step", "time"))
    by_job = {jobs[code]: _Recorded.of(numbers[rows], times[rows]) for code, rows in alike(codes).items()}
    left = []
    for run in runs:
        own = _steps_of(run)
        same = next((job for job, one in by_job.items() if one.has(own)), None)
        if same is None:
            left.append(run)
            continue
        run.job, named = same, run.job
        said = f"{notes.bounded('job', named)} of {run.tool} is the run that {notes.bounded('job', same)} logs"
        run.note("same_run_twice", f"{said}: one job, all of it from that log", notes)
    return left


@dataclass(frozen=True)
class _Recorded:
    """The steps of a job of a log of events, sorted by number: each lasts until the next one began."""

    number: I64
    begin: I64
    end: I64
    pace: int
    """Median time (ns) between two of them."""

    @classmethod
    def of(cls, number: I64, time: I64) -> _Recorded:
        order = np.argsort(time, kind="stable")
        number, time = number[order], time[order]
        pace = int(np.median(np.diff(time))) if len(time) > 1 else 0
        end = np.append(time[1:], time[-1:] + pace)
        by_number = np.argsort(number, kind="stable")
        return cls(number[by_number], time[by_number], end[by_number], pace)

    def has(self, steps: Mapping[int, int]) -> bool:
        """Whether rows of a tracker, by step their time (ns), are of this job: their windows overlap by over half of
        the shorter one, and nine in ten of the rows whose step both have lie within one logging distance of it."""
        if len(steps) < 2 or len(self.number) < 2:
            return False
        if not _overlap((int(self.begin.min()), int(self.end.max())), _window(steps)):
            return False
        distance = max(self.pace, _distance(steps))
        far = [away for number, time in steps.items() if (away := self._away(number, time)) is not None]
        return len(far) >= 2 and sum(away <= distance for away in far) >= _NEARLY_ALL * len(far)

    def _away(self, number: int, time: int) -> int | None:
        """How far (ns) a time is from where a step was, the nearest if it was done again; None without the step."""
        first, stop = np.searchsorted(self.number, [number, number + 1])
        if first == stop:
            return None
        rows = slice(int(first), int(stop))
        return int(np.maximum(np.maximum(self.begin[rows] - time, time - self.end[rows]), 0).min())


_NEARLY_ALL = 0.9


def _steps(log_lines: Iterable[LogLine]) -> dict[int, int]:
    """When (ns UTC) each step was first logged."""
    steps: dict[int, int] = {}
    for log_line in sorted((one for one in log_lines if said(one).type is EventType.STEP), key=lambda one: one.end):
        steps.setdefault(said(log_line).step or 0, log_line.end)
    return steps


def _steps_of(run: Run) -> dict[int, int]:
    return _steps(log_line for _, log_line in run.log_lines)


def _are_same(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Whether steps are of one run: their windows overlap by over half of the shorter one, and the steps that both have
    lie within one logging distance. Steps may be counted from 0 in one and from 1 in the other."""
    if len(one) < 2 or len(other) < 2:
        return False
    shared = one.keys() & other.keys()
    if len(shared) < 2 or not _overlap(_window(one), _window(other)):
        return False
    distance = max(_distance(one), _distance(other))
    return all(abs(one[step] - other[step]) <= distance for step in shared)


def _window(steps: Mapping[int, int]) -> tuple[int, int]:
    """From the first row to the last (ns UTC)."""
    return min(steps.values()), max(steps.values())


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two windows overlap by over half of the shorter one."""
    shorter = min(one[1] - one[0], other[1] - other[0])
    return 2 * (min(one[1], other[1]) - max(one[0], other[0])) > shorter


def _distance(steps: Mapping[int, int]) -> int:
    """The median time (ns) from one row to the next."""
    times = sorted(steps.values())
    lengths = sorted(after - before for before, after in pairwise(times))
    return lengths[len(lengths) // 2]


def _give_up_steps(run: Run, steps: Mapping[int, int]) -> None:
    """Leave starts, ends and signs of life of a run whose steps (their times, ns) another log has. An end of Ray, which
    has whole seconds, is not before what was done in its second."""
    for log_line in (log_line for _, log_line in run.log_lines if run.tool == RAY and said(log_line).type in ENDS):
        second = log_line.time - log_line.time % NS_PER_SECOND
        within = [time for time in steps.values() if second <= time < second + NS_PER_SECOND]
        log_line.time = log_line.end = max(within, default=log_line.time)
    run.log_lines = [
        (code, replace(log_line, event=replace(said(log_line), type=EventType.ALIVE, step=None, step_time=None)))
        if said(log_line).type not in _KEPT
        else (code, log_line)
        for code, log_line in run.log_lines
    ]


_KEPT = frozenset({EventType.START, EventType.CRASHED, EventType.EXITED, EventType.TERMINATED, EventType.FINISHED})


def _note_same(run: Run, other: str, notes: DiagnosticCollector) -> None:
    message = f"{notes.bounded('job', run.job)} is the run of {notes.bounded('job', other)} too: one job"
    run.note("same_run_twice", message, notes)
