"""What accelerators read: tables of their tools next to a log. Other formats add samples to the same collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_cli.events.accelerators.samples import TABLE, DeviceCollector, DeviceSamples
from goodput_cli.events.capability import CollectedInputs, InputTable
from goodput_cli.sources.layouts import is_device_table

if TYPE_CHECKING:
    from goodput_cli.events.formats.base import DocumentReader
    from goodput_cli.sources.base import RawBatch


def _table(batch: RawBatch) -> DocumentReader | None:
    if not is_device_table(batch.data):
        return None
    from goodput_cli.events.accelerators.tables import DeviceTable

    return DeviceTable()


def _rows(inputs: CollectedInputs) -> tuple[DeviceSamples, ...]:
    from goodput_cli.events.accelerators.jobs import device_tables

    return device_tables(inputs)


DEVICE_SAMPLES: InputTable[DeviceSamples] = InputTable(
    name=TABLE, document=_table, collector=DeviceCollector, rows=_rows
)
