"""`goodput_cli.watch(...)`: the analysis of a job while it runs.

import goodput_cli
for update in goodput_cli.watch("run.jsonl", interval=5):
    print(update.analysis.goodput.percent if update.analysis else update.waiting)
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.options import AnalyzeOptions, Source, addresses, spelled_out, split
from goodput_cli.errors import NotEnoughData

if TYPE_CHECKING:
    from goodput_cli.analysis.question import Question
    from goodput_cli.analysis.results import Analysis
    from goodput_cli.events.schema import EventLog


@dataclass(frozen=True)
class Update:
    """The answer at one moment."""

    changed: bool
    """Whether anything was read since the one before."""
    analysis: Analysis | None
    """None as long as the log cannot answer."""
    waiting: str = ""
    """Why it cannot."""


@spelled_out(AnalyzeOptions)
def watch(
    sources: Source | Sequence[Source], *, interval: float = 2.0, **options: Unpack[AnalyzeOptions]
) -> Generator[Update, None, None]:
    """The analysis of growing sources, again and again, without an end; the first at once.

    sources: files, globs, folders, gs://, cloud-logging://; only what is new in them is read. interval: s between two
    answers; longer where an answer takes longer. as_of: by default the moment of each answer, so that time in which
    nothing is logged counts. notice: takes what a person should know (a file was truncated, the network fails).
    The others are those of `goodput_cli.analyze`; so are the errors, of the first answer only where it can go on.
    """
    reading, question = split({"as_of": "now", **options})
    from goodput_cli.events.live import LiveLog

    log = LiveLog(
        addresses(sources),
        timezone=question.timezone,
        wanted=reading.wanted,
        notice=reading.notice,
        asked=reading.asked,
    )
    with closing(log):
        while True:
            started = time.monotonic()
            changed = log.look()
            yield _update(log.log(), question, reading.job_name, changed)
            spent = time.monotonic() - started
            time.sleep(max(interval - spent, spent, 0.0))  # half of one core at the most


def _update(log: EventLog, question: Question, job_name: str | None, changed: bool) -> Update:
    from goodput_cli.analysis.account import analyze_log

    try:
        return Update(changed, analyze_log(log, replace(question, now_ns=time.time_ns()), job_name))
    except NotEnoughData as error:
        return Update(changed, None, str(error))
