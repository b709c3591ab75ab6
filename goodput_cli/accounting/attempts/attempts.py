"""Attempts (accounting §3): find where each one begins, and which attempt each event belongs to.

Find where training began in each attempt of a step-end log, which no line shows (accounting §4, Step-end logs).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.rank_starts import (
    STARTUP_PHASES,
    Bursts,
    RollbackReason,
    closing_lines,
    find_bursts,
    find_falls,
    without_replicas,
)
from goodput_cli.accounting.attempts.restarts import (
    StepLogRecords,
    checkpoint_regions_with_restarts,
    regions_with_restarts,
    split_checkpoint_region,
    split_region,
    twice_the_median,
)
from goodput_cli.accounting.columns import (
    first_of_each,
    last_of_each,
    of_kind,
    owner_type,
    positions,
    rows_of,
    search,
    union,
    without,
)
from goodput_cli.accounting.options import UnknownFalls
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import (
    CHECKPOINT_KINDS,
    COUNTS_FROM_0,
    NO_STEP,
    Edge,
    EventTable,
    Kind,
)
from goodput_cli.vocabulary.when import NS_PER_SECOND

STARTUP_KINDS = (Kind.RESTORE, *STARTUP_PHASES)
PROGRESS_KINDS = (Kind.STEP, *CHECKPOINT_KINDS)
"""Steps and checkpoint events."""
CLEAN_KINDS = (Kind.USER_TERMINATED, Kind.JOB_FINISHED, Kind.JOB_END)
_RESUMING_KINDS = (Kind.LOAD, Kind.TPU_INIT, Kind.PREP, Kind.RESTORE)
_OF_NO_ATTEMPT = (Kind.SCHEDULED, Kind.SLICES)
_BEGIN_NOTHING = (*_OF_NO_ATTEMPT, Kind.HEARTBEAT)


class Attempts(Struct, frozen=True, dict=True):
    """Attempts of one job in time order: columns with one value per attempt, unless noted. A rollback splits an attempt
    into two rows; the second does not count as an attempt."""

    begin: I64
    """First start line (ns), or first event of an attempt without one."""
    up: I64
    """Last start line of its burst (ns), or `begin`."""
    begin_row: Rows
    up_row: Rows
    """Rows of the events at `begin` and at `up`."""
    started: Mask
    """True if a start line opened it."""
    rolled_back: Mask
    """True if steps went back at its begin while the process went on: a rollback, which does not begin an attempt."""
    perhaps_rolled_back: Mask
    """True if steps went back and the log does not show if the process went on: counts as a restart."""
    writers: Rows
    """Number of processes without a rank that opened it together, at least 1. Without a start line: those of the
    process it ran in."""
    of_row: Rows
    """Attempt of each row of the table. -1 for rows of no attempt: scheduled lines, slice counts, reports of second
    hosts and stray heartbeats."""
    steps: Rows
    """Rows of the step records that count."""
    step_bounds: NDArray[np.intp]
    """The steps of attempt a are at step_bounds[a] .. step_bounds[a + 1] - 1 of `steps`."""
    dropped: Rows
    """Rows of reports by second hosts, which do not count."""
    step_log: bool
    """True if the lineage follows steps (accounting §4)."""
    step_ends: bool
    """True for a step-end log: its records count finished steps (accounting §4)."""
    counts_from_0: bool
    """True if the first finished step is 0, not 1: record n means n + 1 finished steps."""
    last_recorded: Rows
    """Row of the last step or checkpoint event; -1 without any."""
    last_progress: Rows
    """Row of the last step. In checkpoint logs: row of the last load, or of the first report of the highest step. A
    save that another rank reports late does not undo the end of an attempt (accounting §3)."""
    closing: Rows
    """Rows of all terminations and ends after the `last_progress` of their attempt. They show how it ended."""
    first_ending: Rows
    """Row of the first of these; -1 if none was logged."""
    stray: Rows
    """Rows of heartbeats after the line that ended their attempt. They are ignored."""

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def gone_back(self) -> Mask:
        """True if a rollback follows: the process went on where its steps went back."""
        return np.append(self.rolled_back[1:], False)[: len(self)]

    @property
    def count(self) -> int:
        """Number of attempts, without rollbacks."""
        return len(self.begin) - int(np.count_nonzero(self.rolled_back))

    @property
    def begins(self) -> I64:
        """Begin (ns) of each counted attempt."""
        return self.begin[~self.rolled_back]

    @cached_property
    def number(self) -> Rows:
        """Number of each attempt as shown to users, from 1. A rollback has the number of the attempt that was rolled
        back."""
        return np.cumsum(~self.rolled_back)

    def cut_at_next(self, time: I64) -> I64:
        """Return one time (ns) per attempt, cut at the begin of the next: a rank of the old attempt may still log
        later."""
        cut = time.copy()
        cut[:-1] = np.minimum(cut[:-1], self.begin[1:])
        return cut

    @cached_property
    def process(self) -> Rows:
        """Number of the process each attempt ran in. Only a start line shows a new process. A phase may begin in one
        attempt and end in the next one of the same process, for example when steps go back after an elastic wait."""
        return np.cumsum(self.started).astype(np.int32)


def find_attempts(table: EventTable, step_log: bool, unknown_falls: UnknownFalls = "restarts") -> Attempts:
    """Return the attempts of one job. `table`: in the order of accounting §1. unknown_falls: how to count steps that
    went back without an explanation in the log."""
    steps = positions(table.kind == Kind.STEP)
    checkpoints = rows_of(table.kind, CHECKPOINT_KINDS)
    recorded = union(steps, checkpoints) if len(checkpoints) else steps
    bursts = find_bursts(table, recorded)
    if step_log:
        bursts = without_replicas(table, bursts, steps)
    regions = _regions(table.kind, bursts, recorded)
    boundaries, dropped = _split_regions(table, step_log, regions, steps, bursts)
    begin_row = np.array(sorted({*regions, *boundaries}), dtype=np.intp)
    up_row, started = _starts(begin_row, bursts)
    of_row = _attempt_of_row(table, begin_row, bursts)
    of_row[dropped] = -1
    steps, recorded = without(steps, dropped, len(table)), without(recorded, dropped, len(table))
    step_bounds, recorded_bounds = _bounds(steps, begin_row), _bounds(recorded, begin_row)
    falls = np.full(len(begin_row), RollbackReason.RESTART, dtype=np.int8)
    if step_log and len(boundaries):
        falls = find_falls(table, begin_row, started, steps, step_bounds)
    unknown, rolled_back = falls == RollbackReason.UNKNOWN, falls == RollbackReason.ROLLBACK
    if unknown_falls == "rollbacks":
        rolled_back |= unknown
    last_recorded = _last_of_each(recorded, recorded_bounds)
    endings = _endings(table, of_row)
    if step_log:
        last_progress = _last_of_each(steps, step_bounds)
    else:
        last_progress = _last_progress(table, recorded, recorded_bounds, last_recorded, endings, of_row)
    closing = endings[endings > last_progress[of_row[endings]]]
    first_ending = first_of_each(closing, of_row[closing], len(begin_row))
    stray = _stray_heartbeats(table, of_row, first_ending)
    of_row[stray] = -1
    return Attempts(
        begin=table.time[begin_row],
        up=table.time[up_row],
        begin_row=begin_row,
        up_row=up_row,
        started=started,
        rolled_back=rolled_back,
        perhaps_rolled_back=unknown & ~rolled_back,
        writers=_writers(begin_row, bursts),
        of_row=of_row,
        steps=steps,
        step_bounds=step_bounds,
        dropped=dropped,
        step_log=step_log,
        step_ends=bool(len(steps) and table.edge[steps[0]] == Edge.END),
        counts_from_0=_counts_from_0(table, steps),
        last_recorded=last_recorded,
        last_progress=last_progress,
        closing=closing,
        first_ending=first_ending,
        stray=stray,
    )


def _regions(kind: NDArray[np.int8], bursts: Bursts, recorded: Rows) -> list[int]:
    """Return the first rows of the regions: one per start burst, and one before the first if the log shows activity
    there."""
    first: list[int] = bursts.first.tolist()
    alive = ~of_kind(kind, _BEGIN_NOTHING)
    if alive.any() and (not first or (len(recorded) and recorded[0] < first[0])):
        return [int(np.argmax(alive)), *first]
    return first


def _split_regions(
    table: EventTable, step_log: bool, regions: list[int], steps: Rows, bursts: Bursts
) -> tuple[list[int], Rows]:
    """Return the rows inside the regions at which an attempt begins, and the rows of second hosts' reports."""
    kind = table.kind
    startup = without(rows_of(kind, STARTUP_KINDS), closing_lines(table, bursts), len(table))
    endings = without(rows_of(kind, ENDINGS), bursts.late_ends, len(table))
    resuming = np.flatnonzero(of_kind(kind, _RESUMING_KINDS) & (table.edge != Edge.END))
    start, stop = np.array(regions, dtype=np.intp), np.array([*regions[1:], len(table)][: len(regions)], dtype=np.intp)
    if step_log:
        number, time = table.step[steps], table.time[steps]
        two_medians = twice_the_median(number, time)
        return _split_by_steps(
            StepLogRecords(steps, number, time, startup, endings, resuming, table.time, two_medians), start, stop
        )
    progress, loads = rows_of(kind, (Kind.FINISHED, Kind.SAVED)), np.flatnonzero(kind == Kind.LOAD)
    boundaries: list[int] = []
    restarting = checkpoint_regions_with_restarts(progress, loads, endings, resuming, start, stop)
    for first, behind in zip(start[restarting].tolist(), stop[restarting].tolist(), strict=True):
        boundaries += split_checkpoint_region(progress, loads, startup, endings, resuming, first, behind)
    return boundaries, np.zeros(0, dtype=np.intp)


