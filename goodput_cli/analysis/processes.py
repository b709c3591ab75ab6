"""Lines of a log that were read as one process, and processes that were read as one attempt (`goodput check`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import TableDeclaration, attribute, each
from goodput_cli.events.schema import Kind
from goodput_cli.vocabulary.text import plural

BEGAN = {
    "first": "the first line of its job",
    "start": "the log reports its start",
    "steps_fall": "steps begin again without a logged start",
    "goes_on": "training continues long after an end",
    "beside": "its lines are within the time of the attempt",
}
"""Reasons for a separate process, and for its attempt (accounting §3)."""


@dataclass(frozen=True)
class ProcessRow:
    """Lines of one source in one attempt."""

    job: str
    """Job of the attempt."""
    attempt: int
    """Attempt, from 1."""
    source: str
    """File or log."""
    first_line: int
    """First recognized line."""
    last_line: int
    """Last recognized line."""
    start_ns: int
    """Time of the first line, ns since 1970 UTC."""
    end_ns: int
    """End of the last line, ns since 1970 UTC."""
    steps: int
    """Number of step records."""
    began: str
    """A key of `BEGAN`."""


PROCESSES = TableDeclaration(
    "process",
    "the lines of one source about one attempt",
    (
        Column("job", "text", values=attribute("job"), words="job of the attempt"),
        Column("attempt", "count", values=attribute("attempt"), words="from 1", least=1),
        Column("source", "text", Audience.PROGRAMS, attribute("source"), "the file or log"),
        Column("first_line", "count", Audience.PROGRAMS, attribute("first_line"), "first recognized line", least=0),
        Column("last_line", "count", Audience.PROGRAMS, attribute("last_line"), "last recognized line", least=0),
        Column("start", "instant", values=attribute("start_ns"), words="time of the first line", spare=True),
        Column("end", "instant", Audience.PROGRAMS, attribute("end_ns"), "time of the last line"),
        Column("steps", "count", values=attribute("steps"), words="step records", least=0),
        Column(
            "evidence", "text", Audience.PEOPLE, each(lambda one: f"{one.source}:{one.first_line}-{one.last_line}")
        ),
        Column(
            "began", "text", values=attribute("began"), json={"enum": list(BEGAN)},
            words="; ".join(f"{name}: {words}" for name, words in BEGAN.items()),
        ),
    ),
)  # fmt: skip
_MOST = 40


def processes_of(timeline: Timeline) -> Iterator[ProcessRow]:
    """Yield one row per attempt and source, ordered by attempt, the source that began it first."""
    table, attempts = timeline.table.by_file(), timeline.attempts
    rows = np.flatnonzero(attempts.of_row >= 0)
    owner, source = attempts.of_row[rows], np.asarray(table.source)[rows]
    order = np.lexsort((rows, source, owner))
    rows, owner, source = rows[order], owner[order], source[order]
    heads = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(source) != 0)]) if len(rows) else rows
    found: list[ProcessRow] = []
    name = table.jobs[int(table.job[0])] if len(table) else ""
    for part in np.split(rows, heads[1:]) if len(rows) else ():
        attempt = int(attempts.of_row[part[0]])
        begins = int(attempts.begin_row[attempt]) in part
        lines = np.asarray(table.line)[part]
        found.append(
            ProcessRow(
                name,
                int(attempts.number[attempt]),
                table.sources[int(table.source[part[0]])],
                int(lines.min()),
                int(lines.max()),
                int(table.time[part].min()),
                int(table.end[part].max()),
                int(np.isin(np.asarray(table.kind)[part], (Kind.STEP, Kind.FINISHED)).sum()),
                _began(timeline, attempt) if begins else "beside",
            )
        )
    yield from sorted(found, key=lambda one: (one.attempt, one.began == "beside", one.start_ns, one.source))


def _began(timeline: Timeline, attempt: int) -> str:
    attempts = timeline.attempts
    if attempt == 0:
        return "first"
    if attempts.started[attempt]:
        return "start"
    return "goes_on" if attempts.first_ending[attempt - 1] >= 0 else "steps_fall"


def processes_sheet(processes: Sequence[ProcessRow]) -> Sheet:
    """Return the processes of a log for people: the first of many."""
    several = len({one.job for one in processes}) > 1
    columns = PROCESSES.sheet_columns(without=() if several else ("job",))
    columns = tuple(one for one in columns if one.audience & Audience.PEOPLE)
    shown = processes[:_MOST]
    more = len(processes) - len(shown)
    used = dict.fromkeys(one.began for one in shown)
    return Sheet(
        title=f"Lines by attempt: {plural(len({(one.job, one.attempt) for one in processes}), 'attempt')}",
        columns=columns,
        rows=PROCESSES.of_rows(shown).cells(columns),
        notes=(
            *(f"{name}: {BEGAN[name]}" for name in used),
            *((f"{more} more in the JSON output",) if more else ()),
        ),
    )
