"""What is in these logs: one line about each job (`goodput jobs`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goodput_cli.accounting.attempts.endings import END_NAMES, End
from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.order import in_order
from goodput_cli.analysis.disruptions.find import count_disruptions
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.shown import Answered
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.events.schema import EventLog
from goodput_cli.vocabulary.categories import Category

SortKey = Literal["start", "name", "goodput", "events", "length"]


@dataclass(frozen=True)
class JobSummary:
    """One job of a log."""

    name: str
    """The job name."""
    start_ns: int
    """Start of the window that was accounted for (accounting §1, §7), ns since 1970 UTC; of a job that cannot be
    analysed, its first event."""
    end_ns: int
    """End of that window, ns since 1970 UTC; of a job that cannot be analysed, its last event."""
    events: int
    """Events of the job, each counted once."""
    formats: tuple[str, ...]
    """Names of the log formats seen, sorted."""
    attempts: int | None
    """How many attempts; None where the job cannot be analysed."""
    runs: int | None
    """How often the name was used (accounting §10); None where the job cannot be analysed."""
    disruptions: int | None
    """Disruptions inside the window; None where the job cannot be analysed."""
    ending: str | None
    """How the last attempt ended; None where the job cannot be analysed."""
    goodput_ns: int | None
    """Productive time; None where the job cannot be analysed, or all of the window is excluded."""
    goodput_percent: float | None
    """Of the window without what is excluded; None as `goodput_ns`."""
    reason: str | None = None
    """Why there is no goodput; None where there is."""

    @property
    def ns(self) -> int:
        """Length of the window (ns)."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, repr=False)
class JobList(Answered):
    """The jobs of a log."""

    jobs: tuple[JobSummary, ...]
    """One row a job, sorted and cut to `--limit`."""
    found: int
    """How many jobs there are, before any limit."""
    runs: int
    """Runs of all jobs, before any limit; a job that cannot be analysed counts as one."""
    events: int
    """Events of all jobs, before any limit."""
    diagnostics: tuple[Diagnostic, ...]
    """What was noticed while reading."""

    def sheet(self) -> Sheet:
        from goodput_cli.analysis.jobs.sheet import jobs_sheet

        return jobs_sheet(self)


def summarise(job: EventLog, timeline: Timeline, start: int, end: int, runs: int) -> JobSummary:
    """A job in a line. job: its log alone; [start, end) (ns): the window of the question, inside the job window; runs:
    how often its name was used."""
    amounts = timeline.ledger.between(np.array([start]), np.array([end]))
    taken = {category: int(ns[0]) for (category, _), ns in amounts.items() if category != Category.CUSTOM}
    productive = taken.get(Category.PRODUCTIVE, 0)
    counted = end - start - taken.get(Category.EXCLUDED, 0)
    attempts = len(timeline.attempts)
    return JobSummary(
        name=job.table.jobs[0],
        start_ns=start,
        end_ns=end,
        events=len(timeline.ordered.table),
        formats=job.format_names[0],
        attempts=attempts,
        runs=runs,
        disruptions=count_disruptions(timeline, start, end),
        ending=END_NAMES[timeline.endings.how[-1]] if attempts else END_NAMES[End.NOT_LOGGED],
        goodput_ns=productive if counted > 0 else None,
        goodput_percent=100 * productive / counted if counted > 0 else None,
        reason=None if counted > 0 else "the whole window is excluded",
    )


def not_analysed(job: EventLog, reason: str) -> JobSummary:
    """A job of which only the lines can be told."""
    table = job.table
    first, last = int(table.time.min()), int(table.end.max())
    return JobSummary(
        table.jobs[0], first, last, len(in_order(table).table), job.format_names[0], *(None,) * 6, reason=reason
    )


def arranged(jobs: Iterable[JobSummary], key: SortKey, limit: int | None) -> tuple[JobSummary, ...]:
    """Sorted, ties by start and name; the first `limit` of them.

    start, name: ascending. goodput: the lowest first, unknown last. events, length: the most first.
    """
    orders = {
        "start": lambda job: (job.start_ns, job.name),
        "name": lambda job: (job.name, job.start_ns),
        "goodput": lambda job: (
            job.goodput_percent is None,
            0.0 if job.goodput_percent is None else job.goodput_percent,
            job.start_ns,
            job.name,
        ),
        "events": lambda job: (-job.events, job.start_ns, job.name),
        "length": lambda job: (-job.ns, job.start_ns, job.name),
    }
    return tuple(sorted(jobs, key=orders[key])[:limit])
