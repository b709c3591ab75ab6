"""How attempts ended (accounting §3): requests to stop, clean ends and whether they are believed, crashes, the last
sign of life; the table of ends (accounting §10); and, after an end that no line shows, the other reading: the next
epoch of one process (accounting §7).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.attempts import CLEAN_KINDS, STARTUP_KINDS, Attempts, find_beginnings
from goodput_cli.accounting.attempts.evidence_of_attempts import (
    evidence_of_job,
    grace_ns,
    is_named_after_job,
)
from goodput_cli.accounting.columns import first_of_each, last_of_each, of_kind, positions, rows_of, without
from goodput_cli.accounting.options import Planned
from goodput_cli.accounting.order import ENDINGS, OrderedEvents
from goodput_cli.arrays import I64, ColumnCode, Mask, Rows
from goodput_cli.events.evidence import Speaker, is_request
from goodput_cli.events.schema import (
    CHECKPOINT_KINDS,
    NEXT_EPOCH,
    NEXT_EPOCH_AFTER_START,
    NO_STEP,
    NONE,
    OWN_END,
    PREEMPTED,
    TEXT_PROCESS,
    EventTable,
    Kind,
)
from goodput_cli.vocabulary.categories import ENDED

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


class End(ColumnCode):
    """End of an attempt as stated by the lines after its last progress."""

    NOT_LOGGED = 0
    TERMINATED = 1
    CRASHED = 2
    CLEAN = 3


Ending = Literal["not_logged", "terminated", "crashed", "clean", "cancelled"]
END_NAMES: tuple[Ending, ...] = get_args(Ending)
"""Names in the order of `End`. The last one is a clean end that a scheduler reports as ordered."""


FINISHES = (Kind.USER_TERMINATED, Kind.JOB_FINISHED)
"""Clean ends that are not written during a crash."""


class Endings(Struct, frozen=True):
    """Ends of attempts: columns with one value per attempt."""

    how: NDArray[np.int8]
    """`End`."""
    clean_row: Rows
    """Row of the believed clean end; -1 without."""
    crash_row: Rows
    """Row of the first `job_crashed` if the attempt crashed; -1 otherwise."""

    @property
    def down(self) -> Mask:
        """True if a crash left the attempt down."""
        return np.asarray(self.how == End.CRASHED)


def find_endings(table: EventTable, attempts: Attempts, planned: Planned | None = None) -> Endings:
    """Return how each attempt ended. planned: the user's statement about stops between attempts, which overrides the
    rules.

    An exit after a request to stop is a termination, whatever its code.

    A `job_terminated` after a crash is written during the crash and changes nothing. A crash after a clean end leaves
    the job down while nothing follows. A planned end stays planned once the job has gone on.
    """
    rows, count = attempts.closing, len(attempts)
    owner, kind = attempts.of_row[rows], table.kind[rows]
    crashed = kind == Kind.CRASHED
    first_crash = first_of_each(rows[crashed], owner[crashed], count)
    last_crash = last_of_each(rows[crashed], owner[crashed], count)
    nothing_redone, followed = is_job_end_believed(table, attempts), np.arange(count) < count - 1
    believed = (first_crash < 0) & (nothing_redone if planned is None else ~followed | (planned == "yes"))
    clean = of_kind(kind, CLEAN_KINDS) & ((kind != Kind.JOB_END) | believed[owner])
    asked = exits_after_request(table, attempts, preempted_saves(table, attempts))
    clean &= ~(asked & ~followed[owner]) if planned == "yes" else ~asked
    if planned == "yes":
        clean |= (kind == Kind.TERMINATED) & (followed & (first_crash < 0))[owner]
    clean_row = first_of_each(rows[clean], owner[clean], count)
    contradicted = last_crash > last_of_each(rows[clean], owner[clean], count)
    contradicted[:-1] = False
    clean_row[contradicted] = -1
    how = np.zeros(count, dtype=np.int8)
    how[owner] = End.TERMINATED
    how[first_crash >= 0] = End.CRASHED
    how[clean_row >= 0] = End.CLEAN
    return Endings(how, clean_row, np.where(how == End.CRASHED, first_crash, -1))


def ending_of(table: EventTable, endings: Endings, died: Mask) -> Ending:
    """Return how the last attempt ended. A clean end that is a scheduler's `CANCELLED` has its own name (accounting
    §3)."""
    if not len(endings.how):
        return END_NAMES[End.NOT_LOGGED]
    how, row = endings.how[-1], int(endings.clean_row[-1])
    if how == End.CLEAN and is_cancelled(table, row):
        return "cancelled"
    return END_NAMES[End.CRASHED if died[-1] else how]


def is_cancelled(table: EventTable, row: int) -> bool:
    """Return True if a scheduler reports an event as cancelled."""
    detail = int(table.detail[row])
    return detail >= 0 and CANCELLED_STATE in table.details[detail]


def is_job_end_believed(table: EventTable, attempts: Attempts) -> Mask:
    """Return True for each end of the job that is believed. In step logs, an end is not believed if the next attempt
    with a step repeats steps."""
    count = len(attempts)
    believed = np.ones(count, dtype=bool)
    if not attempts.step_log or count == 0:
        return believed
    bounds = attempts.step_bounds
    stepping = np.flatnonzero(bounds[1:] > bounds[:-1])
    if attempts.step_ends:
        began = find_beginnings(table, attempts).step[stepping]
        believed[stepping[:-1]] = began[1:] >= table.step[attempts.steps[bounds[1:][stepping] - 1]][:-1]
        return believed
    first, last = (table.step[attempts.steps[place[stepping]]] for place in (bounds[:-1], bounds[1:] - 1))
    believed[stepping[:-1]] = first[1:] > last[:-1]
    return believed


def last_activity_ns(table: EventTable, attempts: Attempts) -> I64:
    """Return the last sign of life of each attempt (ns), before the credit for a last step. This is the first
    termination or end after its last step or checkpoint. Otherwise it is the end of its last event, without start-up
    events after its last progress. Steps are points, so the last one is enough. An attempt that was rolled back lasts
    until it goes on from below."""
    sign = attempts.begin.copy()
    stepping = np.flatnonzero(attempts.step_bounds[1:] > attempts.step_bounds[:-1])
    last_step = attempts.steps[attempts.step_bounds[1:][stepping] - 1]
    sign[stepping] = np.maximum(sign[stepping], table.end[last_step])
    others = positions((table.kind != Kind.STEP) & (attempts.of_row >= 0))
    owner = attempts.of_row[others]
    last_recorded = attempts.last_recorded[owner]
    silent = of_kind(table.kind[others], STARTUP_KINDS) & (last_recorded >= 0) & (others > last_recorded)
    np.maximum.at(sign, owner[~silent], table.end[others[~silent]])
    logged = attempts.first_ending >= 0
    sign[logged] = table.time[attempts.first_ending[logged]]
    lives_on = np.flatnonzero(attempts.gone_back)
    sign[lives_on] = attempts.begin[lives_on + 1]
    return sign


def find_runs(table: EventTable, attempts: Attempts, ends: tuple[Kind, ...] = CLEAN_KINDS) -> list[int]:
    """Return the rows at which runs begin, the first at row 0. A run begins at a start after a clean end if the new
    attempt begins at or below the first step of the run before. The clean end need not be believed, because redone
    steps make the new run. ends: kinds that count as a clean end."""
    began = _first_steps(table, attempts)
    lines = attempts.closing[~exits_after_request(table, attempts, preempted_saves(table, attempts))]
    ended, finished = (_clean_ends(table, attempts, lines, kinds) for kinds in (ends, FINISHES))
    starts = [0]
    run_first: int | None = None
    candidate: int | None = None
    for attempt in range(len(attempts)):
        begins = attempts.started[attempt] or (attempt and finished[attempt - 1])
        if candidate is None and attempt and ended[attempt - 1] and begins:
            candidate = attempt
        if began[attempt] == NO_STEP:
            continue
        if run_first is None:
            run_first = int(began[attempt])
        elif candidate is not None and began[attempt] <= run_first:
            starts.append(_row_with_schedule(table, int(attempts.begin_row[candidate])))
            run_first = int(began[attempt])
        candidate = None
    return starts


def may_have_separate_runs(table: EventTable) -> bool:
    """Return True if `separate_runs` may find any run: most logs have no end that is followed by a start."""
    said = positions(of_kind(table.kind, FINISHES))
    return len(said) > 0 and bool(of_kind(table.kind[said[0] :], (Kind.START, Kind.STEP)).any())


def separate_runs(table: EventTable, attempts: Attempts) -> list[int]:
    """Return the rows of `find_runs` if an end that reports a finished job precedes each of them but the first. Such
    runs are judged one by one. Otherwise return row 0 alone, because a `job_end_time` is also written during a
    crash."""
    starts = find_runs(table, attempts)
    return starts if starts == find_runs(table, attempts, FINISHES) else starts[:1]


def _first_steps(table: EventTable, attempts: Attempts) -> NDArray[np.int64]:
    """Return the first recorded step of each attempt, `NO_STEP` without any. Loads count; in step-end logs it is the
    step where training began."""
    first = np.full(len(attempts), NO_STEP, dtype=np.int64)
    if attempts.step_ends:
        return find_beginnings(table, attempts).step
    if attempts.step_log:
        bounds = attempts.step_bounds
        stepping = np.flatnonzero(bounds[1:] > bounds[:-1])
        first[stepping] = table.step[attempts.steps[bounds[stepping]]]
        return first
    rows = rows_of(table.kind, CHECKPOINT_KINDS)
    first[attempts.of_row[rows][::-1]] = table.step[rows][::-1]
    return first


def _clean_ends(table: EventTable, attempts: Attempts, lines: Rows, ends: tuple[Kind, ...]) -> NDArray[np.bool_]:
    """Return True for each attempt whose last end line is of these kinds; terminations and other clean ends do not
    count."""
    rows = lines[of_kind(table.kind[lines], (*ends, Kind.CRASHED))]
    clean = np.zeros(len(attempts), dtype=bool)
    clean[attempts.of_row[rows]] = table.kind[rows] != Kind.CRASHED
    return clean


def _row_with_schedule(table: EventTable, row: int) -> int:
    """Return the row where a run begins, including the `user_scheduled` lines directly before its start. Heartbeats may
    be in between."""
    first = row
    while row > 0 and table.kind[row - 1] in (Kind.SCHEDULED, Kind.SLICES, Kind.HEARTBEAT):
        row -= 1
        first = first if table.kind[row] == Kind.HEARTBEAT else row
    return first


_REACHED_PREEMPTION = PREEMPTED[0][0]
_PROGRESS = (Kind.STEP, Kind.FINISHED, Kind.SAVED)


class ElasticTransition(ColumnCode):
    """Direction of an elastic passage."""

    NONE = 0
    SLICE_DOWN = 1
    SCALE_UP = 2


def preempted_saves(table: EventTable, attempts: Attempts) -> Rows:
    """Return the row of each attempt's last save that had reached a preemption, or of a later notice of one. Only if it
    trained for at most 10 min after it; -1 without."""
    said = np.array([_is_preempted(detail) for detail in table.details] + [False], dtype=bool)
    rows = positions(of_kind(table.kind, (Kind.SAVE, Kind.HEARTBEAT)) & (attempts.of_row >= 0))
    rows = rows[said[table.detail[rows]]]
    trained = attempts.last_progress[attempts.of_row[rows]]
    late = (trained >= 0) & (table.time[trained] - table.time[rows] > LATEST_NOTICE_NS)
    rows = rows[(table.kind[rows] == Kind.SAVE) | ~late]
    saves = np.full(len(attempts), -1, dtype=np.intp)
    saves[attempts.of_row[rows]] = rows
    return saves


def _is_preempted(detail: object) -> bool:
    """Return True if the details of an event, (key, value) pairs, flag a preemption. Loggers write the flag as a bool,
    1 or text."""
    pairs = detail if isinstance(detail, tuple) else ()
    for pair in pairs:
        if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == _REACHED_PREEMPTION:
            return pair[1] is True or pair[1] == 1 or str(pair[1]).lower() == "true"
    return False


def elastic_passages(table: EventTable, attempts: Attempts) -> tuple[NDArray[np.int8], Rows]:
    """Return the direction of the passage after each attempt (`ElasticTransition`), and the first line that shows it
    (-1: none).

    A passage contains the rows between the last progress of an attempt and the first progress of the next. One with a
    start line or a termination is not an elastic passage.
    """
    count = len(attempts)
    cause, row = np.zeros(count, dtype=np.int8), np.full(count, -1, dtype=np.intp)
    if count < 2 or not of_kind(table.kind, (Kind.ELASTIC_DOWN, Kind.ELASTIC_UP)).any():
        return cause, row
    progress = without(rows_of(table.kind, _PROGRESS), attempts.dropped, len(table))
    progress = progress[attempts.of_row[progress] >= 0]
    first = first_of_each(progress, attempts.of_row[progress], count)
    first[first < 0] = len(table)
    for kinds, what in (
        ((Kind.ELASTIC_UP,), ElasticTransition.SCALE_UP),
        ((Kind.ELASTIC_DOWN,), ElasticTransition.SLICE_DOWN),
    ):
        passage, shown = _rows_in_passages(table, attempts, kinds, first)
        cause[passage] = what
        row = np.where(cause == what, first_of_each(shown, passage, count), row)
    ended, _ = _rows_in_passages(table, attempts, ENDINGS, first)
    cause[ended] = ElasticTransition.NONE
    cause[:-1][attempts.started[1:]] = ElasticTransition.NONE
    cause[-1] = ElasticTransition.NONE
    return cause, np.where(cause == ElasticTransition.NONE, -1, row)


def _rows_in_passages(table: EventTable, attempts: Attempts, kinds: tuple[Kind, ...], first: Rows) -> tuple[Rows, Rows]:
    """Return the rows of some kinds that are in a passage, in order, and the attempt before each passage."""
    rows = rows_of(table.kind, kinds)
    rows = rows[attempts.of_row[rows] >= 0]
    owner = attempts.of_row[rows].astype(np.intp)
    behind = rows > attempts.last_recorded[owner]
    before = (rows < first[owner]) & (owner > 0)
    passage = np.concatenate((owner[behind], owner[before] - 1))
    shown = np.concatenate((rows[behind], rows[before]))
    order = np.argsort(shown, kind="stable")
    return passage[order], shown[order]


_DOWN = (End.TERMINATED, End.CRASHED)


class Ends(Struct, frozen=True):
    """Ends of the attempts of a job: columns with one value per attempt."""

    how: I64
    """Position in `ENDED`."""
    row: Rows
    """Row of the line that states it; -1 without."""
    time: I64
    """Time (ns) of the first line that states it, otherwise of the last sign of life."""
    followed: Mask
    """True if another attempt follows."""
    stated: Mask
    """True if a line states that the attempt ended, and it is not a believed clean end."""
    failed: Mask
    """True for a failure: an unplanned disruption, or the stated end of a last attempt that was not cancelled."""


def find_ends(
    attempts: Attempts,
    endings: Endings,
    died: Mask,
    preempted: Rows,
    passages: tuple[NDArray[np.int8], Rows],
    sign_of_life: I64,
    disrupted: Mask,
    *,
    cancelled: bool,
) -> Ends:
    """Return the end of every attempt.

    A save that reached a preemption names the reason. A crash or a termination only states that the attempt was down.

    died: True if an uncaught exception ended it. preempted: row of its save that had reached a preemption; -1 without.
    passages: what the elastic passage after it shows, and the row. disrupted: True if a disruption that counts ended
    it. cancelled: True if the last attempt was cancelled.
    """
    count = len(attempts)
    followed = np.arange(count) < count - 1
    stated = (endings.how != End.CLEAN) & (np.isin(endings.how, _DOWN) | died | (preempted >= 0))
    failed = np.where(followed, disrupted, stated & (not cancelled))
    how = np.where(endings.how == End.TERMINATED, ENDED.index("terminated"), ENDED.index("silent"))
    how[endings.down | died] = ENDED.index("crashed")
    row = np.where(endings.down, endings.crash_row, attempts.first_ending)
    passage, shown = passages
    for what, name in ((ElasticTransition.SLICE_DOWN, "slice_down"), (ElasticTransition.SCALE_UP, "scale_up")):
        how[passage == what] = ENDED.index(name)
    row = np.where(shown >= 0, shown, row)
    how[preempted >= 0] = ENDED.index("preempted")
    how[attempts.gone_back] = ENDED.index("rolled_back")
    return Ends(how, np.where(preempted >= 0, preempted, row), sign_of_life, followed, stated, failed)


EPOCH_MARKS = (NEXT_EPOCH, NEXT_EPOCH_AFTER_START)
"""Details of activity where steps begin to count again."""


def find_unnamed_epochs(table: EventTable, attempts: Attempts, how: NDArray[np.int8], died: Mask) -> Rows:
    """Return the rows at which steps begin to count again, in an attempt that no line surely opened and after one whose
    end no line shows. how: `End` of each attempt. died: those that an exception ended."""
    codes = [table.details.index(one) for one in EPOCH_MARKS if one in table.details]
    rows = np.flatnonzero(np.isin(table.detail, codes))
    attempt = attempts.of_row[rows]
    rows, attempt = rows[attempt > 0], attempt[attempt > 0]
    before = attempt - 1
    is_unsure = [table.details[code] == NEXT_EPOCH_AFTER_START for code in table.detail[rows].tolist()]
    is_open = (~attempts.started[attempt] | np.array(is_unsure, dtype=np.bool_)) & ~attempts.rolled_back[attempt]
    return np.asarray(rows[is_open & (how[before] == End.NOT_LOGGED) & ~died[before]])


def with_continued_steps(table: EventTable, marked: Rows) -> OrderedEvents:
    """Return the events of a job, where each writer's steps go on at the marked rows instead of beginning again."""
    step = table.step.copy()
    has_step = table.step != NO_STEP
    is_record = has_step & (table.kind == Kind.STEP)
    for writer in np.unique(table.writer[marked]).tolist():
        rows = np.flatnonzero((table.writer == writer) & has_step)
        records = np.flatnonzero((table.writer == writer) & is_record)
        begins = np.unique(np.searchsorted(records, _begin_of(table, records, marked[table.writer[marked] == writer])))
        stride = _stride(table.step[records])
        ahead = np.zeros(len(records), dtype=np.int64)
        for begin in begins[begins > 0].tolist():
            last, first = table.step[records[begin - 1 : begin + 1]].tolist()
            ahead[begin] = last + stride - first
        total = np.cumsum(ahead)
        place = np.searchsorted(records, rows, side="right") - 1
        step[rows] += np.where(place >= 0, total[place], 0)
    detail = table.detail.copy()
    detail[marked] = NONE
    changed = replace(table, step=step, detail=detail)
    return OrderedEvents(changed, changed, np.zeros(0, dtype=np.intp))


