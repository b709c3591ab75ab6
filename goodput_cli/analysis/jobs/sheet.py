"""The jobs of a log as a sheet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodput_cli.analysis.jobs.summarise import JobList, JobSummary
from goodput_cli.analysis.sheet import Cell, Column, Sheet
from goodput_cli.diagnostics.diagnostic import diagnostic_dict
from goodput_cli.vocabulary.text import iso, plural

_MOST_REASONS = 5


def jobs_sheet(found: JobList) -> Sheet:
    """A row a job. For the eye only what fits 80 columns: runs only where a name was used more than once."""
    several_runs = any((job.runs or 1) > 1 for job in found.jobs)
    columns = (
        Column("job", "text"),
        Column("start", "instant"),
        Column("end", "instant", "data"),
        Column("length", "duration"),
        Column("events", "count", "data"),
        Column("attempts", "count"),
        Column("runs", "count", "all" if several_runs else "data"),
        Column("disruptions", "count", "data"),
        Column("goodput", "percent"),
        Column("ending", "text"),
        Column("formats", "text", "data"),
        Column("reason", "text", "data"),
    )
    return Sheet(
        title=plural(found.found, "job"),
        columns=columns,
        rows=tuple(_row(job) for job in found.jobs),
        data={
            "found": found.found,
            "runs": found.runs,
            "events": found.events,
            "jobs": [_as_dict(job) for job in found.jobs],
            "diagnostics": [diagnostic_dict(one) for one in found.diagnostics],
        },
        summary=tuple(_summary(found)),
        notes=tuple(_notes(found)),
    )


def _row(job: JobSummary) -> tuple[Cell, ...]:
    return (
        job.name,
        job.start_ns,
        job.end_ns,
        job.ns,
        job.events,
        job.attempts,
        job.runs,
        job.disruptions,
        job.goodput_percent,
        job.ending,
        " + ".join(job.formats),
        job.reason,
    )


def _summary(found: JobList) -> Iterator[str]:
    formats = sorted({name for job in found.jobs for name in job.formats})
    kinds = f"{'log' if len(formats) == 1 else 'logs'}: {' + '.join(formats)}"
    yield f"{plural(found.events, 'event')} in {plural(found.runs, 'run')}, {kinds}"
    if len(found.jobs) < found.found:
        yield f"the first {len(found.jobs)} are shown"


def _notes(found: JobList) -> Iterator[str]:
    """Why jobs have no goodput."""
    without = [job for job in found.jobs if job.reason is not None]
    for job in without[:_MOST_REASONS]:
        yield f"{job.name}: {job.reason}"
    if len(without) > _MOST_REASONS:
        yield f"{len(without) - _MOST_REASONS} more jobs without goodput"


def _as_dict(job: JobSummary) -> dict[str, Any]:
    goodput = None
    if job.goodput_ns is not None:
        goodput = {"seconds": job.goodput_ns / 1e9, "ns": job.goodput_ns, "percent": job.goodput_percent}
    return {
        "name": job.name,
        "start": iso(job.start_ns),
        "end": iso(job.end_ns),
        "seconds": job.ns / 1e9,
        "ns": job.ns,
        "events": job.events,
        "attempts": job.attempts,
        "runs": job.runs,
        "disruptions": job.disruptions,
        "formats": list(job.formats),
        "ending": job.ending,
        "goodput": goodput,
        "goodput_percent": job.goodput_percent,
        "reason": job.reason,
    }
