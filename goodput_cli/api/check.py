"""`goodput_cli.check(...)`: what is wrong with these logs, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.options import JOB, Source, split, takes

if TYPE_CHECKING:
    from goodput_cli.analysis.check.check import CheckReport
    from goodput_cli.api.keywords import JobOptions


@takes(JOB)
def check(
    sources: Source | Sequence[Source],
    *,
    jobs_done: Callable[[int, int], None] | None = None,
    **options: Unpack[JobOptions],
) -> CheckReport:
    """Read the logs and find everything that is wrong with them, and with each of their jobs.

    The report is of no job where no event could be read. The arguments are those of `goodput_cli.jobs`; jobs are
    always checked whole. Errors as there.
    """
    reading, question = split(options)
    from goodput_cli.analysis.each_job import check_log

    return check_log(reading.read(sources, question.timezone), question, job_name=reading.job_name, jobs_done=jobs_done)
