"""Samples of accelerators (utilization, memory and power), and the names under which trackers and exporters log them.
They are a table next to the events, like metrics.

Samples claim no time and do not affect the ledger. This module defines the quantities and keeps the samples in
bounded memory (docs/accelerators.md).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodput_cli.arrays import F64, I64, ColumnCode, Mask, alike
from goodput_cli.diagnostics.diagnostic import DiagnosticCollector
from goodput_cli.events.inside import safe_name
from goodput_cli.events.values import number
from goodput_cli.vocabulary.when import NS_PER_SECOND

F32 = NDArray[np.float32]
TABLE = "accelerators"
"""Name of the table of samples."""


class Quantity(ColumnCode):
    """Quantity of a sample."""

    BUSY = 0  # % of time with any activity on the device
    CORE = 1  # % of the peak rate of its matrix units
    MEMORY = 2  # % of its memory in use
    MEMORY_BYTES = 3
    POWER = 4  # W
    METER = 5  # W, the mean between two readings of an energy counter
    HOST_CPU = 6  # %, of the host
    HOST_MEMORY = 7  # %, of the host


_WHOLE = 100.0
_ROUNDING = 0.5
"""Excess over 100 % that counts as rounding."""
_MOST = {Quantity.MEMORY_BYTES: 1e14, Quantity.POWER: 3000.0, Quantity.METER: 3000.0}
"""Maximum of a valid power reading: no device draws 3 kW. The maximum of the other quantities, in %, is 100."""
HOLDS = 3
"""A sample is valid until the next one, but at most for this multiple of the usual distance."""
MOST_ROWS = 2_500_000
"""Maximum number of rows (24 bytes each) of all devices; beyond it, two neighbors of each device become one."""
MOST_DEVICES = 1 << 17
_MOST_PASSES, _LITTLE_LESS = 64, 0.9
"""Maximum number of merging passes in a row. A pass that leaves more than this share of the rows is repeated with
longer samples."""
_SETTLED_AT, _SETTLED = 1.25, 0.6
"""Merging starts at this multiple of `MOST_ROWS` and ends at the second one, so that it is rare."""
_PIECE = 1 << 18
_SLOTS = 8
"""Maximum number of quantities in a key."""


class Device(NamedTuple):
    """A device as a log names it."""

    host: str
    """Untrusted text; "" if no line or file name contains it."""
    name: str
    """Its number on its host, or another name in the log. Untrusted text."""
    rank: int | None = None
    """The rank of the process that logged it; None: unknown."""
    run: str = ""
    """The run of ML Diagnostics that it was logged for; "": its file determines the job."""


_INSTANCE = "/"


def instance_name(gpu: str, instance: str) -> str:
    """Return the name of a MIG instance of a GPU."""
    return f"{gpu}{_INSTANCE}{instance}"


def is_instance(name: str) -> bool:
    """Return True if a device is a MIG instance of a GPU."""
    return _INSTANCE in name


def gpu_of(name: str) -> str:
    """Return the GPU of a device, which is its own unless it is a MIG instance."""
    return name.partition(_INSTANCE)[0]


def missing_value_reason(quantity: Quantity, value: float) -> str:
    """Return why a number is not a valid value of a quantity; "" if it is valid."""
    if 0 <= value <= _WHOLE:
        return ""
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0:
        return "is below 0"
    most = _MOST.get(quantity, _WHOLE + _ROUNDING)
    return f"is above {most if quantity in _MOST else _WHOLE:.0f}" if value > most else ""


@dataclass
class DevicePart:
    """Device samples in a part of a source."""

    naive: bool = False
    """True if its times are local, without a zone."""
    host_in_name: bool = False
    """True if the name of its file contains the host."""
    refused: str = ""
    """Why no sample of its source can be used."""
    split: set[Device] = field(default_factory=set)
    """GPUs with MIG instances: tools print 0 as the utilization of such a GPU."""
    device: list[Device] = field(default_factory=list)
    quantity: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    """ns since 1970, UTC unless `naive`."""
    value: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    """Seconds for which a value is known to be valid; NaN: until the next one."""
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Line number, and why a value of the line was left out."""

    def __len__(self) -> int:
        return len(self.time)

    def add(
        self, line: int, device: Device, quantity: Quantity, time: int, value: float, held: float = math.nan
    ) -> None:
        """Add a value; record an invalid one as bad."""
        if reason := missing_value_reason(quantity, value):
            self.bad.append((line, f"{quantity.name.lower()} {reason}"))
            return
        if quantity not in _MOST:
            value = min(value, _WHOLE)
        self.device.append(device)
        self.quantity.append(quantity)
        self.time.append(time)
        self.value.append(value)
        self.held.append(held)

    def add_count(
        self, line: int, device: Device, before: tuple[int, float] | None, now: tuple[int, float], joules: float
    ) -> None:
        """Add a reading (ns, count) of an energy counter, given the previous reading. joules: per count."""
        if before is None or now[0] <= before[0]:
            return
        if now[1] < before[1]:  # the counter wrapped or restarted
            self.bad.append((line, "an energy counter went back"))
            return
        seconds = (now[0] - before[0]) / NS_PER_SECOND
        self.add(line, device, Quantity.METER, before[0], (now[1] - before[1]) * joules / seconds, seconds)


