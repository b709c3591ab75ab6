"""`goodput_cli.jobs(...)`: every job in the logs, with its goodput.

import goodput_cli
for job in goodput_cli.jobs("logs/").jobs:
    print(job.name, job.goodput_percent)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.options import JobOptions, Source, spelled_out, split

if TYPE_CHECKING:
    from goodput_cli.analysis.jobs.summarise import JobList, SortKey


@spelled_out(JobOptions)
def jobs(
    sources: Source | Sequence[Source],
    *,
    sort: SortKey = "start",
    limit: int | None = None,
    jobs_done: Callable[[int, int], None] | None = None,
    **options: Unpack[JobOptions],
) -> JobList:
    """Read the logs and list their jobs; those that cannot be analysed have no goodput.

    sort: the order; "goodput" puts the worst first. limit: how many to give, None for all. jobs_done: called after
    each job with how many are done, and of how many. The others are those of `goodput_cli.analyze`, and count for each
    job; so are the errors. UsageError also where the question fits none of the jobs.
    """
    reading, question = split(options)
    from goodput_cli.analysis.each_job import list_jobs

    log = reading.read(sources, question.timezone)
    return list_jobs(log, question, job_name=reading.job_name, sort=sort, limit=limit, jobs_done=jobs_done)
