"""Activity of a job's accelerators, by device and category of the ledger, with its tables and metrics
(docs/accelerators.md).

A sample is valid until the next one; time without a valid sample of a device is *not seen*, and is in no mean.
Nothing here changes the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from goodput_cli.accounting.build import Timeline
from goodput_cli.accounting.segments import Key
from goodput_cli.analysis.analysis_data import AnalysisData
from goodput_cli.analysis.capability import By
from goodput_cli.analysis.json_fields import Amount, Count, Json, written
from goodput_cli.analysis.sheet import Family, Labels, Sheet, family_of
from goodput_cli.analysis.table import TableDeclaration, attribute, column, columns_of, table_rows
from goodput_cli.arrays import F64, I64
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.events.accelerators.samples import DeviceSamples, Quantity, gpu_of, is_instance
from goodput_cli.events.schema import EventTable
from goodput_cli.vocabulary.categories import Category, brief_name
from goodput_cli.vocabulary.text import exact, percent, period, plural, seconds_text
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.diagnostics.diagnostic import Diagnostic


LITTLE = 5.0
"""Below it (%) a device did next to nothing."""
IDLE = 20.0
"""Below it (%) a device that is to train is idle."""
J_PER_KWH = 3.6e6
_TRAINING: Key = (Category.PRODUCTIVE, -1)
_TENTH = 0.1
_ALL_SEEN = 95.0
"""A device that was seen for so much of the window (%) was seen: energy a token is of all of it."""


@dataclass(frozen=True)
class DeviceRow:
    """One device: its fields are the columns of the table of devices."""

    host: str | None = column("text", "its host, as named in its log or file", heading="host")
    device: str = column("text", "its number on its host, or its name in the log", heading="device")
    rank: int | None = column("count", "its rank, matched by host and number; null: unknown", heading="rank of device")
    seen_percent: float | None = column(
        "percent", "share of the window, exclusions removed, that its samples cover", heading="seen"
    )
    busy_percent: float | None = column(
        "percent", "mean utilization in time that counts as training; null: not recorded", heading="busy"
    )
    tenth_percent: float | None = column(
        "percent", "10th percentile of its utilization in that time", heading="busy, p10"
    )
    little_percent: float | None = column(
        "percent", "share of that time with a utilization below 5 %", heading="below 5 %"
    )
    idle_ns: int | None = column("duration", "that time with a utilization below 20 %", heading="idle")
    memory_percent: float | None = column(
        "percent", "largest share of its memory in use in the window; null: not recorded", heading="memory, most"
    )
    kwh: float | None = column("number", "energy (kWh) in the window, as far as samples cover it; null: not recorded",
                               heading="kWh")  # fmt: skip
    lost_kwh: float | None = column("number", "part of that energy outside training that counts", heading="kWh lost")


DEVICES = TableDeclaration("device_row", "an accelerator in the window", columns_of(DeviceRow, attribute))


@dataclass(frozen=True)
class DeviceCategory:
    """All devices in the time of one category."""

    category: str = column(
        "text",
        "the category, a custom event as custom_badput_events:LABEL",
        brief=brief_name,
        heading="category",
    )
    seen_ns: int = column("duration", "device time of this category that samples cover", heading="device time")
    busy_percent: float | None = column("percent", "mean utilization; null: not recorded", heading="busy")
    tenth_percent: float | None = column("percent", "10th percentile of utilization", heading="busy, p10")
    little_percent: float | None = column(
        "percent", "share of device time with a utilization below 5 %", heading="below 5 %"
    )
    kwh: float | None = column("number", "energy (kWh); null: not recorded", heading="kWh")


DEVICE_CATEGORIES = TableDeclaration(
    "device_category", "all accelerators in a category", columns_of(DeviceCategory, attribute)
)


@written(
    "accelerators",
    "accelerator activity in the window, from logged samples; it does not change any figure of the ledger",
    keys="seen expected busy_percent idle_ns kwh lost_kwh categories devices",
)
@dataclass(frozen=True, kw_only=True)
class Devices:
    """Activity of a job's accelerators in the window."""

    seen: Count
    """devices with samples in the window"""
    expected: Amount | None
    """accelerators of the job, from an option or the log; null if unknown"""
    busy_percent: float | None
    """mean over device time that counts as training; null: not recorded"""
    idle_ns: Annotated[int | None, Json("seconds")]
    """time that counts as training in which devices were busy for less than 20 %, as a mean over all devices seen"""
    kwh: Amount | None
    """energy in the window, where devices were seen; null: not recorded"""
    lost_kwh: Amount | None
    """part of that energy outside training that counts"""
    categories: Annotated[Sequence[DeviceCategory], DEVICE_CATEGORIES]
    """by device time"""
    devices: Annotated[Sequence[DeviceRow], DEVICES]
    """the most idle first"""
    about: bool = False
    """True if samples were merged to save memory, so that shares are of means of several."""

    @property
    def whole_kwh(self) -> float | None:
        """The energy of all accelerators; None where some, or much of the window, was not seen."""
        whole = self.expected is not None and self.seen >= self.expected
        seen = all(row.kwh is not None and (row.seen_percent or 0) >= _ALL_SEEN for row in self.devices)
        return self.kwh if whole and seen else None


