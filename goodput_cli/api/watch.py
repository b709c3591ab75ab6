"""Analysing a job while it runs.

from goodput_cli.api.watch import watch
for update in watch(["run.jsonl"], interval=5):
    print(update.analysis.goodput.percent if update.analysis else update.waiting)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from goodput_cli.errors import NotEnoughData

if TYPE_CHECKING:
    from goodput_cli.analysis.results import Analysis
    from goodput_cli.api.analyze import Question, Source
    from goodput_cli.events.schema import EventLog


@dataclass(frozen=True)
class Update:
    """The answer at one moment. changed: whether anything was read since the one before.

    analysis: None as long as the log cannot answer; waiting: why it cannot.
    """

    changed: bool
    analysis: Analysis | None
    waiting: str = ""


def watch(
    sources: Source | Sequence[Source],
    *,
    interval: float = 2.0,
    job_name: str | None = None,
    as_of: Any = "now",
    timezone: str = "UTC",
    log_name: str | None = None,
    lookback_days: float | None = None,
    use_cache: bool = True,
    notice: Callable[[str], None] | None = None,
    **question: Any,
) -> Generator[Update, None, None]:
    """The analysis of growing sources, again and again, without an end; the first at once.

    sources: files, globs, folders, gs://, cloud-logging://; only what is new in them is read. interval: s between two
    answers; longer where an answer takes longer. as_of: by default the moment of each answer, so that time in which
    nothing is logged counts. notice: takes what a person should know (a file was truncated, the network fails).
    The others are those of `goodput_cli.analyze`; so are the errors, of the first answer only where it can go on.
    """
    from goodput_cli.api.analyze import make_question
    from goodput_cli.events.live import LiveLog
    from goodput_cli.sources.base import Wanted

    asked = make_question(as_of=as_of, timezone=timezone, **question)
    wanted = Wanted(job_name, log_name, lookback_days, use_cache)
    uris = [os.fspath(one) for one in ([sources] if isinstance(sources, str | os.PathLike) else sources)]
    live = LiveLog(uris, timezone=timezone, wanted=wanted, notice=notice)
    with closing(live):
        while True:
            started = time.monotonic()
            changed = live.look()
            yield _update(live.log(), asked, job_name, changed)
            spent = time.monotonic() - started
            time.sleep(max(interval - spent, spent, 0.0))  # half of one core at the most


def _update(log: EventLog, question: Question, job_name: str | None, changed: bool) -> Update:
    from goodput_cli.api.analyze import analyze_log

    try:
        return Update(changed, analyze_log(log, replace(question, now_ns=time.time_ns()), job_name))
    except NotEnoughData as error:
        return Update(changed, None, str(error))
