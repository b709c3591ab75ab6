"""What `goodput jobs --format json` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from goodput_cli.analysis.answer import Answer, Count, DiagnosticEntry, Row, diagnostic_entries, row_of
from goodput_cli.analysis.jobs.sheet import COLUMNS
from goodput_cli.analysis.jobs.summarise import JobList
from goodput_cli.analysis.table import json_rows


class JobsAnswer(Answer, kw_only=True):
    """goodput jobs --format json"""

    kind: Literal["jobs"] = "jobs"
    found: Count
    """jobs in the logs, before --limit"""
    runs: Count
    """runs of all jobs found: more than jobs where a name was used again"""
    events: Count
    """events of all jobs found, duplicates included"""
    jobs: Sequence[Annotated[Row, row_of("listed_job", "one job of the logs", COLUMNS)]]
    """in the order of --sort"""
    diagnostics: Sequence[DiagnosticEntry]
    """what was noticed while reading"""


def jobs_answer(jobs: JobList) -> JobsAnswer:
    """The jobs of a log."""
    return JobsAnswer(
        found=jobs.found,
        runs=jobs.runs,
        events=jobs.events,
        jobs=json_rows(COLUMNS, len(jobs.jobs), lambda: [jobs.jobs]),
        diagnostics=diagnostic_entries(jobs.diagnostics),
    )
