"""Detect scheduler rows in another zone than the text of the same allocations (docs/formats.md, Which files are one
job).

`sacct` prints local time without a zone, and programs often log UTC. Zone offsets are at least half an hour from UTC,
and text begins minutes after its allocation. If one offset moves the text of every allocation into it, and no text fits
the unchanged rows, the rows are shifted by that offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from goodput_cli.events.formats.base import SACCT
from goodput_cli.events.text.collector import CollectedSource
from goodput_cli.events.text.jobs import numbers_of_file, reading_folder
from goodput_cli.events.text.line_timestamps import Zone
from goodput_cli.events.text.log_lines import ENDS, EventType, LogLine
from goodput_cli.events.timestamps import QUARTER_NS, SHIFTS
from goodput_cli.vocabulary.text import duration
from goodput_cli.vocabulary.when import NS_PER_SECOND

_SLACK = 60 * NS_PER_SECOND
"""Maximum difference between the clocks of nodes and scheduler."""
_NAMED = 3
"""Maximum number of allocations in a message."""


class _AllocationText(NamedTuple):
    """Allocation with text: begin and end in its rows (None if it runs), first and last time of its text; ns UTC."""

    begin: int
    end: int | None
    first: int
    last: int

    def has_text(self, ahead: int) -> bool:
        """Return True if the text is within the allocation when its rows are moved earlier by some quarters of an
        hour."""
        off = ahead * QUARTER_NS
        return self.begin - off - _SLACK <= self.first and (self.end is None or self.last <= self.end - off + _SLACK)

    def ahead(self) -> int | None:
        """Return by how many quarters of an hour the rows are ahead if text begins within one of them; None if no
        offset fits."""
        ahead = -((self.first - self.begin + _SLACK) // QUARTER_NS)
        return ahead if self.end is not None and ahead in SHIFTS and self.has_text(ahead) else None


class RowClock(NamedTuple):
    """Correction or warning for the times of a table."""

    ahead: int
    """Time (ns) by which its times are moved earlier; 0: unchanged."""
    message: str
    line: int


def clock_of_rows(
    rows: Sequence[LogLine], texts: Iterable[tuple[str, Sequence[LogLine]]], may_move: bool
) -> RowClock | None:
    """Return the correction or warning for a table of allocations; None if its times fit.

    rows: of the table. texts: (file name, lines) in its folder; all have times. may_move: see `clocks_of_tables`.
    """
    held = _allocations_with_text(rows, texts)
    odd = {number: one for number, one in held.items() if not one.has_text(0)}
    if not odd:
        return None
    found = {one.ahead() for one in held.values()}
    may_be = [ahead for ahead in SHIFTS if all(one.has_text(ahead) for one in held.values())]
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    listed = ", ".join(list(odd)[:_NAMED]) + more
    naive = all(one.stamp is not None and one.stamp.zone is Zone.NAIVE for one in rows)
    ahead = found.pop() if len(found) == 1 else None
    if ahead is not None and naive and may_move:
        message = (
            f"times of sacct are {_off(ahead)} the log output of the same allocations ({listed}), probably local time "
            "against UTC; they are shifted to match. `TZ=UTC sacct` prints UTC, and --timezone reads them unchanged"
        )
        return RowClock(ahead * QUARTER_NS, message, rows[0].line)
    if not may_be:
        return None
    offset = _off(may_be[0] if ahead is None else ahead) if ahead is not None or len(may_be) == 1 else "hours off"
    message = (
        f"log output of {listed} is outside the time that sacct reports for the same allocation. It fits if times of "
        f"sacct are {offset} the log's (local time against UTC): then queue times and failures here are wrong. "
        "`TZ=UTC sacct` prints UTC"
    )
    return RowClock(0, message, rows[0].line)


def _off(ahead: int) -> str:
    return f"{duration(abs(ahead) * QUARTER_NS)} {'ahead of' if ahead > 0 else 'behind'}"


def _allocations_with_text(
    rows: Sequence[LogLine], texts: Iterable[tuple[str, Sequence[LogLine]]]
) -> Mapping[str, _AllocationText]:
    """Return started allocations with text, by number. Rows of one number (a requeue) are one allocation."""
    begins: defaultdict[str, list[int]] = defaultdict(list)
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.event is not None and row.event.type is EventType.START:
            begins[row.event.name].append(row.time)
        elif row.event is not None and row.event.type in ENDS:
            ends[row.event.name].append(row.time)
    times: defaultdict[str, list[int]] = defaultdict(list)
    for name, log_lines in texts:
        own = [one.end for one in log_lines if one.stamp is not None and not one.odd]
        for number in numbers_of_file(name) & begins.keys() if own else ():
            times[number] += [min(own), max(own)]
    return {
        number: _AllocationText(
            min(begins[number]), max(ends[number]) if len(ends[number]) == len(begins[number]) else None,
            min(of_text), max(of_text),
        )
        for number, of_text in sorted(times.items())
    }  # fmt: skip


def is_table(log_lines: Sequence[LogLine]) -> bool:
    """Return True if all events are rows of a scheduler's table."""
    return bool(log_lines) and all(one.event is not None and one.event.format == SACCT for one in log_lines)


def clocks_of_tables(
    sources: Mapping[int, Sequence[LogLine]], names: Sequence[str], may_move: bool
) -> dict[int, RowClock]:  # fmt: skip
    """Return the correction or warning for each table, by source code. sources: lines with times. may_move: True if the
    zone was not specified."""
    tables = {code for code, log_lines in sources.items() if is_table(log_lines)}
    found: dict[int, RowClock] = {}
    for code in tables:
        home = reading_folder(names[code])
        texts = [
            (names[at], log_lines)
            for at, log_lines in sources.items()
            if at not in tables and reading_folder(names[at]) == home
        ]  # fmt: skip
        clock = clock_of_rows(sources[code], texts, may_move)
        if clock is not None:
            found[code] = clock
    return found


def move_rows(log_lines: Iterable[LogLine], ahead: int) -> None:
    """Move rows earlier by a time (ns). log_lines: without duplicates."""
    for one in log_lines:
        one.time, one.end = one.time - ahead, one.end - ahead


def with_evidence_moved(source: CollectedSource, ahead: int) -> CollectedSource:
    """Return a source whose evidence is moved earlier in the same way."""
    seen = [
        one if one.stamp is None else replace(one, stamp=one.stamp._replace(ns=one.stamp.ns - ahead))
        for one in source.seen
    ]
    return replace(source, seen=seen)