@dataclass(frozen=True)
class DeviceSamples:
    """Samples of one quantity of one device of a job: n samples in order of time."""

    job: str
    host: str
    device: str
    rank: int | None
    quantity: Quantity
    time: I64
    """ns since 1970 UTC."""
    held: I64
    """ns for which each sample is valid; after that the device is unobserved until the next sample."""
    value: F32
    high: F32
    """The maximum of the merged samples."""
    about: bool = False
    """True if neighbors were merged to save memory."""

    def __len__(self) -> int:
        return len(self.time)


def joined_samples(parts: Iterable[DeviceSamples]) -> tuple[DeviceSamples, ...]:
    """Return the samples of several parts of a job's log, one series per device and quantity; duplicates count once."""
    found: dict[tuple[str, str, str, int], list[DeviceSamples]] = {}
    for one in parts:
        found.setdefault((one.job, one.host, one.device, one.quantity), []).append(one)
    return tuple(several[0] if len(several) == 1 else _one_series(several) for several in found.values())


def _one_series(several: Sequence[DeviceSamples]) -> DeviceSamples:
    time, first = np.unique(np.concatenate([one.time for one in several]), return_index=True)
    held, value, high = (
        np.concatenate([getattr(one, name) for one in several])[first] for name in ("held", "value", "high")
    )
    held[:-1] = np.minimum(held[:-1], np.diff(time))
    return replace(several[0], time=time, held=held, value=value, high=high, about=any(one.about for one in several))


class _DeviceColumns(NamedTuple):
    """Rows of all devices, sorted by key and time after `_sorted_rows`."""

    key: NDArray[np.int32]
    time: I64
    held: F32
    value: F32
    high: F32

    def take(self, rows: NDArray[np.intp] | Mask | slice) -> _DeviceColumns:
        return _DeviceColumns(self.key[rows], self.time[rows], self.held[rows], self.value[rows], self.high[rows])


_EMPTY = _DeviceColumns(np.zeros(0, np.int32), np.zeros(0, np.int64), *(np.zeros(0, np.float32) for _ in range(3)))


def _sorted_rows(parts: Sequence[_DeviceColumns]) -> _DeviceColumns:
    """Return all rows in order of key and time, without duplicates of key and time."""
    order = np.lexsort([np.concatenate([part[at] for part in parts]) for at in (1, 0)])
    rows = _DeviceColumns(*(np.concatenate([part[at] for part in parts])[order] for at in range(len(_EMPTY))))
    del order
    again = np.append(False, (rows.key[1:] == rows.key[:-1]) & (rows.time[1:] == rows.time[:-1]))
    return rows.take(~again) if again.any() else rows


def _durations(time: I64, held: F32) -> F64:
    """Return how long (s) each sample of a series is valid; the last one, if unknown, for the usual distance."""
    apart = np.diff(time) / NS_PER_SECOND
    single = apart[np.isnan(held[:-1])]
    usual = float(np.median(single)) if len(single) else 0.0
    until = np.append(apart, usual)
    most = np.append(apart, np.inf)
    found: F64 = np.where(np.isnan(held), np.minimum(until, HOLDS * usual), np.minimum(held, most))
    return found