@dataclass
class _DeviceTotals:
    """Sums over devices, by category."""

    seen: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))
    values: defaultdict[Key, list[F64]] = field(default_factory=lambda: defaultdict(list))
    weights: defaultdict[Key, list[F64]] = field(default_factory=lambda: defaultdict(list))
    joules: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))


def samples_of(table: EventTable, job: str) -> dict[tuple[str, str], dict[Quantity, DeviceSamples]]:
    """The samples of the accelerators of a job, by host and device."""
    found: defaultdict[tuple[str, str], dict[Quantity, DeviceSamples]] = defaultdict(dict)
    for one in DEVICE_SAMPLES.of(table):
        if one.job == job and one.quantity < Quantity.HOST_CPU:
            found[one.host, one.device][one.quantity] = one
    return found


def devices_of(analysis: AnalysisData) -> Devices | None:
    """Return the activity of accelerators in the window; None without samples."""
    if not DEVICE_SAMPLES.of(analysis.table):
        return None
    ranks = _ranks(analysis)
    sums, rows = _DeviceTotals(), []
    samples = samples_of(analysis.table, analysis.job.name)
    for (host, device), by_quantity in samples.items():
        row = _row(analysis, sums, by_quantity, host, device, ranks)
        if row is not None:
            rows.append(row)
    if not rows:
        return None
    rows.sort(key=lambda row: (-(row.idle_ns or 0), 101 if row.busy_percent is None else row.busy_percent))
    expected, seen = _expected(analysis), _count(rows)
    fits = expected is None or len(_gpus(rows)) <= expected
    train = [row.idle_ns for row in rows if row.idle_ns is not None and fits]
    joules = sum(joule for key, joule in sums.joules.items() if key[0] != Category.EXCLUDED)
    return Devices(
        seen=seen,
        expected=expected,
        busy_percent=_mean(sums, _TRAINING),
        idle_ns=round(sum(train) / seen) if train else None,
        kwh=joules / J_PER_KWH if sums.joules else None,
        lost_kwh=(joules - sums.joules[_TRAINING]) / J_PER_KWH if sums.joules else None,
        categories=tuple(_categories(analysis.timeline, sums)),
        devices=tuple(rows),
        about=any(one.about for by_quantity in samples.values() for one in by_quantity.values()),
    )


def _gpus(rows: Sequence[DeviceRow]) -> set[tuple[str | None, str]]:
    """Return the GPUs of devices; some devices may be MIG instances of one."""
    return {(row.host, gpu_of(row.device)) for row in rows}


def _count(rows: Sequence[DeviceRow]) -> int:
    """Return how many devices there are: a GPU with instances only has their power."""
    split = {(row.host, gpu_of(row.device)) for row in rows if is_instance(row.device)}
    return sum((row.host, row.device) not in split for row in rows)


