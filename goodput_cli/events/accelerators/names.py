"""Names under which trackers and exporters log accelerator samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from goodput_cli.events.accelerators.samples import Device, DevicePart, Quantity, instance_name
from goodput_cli.events.values import number


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
