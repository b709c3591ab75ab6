"""Signs of recoveries in accounting rows of schedulers and in cycles of NVRx (docs/formats.md, Signs of a recovery):
an allocation ended, its job waited again, started again, and met.

Cycles are assigned to jobs after all sources have been read (`formats/nvrx.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.formats.base import SACCT
from goodput_cli.events.signs import Cycle, CycleFile, RecoveryEvent, RecoveryPhase, plain
from goodput_cli.events.text.jobs import reading_folder
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine, event_of
from goodput_cli.vocabulary.text import file_line
from goodput_cli.vocabulary.when import NS_PER_MINUTE, NS_PER_SECOND

_STARTED_AGAIN = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED"})
"""States after which Slurm restarts the same job."""
_BEFORE = 5 * NS_PER_SECOND
"""Steps earlier than an allocation by more belong to another one."""


@dataclass
class _AllocationRow:
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
    last: dict[str, _AllocationRow] = {}
    for at, row in enumerate(rows):
        found += _signs_of(job, row, last.get(row.number), rows[at - 1] if at else None, names)
        last[row.number] = row
    if rows and rows[0].code not in odd:
        _note_hidden(rows, parts, notes)
    return found


def _rows_of(parts: Sequence[tuple[int, Sequence[LogLine]]]) -> list[_AllocationRow]:
    rows: dict[tuple[int, int], _AllocationRow] = {}
    for code, log_lines in parts:
        for log_line in log_lines:
            one = event_of(log_line)
            if one.format != SACCT:
                continue
            state = str(dict(one.detail).get("state", ""))
            row = rows.setdefault((code, log_line.line), _AllocationRow(one.name, state, code, log_line.line))
            row.by_hand |= any(sign.facts.get("by") == "hand" for sign in one.signs)
            if one.type is EventType.SCHEDULED:
                row.waiting = log_line.time
            elif one.type is EventType.START:
                row.begin = log_line.time
            elif one.type in ENDS:
                row.end = log_line.time
    return list(rows.values())


def _signs_of(
    job: str, row: _AllocationRow, same: _AllocationRow | None, before: _AllocationRow | None, names: Sequence[str]
) -> list[RecoveryEvent]:
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
    rows: Sequence[_AllocationRow], parts: Sequence[tuple[int, Sequence[LogLine]]], notes: DiagnosticCollector
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


_SAME_NS = 5 * NS_PER_MINUTE
"""Maximum time between a cycle's begin and a line about the end of the same rendezvous."""
MOST_NODES = 2_000_000
"""Maximum number of node names in all cycles."""


def cycles_of(
    files: Iterable[CycleFile],
    columns: Mapping[str, NDArray[Any]],
    jobs: Sequence[str],
    names: Sequence[str],
    notes: DiagnosticCollector,
) -> tuple[Cycle, ...]:
    """Return the cycles of all jobs, each as written last, in order of time. columns: of all events, which show the
    jobs of each folder. jobs, names: of jobs and sources, by code."""
    last: dict[tuple[str, str, int, int], CycleFile] = {}
    homes = _homes(columns, jobs, names)
    kept = 0
    for one in sorted(files, key=lambda file: (names[file.source], file.line)):
        job = _job_of(one, homes, names)
        if not job:
            _note_alone(one, bool(homes), notes)
            continue
        key = (job, one.cycle.allocation, one.cycle.attempt, one.cycle.number)
        if key not in last or last[key].generation <= one.generation:
            last[key] = one
    found: list[Cycle] = []
    for (job, *_), one in last.items():
        kept += len(one.cycle.active) + len(one.cycle.standby)
        if kept > MOST_NODES:
            message = f"cycles of NVRx beyond the {MOST_NODES:,} names of nodes that are kept"
            notes.add("signs_left_out", message, one.source, [one.line])
            break
        found.append(one.cycle.of_job(job, file_line(names[one.source], one.line)))
    return tuple(sorted(found, key=lambda cycle: (cycle.begin, cycle.job, cycle.where)))


def _homes(
    columns: Mapping[str, NDArray[Any]], jobs: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, set[str]]]:
    """Return the jobs by folder, each with the names of its logs."""
    homes: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    pairs = np.unique(np.stack((columns["source"], columns["job"])).astype(np.int64), axis=1).T.tolist()
    for source, job in pairs:
        homes[reading_folder(names[source])][jobs[job]].add(names[source])
    return {folder: dict(found) for folder, found in homes.items()}


def _job_of(one: CycleFile, homes: Mapping[str, Mapping[str, Collection[str]]], names: Sequence[str]) -> str:
    """Return the job of a cycle: the only one of its folder or of the log, otherwise the only one with its number;
    empty if unknown."""
    every = {job: some for of_folder in homes.values() for job, some in of_folder.items()}
    for jobs in (homes.get(reading_folder(names[one.source]), {}), every):
        if len(jobs) == 1:
            return next(iter(jobs))
        number = one.cycle.allocation
        named = [job for job, files in jobs.items() if number and any(number in name for name in (job, *files))]
        if len(named) == 1:
            return named[0]
    return ""


def _note_alone(one: CycleFile, others: bool, notes: DiagnosticCollector) -> None:
    log = one.log.replace("\\", "/").rpartition("/")[2]
    shown = f", such as {notes.bounded('cycles_alone', log)}" if log else ""
    why = "no job of the log has its directory or its number" if others else "contains no steps"
    message = f"an NVRx cycle_info file lists the nodes of a cycle, but {why}: pass the log of its job as well"
    notes.add("cycles_alone", f"{message}{shown}", one.source, [one.line])


def signs_of_cycles(cycles: Iterable[Cycle], signs: Iterable[RecoveryEvent]) -> list[RecoveryEvent]:
    """Return the end of each rendezvous that no line contains: the begin of the cycle after it."""
    told: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    for sign in signs:
        if sign.point is RecoveryPhase.RENDEZVOUS_DONE:
            told[sign.job, sign.facts.get("cycle")].append(sign.time)
    return [
        RecoveryEvent(
            one.job, RecoveryPhase.RENDEZVOUS_DONE, one.begin, one.where,
            facts={"cycle": one.number, **({"by": "launcher"} if one.number else {})},
        )
        for one in cycles
        if not any(abs(time - one.begin) < _SAME_NS for time in told[one.job, one.number])
    ]  # fmt: skip