def more_than_expected(analysis: AnalysisData) -> str:
    """Return what is wrong if samples are of more devices than the job has; "" if they are not."""
    expected, window = _expected(analysis), analysis.window
    gpus = {
        (host, gpu_of(device))
        for (host, device), by_quantity in samples_of(analysis.table, analysis.job.name).items()
        if any(_within(one, window.start_ns, window.end_ns).held.any() for one in by_quantity.values())
    }
    if expected is None or len(gpus) <= expected:
        return ""
    return f"samples cover {len(gpus)} accelerators but the job has {expected:g}: idle devices are not reported"


def busy_between(analysis: AnalysisData, start: I64, end: I64) -> F64 | None:
    """Return the mean (%) utilization of devices from each start (ns) to its end, NaN without samples; None if the log
    has none."""
    amount, seen = np.zeros(len(start)), np.zeros(len(start))
    for by_quantity in samples_of(analysis.table, analysis.job.name).values():
        if (one := by_quantity.get(Quantity.BUSY)) is not None:
            for total, each in ((amount, one.held * one.value.astype(np.float64)), (seen, one.held)):
                total += _totals_at(one, each, end) - _totals_at(one, each, start)
    if not seen.any():
        return None
    share: F64 = np.divide(amount, seen, out=np.full(len(seen), np.nan), where=seen > 0)
    return share


class UsageBetweenTimes(NamedTuple):
    """Usage and idle time of all accelerators of a job from each time to the next; for training, only training that
    counts."""

    joules: F64
    trained: F64
    """J of training."""
    powered: F64
    """Device time (ns) with samples of power."""
    idle: F64
    """Device time (ns) of training in which they were busy for less than 20 %."""
    watched: F64
    """Device time (ns) of training with samples of utilization."""


def used_between(timeline: Timeline, job: str, edges: I64) -> UsageBetweenTimes:
    """Return the usage and idle time of a job's accelerators from each edge (ns) to the next, without exclusions."""
    joules, trained, powered, idle, watched = found = np.zeros((5, len(edges) - 1))
    for by_quantity in samples_of(timeline.table, job).values():
        within = {name: _within(one, int(edges[0]), int(edges[-1])) for name, one in by_quantity.items()}
        power, busy = power_of(within), within.get(Quantity.BUSY)
        if power is not None:
            amounts = _amounts(timeline, power)
            counted, training = _counted(amounts), amounts.get(_TRAINING, 0)
            watts = power.value.astype(np.float64) / NS_PER_SECOND
            joules += np.diff(_totals_at(power, watts * counted, edges))
            trained += np.diff(_totals_at(power, watts * training, edges))
            powered += np.diff(_totals_at(power, counted, edges))
        if busy is not None and (amount := _amounts(timeline, busy).get(_TRAINING)) is not None:
            idle += np.diff(_totals_at(busy, amount * (busy.value < IDLE), edges))
            watched += np.diff(_totals_at(busy, amount, edges))
    return UsageBetweenTimes(*found)


def _totals_at(one: DeviceSamples, amount: Any, time: I64) -> F64:
    """Return the amounts of samples up to each time; each grows while its sample is valid."""
    each = np.asarray(amount, dtype=np.float64)
    upto = np.repeat(np.cumsum(each), 2)
    upto[::2] -= each
    found: F64 = np.interp(time, np.column_stack((one.time, one.time + one.held)).ravel(), upto)
    return found


def _counted(amounts: dict[Key, I64]) -> I64:
    """Time without exclusions."""
    counted: I64 = sum(ns for key, ns in amounts.items() if key[0] != Category.EXCLUDED)  # type: ignore[assignment]
    return counted


def power_of(by_quantity: Mapping[Quantity, DeviceSamples]) -> DeviceSamples | None:
    """Return the best source for the energy of a device; None without one."""
    return next((by_quantity[one] for one in (Quantity.METER, Quantity.POWER) if one in by_quantity), None)


