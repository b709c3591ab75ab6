"""Replicas that join a running job (accounting §3): their start lines do not begin an attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.accounting.attempts.rank_starts import Bursts
from goodput_cli.accounting.attempts.rollbacks import is_heard, rows_where
from goodput_cli.accounting.columns import codes_in, of_kind, search
from goodput_cli.accounting.order import ENDINGS
from goodput_cli.arrays import Rows
from goodput_cli.events.schema import TEXT_PROCESS, EventTable, Kind


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