def _merge_neighbors(rows: _DeviceColumns, longest: float) -> _DeviceColumns:
    """Return the rows with pairs of neighbors of each series merged. Two neighbors are merged if no time between them
    is unobserved and both together hold for at most `longest` (s), so that old samples do not become coarser than new
    ones."""
    held = rows.held.copy()
    heads = np.flatnonzero(np.append(True, rows.key[1:] != rows.key[:-1]))
    for begin, end in zip(heads.tolist(), [*heads[1:].tolist(), len(rows.key)], strict=True):
        held[begin : end - 1] = _durations(rows.time[begin:end], rows.held[begin:end])[:-1]
    place = np.arange(len(held)) - np.repeat(heads, np.diff(np.append(heads, len(held))))
    same = np.append((rows.key[1:] == rows.key[:-1]) & ~np.isnan(held[1:]), False)
    gap = np.append(np.diff(rows.time) / NS_PER_SECOND, 0) - held
    short = np.append(held[:-1] + held[1:] <= longest, False)
    first = np.flatnonzero((place % 2 == 0) & same & short & (gap <= 0.01 * held + 0.01))
    both = held[first] + held[first + 1]
    share = np.divide(held[first], both, out=np.full(len(first), 0.5, np.float32), where=both > 0)
    value, high = rows.value.copy(), rows.high.copy()
    value[first] = value[first] * share + value[first + 1] * (1 - share)
    high[first] = np.maximum(high[first], high[first + 1])
    held[first] = both
    kept = np.ones(len(held), dtype=np.bool_)
    kept[first + 1] = False
    return _DeviceColumns(rows.key, rows.time, held, value, high).take(kept)


def _groups_of_series(rows: _DeviceColumns) -> Iterator[_DeviceColumns]:
    """Yield groups of whole series, small enough that processing one takes little memory."""
    size = len(rows.key)
    bounds = np.append(np.flatnonzero(np.append(True, rows.key[1:] != rows.key[:-1])), size)
    edges = np.append(bounds[np.searchsorted(bounds, np.arange(0, size, _PIECE))], size)
    for begin, end in pairwise(np.unique(edges).tolist()):
        yield rows.take(slice(begin, end))


