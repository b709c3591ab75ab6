"""What is read about hangs: lines of watchdogs, reports about ranks, and dumps of flight recorders."""

from __future__ import annotations

from collections.abc import Iterator

from goodput_cli.events.capability import CollectedInputs, InputTable
from goodput_cli.events.formats.base import DocumentReader
from goodput_cli.events.hangs import flight_recorder, positions, reports
from goodput_cli.events.hangs.dump_files import TABLE, DumpCollector, DumpReader, StackReader
from goodput_cli.events.hangs.flight_recorder import Disagreement, Membership, RankFunction
from goodput_cli.events.hangs.positions import GroupSize, Position
from goodput_cli.events.hangs.reports import RankReport, StragglerReport
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.layouts import is_dump, is_stack

HangRecord = Position | GroupSize | RankReport | Membership | Disagreement | StragglerReport | RankFunction


def _dump(batch: RawBatch) -> DocumentReader | None:
    if not is_dump(batch.source, batch.data):
        return None
    return StackReader(batch.source) if is_stack(batch.data) else DumpReader(batch.source)


def _rows(inputs: CollectedInputs) -> Iterator[HangRecord]:
    yield from (one for one in positions.positions_in(inputs.lines) if one.job)
    yield from (one for one in positions.sizes_in(inputs.lines) if one.job)
    yield from (one for one in reports.reports_in(inputs.lines) if one.job)
    yield from (one for one in reports.straggler_reports(inputs.lines) if one.job)
    yield from flight_recorder.rows_of(inputs)


HANG_RECORDS: InputTable[HangRecord] = InputTable(
    name=TABLE,
    lines=(*positions.LINES, *reports.LINES, *reports.STRAGGLER_LINES),
    document=_dump,
    collector=DumpCollector,
    rows=_rows,
)
