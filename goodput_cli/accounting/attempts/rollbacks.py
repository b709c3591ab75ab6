"""Rollbacks (accounting §3): steps that go back in a process that lives on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from goodput_cli.accounting.columns import of_kind
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import Mask, Rows
from goodput_cli.events.schema import NONE, TEXT_PROCESS, EventTable, Kind

_NOTHING: Rows = np.zeros(0, dtype=np.intp)
_QUIET_NS = 60 * 10**9
_TIMES_USUAL = 3
_OF_ANOTHER_LIFE = (*ENDINGS, Kind.START, Kind.SCHEDULED, Kind.ELASTIC_DOWN, Kind.ELASTIC_UP, Kind.ELASTIC_REINIT)


def find_rollbacks(table: EventTable, begin_row: Rows, started: Mask, steps: Rows, bounds: Rows) -> Mask:
    """Of each attempt, whether it is none: its steps went back in the process of the one before, which lived on.

    begin_row: of each attempt. started: whether a start line opened it. steps: rows of the step records that count;
    those of attempt a are at bounds[a] .. bounds[a + 1] - 1.
    """
    rollbacks = np.zeros(len(begin_row), dtype=bool)
    lives = np.array([bool(process) and not process.startswith(TEXT_PROCESS) for _, process in table.writers], bool)
    if not lives.any():
        return rollbacks
    processes = _Processes(table, lives)
    stepping = bounds[1:] > bounds[:-1]
    for attempt in (np.flatnonzero(~started[1:] & stepping[1:] & stepping[:-1]) + 1).tolist():
        last, first = int(steps[bounds[attempt] - 1]), int(steps[bounds[attempt]])
        if table.step[first] <= table.step[last] and not of_kind(table.kind[last:first], _OF_ANOTHER_LIFE).any():
            rollbacks[attempt] = processes.lives_on(last, first)
    return rollbacks


class _Processes:
    """Which process wrote which rows, and whether it was silent between. lives: of each writer of the table, whether
    its name is of one life of a process."""

    def __init__(self, table: EventTable, lives: Mask) -> None:
        self._table = table
        self._known = np.append(lives, False)
        self._rows: dict[tuple[int, int | None], tuple[Rows, float]] = {}

    @cached_property
    def _beats(self) -> dict[int, Rows]:
        """The heartbeats of each source that name their process: rows."""
        table = self._table
        rows = np.flatnonzero(table.kind == Kind.HEARTBEAT)
        rows = rows[self._known[table.writer[rows]]]
        source = table.source[rows]
        return {int(one): rows[source == one] for one in np.unique(source)}

    def lives_on(self, last: int, first: int) -> bool:
        """Whether the process that wrote the step at row `last` also wrote the one at row `first`, and was heard of
        between."""
        writer = self._table.writer[[last, first]]
        if self._known[writer[0]] and writer[0] == writer[1]:
            return self._is_heard(int(writer[0]), last, first)
        source = self._table.source[[last, first]]
        if source[0] != source[1] or (writer != NONE).any():
            return False
        beats = self._beats.get(int(source[0]), _NOTHING)
        before, behind = int(beats.searchsorted(last)) - 1, int(beats.searchsorted(first))
        if before < 0 or behind == len(beats):
            return False
        same = self._table.writer[beats[before : behind + 1]]
        if (same != same[0]).any():
            return False
        return self._is_heard(int(same[0]), int(beats[before]), first, int(source[0]))

    def _is_heard(self, writer: int, last: int, first: int, source: int | None = None) -> bool:
        """Whether a process is never silent for long from row `last` on until it is heard of at or behind row `first`.
        source: the one whose heartbeats alone name it; None: each of its lines does."""
        rows, usual = self._written_by(writer, source)
        begin, end = int(rows.searchsorted(last)), int(rows.searchsorted(first))
        longest = int(np.diff(self._table.time[rows[begin : end + 1]]).max(initial=0))
        return longest <= max(_TIMES_USUAL * usual, _QUIET_NS)

    def _written_by(self, writer: int, source: int | None) -> tuple[Rows, float]:
        """The rows of a process, and the usual distance (ns) of two: found once, however often its steps fall."""
        key = writer, source
        if key not in self._rows:
            named = self._table.writer
            beats = None if source is None else self._beats[source]
            rows = np.flatnonzero(named == writer) if beats is None else beats[named[beats] == writer]
            usual = float(np.median(np.diff(self._table.time[rows]))) if len(rows) > 1 else 0.0
            self._rows[key] = rows, usual
        return self._rows[key]
