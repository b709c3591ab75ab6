"""Tables of accelerators as tools print them: `nvidia-smi --query-gpu`, `nvidia-smi dmon`, `dcgmi dmon`. Such a
document next to a log is recognized by its headings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from goodput_cli.events.accelerators.samples import TABLE, Device, DevicePart, Quantity
from goodput_cli.events.formats.base import NOTHING, ParsedPart
from goodput_cli.events.text.line_timestamps import (
    Timestamp,
    Zone,
    find_timestamp,
    in_latest_year,
    kernel_timestamp,
    read_or_none,
    timestamp_or_none,
)
from goodput_cli.sources.base import RawBatch
from goodput_cli.sources.layouts import ENTITY, device_heads, is_headless_row
from goodput_cli.vocabulary.when import NS_PER_SECOND

_MIB = 2.0**20
_QUANTITIES: Mapping[str, tuple[Quantity, float]] = {
    "utilization.gpu": (Quantity.BUSY, 1.0), "power.draw": (Quantity.POWER, 1.0),
    "sm": (Quantity.BUSY, 1.0), "pwr": (Quantity.POWER, 1.0), "fb": (Quantity.MEMORY_BYTES, _MIB),
    "gputl": (Quantity.BUSY, 1.0), "tenso": (Quantity.CORE, 100.0), "power": (Quantity.POWER, 1.0),
    "fbusd": (Quantity.MEMORY_BYTES, _MIB),
}  # fmt: skip
"""Columns, and the factor from their unit to ours."""
_METER, _J_PER_COUNT = "totec", 1e-3
_USED, _TOTAL = "memory.used", "memory.total"
_NAMES = ("index", "gpu", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "serial", "gpu_serial")
"""Columns that identify a device, the best first."""
_NONE = (
    "", "-", "n/a", "[n/a]", "[not supported]", "[unknown error]", "[insufficient permissions]", "[gpu requires reset]",
)  # fmt: skip
"""Values that tools print for an unsupported field; lower case."""
_BYTES = {"mib": 1 << 20, "mb": 10**6, "gib": 1 << 30, "kib": 1 << 10, "": 1 << 20}
_EPOCH = re.compile(r"1\d{9}(?:\.(\d{1,9}))?")
_NO_TIME = "no date and time: use `nvidia-smi dmon -o DT`, or pipe dcgmi dmon through `ts '%Y-%m-%dT%H:%M:%S%z'`"


_NO_HEAD = "an nvidia-smi table without a header: omit `noheader`; its samples are ignored"
_NO_NAME = "several devices without a column that names them: add `index` to --query-gpu; samples are ignored"
_MOST_NAMELESS = 1000
_FEW_GAPS, _AT_ONCE_NS = 4, NS_PER_SECOND // 20


def _is_grouped(times: list[int]) -> bool:
    """Return True if rows come in groups, as of several devices that one query reads."""
    gaps = np.sort(np.abs(np.diff(np.array(times, dtype=np.int64))))
    if len(gaps) < _FEW_GAPS:
        return bool((gaps < _AT_ONCE_NS).any())
    period = int(gaps[int(0.9 * (len(gaps) - 1))])
    return bool(np.count_nonzero(10 * gaps < period) * 4 > len(gaps))


class _ColumnPositions:
    """Positions of the columns in a row, found by the headings."""

    def __init__(self, heads: list[str]) -> None:
        self.comma, self.of_dcgm = "timestamp" in heads, heads[0] == ENTITY
        self.separator = "," if self.comma else None
        """The separator of cells; None: blanks."""
        heads = ["", *heads] if self.of_dcgm else heads  # `GPU 0` is under the heading `#Entity`
        at = {head: place for place, head in enumerate(heads)}
        self.size = len(heads)
        self.device = at[ENTITY] if self.of_dcgm else next((at[name] for name in _NAMES if name in at), None)
        self.time = [at[head] for head in ("timestamp", "date", "time") if head in at]
        self.values = [(at[head], *_QUANTITIES[head]) for head in heads if head in _QUANTITIES]
        self.meter, self.used, self.total = (at.get(head) for head in (_METER, _USED, _TOTAL))


class DeviceTable:
    """Reader of such tables: one row per device and time, with headings that may repeat (`DocumentReader`)."""

    by_line = False

    def __init__(self) -> None:
        self._columns: _ColumnPositions | None = None
        self._before: Timestamp | None = None
        """The timestamp of the last line that contains only a timestamp, as loops around a tool print it."""
        self._naive: bool | None = None
        """True for local times; None before the first row."""
        self._devices: dict[str, Device] = {}
        self._meters: dict[str, tuple[int, float]] = {}
        self._modified_ns: int | None = None
        self._nameless: list[int] = []
        """Times (ns) of the first rows without a column that names the device."""
        self._refused = ""

    def feed(self, batch: RawBatch) -> ParsedPart:
        """Return the samples of the next lines."""
        part, bad = DevicePart(host_in_name=True), []
        self._modified_ns = batch.modified_ns
        for number, line in enumerate(batch.data.decode(errors="replace").split("\n"), batch.first_line):
            text = line.strip("\ufeff \t\r")
            if heads := device_heads(text):
                self._columns = _ColumnPositions(heads)
            elif self._columns is None and is_headless_row(text):
                self._refused = _NO_HEAD
            elif text and (reason := self._row(number, text, part)):
                bad.append((number, reason))
        if _is_grouped(self._nameless):
            self._refused = _NO_NAME
        part.naive, part.refused = bool(self._naive), self._refused
        return ParsedPart((), np.empty(0, dtype=np.int64), bad, inputs=((TABLE, part),))

    def finish(self) -> ParsedPart:
        """End the document: nothing is left over."""
        return NOTHING

    def _row(self, number: int, text: str, part: DevicePart) -> str:
        """Add the samples of one line; return why it is not a row."""
        columns = self._columns
        cells = text.split(columns.separator) if columns is not None else []
        more = 0 if columns is None else len(cells) - columns.size  # a timestamp that `ts` prepends to the line
        if columns is None or more < 0 or (more and columns.comma):
            return self._reject_line(text, f"{len(cells)} columns where the headings have {len(cells) - more}")
        before, cells = (" ".join(cells[:more]), cells[more:]) if more else ("", cells)
        if columns.of_dcgm and cells[0] != "GPU" and cells[1].isdecimal():  # an instance, a link or a processor of it
            return ""
        name = "0" if columns.device is None else cells[columns.device].strip()
        if not (columns.comma or name.isdecimal()):
            return self._reject_line(text, "contains no device")
        stamp = self._timestamp([cells[place] for place in columns.time], before)
        if isinstance(stamp, str):
            return stamp
        device = self._devices.setdefault(name, Device("", name))
        self._nameless += [stamp.ns] if columns.device is None and len(self._nameless) < _MOST_NAMELESS else []
        for place, quantity, times in columns.values:
            if (value := _number(cells[place])) is not None:
                part.add(number, device, quantity, stamp.ns, value * times)
        if columns.meter is not None and (count := _number(cells[columns.meter])) is not None:
            part.add_count(number, device, self._meters.get(name), (stamp.ns, count), _J_PER_COUNT)
            self._meters[name] = stamp.ns, count
        if columns.used is not None and (used := _bytes(cells[columns.used])) is not None:
            part.add(number, device, Quantity.MEMORY_BYTES, stamp.ns, used)
            if columns.total is not None and (total := _bytes(cells[columns.total])):
                part.add(number, device, Quantity.MEMORY, stamp.ns, 100 * used / total)
        return ""

    def _reject_line(self, text: str, reason: str) -> str:
        """Handle a line that is not a row: units, a timestamp alone, or a bad line with its reason."""
        if "#" in text or f" {text}".find(" ID ") >= 0:
            return ""
        if (stamp := _leading_timestamp(text)) is not None and _is_only_timestamp(text):
            self._before = stamp
            return ""
        return reason

    def _timestamp(self, cells: list[str], before: str) -> Timestamp | str:
        """Return the timestamp of a row, or why it has none. cells: the cells with the timestamp; before: the text in
        front of the columns."""
        if len(cells) == 2:
            before = f"{cells[0][:4]}-{cells[0][4:6]}-{cells[0][6:]} {cells[1]}"
        elif cells:
            before = cells[0].strip()
        stamp = _leading_timestamp(before) if before else self._before
        if stamp is not None and stamp.zone is Zone.YEARLESS and self._modified_ns is not None:
            stamp = in_latest_year(stamp, self._modified_ns)
        if stamp is None or stamp.zone in (Zone.YEARLESS, Zone.DAYLESS):
            return _NO_TIME
        naive = stamp.zone is not Zone.EXACT
        if self._naive not in (None, naive):
            return "times with a zone and without one in one file"
        self._naive = naive
        return stamp


@lru_cache(maxsize=16)
def _leading_timestamp(text: str) -> Timestamp | None:
    """Return the timestamp at the start of a text. It is cached: neighboring lines mostly share it."""
    if (found := _EPOCH.fullmatch(text)) is not None:
        return Timestamp(int(text[:10]) * NS_PER_SECOND + int((found[1] or "").ljust(9, "0")), Zone.EXACT, False)
    return read_or_none(text) or timestamp_or_none(f"{text} ") or kernel_timestamp(text)


def _is_only_timestamp(text: str) -> bool:
    """Return True if a line contains only a timestamp."""
    found = None if _EPOCH.fullmatch(text) else find_timestamp(f"{text} ")
    return found is None or found[1][1] >= len(text)


def _number(cell: str) -> float | None:
    """Return a value with or without its unit; NaN for other text, None for an unsupported field."""
    try:
        return float(cell.strip().partition(" ")[0])
    except ValueError:
        return None if cell.strip().lower() in _NONE else math.nan


def _bytes(cell: str) -> float | None:
    value = _number(cell)
    return None if value is None else value * _BYTES.get(cell.strip().partition(" ")[2].strip().lower(), math.nan)
