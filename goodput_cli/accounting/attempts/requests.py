"""Requests to stop (accounting §3, How attempts end): one list from all sources, and the exits that follow one.

A scheduler, a cluster, a person or a signal asks the processes of a job to end. An exit that follows, even with code 0,
is not a clean end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS, Attempts
from goodput_cli.accounting.attempts.evidence_of_attempts import evidence_of_job, grace_ns, is_named_after_job
from goodput_cli.accounting.columns import of_kind
from goodput_cli.arrays import Mask, Rows
from goodput_cli.events.evidence import Speaker, is_request
from goodput_cli.events.schema import OWN_END, TEXT_PROCESS, EventTable, Kind

CANCELLED_STATE = ("state", "CANCELLED")
"""In the detail of an end that a person ordered, as a scheduler reports it."""
LATEST_NOTICE_NS = 600 * 10**9
"""Longest time for which an attempt may train after it reached a preemption. After a longer time, it ended for another
reason."""


class StopRequest(NamedTuple):
    """A request to stop as stated by a line."""

    time: int
    """ns UTC."""
    kind: str
    """A cause: preempted, evicted, maintenance, time_limit or cancelled; killed for a signal of an unknown sender."""
    sender: Speaker
    """Program that reports it."""
    scope: str
    """Pod, allocation or host that it concerns; "" for the job."""


def find_requests(table: EventTable) -> list[StopRequest]:
    """Return the requests to stop a job, in order of time."""
    found = [
        StopRequest(one.lo, one.code, one.speaker, one.identity or one.host)
        for one in evidence_of_job(table, table.observed)
        if one.lo is not None and is_request(one) and (one.speaker != "pod" or is_named_after_job(table, one))
    ]
    return sorted(found)


def exits_after_request(table: EventTable, attempts: Attempts, preempted: Rows) -> Mask:
    """Return True for each of `attempts.closing` that is an exit after a request to stop, and therefore not a clean
    end.

    A line by which the user or the program itself ends the job stays a clean end. preempted: row at which each attempt
    had reached a preemption; -1 without.
    """
    rows = attempts.closing
    kind, owner = table.kind[rows], attempts.of_row[rows]
    asked = np.zeros(len(rows), dtype=bool)
    exits = np.flatnonzero(of_kind(kind, CLEAN_KINDS) & ((kind == Kind.JOB_END) | _is_written_as_text(table, rows)))
    requests = find_requests(table) if len(exits) and table.observed.rows else []
    if not requests and not (preempted >= 0).any():
        return asked
    grace, times = grace_ns(table, attempts), [one.time for one in requests]
    for place in exits.tolist():
        attempt, end = int(owner[place]), int(table.time[rows[place]])
        trained = int(attempts.last_progress[attempt])
        last = int(table.time[trained]) if trained >= 0 else int(attempts.begin[attempt])
        notice = int(preempted[attempt])
        reached = notice >= 0 and kind[place] == Kind.JOB_END and last - int(table.time[notice]) <= LATEST_NOTICE_NS
        since = max(last - grace, int(attempts.begin[attempt]))
        asked[place] = reached or _has_any(times, since, end)
    return asked


def _has_any(times: Sequence[int], since: int, until: int) -> bool:
    at = bisect_left(times, since)
    return at < len(times) and times[at] <= until


def _is_written_as_text(table: EventTable, rows: Rows) -> Mask:
    """Return True for each line that is output of a program or an object of a cluster, and not a planned stop. The
    recorder and controllers write planned stops in their user's words."""
    text = np.array([process.startswith(TEXT_PROCESS) for _, process in table.writers] + [False], dtype=bool)
    meant = np.array([_is_meant(detail) for detail in table.details] + [False], dtype=bool)
    return np.asarray(text[table.writer[rows]] & ~meant[table.detail[rows]])


def _is_meant(detail: object) -> bool:
    pairs = detail if isinstance(detail, tuple) else ()
    return OWN_END[0] in pairs or CANCELLED_STATE in pairs
