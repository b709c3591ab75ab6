"""Tables of accelerator activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.accelerators.devices import (
    DEVICE_CATEGORIES,
    DEVICES,
    Devices,
    devices_line,
    devices_of,
    samples_of,
)
from goodput_cli.analysis.capability import By
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.analysis.table import TableDeclaration, table_rows
from goodput_cli.vocabulary.text import period

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodput_cli.analysis.results import AnalysisData


TITLE = "Accelerators"
_MOST_ROWS = 20


def device_sheets(analysis: AnalysisData, by: By) -> Iterator[Sheet]:
    """Yield accelerator activity by category; if devices are requested, each of them before that."""
    found = analysis.part(devices_of)
    if found is None:
        if by == "device":
            yield Sheet(TITLE, (), (), notes=(_no_device_reason(analysis),))
        return
    notes = tuple(_notes(found))
    if by == "device":
        left = len(found.devices) - _MOST_ROWS
        more = (f"{left} more devices (--format json lists all)",) if left > 0 else ()
        yield _sheet(TITLE, DEVICES, found.devices[:_MOST_ROWS], (devices_line(found),), (*more, *notes))
    yield _sheet(f"{TITLE} by category", DEVICE_CATEGORIES, found.categories, (), notes if by != "device" else ())


def _no_device_reason(analysis: AnalysisData) -> str:
    samples = [
        one
        for by_quantity in samples_of(analysis.table, analysis.job.name).values()
        for one in by_quantity.values()
        if len(one)
    ]
    if not samples:
        return "no accelerator samples found next to the log"
    first, last = min(int(one.time[0]) for one in samples), max(int(one.time[-1]) for one in samples)
    return f"accelerator samples cover {period(first, last)}, which is outside the window. Check --timezone"


def _sheet(
    title: str, table: TableDeclaration, rows: Sequence[object], summary: tuple[str, ...], notes: tuple[str, ...]
) -> Sheet:
    columns = table.people_columns()
    return Sheet(
        title=title,
        summary=summary,
        columns=columns,
        rows=table_rows(columns, len(rows), lambda: [rows]),
        notes=notes,
    )


def _notes(found: Devices) -> Iterator[str]:
    yield "device samples do not change goodput or any category"
    if found.about:
        yield "samples were averaged to save memory, so shares and the 10th percentile are approximate"
