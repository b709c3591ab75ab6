"""Start lines of ranks (accounting §3): those of many ranks are one start, also of ranks without numbers; and those
of a process that goes on are none, but rollbacks and replicas that join.

Many ranks write one start line each, and together they are one burst.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.columns import codes_in, of_kind, positions, rows_of, search
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import I64, Mask, Rows
from goodput_cli.events.schema import AGENT_PROCESS, NONE, TEXT_PROCESS, Edge, EventTable, Kind

STARTUP_PHASES = (Kind.TPU_INIT, Kind.PREP, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)
"""Start-up events that have a start and an end line."""

_TOGETHER_NS = 60 * 10**9


def ranks_of_start(table: EventTable, control: Rows, recorded: Rows) -> NDArray[np.bool_]:
    """Return True for each row in `control` (starts, terminations and ends) that is a start line without a rank, of an
    unknown writer, and belongs to the burst of the start line before it.

    recorded: rows of steps and checkpoint events.
    """
    mates = np.zeros(len(control), dtype=bool)
    plain = (table.kind[control] == Kind.START) & (table.rank[control] == NONE) & (table.writer[control] == NONE)
    between = search(recorded, control)
    follows = np.zeros(len(control), dtype=bool)
    follows[1:] = plain[1:] & plain[:-1] & (between[1:] == between[:-1])
    if not follows.any():
        return mates
    step_reports = _StepReports(table, control)
    heads = np.flatnonzero(~follows & np.append(follows[1:], False))
    for head in heads.tolist():
        size = 1 + int(np.argmin(np.append(follows[head + 1 :], False)))
        before = step_reports.ranks_before(head)
        _mark_bursts(
            mates,
            table.time[control[head : head + size]],
            head,
            step_reports.ranks_after(head + size - 1) or before,
            before,
        )
    return mates


def closing_lines(table: EventTable, bursts: Bursts) -> Rows:
    """Return the end lines of start-up phases that another of several ranks without numbers began. They do not show a
    new start. Only attempts of such ranks are considered."""
    closing: list[int] = []
    stop_of = np.append(bursts.first[1:], len(table))
    for burst in np.flatnonzero(bursts.unnumbered > 1).tolist():
        start, stop = int(bursts.first[burst]), int(stop_of[burst])
        rows = start + np.flatnonzero(of_kind(table.kind[start:stop], STARTUP_PHASES))
        opened: Counter[tuple[int, int]] = Counter()
        columns = (table.kind[rows].tolist(), table.label[rows].tolist(), table.edge[rows].tolist(), rows.tolist())
        for kind, label, edge, row in zip(*columns, strict=True):
            if edge == Edge.BEGIN:
                opened[kind, label] += 1
            elif edge == Edge.END and opened[kind, label]:
                opened[kind, label] -= 1
                closing.append(row)
    return np.array(closing, dtype=np.intp)


def _mark_bursts(mates: NDArray[np.bool_], time: NDArray[np.int64], head: int, ranks: int, ranks_before: int) -> None:
    """Mark start lines with nothing in between, from the last one back, as bursts of at most `ranks` lines within 60 s.
    Bursts before the last one: at most `ranks_before` lines."""
    stop = len(time)
    while stop:
        first = max(stop - ranks, int(np.searchsorted(time[:stop], time[stop - 1] - _TOGETHER_NS)))
        mates[head + first + 1 : head + stop] = True
        stop, ranks = first, ranks_before


class _StepReports:
    """Number of ranks that reported the steps between each start line and the next."""

    def __init__(self, table: EventTable, control: Rows) -> None:
        starts = np.flatnonzero(table.kind[control] == Kind.START)
        self._steps = np.flatnonzero(table.kind == Kind.STEP)
        self._number = table.step
        self._start_of = np.cumsum(table.kind[control] == Kind.START)
        bounds = search(self._steps, control[starts])
        self._bounds = np.concatenate(([0], bounds, [len(self._steps)]))
        some = np.diff(self._bounds) > 0
        self._last_with_steps = np.maximum.accumulate(np.where(some, np.arange(len(some)), -1))

    def ranks_after(self, place: int) -> int:
        """Return the largest number of reports of one step between the start line at this position of `control` and the
        next one; 0 without a step."""
        return self._reports(int(self._start_of[place]))

    def ranks_before(self, place: int) -> int:
        """Return the same number for the last start with a step before that start line; 1 without any."""
        start = int(self._last_with_steps[int(self._start_of[place]) - 1])
        return self._reports(start) if start >= 0 else 1

    def _reports(self, start: int) -> int:
        rows = self._steps[self._bounds[start] : self._bounds[start + 1]]
        if len(rows) == 0:
            return 0
        return int(np.unique(self._number[rows], return_counts=True)[1].max())


_LATEST_JOIN_NS = 600 * 10**9
_RESTART_NS = 60 * 10**9
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Bursts:
    """Start bursts in time order."""

    first: Rows
    """Row of the first start line of each burst."""
    last: Rows
    """Row of its last start line, at which the attempt is up."""
    unnumbered: Rows
    """Number of its start lines without a rank."""
    late_ends: Rows
    """Rows of terminations that are inside a burst but belong to the attempt before it."""
    burst_of_late_end: Rows
    """Position of that burst, for each late end."""


def find_bursts(table: EventTable, recorded: Rows) -> Bursts:
    """Group the start lines of one job (rows in time order) into bursts.

    recorded: rows of steps and checkpoint events, which end a burst; a load does not for a rank that has not started
    in it. Terminations and ends do too, but for late ones: lines of the attempt before, by a rank that has not started
    again yet and has not ended there.
    """
    start, terminated, crashed = int(Kind.START), int(Kind.TERMINATED), int(Kind.CRASHED)
    control = rows_of(table.kind, (Kind.START, *ENDINGS))
    what = table.kind[control]
    rank = table.rank[control]
    broken = search(recorded, control)
    progressed = search(recorded[table.kind[recorded] != Kind.LOAD], control)
    mates = ranks_of_start(table, control, recorded)
    again = _next_start_of_rank(table, control)
    last_lines = _last_lines(table)
    agents = _Agents.of(table)
    bursts: list[_Burst] = []
    late: list[tuple[int, int]] = []
    ended: set[int] = set()
    burst = _Burst(row=-1, time=0, open_=False, only_loads=False)
    for row, breaks, progress, kind, who, writer, mate, restart, time in zip(
        control.tolist(),
        broken.tolist(),
        progressed.tolist(),
        what.tolist(),
        rank.tolist(),
        table.writer[control].tolist(),
        mates.tolist(),
        again.tolist(),
        table.time[control].tolist(),
        strict=True,
    ):
        burst.count_events(breaks, progress)
        if kind == start:
            if writer in agents.writers:
                mate = burst.takes_agent(writer, time, shares_file=writer in agents.sharing_a_file)
            elif burst.has_known_writers(writer):
                mate = burst.takes_writer(writer, row, last_lines)
            if not burst.takes(who, time, mate):
                burst = _Burst(row, time, breaks=breaks, progress=progress, follows=bool(bursts) or breaks > 0)
                burst.ended_before, ended = ended, set()
                bursts.append(burst)
            burst.add(row, who, writer, restart)
        elif kind in (terminated, crashed) and burst.has_late_end(who):
            burst.ended_before.add(who)
            late.append((row, len(bursts) - 1))
        elif kind in (terminated, crashed) and writer in agents.writers and burst.has_late_end_of_agent(writer, time):
            late.append((row, len(bursts) - 1))
        else:
            ended.add(who)
            burst.open_ = burst.only_loads = False
    return Bursts(
        np.array([one.row for one in bursts], dtype=np.intp),
        np.array([one.last for one in bursts], dtype=np.intp),
        np.array([one.unnumbered for one in bursts], dtype=np.intp),
        np.array([row for row, _ in late], dtype=np.intp),
        np.array([position for _, position in late], dtype=np.intp),
    )


@dataclass
class _Burst:
    """The burst that is being read."""

    row: int
    time: int
    open_: bool = True
    """True if further ranks may join."""
    only_loads: bool = True
    """True if only loads followed: a rank that has not started may still join."""
    breaks: int = 0
    progress: int = 0
    follows: bool = False
    """True if an attempt precedes it."""
    last: int = -1
    unnumbered: int = 0
    ranks: set[int] = field(default_factory=set)
    writers: set[int] = field(default_factory=set)
    ended_before: set[int] = field(default_factory=set)
    """Ranks that ended in the attempt before."""
    restart: int = _NEVER
    """Time (ns) at which the first of its numbered ranks starts again."""
    restart_unnumbered: int = _NEVER

    def count_events(self, breaks: int, progress: int) -> None:
        """Update the burst after some steps and checkpoint events. breaks: how many were read; progress: how many of
        them are not loads."""
        if breaks != self.breaks:
            self.breaks, self.open_ = breaks, False
        if progress != self.progress:
            self.progress, self.only_loads = progress, False

    def has_known_writers(self, writer: int) -> bool:
        """Return True if the writers of a start line and of the whole burst are known."""
        return writer != NONE and NONE not in self.writers

    def takes_writer(self, writer: int, row: int, last_lines: Rows) -> bool:
        """Return True if a start line without a rank is of a new process next to one of the burst that still runs."""
        return writer not in self.writers and any(last_lines[one] > row for one in self.writers)

    def takes_agent(self, writer: int, time: int, *, shares_file: bool) -> bool:
        """Return True if a start line of a launcher agent belongs to the rendezvous of this burst. The agent has not
        started in it, or it started soon after the first one and several agents may write into one file."""
        if writer in self.writers:
            return shares_file and time - self.time <= _TOGETHER_NS
        return time - self.time <= _LATEST_JOIN_NS

    def takes(self, rank: int, time: int, mate: bool) -> bool:
        """Return True if a start line belongs to this burst."""
        if rank in self.ranks:
            return self.open_ and rank == NONE and mate
        return self.open_ or (self.only_loads and self._takes_late(rank, time))

    def _takes_late(self, rank: int, time: int) -> bool:
        restarts = min(self.restart, self.restart_unnumbered)
        return rank != NONE and time - self.time <= _LATEST_JOIN_NS and restarts - time > _RESTART_NS

    def add(self, row: int, rank: int, writer: int, restart: int) -> None:
        """Add a start line. restart: time (ns) at which that rank starts again."""
        self.ranks.add(rank)
        self.writers.add(writer)
        self.last = row
        if rank == NONE:
            self.unnumbered += 1
            self.restart_unnumbered = restart
        else:
            self.restart = min(self.restart, restart)

    def has_late_end(self, rank: int) -> bool:
        """Return True if a termination inside this burst still belongs to the attempt before it."""
        known = self.ranks | self.ended_before
        return self.open_ and self.follows and rank != NONE and self.ranks != {NONE} and rank not in known

    def has_late_end_of_agent(self, writer: int, time: int) -> bool:
        """Return True if a termination by a launcher agent that has not started in this burst belongs to the attempt
        before it."""
        return self.open_ and self.follows and writer not in self.writers and time - self.time <= _TOGETHER_NS


class _Agents(NamedTuple):
    """Launcher agents among the writers of a table."""

    writers: frozenset[int]
    sharing_a_file: frozenset[int]
    """Agents known only by their file: several may write into it."""

    @classmethod
    def of(cls, table: EventTable) -> _Agents:
        """Return the launcher agents of a table."""
        processes = [(code, node, process) for code, (node, process) in enumerate(table.writers)]
        agents = [one for one in processes if one[2].startswith(AGENT_PROCESS)]
        of_a_file = [code for code, node, process in agents if not node and process.endswith(" ")]
        return cls(frozenset(code for code, *_ in agents), frozenset(of_a_file))


def _last_lines(table: EventTable) -> Rows:
    """Return the last row of each writer; -1 for those without any."""
    last = np.full(len(table.writers), -1, dtype=np.intp)
    if len(last):
        written = positions(table.writer != NONE)
        last[table.writer[written]] = written
    return last


def _next_start_of_rank(table: EventTable, control: Rows) -> Rows:
    """Return when (ns) the rank of each start line starts again; `_NEVER` for other rows, and if it does not."""
    again = np.full(len(control), _NEVER, dtype=np.int64)
    starts = np.flatnonzero(table.kind[control] == Kind.START)
    starts = starts[np.argsort(table.rank[control[starts]], kind="stable")]
    rank = table.rank[control[starts]]
    same = rank[1:] == rank[:-1]
    again[starts[:-1][same]] = table.time[control[starts[1:][same]]]
    return again


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
