"""Find signs of recoveries in scheduler accounting rows: an allocation ended, its job waited again, and started again
(docs/formats.md, Signs of a recovery)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import SACCT
from goodput_cli.events.signs import RecoveryEvent, RecoveryPhase, plain
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, event_of
from goodput_cli.vocabulary.text import file_line
from goodput_cli.vocabulary.when import NS_PER_SECOND

_STARTED_AGAIN = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED"})
"""States after which Slurm restarts the same job."""
_BEFORE = 5 * NS_PER_SECOND
"""Steps earlier than an allocation by more belong to another one."""


@dataclass
class _Row:
    """Row of one allocation; ns UTC."""

    number: str
    state: str
    code: int
    """Code of its source."""
    line: int
    waiting: int | None = None
    """Time when it was eligible to start, otherwise when it was submitted."""
    begin: int | None = None
    end: int | None = None
    by_hand: bool = False

    @property
    def order(self) -> tuple[int, int]:
        """Return the sort key: start time; a waiting row is last."""
        begin = self.begin if self.begin is not None else self.waiting
        return (1 << 62) if begin is None else begin, self.line


def signs_of_allocations(
    job: str, parts: Sequence[tuple[int, Sequence[LogLine]]], names: Sequence[str], notes: DiagnosticCollector,
    odd: Container[int] = (),
) -> list[RecoveryEvent]:  # fmt: skip
    """Return the signs in the rows of one job.

    parts: its log lines with times, each with the code of its source. names: of the sources. odd: sources whose rows
    are known to be shifted against the text (`allocation_clock`), which a requeue does not explain.
    """
    rows = sorted(_rows_of(parts), key=lambda row: row.order)
    found: list[RecoveryEvent] = []
    last: dict[str, _Row] = {}
    for at, row in enumerate(rows):
        found += _signs_of(job, row, last.get(row.number), rows[at - 1] if at else None, names)
        last[row.number] = row
    if rows and rows[0].code not in odd:
        _note_hidden(rows, parts, notes)
    return found


def _rows_of(parts: Sequence[tuple[int, Sequence[LogLine]]]) -> list[_Row]:
    rows: dict[tuple[int, int], _Row] = {}
    for code, log_lines in parts:
        for log_line in log_lines:
            one = event_of(log_line)
            if one.format != SACCT:
                continue
            state = str(dict(one.detail).get("state", ""))
            row = rows.setdefault((code, log_line.line), _Row(one.name, state, code, log_line.line))
            row.by_hand |= any(sign.facts.get("by") == "hand" for sign in one.signs)
            if one.type is EventType.SCHEDULED:
                row.waiting = log_line.time
            elif one.type is EventType.START:
                row.begin = log_line.time
            elif one.type in ENDS:
                row.end = log_line.time
    return list(rows.values())


def _signs_of(job: str, row: _Row, same: _Row | None, before: _Row | None, names: Sequence[str]) -> list[RecoveryEvent]:
    """Return the signs of a row. same: previous row of the same allocation; before: previous row of any."""
    facts: dict[str, str | int] = {"allocation": plain(row.number)}
    again = {**facts, "by": "scheduler"} if same is not None and same.state in _STARTED_AGAIN else facts
    ended = {**facts, "by": "hand"} if row.by_hand else facts
    behind = before is not None and before.end is not None and (row.begin is None or before.end <= row.begin)
    told: list[tuple[RecoveryPhase, int | None, Mapping[str, str | int]]] = [
        (RecoveryPhase.REQUEUED, row.waiting if same is not None or behind else None, again),
        (RecoveryPhase.ALLOCATED, row.begin, again),
        (RecoveryPhase.TERMINATED, row.end, ended),
    ]
    where = file_line(names[row.code], row.line)
    return [RecoveryEvent(job, point, ns, where, facts=own) for point, ns, own in told if ns is not None]


def _note_hidden(
    rows: Sequence[_Row], parts: Sequence[tuple[int, Sequence[LogLine]]], notes: DiagnosticCollector
) -> None:
    """Report steps before the first allocation in the rows: an earlier allocation had the same number."""
    begin = rows[0].begin
    numbers = {row.number for row in rows}
    if begin is None or len(numbers) < len(rows):
        return
    steps = [
        log_line.end for _, log_lines in parts for log_line in log_lines if event_of(log_line).type is EventType.STEP
    ]
    if steps and min(steps) < begin - _BEFORE:
        message = (
            f"steps were trained before {notes.bounded('requeues_hidden', rows[0].number)} was allocated: its first "
            "allocations and requeues are missing; `sacct -D` prints them"
        )
        notes.add("requeues_hidden", message, rows[0].code, [rows[0].line])
