"""The jobs of a log as a sheet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from goodput_cli.accounting.attempts.endings import END_NAMES
from goodput_cli.analysis.jobs.summarise import JobList, JobSummary
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import attribute, each, seen_by, table_rows
from goodput_cli.vocabulary.text import plural

if TYPE_CHECKING:
    from goodput_cli.analysis.answer import Answer

_MOST_REASONS = 5


def _formats(job: JobSummary) -> str:
    return " + ".join(job.formats)


def _goodput(job: JobSummary) -> dict[str, Any] | None:
    if job.goodput_ns is None:
        return None
    return {"seconds": job.goodput_ns / 1e9, "ns": job.goodput_ns, "percent": job.goodput_percent}


COLUMNS = (
    Column("job", "text", values=attribute("name"), words="job_name of its events", key="name"),
    Column(
        "start",
        "instant",
        values=attribute("start_ns"),
        words="start of the window, cut to the job; of a job that cannot be analysed, its first event",
        spare=True,
    ),
    Column(
        "end",
        "instant",
        Audience.PROGRAMS,
        attribute("end_ns"),
        "end of the window, cut to the job; of a job that cannot be analysed, the end of its last event",
    ),
    Column(
        "length", "duration", values=attribute("ns"), words="end - start", key="seconds", title="window", spare=True
    ),
    Column("ns", "count", Audience.JSON, attribute("ns"), "the same in ns", least=0),
    Column(
        "events", "count", Audience.PROGRAMS, attribute("events"), "events as they came, duplicates included", least=0
    ),
    Column(
        "attempts",
        "count",
        values=attribute("attempts"),
        words="lives of the job; null: it cannot be analysed",
        nullable=True,
        least=0,
        spare=True,
    ),
    Column(
        "runs",
        "count",
        values=attribute("runs"),
        words="how often the job's name was used",
        nullable=True,
        least=0,
        spare=True,
    ),
    Column(
        "disruptions",
        "count",
        Audience.PROGRAMS,
        attribute("disruptions"),
        "disruptions inside the window",
        nullable=True,
        least=0,
    ),
    Column(
        "formats",
        "text",
        Audience.JSON,
        attribute("formats"),
        "log formats seen, sorted",
        json={"type": "array", "items": {"type": "string"}},
    ),
    Column("goodput", "percent", Audience.PEOPLE | Audience.TABLES, attribute("goodput_percent")),
    Column(
        "ending",
        "text",
        values=attribute("ending"),
        words="how the last attempt ended, as far as it was logged",
        json={"enum": list(END_NAMES)},
        nullable=True,
        title="ended",
    ),
    Column("formats", "text", Audience.TABLES, each(_formats)),
    Column(
        "goodput",
        "text",
        Audience.JSON,
        each(_goodput),
        "null: the job cannot be analysed, and reason says why",
        json={
            "type": "object",
            "description": "productive time",
            "properties": {
                "seconds": {"type": "number"},
                "ns": {"type": "integer"},
                "percent": {"type": "number", "description": "of the window without exclusions"},
            },
        },
        nullable=True,
    ),
    Column("goodput", "percent", Audience.JSON, attribute("goodput_percent"), "goodput.percent", nullable=True),
    Column(
        "reason",
        "text",
        Audience.PROGRAMS,
        attribute("reason"),
        "why the job could not be analysed",
        nullable=True,
    ),
)
"""What is said of a job."""


def jobs_sheet(jobs: JobList) -> Sheet:
    """A row a job. For people only what fits 80 columns: runs only where a name was used more than once."""
    columns = seen_by(Audience.PEOPLE | Audience.TABLES, COLUMNS)
    if not any((job.runs or 1) > 1 for job in jobs.jobs):
        columns = tuple(replace(one, audience=Audience.PROGRAMS) if one.name == "runs" else one for one in columns)
    return Sheet(
        title=plural(jobs.found, "job"),
        columns=columns,
        rows=table_rows(columns, len(jobs.jobs), lambda: [jobs.jobs]),
        summary=tuple(_summary(jobs)),
        notes=tuple(_notes(jobs)),
        answer=lambda: _answer(jobs),
    )


def _answer(jobs: JobList) -> Answer:
    from goodput_cli.analysis.jobs.answer import jobs_answer  # msgspec: only where JSON is written

    return jobs_answer(jobs)


def _summary(jobs: JobList) -> Iterator[str]:
    formats = sorted({name for job in jobs.jobs for name in job.formats})
    kinds = f"{'log' if len(formats) == 1 else 'logs'}: {' + '.join(formats)}"
    yield f"{plural(jobs.events, 'event')} in {plural(jobs.runs, 'run')}, {kinds}"
    if len(jobs.jobs) < jobs.found:
        yield f"the first {len(jobs.jobs)} are shown"


def _notes(jobs: JobList) -> Iterator[str]:
    """Why jobs have no goodput."""
    without = [job for job in jobs.jobs if job.reason is not None]
    for job in without[:_MOST_REASONS]:
        yield f"{job.name}: {job.reason}"
    if len(without) > _MOST_REASONS:
        yield f"{len(without) - _MOST_REASONS} more jobs without goodput"
