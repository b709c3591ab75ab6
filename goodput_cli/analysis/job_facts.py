"""All columns of capabilities in the tables of jobs and of the runs of a fleet."""

from __future__ import annotations

from goodput_cli.analysis.hangs.job_columns import JOB_COLUMNS
from goodput_cli.analysis.row_facts import JobFacts

JOB_FACTS: tuple[JobFacts, ...] = (JOB_COLUMNS,)