class DeviceCollector:
    """Collector of the samples of all sources, by their codes."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._keys: dict[tuple[int, Device], int] = {}
        self._done = _EMPTY
        self._new: list[_DeviceColumns] = []
        self._waiting = 0
        self._longest = 1.0
        """Maximum time (s) that a merged sample covers."""
        self.naive: set[int] = set()
        """Sources with local times without a zone."""
        self.by_name: set[int] = set()
        """Sources whose file names contain the host."""
        self.refused: dict[int, str] = {}
        """Sources whose samples are left out, with the reason."""
        self._split: set[tuple[int, Device]] = set()
        """GPUs with MIG instances, by source."""
        self.summed = False
        self.left_out = 0
        """Number of samples left out because there are too many devices."""

    def __bool__(self) -> bool:
        return bool(self._keys or self.refused)

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the sources with samples."""
        return tuple(dict.fromkeys(source for source, _ in self._keys))

    def add(self, source: int, part: DevicePart, notes: DiagnosticCollector) -> None:
        """Add the samples of a part of a source, and report invalid ones."""
        for line, reason in part.bad:
            notes.add("bad_sample", notes.bounded("bad_sample", reason), source, [line])
        if part.refused:
            self.refused[source] = part.refused
        self._split.update((source, device) for device in part.split)
        if not part.time or source in self.refused:
            return
        if part.naive:
            self.naive.add(source)
        if part.host_in_name:
            self.by_name.add(source)
        each = {id(device): device for device in part.device}  # few distinct objects; hashing each tuple is slow
        code_of = {at: self._code(source, device) for at, device in each.items()}
        codes = np.array([code_of[at] for at in map(id, part.device)], dtype=np.int32)
        known = codes >= 0
        self.left_out += int((~known).sum())
        key = codes * _SLOTS + np.array(part.quantity, dtype=np.int32)
        value = np.array(part.value, dtype=np.float32)
        rows = _DeviceColumns(
            key, np.array(part.time, dtype=np.int64), np.array(part.held, dtype=np.float32), value, value
        )
        self._new.append(rows.take(known))
        self._waiting += len(key)
        if len(self._done.key) + self._waiting > _SETTLED_AT * self._most:
            self._settle()

    def _code(self, source: int, device: Device) -> int:
        named = source, device
        if named not in self._keys and len(self._keys) >= MOST_DEVICES:
            return -1
        return self._keys.setdefault(named, len(self._keys))

    def _settle(self) -> None:
        self._done, self._new, self._waiting = _sorted_rows([self._done, *self._new]), [], 0
        if len(self._done.key) <= self._most:
            return
        for _ in range(_MOST_PASSES):
            before = len(self._done.key)
            if before <= _SETTLED * self._most:
                return
            rows, self._done, self.summed = self._done, _EMPTY, True
            pieces = [_merge_neighbors(one, self._longest) for one in _groups_of_series(rows)]
            del rows
            self._done = _DeviceColumns(*(np.concatenate([one[at] for one in pieces]) for at in range(len(_EMPTY))))
            del pieces
            if len(self._done.key) > _LITTLE_LESS * before:
                self._longest *= 2

    def busy_by_source(
        self, sources: Container[int], clocks: Mapping[int, Callable[[I64], I64]]
    ) -> dict[int, list[tuple[I64, F64]]]:
        """Return the utilization of the devices of each source in `sources`: times (ns) and values per device. clocks:
        as in `tables`."""
        self._settle()
        named, found = list(self._keys), defaultdict[int, list[tuple[I64, F64]]](list)
        for key, at in alike(self._done.key).items():
            source, _ = device = named[key // _SLOTS]
            is_left_out = source not in sources or source in self.refused or device in self._split
            if is_left_out or key % _SLOTS != Quantity.BUSY:
                continue
            rows = self._done.take(np.asarray(at, dtype=np.intp))
            time = clocks[source](rows.time) if source in clocks else rows.time
            found[source].append((time, rows.value.astype(np.float64)))
        return dict(found)

    def tables(
        self,
        jobs: Callable[[int, str], str | None],
        hosts: Mapping[int, str],
        clocks: Mapping[int, Callable[[I64], I64]],
        ahead: Mapping[int, int],
    ) -> tuple[DeviceSamples, ...]:
        """Return all collected samples. jobs: returns the job of a source and a run; None: unknown job. hosts: of
        sources whose lines contain none. clocks: conversion of local times of a source to UTC, for times without a
        zone. ahead: the shift (ns) of a source's samples to earlier times."""
        self._settle()
        named = list(self._keys)
        parts: dict[tuple[str, str, str, int], list[_DeviceColumns]] = {}
        ranks: dict[tuple[str, str, str], int | None] = {}
        for key, at in alike(self._done.key).items():
            source, device = named[key // _SLOTS]
            of_split = key % _SLOTS == Quantity.BUSY and (source, device) in self._split
            job = None if source in self.refused or of_split else jobs(source, device.run)
            if job is None:
                continue
            rows = self._done.take(np.asarray(at, dtype=np.intp))
            if source in clocks:
                rows = rows._replace(time=clocks[source](rows.time))
            if ahead.get(source):
                rows = rows._replace(time=rows.time - ahead[source])
            whose = job, safe_name(device.host or hosts.get(source, "")), safe_name(device.name)
            ranks[whose] = device.rank
            parts.setdefault((*whose, key % _SLOTS), []).append(rows._replace(key=np.zeros_like(rows.key)))
        found = []
        for (job, host, name, quantity), several in parts.items():
            rows = _sorted_rows(several)
            held = np.rint(_durations(rows.time, rows.held) * NS_PER_SECOND).astype(np.int64)
            found.append(
                DeviceSamples(job, host, name, ranks[job, host, name], Quantity(quantity), rows.time, held, rows.value,
                              rows.high, self.summed)
            )  # fmt: skip
        return tuple(sorted(found, key=lambda one: (one.job, one.host, len(one.device), one.device, one.quantity)))


class NamedQuantity(NamedTuple):
    """The device and quantity of a metric name."""

    device: Device
    quantity: Quantity
    times: float
    """Factor from its unit to ours."""


_WANDB = re.compile(r"(?:system\.)?(?:gpu|tpu)\.(?P<device>\d{1,4})\.(?P<what>\w+)(?:/l:(?P<host>.+))?")
_OF_WANDB = {
    "gpu": Quantity.BUSY, "dutyCycle": Quantity.BUSY, "tensorcoreUtilization": Quantity.CORE,
    "memoryAllocated": Quantity.MEMORY, "memoryUsage": Quantity.MEMORY, "powerWatts": Quantity.POWER,
    "memoryAllocatedBytes": Quantity.MEMORY_BYTES, "memoryUsageBytes": Quantity.MEMORY_BYTES,
}  # fmt: skip
_MLFLOW = re.compile(r"system/(?:(?P<host>[^/]+)/)?gpu_(?P<device>\d{1,4})_(?P<what>\w+)")
_OF_MLFLOW = {
    "utilization_percentage": (Quantity.BUSY, 1.0), "memory_usage_percentage": (Quantity.MEMORY, 1.0),
    "memory_usage_megabytes": (Quantity.MEMORY_BYTES, 1e6), "power_usage_watts": (Quantity.POWER, 1.0),
}  # fmt: skip
_OF_HOST = re.compile(r"system/(?P<host>[^/]+)/(?P<what>\w+)")
_HOSTS = {
    "cpu": Quantity.HOST_CPU, "system.cpu": Quantity.HOST_CPU, "memory_percent": Quantity.HOST_MEMORY,
    "system.memory_percent": Quantity.HOST_MEMORY, "system/cpu_utilization_percentage": Quantity.HOST_CPU,
    "system/system_memory_usage_percentage": Quantity.HOST_MEMORY,
}  # fmt: skip
DCGM: Mapping[str, tuple[Quantity, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": (Quantity.BUSY, 1.0), "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (Quantity.CORE, 100.0),
    "DCGM_FI_DEV_FB_USED_PERCENT": (Quantity.MEMORY, 100.0), "DCGM_FI_DEV_FB_USED": (Quantity.MEMORY_BYTES, 2.0**20),
    "DCGM_FI_DEV_POWER_USAGE": (Quantity.POWER, 1.0), "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (Quantity.METER, 1e-3),
}  # fmt: skip
"""Fields of NVIDIA's exporter. Energy is a running count of mJ."""
_OF_INSTANCES: Mapping[str, tuple[Quantity, float]] = {
    **{name: field for name, field in DCGM.items() if field[0] is not Quantity.BUSY},
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (Quantity.BUSY, 100.0),
}  # fmt: skip
"""Fields of MIG instances, for which `DCGM_FI_DEV_GPU_UTIL` is 0 by design."""
_OF_GPUS = (Quantity.POWER, Quantity.METER)
"""Quantities that an exporter repeats for each instance of a GPU."""


def quantity_of_metric(name: str, host: str = "", run: str = "") -> NamedQuantity | None:
    """Return the device and quantity of a system metric of Weights & Biases or MLflow; None for other metrics. host: of
    the process, if the name contains none."""
    node = _OF_HOST.fullmatch(name)
    if (of_host := _HOSTS.get(name if node is None else f"system/{node['what']}")) is not None:
        return NamedQuantity(Device(host if node is None else node["host"], "0", None, run), of_host, 1.0)
    if (found := _WANDB.fullmatch(name)) is not None and found["what"] in _OF_WANDB:
        quantity, times = _OF_WANDB[found["what"]], 1.0
    elif (found := _MLFLOW.fullmatch(name)) is not None and found["what"] in _OF_MLFLOW:
        quantity, times = _OF_MLFLOW[found["what"]]
    else:
        return None
    return NamedQuantity(Device(found["host"] or host, found["device"], None, run), quantity, times)


def take(part: DevicePart, line: int, name: str, time: int, value: Any, host: str = "", run: str = "") -> None:
    """Add the value of a tracker metric, if it belongs to a device."""
    named = quantity_of_metric(name, host, run)
    found = None if named is None or isinstance(value, bool) else number(value)
    if named is not None and found is not None and abs(found) < _NO_VALUE:
        part.add(line, named.device, named.quantity, time, float(found) * named.times)


_NO_VALUE = 1e300


def take_series(part: DevicePart, line: int, labels: Mapping[str, Any], values: Any) -> None:
    """Add a series from a response of Prometheus' query_range, if it is a DCGM field."""
    name, instance = str(labels.get("__name__")), labels.get("GPU_I_ID")
    host = next((str(labels[key]) for key in ("Hostname", "hostname", "node", "instance") if labels.get(key)), "")
    device = Device(re.sub(r":\d+$", "", host), str(labels.get("gpu", labels.get("device", "0"))))
    if instance and name in DCGM:
        part.split.add(device)
    quantity, times = (_OF_INSTANCES if instance else DCGM).get(name, (None, 1.0))
    if quantity is None or not isinstance(values, list):
        return
    if instance and quantity not in _OF_GPUS:
        device = device._replace(name=instance_name(device.name, str(instance)))
    before: tuple[int, float] | None = None
    for pair in values:
        one = _pair(pair)
        if one is None:
            part.bad.append((line, f"{quantity.name.lower()} of a series without a time or a number"))
        elif quantity is not Quantity.METER:
            part.add(line, device, quantity, one[0], one[1] * times)
        else:
            part.add_count(line, device, before, one, times)
            before = one


def _pair(pair: Any) -> tuple[int, float] | None:
    """Return ns and value of `[1768249800.5, "97"]`."""
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    time, value = number(pair[0]), number(pair[1])
    if time is None or value is None or not 0 < time < 1e10 or abs(value) > _NO_VALUE:
        return None
    return round(time * 1000) * 10**6, float(value)
