"""Steps that go back, and start lines, in a process that goes on: rollbacks and replicas that join (accounting §3)."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.rank_starts import Bursts
from goodput_cli.accounting.columns import codes_in, of_kind, search
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import TEXT_PROCESS, EventTable, Kind

_NOTHING: Rows = np.zeros(0, dtype=np.intp)
_NO_TIMES: I64 = np.zeros(0, dtype=np.int64)
_QUIET_NS = 60 * 10**9
_TIMES_USUAL = 3
_OF_ANOTHER_LIFE = (*ENDINGS, Kind.START, Kind.SCHEDULED, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)


class RollbackReason(IntEnum):
    """Explanation in the log for steps that went back at the begin of an attempt."""

    RESTART = 0
    """The log shows a new process, or the steps did not go back."""
    ROLLBACK = 1
    """The process went on."""
    UNKNOWN = 2
    """The log shows neither."""


def find_falls(table: EventTable, begin_row: Rows, started: Mask, steps: Rows, bounds: Rows) -> NDArray[np.int8]:
    """Return a `RollbackReason` for each attempt.

    begin_row: first row of each attempt. started: True if a start line opened it. steps: rows of the step records that
    count; those of attempt a are at bounds[a] .. bounds[a + 1] - 1.
    """
    falls = np.full(len(begin_row), RollbackReason.RESTART, dtype=np.int8)
    stepping = bounds[1:] > bounds[:-1]
    suspects = np.flatnonzero(~started[1:] & stepping[1:] & stepping[:-1]) + 1
    if len(suspects) == 0:
        return falls
    processes = _Processes(table)
    for attempt in suspects.tolist():
        own = steps[bounds[attempt - 1] : bounds[attempt]]
        last, first = int(own[-1]), int(steps[bounds[attempt]])
        if table.step[first] > table.step[last] or of_kind(table.kind[last:first], _OF_ANOTHER_LIFE).any():
            continue
        falls[attempt] = processes.explain(last, first)
        if falls[attempt] == RollbackReason.UNKNOWN:
            undone = int(own[int(np.searchsorted(table.step[own], table.step[first]))])
            if processes.has_bad_loss(int(table.time[undone]), int(table.time[first])):
                falls[attempt] = RollbackReason.ROLLBACK
    return falls


class _Processes:
    """Processes of a table: the rows that each one wrote, and its silent periods."""

    def __init__(self, table: EventTable) -> None:
        self._table = table
        named = [bool(process) and not process.startswith(TEXT_PROCESS) for _, process in table.writers]
        self._known = np.append(np.array(named, dtype=bool), False)
        self._rows: dict[tuple[str, int], tuple[Rows, float]] = {}

    def explain(self, last: int, first: int) -> RollbackReason:
        """Return how the log explains the fall from the step at row `last` to the one at row `first`."""
        table = self._table
        writer, source = table.writer[[last, first]], table.source[[last, first]]
        if self._known[writer[0]] and writer[0] == writer[1]:
            rows = self._rows_where("writer", int(writer[0]))
            return RollbackReason.ROLLBACK if self._is_heard(rows, last, first) else RollbackReason.RESTART
        if source[0] != source[1] or self._known[writer].any() or writer[0] != writer[1]:
            return RollbackReason.RESTART
        same = self._are_heartbeats_of_one(int(source[0]), last, first)
        if same is not None:
            return RollbackReason.ROLLBACK if same else RollbackReason.RESTART
        announced = self._announced.get(int(source[0]), _NO_TIMES)
        before, after = announced.searchsorted(table.time[[last, first]], side="right").tolist()
        is_heard = self._is_heard(self._rows_where("source", int(source[0])), last, first)
        if after > before or not is_heard:
            return RollbackReason.RESTART
        return RollbackReason.ROLLBACK if before else RollbackReason.UNKNOWN

    def has_bad_loss(self, since: int, until: int) -> bool:
        """Return True if a loss that is not finite was logged in [since, until] (ns)."""
        times = self._bad_losses
        return bool(times.searchsorted(until, side="right") > times.searchsorted(since))

    @cached_property
    def _job(self) -> str:
        return self._table.jobs[int(self._table.job[0])]

    @cached_property
    def _announced(self) -> dict[int, I64]:
        """Times (ns) at which processes announced themselves, by source, in order."""
        code_of = {source: code for code, source in enumerate(self._table.sources)}
        times: dict[int, list[int]] = {}
        for one in self._table.announced:
            if one.job == self._job and one.source in code_of:
                times.setdefault(code_of[one.source], []).append(one.time)
        return {code: np.array(sorted(of_source), dtype=np.int64) for code, of_source in times.items()}

    @cached_property
    def _bad_losses(self) -> I64:
        found = [times for job, times in self._table.bad_losses if job == self._job]
        return np.sort(np.concatenate(found)) if found else _NO_TIMES

    @cached_property
    def _beats(self) -> dict[int, Rows]:
        """Rows of the heartbeats of each source that name their process."""
        table = self._table
        rows = np.flatnonzero(table.kind == Kind.HEARTBEAT)
        rows = rows[self._known[table.writer[rows]]]
        source = table.source[rows]
        return {int(one): rows[source == one] for one in np.unique(source)}

    def _are_heartbeats_of_one(self, source: int, last: int, first: int) -> bool | None:
        """Return True if the heartbeats of a source around two rows name one process; None without heartbeats before
        and after them."""
        beats = self._beats.get(source, _NOTHING)
        before, after = int(beats.searchsorted(last)) - 1, int(beats.searchsorted(first))
        if before < 0 or after == len(beats):
            return None
        around = self._table.writer[beats[before : after + 1]]
        return not (around != around[0]).any()

    def _is_heard(self, of_process: tuple[Rows, float], last: int, first: int) -> bool:
        return is_heard(self._table, *of_process, last, first)

    def _rows_where(self, column: str, code: int) -> tuple[Rows, float]:
        """Return the rows of a writer or of a source, and the usual distance (ns) of two. The result is cached."""
        if (column, code) not in self._rows:
            self._rows[column, code] = rows_where(self._table, column, code)
        return self._rows[column, code]


def rows_where(table: EventTable, column: str, code: int) -> tuple[Rows, float]:
    """Return the rows of a writer or of a source, and the usual distance (ns) of two."""
    rows = np.flatnonzero(getattr(table, column) == code)
    return rows, float(np.median(np.diff(table.time[rows]))) if len(rows) > 1 else 0.0


def is_heard(table: EventTable, rows: Rows, usual: float, last: int, first: int) -> bool:
    """Return True if a process has no long silent period from row `last` to its first row at or after `first`.

    An interval, such as the load of a checkpoint, is not a silent period. rows, usual: of the process, from
    `rows_where`.
    """
    between = rows[int(rows.searchsorted(last)) : int(rows.searchsorted(first)) + 1]
    silent = table.time[between[1:]] - np.maximum.accumulate(table.end[between])[:-1]
    return int(silent.max(initial=0)) <= max(_TIMES_USUAL * usual, _QUIET_NS)


# --- Replicas that join a running job.


def without_replicas(table: EventTable, bursts: Bursts, steps: Rows) -> Bursts:
    """Return the start bursts at which a job began again.

    A burst is left out if another source goes on across it. That source announced a start before, its next step
    continues its numbers, it logs no start or end in between, and its gaps are at most a minute or three usual
    distances of its lines. Only logs of one program are judged, because their files are streams of processes. steps:
    rows.
    """
    if len(bursts.first) < 2 or len(steps) == 0:
        return bursts
    before, after = search(steps, bursts.first) - 1, search(steps, bursts.last)
    inside = np.flatnonzero((before >= 0) & (after < len(steps)))
    last, first = steps[before[inside]], steps[after[inside]]
    source, starts = table.source[last], table.source[bursts.first[inside]]
    across = (source == table.source[first]) & (source != starts) & (table.step[first] > table.step[last])
    program = _find_programs(table)
    across &= (program[table.writer[last]] > 0) & (
        program[table.writer[last]] == program[table.writer[bursts.first[inside]]]
    )
    streams = {code: _SourceLines.of(table, code) for code in codes_in(source[across])}
    joined = np.zeros(len(bursts.first), dtype=bool)
    for place in np.flatnonzero(across).tolist():
        joined[inside[place]] = streams[int(source[place])].is_continuation(table, int(last[place]), int(first[place]))
    if not joined.any():
        return bursts
    kept = ~joined
    position = np.cumsum(kept) - 1
    known = kept[bursts.burst_of_late_end]
    return replace(
        bursts, first=bursts.first[kept], last=bursts.last[kept], unnumbered=bursts.unnumbered[kept],
        late_ends=bursts.late_ends[known], burst_of_late_end=position[bursts.burst_of_late_end[known]],
    )  # fmt: skip


def _find_programs(table: EventTable) -> NDArray[np.intp]:
    """Return the program of each writer that is known from log output, as a number from 1; 0 for others."""
    names = [
        process.removeprefix(TEXT_PROCESS).split(" ")[0] if process.startswith(TEXT_PROCESS) else ""
        for _, process in table.writers
    ]
    numbers = {"": 0}
    return np.array([*(numbers.setdefault(name, len(numbers)) for name in names), 0], dtype=np.intp)


class _SourceLines(NamedTuple):
    """Lines of one source."""

    rows: Rows
    usual: float
    """Usual distance (ns) of two lines."""
    announced: Rows
    """Rows at which a process starts or ends."""

    @classmethod
    def of(cls, table: EventTable, source: int) -> _SourceLines:
        """Return the lines of a source."""
        rows, usual = rows_where(table, "source", source)
        return cls(rows, usual, rows[of_kind(table.kind[rows], (Kind.START, *ENDINGS))])

    def is_continuation(self, table: EventTable, last: int, first: int) -> bool:
        """Return True if one process wrote the steps at two rows: it announced itself, and no other process did in
        between."""
        before, after = search(self.announced, [last, first]).tolist()
        return before == after > 0 and is_heard(table, self.rows, self.usual, last, first)
