"""Generated jobs whose devices are known second by second: a recorder's log, and a file of nvidia-smi a host."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.support.readers import T0


@dataclass
class DeviceJob:
    """A job of steps of 1 s that may hang once, and what its devices did."""

    seed: int = 0
    hosts: int = 4
    per_host: int = 4
    steps: int = 600
    hung_at: int | None = None
    """The step that hangs."""
    hung_seconds: int = 240
    stood: frozenset[tuple[int, int]] = frozenset()
    """(host, device) that are idle in the hang, while others spin."""
    idle: frozenset[tuple[int, int]] = frozenset()
    """Devices that never do anything."""
    throttled: frozenset[tuple[int, int]] = frozenset()
    """Devices that work at half their power."""
    spins: bool = True
    """True if waiting devices spin; otherwise they are at 30 to 70 %."""
    missing: float = 0.05
    """Share of samples that are missing."""
    apart: float = 5.0
    """Seconds by which clocks of hosts are off at most."""
    every: float = 5.0
    watts: float = 400.0
    joules: float = field(default=0.0, init=False)
    """Energy of all devices, from the first step to the last."""

    def write(self, folder: Path) -> Path:
        """Write the log and the files next to it; return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        rng, self.joules = random.Random(self.seed), 0.0
        lines = [{"job_name": "j", "job_start_time": T0}]
        at = 0.0
        hang = (-1.0, -1.0)
        for step in range(self.steps):
            lines.append({"job_name": "j", "step_count": step, "step_start_time": T0 + at})
            if step == self.hung_at:
                hang = (at, at + self.hung_seconds)
                at += self.hung_seconds
            at += 1
        lines.append({"job_name": "j", "job_end_time": T0 + at})
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for host in range(self.hosts):
            self._host(folder, host, at, hang, rng)
        return folder

    def _host(self, folder: Path, host: int, length: float, hang: tuple[float, float], rng: random.Random) -> None:
        off = rng.uniform(-self.apart, self.apart) / 2
        rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]"]
        number = int(length / self.every) + 1
        for device in range(self.per_host):
            self.joules += self._watts(host, device) * length
        for at in range(number):
            second = at * self.every + rng.uniform(0, 0.2)
            for device in range(self.per_host):
                if rng.random() < self.missing:
                    continue
                busy = self._busy(host, device, second, hang, rng)
                stamp = datetime.fromtimestamp(T0 + second + off, UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
                watts = self._watts(host, device) + rng.uniform(-5, 5)
                rows.append(f"{stamp}, {device}, {busy} %, 60000 MiB, 80000 MiB, {watts:.2f} W")
        (folder / f"nvidia-smi-node-{'abcdefghijkl'[host]}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def _watts(self, host: int, device: int) -> float:
        return self.watts / 2 if (host, device) in self.throttled else self.watts

    def _busy(self, host: int, device: int, second: float, hang: tuple[float, float], rng: random.Random) -> int:
        if (host, device) in self.idle:
            return rng.randint(0, 2)
        if hang[0] <= second < hang[1]:
            if (host, device) in self.stood:
                return 0
            return 100 if self.spins else rng.randint(30, 70)
        return rng.randint(85, 100)
