"""Tables that tools write about accelerators: a document of `nvidia-smi` beside a log, found by its header."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date

import numpy as np

from goodput_cli.events.devices import Device, DevicePart, Quantity
from goodput_cli.events.formats.base import Parsed
from goodput_cli.sources.base import RawBatch
from goodput_cli.vocabulary.when import NS_PER_DAY, NS_PER_SECOND

_QUERY: Mapping[str, Quantity] = {"utilization.gpu": Quantity.BUSY, "power.draw": Quantity.POWER}
_USED, _TOTAL = "memory.used", "memory.total"
_NAMES = ("index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "serial", "gpu_serial")
"""Columns that tell devices apart, the best first."""
_TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?$")
_NONE = ("", "n/a", "[n/a]", "[not supported]", "[unknown error]", "[insufficient permissions]", "[gpu requires reset]")
"""What nvidia-smi prints where a device does not say it; lower case."""
_BYTES = {"mib": 1 << 20, "mb": 10**6, "gib": 1 << 30, "kib": 1 << 10, "": 1 << 20}
_EPOCH = date(1970, 1, 1).toordinal()
_LONGEST = 4096


def _heads(line: str) -> list[str]:
    """`utilization.gpu` of `utilization.gpu [%]`."""
    return [head.strip().partition(" [")[0].lower() for head in line.split(",")]


def local_ns(text: str) -> int | None:
    """A time of nvidia-smi as ns since 1970 of its own clock; None: it is none."""
    found = _TIME.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    fraction = int((found[7] or "").ljust(9, "0"))
    return days * NS_PER_DAY + (hour * 3600 + minute * 60 + second) * NS_PER_SECOND + fraction


class Monitor:
    """Reads what `nvidia-smi dmon -o DT` prints: columns of blanks, under headings that come again."""

    by_line = False
    _QUANTITIES: Mapping[str, tuple[Quantity, float]] = {
        "sm": (Quantity.BUSY, 1.0), "pwr": (Quantity.POWER, 1.0), "fb": (Quantity.MEMORY_BYTES, 2.0**20),
    }  # fmt: skip

    def __init__(self) -> None:
        self._heads: list[str] = []

    def feed(self, batch: RawBatch) -> Parsed:
        """The samples of the next lines."""
        part = DevicePart(naive=True)
        bad: list[tuple[int, str]] = []
        for number, line in enumerate(batch.data.decode(errors="replace").split("\n"), batch.first_line):
            cells = line.split()
            if not cells or cells[0].startswith("#"):
                names = [cell.lstrip("#").lower() for cell in cells if cell != "#"]
                self._heads = names if "gpu" in names else self._heads
            elif reason := self._row(number, cells, part):
                bad.append((number, reason))
        return Parsed((), np.empty(0, dtype=np.int64), bad, devices=part)

    def finish(self) -> Parsed:
        """The end of the document: nothing is left over."""
        return Parsed((), np.empty(0, dtype=np.int64))

    def _row(self, number: int, cells: list[str], part: DevicePart) -> str:
        if len(cells) < len(self._heads):
            return f"{len(cells)} columns where the header has {len(self._heads)}"
        row = dict(zip(self._heads, cells, strict=False))
        day = row.get("date", "")
        time = local_ns(f"{day[:4]}/{day[4:6]}/{day[6:]} {row.get('time', '')}")
        if time is None:
            return "no day and time: dmon writes them with -o DT"
        device = Device("", row["gpu"])
        for head, (quantity, times) in self._QUANTITIES.items():
            value = None if row.get(head, "-") == "-" else _number(row[head])
            if value is not None:
                part.add(number, device, quantity, time, value * times)
        return ""


class DeviceTable:
    """Reads what `nvidia-smi --query-gpu` prints (see `DocumentReader`)."""

    by_line = False

    def __init__(self) -> None:
        self._heads: list[str] = []

    def feed(self, batch: RawBatch) -> Parsed:
        """The samples of the next lines; a header that comes again is none."""
        part = DevicePart(naive=True)
        bad: list[tuple[int, str]] = []
        for number, line in enumerate(batch.data.decode(errors="replace").split("\n"), batch.first_line):
            text = line.strip("\ufeff \r")
            if not text:
                continue
            if not self._heads or text[:9] == "timestamp" or "timestamp," in text[:_LONGEST]:
                self._heads = _heads(text)
            elif reason := self._row(number, text, part):
                bad.append((number, reason))
        return Parsed((), np.empty(0, dtype=np.int64), bad, devices=part)

    def finish(self) -> Parsed:
        """The end of the document: nothing is left over."""
        return Parsed((), np.empty(0, dtype=np.int64))

    def _row(self, number: int, text: str, part: DevicePart) -> str:
        """Take one line; why it is none."""
        cells = text.split(",")
        if len(cells) != len(self._heads):
            return f"{len(cells)} columns where the header has {len(self._heads)}"
        row = dict(zip(self._heads, map(str.strip, cells), strict=True))
        time = local_ns(row["timestamp"])
        if time is None:
            return "no time of nvidia-smi"
        device = Device("", next((row[name] for name in _NAMES if row.get(name)), "0"))
        for head, quantity in _QUERY.items():
            value = _number(row.get(head, ""))
            if value is not None:
                part.add(number, device, quantity, time, value)
        used, total = _bytes(row.get(_USED, "")), _bytes(row.get(_TOTAL, ""))
        if used is not None:
            part.add(number, device, Quantity.MEMORY_BYTES, time, used)
            if total:
                part.add(number, device, Quantity.MEMORY, time, 100 * used / total)
        return ""


def _number(cell: str) -> float | None:
    """A value with or without its unit; NaN where it is no number, None where the device does not say it."""
    if cell.lower() in _NONE:
        return None
    try:
        return float(cell.partition(" ")[0])
    except ValueError:
        return math.nan


def _bytes(cell: str) -> float | None:
    value = _number(cell)
    return None if value is None else value * _BYTES.get(cell.partition(" ")[2].strip().lower(), math.nan)