def _split_by_steps(records: StepLogRecords, start: Rows, stop: Rows) -> tuple[list[int], Rows]:
    """Split the regions (start <= row < stop) of a step log; see `_split_regions`."""
    boundaries: list[int] = []
    repeated: list[int] = []
    restarting = regions_with_restarts(records, start, stop)
    for first, behind in zip(start[restarting].tolist(), stop[restarting].tolist(), strict=True):
        begins, repeats = split_region(records, first, behind)
        boundaries += begins
        repeated += repeats
    return boundaries, records.row[np.array(sorted(repeated), dtype=np.intp)]


def _starts(begin_row: Rows, bursts: Bursts) -> tuple[Rows, Mask]:
    """Return the row at which each attempt is up, and True for each that a start line opened."""
    up_row, started = begin_row.copy(), np.zeros(len(begin_row), dtype=bool)
    opened = search(begin_row, bursts.first)
    up_row[opened], started[opened] = bursts.last, True
    return up_row, started


def _writers(begin_row: Rows, bursts: Bursts) -> Rows:
    """Return the number of processes without a rank that opened each attempt. Without a start line: as the one
    before."""
    opened = search(begin_row, bursts.first)
    writers = np.zeros(len(begin_row), dtype=np.intp)
    writers[opened] = np.maximum(bursts.unnumbered, 1)
    latest = np.maximum.accumulate(np.where(writers > 0, np.arange(len(writers)), 0))
    return np.maximum(writers[latest], 1)


