"""Metrics of accelerators."""

from __future__ import annotations

from collections.abc import Iterator

from goodput_cli.analysis.accelerators.devices import J_PER_KWH, devices_of
from goodput_cli.analysis.results import AnalysisData
from goodput_cli.analysis.sheet import Family, Labels, family_of
from goodput_cli.vocabulary.text import exact, seconds_text


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