def _row(
    analysis: AnalysisData, sums: _DeviceTotals, by_quantity: dict[Quantity, DeviceSamples], host: str, device: str,
    ranks: dict[tuple[str, str], int],
) -> DeviceRow | None:  # fmt: skip
    window = analysis.window
    amounts = {
        quantity: _amounts(analysis.timeline, _within(one, window.start_ns, window.end_ns))
        for quantity, one in by_quantity.items()
    }
    counted = {quantity: float(_counted(found).sum()) for quantity, found in amounts.items()}
    if not any(counted.values()):
        return None
    best = max(counted, key=lambda quantity: (quantity == Quantity.BUSY, counted[quantity]))
    for key, ns in amounts[best].items():
        sums.seen[key] += float(ns.sum())
    busy = tenth = little = idle = None
    if Quantity.BUSY in amounts:
        value = by_quantity[Quantity.BUSY].value.astype(np.float64)
        for key, ns in amounts[Quantity.BUSY].items():
            some = ns > 0
            sums.values[key].append(value[some])
            sums.weights[key].append(ns[some].astype(np.float64))
        training = amounts[Quantity.BUSY].get(_TRAINING)
        if training is not None and training.any():
            busy, tenth, little = _spread(value, training)
            idle = int(training[value < IDLE].sum())
    kwh = lost = None
    power = power_of(by_quantity)
    if power is not None:
        watts = power.value.astype(np.float64)
        joules = {key: float((watts * ns).sum()) / 1e9 for key, ns in amounts[power.quantity].items()}
        for key, joule in joules.items():
            sums.joules[key] += joule
        kwh = sum(joule for key, joule in joules.items() if key[0] != Category.EXCLUDED) / J_PER_KWH
        lost = kwh - joules.get(_TRAINING, 0.0) / J_PER_KWH
    first = next(iter(by_quantity.values()))
    counted_ns = analysis.window.counted_ns
    return DeviceRow(
        host or None, device, ranks.get((host, device), first.rank),
        min(100 * counted[best] / counted_ns, 100.0) if counted_ns else None,
        busy, tenth, little, idle, _most(by_quantity.get(Quantity.MEMORY), amounts.get(Quantity.MEMORY)), kwh, lost,
    )  # fmt: skip


def _within(one: DeviceSamples, start: int, end: int) -> DeviceSamples:
    """Return the samples that are valid in a window (ns) only."""
    time = np.clip(one.time, start, end)
    return replace(one, time=time, held=np.clip(one.time + one.held, start, end) - time)


def _amounts(timeline: Timeline, one: DeviceSamples) -> dict[Key, I64]:
    """Return the time (ns) in which each sample is valid, by category of the ledger."""
    return timeline.ledger.between(one.time, one.time + one.held)


def _spread(value: F64, weight: I64 | F64) -> tuple[float, float, float]:
    """The mean, the value of the lowest tenth, and the share (%) that did next to nothing, by time."""
    order = np.argsort(value, kind="stable")
    upto = np.cumsum(weight[order].astype(np.float64))
    tenth = value[order][int(np.searchsorted(upto, _TENTH * upto[-1]))]
    little = 100 * float(weight[value < LITTLE].sum()) / float(upto[-1])
    return float((value * weight).sum() / upto[-1]), float(tenth), little


def _most(memory: DeviceSamples | None, amounts: dict[Key, I64] | None) -> float | None:
    if memory is None or amounts is None:
        return None
    inside = sum(amounts.values(), np.zeros(len(memory), dtype=np.int64)) > 0
    return float(memory.high[inside].max()) if inside.any() else None


def _mean(sums: _DeviceTotals, key: Key) -> float | None:
    weights = sums.weights.get(key, [])
    total = sum(float(one.sum()) for one in weights)
    parts = zip(sums.values.get(key, []), weights, strict=True)
    return sum(float((value * weight).sum()) for value, weight in parts) / total if total else None


