"""Insights from accelerator samples: training with idle devices, and the device to check when a step hangs
(docs/accelerators.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from goodput_cli.analysis.accelerators.devices import IDLE, devices_of, name_of, samples_of, short_device_list
from goodput_cli.analysis.insights.kinds import Candidate
from goodput_cli.events.accelerators.samples import DeviceSamples, Quantity
from goodput_cli.vocabulary.text import duration, percent, plural
from goodput_cli.vocabulary.when import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData


_CLOCKS_NS = 10 * NS_PER_SECOND
"""Maximum difference of the clocks of hosts and log: this much of both ends of a hang is ignored."""
_LEAST_NS = 30 * NS_PER_SECOND
"""Minimum time without activity for a device to be the cause of a hang."""
_STOOD, _SPUN = 5.0, 90.0
"""Maximum for the idle device and minimum for the others (%), in every sample of a hang: a device that waits in a
collective is busy."""
_LEAST_SEEN = 0.5
"""Minimum share of a hang that samples of a device must cover; otherwise its activity is unknown."""
_LEAST_OTHERS = 3
_ONE_DEVICE = 0.5
"""A device is idle if it was so for at least half of its training; it is named with other idle ones."""
_BELOW = f"(less than {IDLE:g} % busy)"
_CLEARLY_MORE = 1.5
"""Multiple of the mean of all devices: a device that was idle for longer is named."""


def find_idle_devices(analysis: AnalysisData, explained: int) -> Iterator[Candidate]:
    """Report training with idle devices. explained: time (ns) of it that other insights report."""
    found = devices_of(analysis)
    if found is None or not found.idle_ns:
        return
    ns = max(found.idle_ns - explained, 0)
    rows = [row for row in found.devices if row.idle_ns]
    whole = analysis.goodput.ns
    always = [row for row in rows if (row.idle_ns or 0) >= _ONE_DEVICE * whole]
    window = analysis.window
    if always:
        least = min(row.idle_ns or 0 for row in always)
        were = "was" if len(always) == 1 else "were"
        text = f"{short_device_list(always)} {were} idle {_BELOW} for {duration(least)} of training or more"
        text += f"; {found.seen} devices seen"
    else:
        share = 100 * found.idle_ns / whole if whole else 0.0
        were = "was" if found.seen == 1 else "were"
        text = f"{plural(found.seen, 'device')} {were} idle {_BELOW} for {percent(share)} of training"
        if found.seen == 1:
            text += f", {short_device_list(rows[:1])}"
        elif (rows[0].idle_ns or 0) > _CLEARLY_MORE * sum(row.idle_ns or 0 for row in rows) / found.seen:
            text += f", mainly {short_device_list(rows[:1])}"  # If all pause together, the cause is not a device.
    yield Candidate(
        "idle_accelerators", ns, f"{text}, counted as goodput", window.start_ns, window.end_ns,
        count=max(len(always), 1), options=("--by", "device"), in_goodput_ns=ns,
    )  # fmt: skip


class _DeviceActivity(NamedTuple):
    """Activity of a device in a hang."""

    host: str
    device: str
    least: float
    most: float
    mean: float


def idle_device_in_hang(analysis: AnalysisData, began: int, end: int, usual: int) -> str:
    """Return the one device that was idle in a hang [began, end) (ns) while all others were busy; "" if that is not
    clear. usual: a usual step, during which all may have worked."""
    start, end = began + usual + _CLOCKS_NS, end - _CLOCKS_NS
    if end - start < _LEAST_NS:
        return ""
    every: list[_DeviceActivity] = []
    for (host, device), samples in samples_of(analysis.table, analysis.job.name).items():
        busy = samples.get(Quantity.BUSY)
        if busy is None or not _worked(busy, began):
            continue
        one = _in_hang(busy, start, end)
        if one is None:
            return ""  # The activity of this device is unknown.
        every.append(_DeviceActivity(host, device, *one))
    stood = [one for one in every if one.most <= _STOOD]
    others = [one for one in every if one.least >= _SPUN]
    hosts = {one.host for one in stood}
    alone = len(stood) == 1
    of_host = len(hosts) == 1 and "" not in hosts and not any(one.host in hosts for one in others)
    if not stood or not (alone or of_host) or len(others) < _LEAST_OTHERS or len(stood) + len(others) < len(every):
        return ""
    who = name_of(stood[0].host, stood[0].device) if alone else f"all {len(stood)} accelerators of {stood[0].host}"
    least = sum(one.mean for one in stood) / len(stood)
    most = sum(one.mean for one in others) / len(others)
    was = "was" if alone else "were"
    return (
        f"{who} {was} at {least:.0f} % while {len(others)} others were at {most:.0f} %: a likely cause, check it first"
    )


def _worked(busy: DeviceSamples, began: int) -> bool:
    """Return True if a device worked before a hang began. Nothing is expected of a device without samples or with
    little activity."""
    before = busy.time + busy.held <= began - _CLOCKS_NS
    held = busy.held[before].astype(np.float64)
    return bool(held.sum()) and float((busy.value[before] * held).sum() / held.sum()) >= IDLE


def _in_hang(busy: DeviceSamples, start: int, end: int) -> tuple[float, float, float] | None:
    """Return the minimum, maximum and mean of a device's samples in a hang; None with few samples."""
    inside = (busy.time >= start) & (busy.time < end)
    if not inside.any():
        return None
    held = np.minimum(busy.time[inside] + busy.held[inside], end) - busy.time[inside]
    if float(held.sum()) < _LEAST_SEEN * (end - start):
        return None
    values = busy.value[inside].astype(np.float64)
    return float(values.min()), float(values.max()), float(values.mean())