def _attempt_of_row(table: EventTable, begin_row: Rows, bursts: Bursts) -> Rows:
    """Return the attempt of each row. Rows before the start line of the first attempt (an init, a restore) belong to
    it."""
    if len(begin_row) == 0:
        return np.full(len(table), -1, dtype=owner_type(0))
    size = np.diff(np.append(begin_row, len(table)))
    size[0] += begin_row[0]
    of_row = np.repeat(np.arange(len(begin_row), dtype=owner_type(len(begin_row))), size)
    of_row[bursts.late_ends] = search(begin_row, bursts.first[bursts.burst_of_late_end]) - 1
    of_row[of_kind(table.kind, _OF_NO_ATTEMPT)] = -1
    return of_row


def _bounds(rows: Rows, begin_row: Rows) -> NDArray[np.intp]:
    """Return the bounds of each attempt in the sorted rows. The first attempt includes the rows before it. Not for late
    ends, which are between the rows of another attempt."""
    if len(begin_row) == 0:
        return np.zeros(1, dtype=np.intp)
    return np.concatenate(([0], search(rows, begin_row[1:]), [len(rows)])).astype(np.intp)


def _last_of_each(rows: Rows, bounds: NDArray[np.intp]) -> Rows:
    """Return the last row of each attempt; -1 if it has none."""
    if len(rows) == 0:
        return np.full(len(bounds) - 1, -1, dtype=np.intp)
    return np.where(bounds[1:] > bounds[:-1], rows[bounds[1:] - 1], -1)