def _begin_of(table: EventTable, records: Rows, marked: Rows) -> Rows:
    """Return the record of each mark: the first one at its time, otherwise the last one before it."""
    times, marks = table.time[records], table.time[marked]
    first, last = np.searchsorted(times, marks), np.searchsorted(times, marks, side="right") - 1
    return records[np.maximum(np.minimum(first, last), 0)]


def _stride(step: I64) -> int:
    ahead = np.diff(step)
    ahead = np.sort(ahead[ahead > 0])
    return int(ahead[(len(ahead) - 1) // 2]) if len(ahead) else 1


def job_end(table: EventTable, attempts: Attempts) -> int:
    """Return the end of the last event (ns), without stray heartbeats (accounting §1)."""
    return int((np.delete(table.end, attempts.stray) if len(attempts.stray) else table.end).max())


def has_ended(table: EventTable, attempts: Attempts, endings: Endings) -> bool:
    """Return True if a clean end or a termination is followed by nothing but stragglers, without a crash among them."""
    opening = rows_of(table.kind, (Kind.SCHEDULED, Kind.START))
    last_alive = max((int(rows.max()) for rows in (opening, attempts.last_progress) if len(rows)), default=-1)
    rows = attempts.closing[attempts.closing > last_alive]
    if len(rows) == 0:
        return False
    clean = endings.how[attempts.of_row[rows[-1]]] == End.CLEAN
    return bool(clean or not (table.kind[rows] == Kind.CRASHED).any())
