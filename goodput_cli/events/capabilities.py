"""The inputs of all capabilities. Readers iterate over them and name none."""

from __future__ import annotations

from typing import Any

from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.capability import InputTable
from goodput_cli.events.hangs.hooks import HANG_RECORDS

INPUT_TABLES: tuple[InputTable[Any], ...] = (DEVICE_SAMPLES, HANG_RECORDS)