def _last_progress(
    table: EventTable, checkpoints: Rows, bounds: NDArray[np.intp], last: Rows, endings: Rows, of_row: Rows
) -> Rows:
    """Return the row of the last load, or of the first report of the highest step, for each attempt of a checkpoint
    log. This differs from `last` only in attempts with an end before their last checkpoint event."""
    owner = of_row[endings]
    last_progress = last.copy()
    for attempt in np.flatnonzero(np.bincount(owner[endings < last[owner]], minlength=len(last))).tolist():
        rows = checkpoints[bounds[attempt] : bounds[attempt + 1]]
        loads = rows[table.kind[rows] == Kind.LOAD]
        last_progress[attempt] = max((rows[np.argmax(table.step[rows])], *loads[-1:]))
    return last_progress


def _stray_heartbeats(table: EventTable, of_row: Rows, first_ending: Rows) -> Rows:
    """Return the rows of heartbeats after the first line that ended their attempt: a process hangs on."""
    rows = positions(table.kind == Kind.HEARTBEAT)
    rows = rows[of_row[rows] >= 0]
    ending = first_ending[of_row[rows]]
    return rows[(ending >= 0) & (table.time[rows] > table.time[ending])]


def _endings(table: EventTable, of_row: Rows) -> Rows:
    """Return the rows of all terminations and ends, without those before the first start line if no progress precedes
    it."""
    rows = rows_of(table.kind, ENDINGS)
    rows = rows[of_row[rows] >= 0]
    starts = table.kind == Kind.START
    first = int(np.argmax(starts))
    before_any = starts.any() and not of_kind(table.kind[:first], PROGRESS_KINDS).any()
    return rows[rows > first] if before_any else rows


class Strides(Struct, frozen=True, dict=True):
    """Usual distances between the recorded steps of attempts. number: step of every record; bounds: the records of
    attempt a are at bounds[a] .. bounds[a + 1] - 1."""

    number: NDArray[np.signedinteger]
    bounds: NDArray[np.intp]

    def of(self, attempt: int) -> int:
        """Return the lower median distance between the attempt's recorded steps. With one record: that of all attempts,
        or 1."""
        own = np.diff(self.number[self.bounds[attempt] : self.bounds[attempt + 1]])
        return _lower_median(own) if len(own) else self._usual

    @cached_property
    def inside(self) -> Mask:
        """Mask of n - 1 values: True where a record and the next one are of one attempt."""
        inside = np.ones(max(len(self.number) - 1, 0), dtype=bool)
        heads = self.bounds[1:-1]
        inside[heads[(heads > 0) & (heads < len(self.number))] - 1] = False
        return inside

    @cached_property
    def _usual(self) -> int:
        distances = np.diff(self.number)[self.inside]
        return _lower_median(distances) if len(distances) else 1


def _lower_median(values: NDArray[np.signedinteger]) -> int:
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])


class Beginnings(Struct, frozen=True):
    """Begin of training per attempt: columns with one value per attempt, meaningless for attempts without a step."""

    step: I64
    """Number of steps done; `NO_STEP` without any record."""
    time: I64
    """ns."""
    row: Rows
    """The event there: the last start line, a restore or load, or the first record."""
    shown: Rows
    """The line that shows the step: a restore or load, else the first record."""
    started: Mask
    """True if that row is a start line: then all time after it belongs to the first steps, whatever their mean."""


_WHOLE_SECONDS_NS = 2 * NS_PER_SECOND
_NO_BOUND = 1 << 62


def find_beginnings(table: EventTable, attempts: Attempts) -> Beginnings:
    """Return where training began in each attempt: at the last restore or load before its first record, if its step is
    below that. Otherwise at the start line that opened it, with the step that its first record implies
    (`_FirstRecords`). Otherwise at the first record."""
    count, bounds = len(attempts), attempts.step_bounds
    some = np.flatnonzero(bounds[1:] > bounds[:-1])
    first = np.full(count, len(table), dtype=np.intp)
    first[some] = attempts.steps[bounds[some]]
    step = np.full(count, NO_STEP, dtype=np.int64)
    step[some] = table.step[first[some]]
    resumed = _last_resumption(table, attempts, first)
    steps = attempts.steps
    records = _FirstRecords(table.step[steps], table.time[steps], table.step_time[steps], bounds)
    time, row = attempts.up.copy(), attempts.up_row.astype(np.intp)
    shown, started = np.where(first < len(table), first, -1), np.zeros(count, dtype=bool)
    for attempt in some.tolist():
        record, load = int(first[attempt]), int(resumed[attempt])
        number, at = int(step[attempt]), int(table.time[record])
        loaded = load >= 0 and table.step[load] < number
        if loaded:
            step[attempt], shown[attempt] = table.step[load], load
        elif attempts.started[attempt]:
            step[attempt] = records.step_before(attempt, int(attempts.up[attempt]), -int(attempts.counts_from_0))
        started[attempt] = attempts.started[attempt] and step[attempt] < number
        if not started[attempt]:
            row[attempt] = load if loaded else record
            time[attempt] = min(int(table.end[load]), at) if loaded else at
    return Beginnings(step, time, row, shown, started)