def _categories(timeline: Timeline, sums: _DeviceTotals) -> Iterator[DeviceCategory]:
    """Each category in which a device was seen, that with most device time first."""
    for key in sorted((key for key, ns in sums.seen.items() if ns > 0), key=lambda key: -sums.seen[key]):
        values = [one for one in sums.values.get(key, []) if len(one)]
        found: tuple[float | None, float | None, float | None] = (None, None, None)
        if values:
            found = _spread(np.concatenate(values), np.concatenate([one for one in sums.weights[key] if len(one)]))
        label = f":{timeline.table.labels[key[1]]}" if key[1] >= 0 else ""
        kwh = sums.joules[key] / J_PER_KWH if key in sums.joules else None
        yield DeviceCategory(f"{key[0].id}{label}", round(sums.seen[key]), *found, kwh)


def _ranks(analysis: AnalysisData) -> dict[tuple[str, str], int]:
    """The rank of each device whose host has as many ranks as numbered devices: in order of both."""
    of_host: defaultdict[str, set[int]] = defaultdict(set)
    for one in analysis.table.inside:
        if one.job == analysis.job.name and one.statistic == "rank" and one.host:
            of_host[one.host].add(one.rank)
    devices: defaultdict[str, set[str]] = defaultdict(set)
    for host, device in samples_of(analysis.table, analysis.job.name) if of_host else ():
        devices[host].add(device)
    found: dict[tuple[str, str], int] = {}
    for host, ranks in of_host.items():
        names = devices.get(host, set())
        if len(names) == len(ranks) and all(name.isdecimal() for name in names):
            found |= {(host, name): rank for name, rank in zip(sorted(names, key=int), sorted(ranks), strict=True)}
    return found


def _expected(analysis: AnalysisData) -> float | None:
    """Return the number of accelerators of the job, from an option or the log."""
    if analysis.price is not None:
        return float(analysis.price.accelerators)
    from goodput_cli.events.schema import ACCELERATORS

    for name in ACCELERATORS:
        values = [one.value for one in analysis.table.metrics if one.job == analysis.job.name and one.name == name]
        if values:
            return float(np.concatenate(values)[-1])
    return None


def energy_text(kwh: float) -> str:
    """`412 kWh`, `3.21 kWh`, `85 Wh`, `1.2 MWh`."""
    for unit, size in (("MWh", 1e3), ("kWh", 1.0)):
        if kwh >= size:
            found = kwh / size
            return f"{found:.0f} {unit}" if found >= 100 else f"{found:.3g} {unit}"
    return f"{1000 * kwh:.3g} Wh"


def seen_text(devices: Devices) -> str:
    """Return `samples of 64 of 64`, or `samples of 64` if the total is unknown."""
    whole = "" if devices.expected is None or devices.expected < devices.seen else f" of {devices.expected:.6g}"
    return f"samples of {devices.seen}{whole}"


def devices_line(devices: Devices) -> str:
    """Return a sentence about the activity of accelerators."""
    energy = ""
    if devices.kwh is not None:
        share = 100 * (devices.lost_kwh or 0.0) / devices.kwh if devices.kwh else 0.0
        energy = f"{energy_text(devices.kwh)}, {percent(share, 0)} of it lost"
    if devices.busy_percent is None:
        busy = "accelerator utilization during training is not recorded"
    else:
        busy = f"accelerators busy {percent(devices.busy_percent, 0)} of the time that counts as training"
    return f"{busy} ({seen_text(devices)})" + (f"; {energy}" if energy else "")


_DOUBTS = ("device_clock", "unusable_samples", "more_devices")


def devices_lines(devices: Devices | None, diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Return what accelerators did, and why samples of them may not fit the job, in sentences."""
    if devices is not None:
        yield devices_line(devices)
    yield from dict.fromkeys(one.message for one in diagnostics if one.code in _DOUBTS)


def name_of(host: str | None, device: str) -> str:
    """Return `accelerator 3 on node-b`."""
    name = f"accelerator {device}"
    return f"{name} on {host}" if host else name


def short_device_list(rows: Sequence[DeviceRow], most: int = 3) -> str:
    """The first of some devices, and how many more there are."""
    named = ", ".join(name_of(row.host, row.device) for row in rows[:most])
    more = len(rows) - most
    return f"{named} and {plural(more, 'more device')}" if more > 0 else named


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
