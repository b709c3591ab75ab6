"""The runs of all trackers in what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import RAY, Output
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, event_of
from goodput_cli.events.text.views import are_same, recorded_steps, steps_of
from goodput_cli.events.trackers import mlflow, tables, wandb
from goodput_cli.events.trackers.runs import TrackedRun, with_marks
from goodput_cli.vocabulary.when import NS_PER_SECOND


def runs_of(
    tracked: Mapping[int, Sequence[object]], names: Sequence[str], job_name: str | None, exact: bool, output: Output
) -> list[TrackedRun]:
    """Return the runs, with their log lines. tracked: the contents of documents, by source. names: of the sources.
    job_name: the requested name. A single run is shown under it, and so is a run whose restart has it. exact: True if
    each run is a separate job."""
    found = wandb.runs(tracked, names, output.clock.from_local, output.notes)
    found += mlflow.runs(tracked, output.notes, exact)
    found += tables.runs(tracked, names, output.notes)
    shown = [run for run in found if job_name in (run.name, *run.restarts)]
    if job_name and len(shown) == 1 and all(run.job != job_name for run in found):
        shown[0].job = job_name
    return [run for run in (with_marks(one, output.notes) for one in found) if run.log_lines]


def same_runs(
    runs: Sequence[TrackedRun], others: Mapping[str, Sequence[LogLine]], notes: DiagnosticCollector
) -> dict[str, str]:
    """Return the jobs of text and event files that a tracker has, too, with the new name: that of the run. The steps of
    such a run come from the first of text, event files, Weights & Biases and MLflow that has them. The others keep only
    starts, ends and activity."""
    renamed: dict[str, str] = {}
    by_job = {job: steps_of(log_lines) for job, log_lines in others.items()}
    for run in runs:
        own = _steps_of(run)
        for job, steps in by_job.items():
            if job not in renamed and are_same(own, steps):
                renamed[job] = run.job
                _note_same(run, job, notes)
                _give_up_steps(run, steps)
                break
    for place, run in enumerate(runs):
        for other in runs[:place]:
            same = other.tool != run.tool and other.job != run.job
            if same and are_same(_steps_of(other), _steps_of(run)):
                _note_same(other, run.job, notes)
                run.job = other.job
                _give_up_steps(run, _steps_of(other))
                break
    return renamed


def without_recorded(
    runs: Sequence[TrackedRun], recorded: Mapping[str, Any], jobs: Sequence[str], notes: DiagnosticCollector
) -> list[TrackedRun]:
    """Return the runs without those that are also in a log of events, which is more complete. recorded: its columns.
    jobs: names of the codes in them."""
    by_job = recorded_steps(recorded, jobs)
    left = []
    for run in runs:
        own = _steps_of(run)
        same = next((job for job, one in by_job.items() if one.has(own)), None)
        if same is None:
            left.append(run)
            continue
        run.job, named = same, run.job
        said = f"{notes.bounded('job', named)} of {run.tool} is the same run as the log {notes.bounded('job', same)}"
        run.note("same_run_twice", f"{said}: one job, read from that log only", notes)
    return left


def _steps_of(run: TrackedRun) -> dict[int, int]:
    return steps_of(log_line for _, log_line in run.log_lines)


def _give_up_steps(run: TrackedRun, steps: Mapping[int, int]) -> None:
    """Keep only starts, ends and activity of a run whose steps (their times, ns) are in another log. An end of Ray,
    which has whole seconds, is not before the last step in its second."""
    for log_line in (log_line for _, log_line in run.log_lines if run.tool == RAY and event_of(log_line).type in ENDS):
        second = log_line.time - log_line.time % NS_PER_SECOND
        within = [time for time in steps.values() if second <= time < second + NS_PER_SECOND]
        log_line.time = log_line.end = max(within, default=log_line.time)
    run.log_lines = [
        (code, replace(log_line, event=replace(event_of(log_line), type=EventType.ALIVE, step=None, step_time=None)))
        if event_of(log_line).type not in _KEPT
        else (code, log_line)
        for code, log_line in run.log_lines
    ]


_KEPT = frozenset({EventType.START, EventType.CRASHED, EventType.EXITED, EventType.TERMINATED, EventType.FINISHED})


def _note_same(run: TrackedRun, other: str, notes: DiagnosticCollector) -> None:
    message = f"{notes.bounded('job', run.job)} is the same run as {notes.bounded('job', other)}: they count as one job"
    run.note("same_run_twice", message, notes)
