"""What is read about hangs: lines of watchdogs, reports about ranks, and dumps of flight recorders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_cli.events.capability import CollectedInputs, InputTable
from goodput_cli.events.hangs import positions, reports
from goodput_cli.events.hangs.positions import Position
from goodput_cli.events.hangs.reports import RankReport

if TYPE_CHECKING:
    from collections.abc import Iterable


def _rows(inputs: CollectedInputs) -> Iterable[Position | RankReport]:
    yield from (one for one in positions.positions_in(inputs.lines) if one.job)
    yield from (one for one in reports.reports_in(inputs.lines) if one.job)


HANG_RECORDS: InputTable[Position | RankReport] = InputTable(
    name="hangs", lines=(*positions.LINES, *reports.LINES), rows=_rows
)