def _last_resumption(table: EventTable, attempts: Attempts, first: Rows) -> Rows:
    """Return the last restore or load of each attempt that has a step and precedes its first record; -1 without."""
    rows = positions(of_kind(table.kind, (Kind.RESTORE, Kind.LOAD)) & (table.edge != Edge.END))
    rows = rows[(table.step[rows] != NO_STEP) & (attempts.of_row[rows] >= 0)]
    rows = rows[rows < first[attempts.of_row[rows]]]
    return last_of_each(rows, attempts.of_row[rows], len(attempts))


def _counts_from_0(table: EventTable, steps: Rows) -> bool:
    if COUNTS_FROM_0 not in table.details:
        return False
    return bool((table.detail[steps] == table.details.index(COUNTS_FROM_0)).any())


class _FirstRecords:
    """First records of attempts that a start line opened, and no restore. number, time, mean (ns): of every record;
    bounds: the records of attempt a are at bounds[a] .. bounds[a + 1] - 1."""

    def __init__(self, number: NDArray[np.signedinteger], time: I64, mean: I64, bounds: NDArray[np.intp]) -> None:
        self._number, self._time, self._mean, self._bounds = number, time, mean, bounds
        self._strides = Strides(number, bounds)

    def step_before(self, attempt: int, up: int, least: int) -> int:
        """Return the step at which the attempt began. This is one stride before its first record, or one step before it
        if its first two records are nearer than a stride, or if it directly follows the previous record. At least one
        step, at most as many as fit between `up` (ns) and the record, and not below `least`."""
        start, stop = self._bounds[attempt : attempt + 2].tolist()
        number = int(self._number[start])
        is_near = stop - start > 1 and int(self._number[start + 1]) - number < self._strides.of(attempt)
        follows = start > 0 and int(self._number[start - 1]) == number - 1
        steps = 1 if is_near or follows else min(self._strides.of(attempt), self._most_steps(start, up))
        return min(max(number - steps, least), number)

    def _most_steps(self, record: int, up: int) -> int:
        """Return how many steps fit before a record, rounded up, with 2 s to spare if it shows whole seconds."""
        if self._fastest is None:
            return _NO_BOUND
        ns, steps = self._fastest
        time = int(self._time[record])
        room = time - up + (_WHOLE_SECONDS_NS if time % NS_PER_SECOND == 0 else 0)
        return max(-(-room * steps // ns), 1)

    @cached_property
    def _fastest(self) -> tuple[int, int] | None:
        """Return (ns, steps) of the least time per step, between two records of one attempt or as stated by a record.
        None without any, or if no time passes between two records."""
        inside, stated = self._strides.inside, self._mean[self._mean > 0]
        ns = np.append(np.diff(self._time)[inside], stated)
        steps = np.append(np.diff(self._number).astype(np.int64)[inside], np.ones_like(stated))
        if len(ns) == 0 or ns.min() <= 0:
            return None
        least = int(np.argmin(ns / steps))
        return int(ns[least]), int(steps[least])


def is_step_log(table: EventTable) -> bool:
    """Return True if the lineage follows steps (accounting §4). Any step start makes a step log, whatever `--as-of`."""
    return bool((table.kind == Kind.STEP).any())


def job_start(table: EventTable) -> int:
    """Return the time (ns) of the first scheduled or start line. This is the first event of any kind if a step or
    checkpoint event precedes that line, or if there is no such line (accounting §1). Heartbeats before a line that ends
    an earlier attempt belong to that attempt."""
    opening = of_kind(table.kind, (Kind.SCHEDULED, Kind.START))
    first = int(np.argmax(opening))
    if not opening.any() or of_kind(table.kind[:first], PROGRESS_KINDS).any():
        other = int(np.argmax(table.kind != Kind.HEARTBEAT))
        return int(table.time[other if table.kind[other] in ENDINGS else 0])
    return int(table.time[first])
