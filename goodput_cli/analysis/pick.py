"""Which events the question is about: one job of the log, and one run of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from goodput_cli.accounting.attempts.attempts import find_attempts
from goodput_cli.accounting.attempts.runs import find_runs
from goodput_cli.accounting.build import is_step_log
from goodput_cli.accounting.columns import codes_in
from goodput_cli.accounting.order import Ordered, in_order
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.events.schema import EventLog, EventTable, LogFormat
from goodput_cli.vocabulary.likely import did_you_mean

if TYPE_CHECKING:
    from goodput_cli.analysis.check.check import Finding
    from goodput_cli.diagnostics.diagnostic import Diagnostic

_LISTED = 10


def pick_job(log: EventLog, name: str | None) -> tuple[EventTable, str, tuple[LogFormat, ...]]:
    """The events of one job, its name, and the formats they came in.

    `NotEnoughData`: no events at all, or none of that job. `UsageError`: no name given, and several jobs.
    """
    jobs = log.table.jobs
    if len(log.table) == 0:
        raise no_events(log.diagnostics)
    if name is None:
        present = [jobs[code] for code in codes_in(log.table.job)]
        if len(present) > 1:
            raise UsageError(
                f"the log holds {len(present)} jobs; pick one with --job-name: {_listed(present)} "
                "(`goodput jobs` shows them all with their times and goodput)"
            )
        name = present[0]
    if name not in jobs:
        raise no_such_job(name, jobs)
    code = jobs.index(name)
    formats = log.formats[code] if code < len(log.formats) else ()
    table = log.table if len(jobs) == 1 else log.table.take(log.table.job == code)
    return table.compacted(), name, formats


def pick_ordered(log: EventLog, name: str | None) -> tuple[Ordered, str, tuple[LogFormat, ...]]:
    """The same, with the events in the order of the accounting."""
    events, name, formats = pick_job(log, name)
    return in_order(events), name, formats


def pick_run(whole: Ordered, run: str) -> Ordered:
    """The events of one run of a job (accounting §10): a number from 1, or "last"."""
    table = whole.table
    attempts = find_attempts(table, is_step_log(table))
    starts = find_runs(table, attempts)
    number = len(starts) if run == "last" else int(run)
    if not 1 <= number <= len(starts):
        raise UsageError(f"there is no run {number}; the job has {len(starts)} (--run 1..{len(starts)} or last)")
    first = starts[number - 1] if number > 1 else 0
    stop = starts[number] if number < len(starts) else len(table)
    chosen = table.take(np.arange(first, stop))
    return Ordered(chosen, chosen, np.zeros(0, dtype=np.intp))


def no_such_job(name: str, jobs: Iterable[str]) -> NotEnoughData:
    """What to say where the log holds other jobs than the one that was named."""
    known = sorted(jobs)
    meant = did_you_mean(name, known)
    return NotEnoughData(f"no events of job {name!r}; {meant and f'{meant} '}the log holds {_listed(known)}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 80 else name[:79] + "…") for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def no_events(diagnostics: Sequence[Diagnostic | Finding]) -> NotEnoughData:
    """What to say of a log without any event: what was in the sources instead."""
    if not diagnostics:
        return NotEnoughData("no events found: the sources are empty; has the job written anything yet?")
    counts: dict[str, int] = {}
    for diagnostic in diagnostics:
        counts[diagnostic.code] = counts.get(diagnostic.code, 0) + diagnostic.count
    seen = ", ".join(f"{count} x {code}" for code, count in list(counts.items())[:3])
    most = max(diagnostics, key=lambda diagnostic: diagnostic.count)
    return NotEnoughData(
        f"no events found ({seen}); {''.join(f'{place}: ' for place in most.where[:1])}{most.message}. "
        f"`goodput help {most.code}` says what to do; `goodput check` with the same log shows all that was found"
    )
