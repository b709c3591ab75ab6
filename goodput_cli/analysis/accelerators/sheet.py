"""Tables and metrics of accelerator activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.accelerators.devices import (
    DEVICE_CATEGORIES,
    DEVICES,
    J_PER_KWH,
    Devices,
    devices_line,
    devices_of,
    samples_of,
)
from goodput_cli.analysis.capability import By
from goodput_cli.analysis.results import AnalysisData
from goodput_cli.analysis.sheet import Family, Labels, Sheet, family_of
from goodput_cli.analysis.table import TableDeclaration, table_rows
from goodput_cli.vocabulary.text import exact, period, seconds_text

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


def device_families(analysis: AnalysisData) -> Iterator[Family]:
    """Yield the metrics of accelerators, if the log has samples of them."""
    devices = analysis.part(devices_of)
    if devices is None:
        return
    busy = None if devices.busy_percent is None else exact(devices.busy_percent / 100)
    yield family_of("goodput_accelerators_seen", "Accelerators with samples in the window.", str(devices.seen))
    yield family_of("goodput_accelerator_busy_ratio", "Busy share of accelerators in training, 0 to 1.", busy)
    idle = None if devices.idle_ns is None else seconds_text(devices.idle_ns)
    yield family_of("goodput_accelerator_idle_seconds", "Mean training time with accelerators below 20 %.", idle)
    energy: list[tuple[Labels, str]] = []
    if devices.kwh is not None and devices.lost_kwh is not None:
        parts = (("training", devices.kwh - devices.lost_kwh), ("lost", devices.lost_kwh))
        energy = [({"part": part}, exact(round(J_PER_KWH * kwh))) for part, kwh in parts]
    yield Family("goodput_energy_joules", "Energy of accelerators with samples in the window.", energy)
