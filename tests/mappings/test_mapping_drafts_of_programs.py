"""Drafts for logs of widely used programs that no built-in format reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mappings.drafting import drafted
from tests.text.support import seconds

OTHERS: dict[str, tuple[Callable[[int], str], tuple[float, float]]] = {
    "detectron2": (
        lambda n: (
            f"[03/01 10:00:{5 * n:02d} d2.utils.events]:  eta: 0:0{n}:00  iter: {10 * n + 9}  total_loss: 2.{n}  "
            "time: 0.5000  data_time: 0.0101  lr: 0.0002  max_mem: 3012M"
        ),
        (50, 25),
    ),
    "mmengine: an epoch without a name, numbers that are filled up": (
        lambda n: (
            f"2026/03/01 10:00:{5 * n:02d} - mmengine - INFO - Epoch(train)  [{n // 3 + 1}][{(n % 3 + 1) * 50:4d}/150]"
            f"  lr: 1.0e-02  eta: 1:0{n}:00  time: 0.1000  data_time: 0.0210  memory: 5120  loss: 1.{n}"
        ),
        (250, 25),
    ),
    "timm: without a clock": (
        lambda n: (
            f"Train: {n // 3} [{n % 3 * 500:4d}/1001 ({n % 3 * 50:3d}%)]  Loss: 6.9{n} (6.92)  Time: 0.500s, "
            "2000.10/s  (0.500s, 2048.00/s)  LR: 1.000e-06  Data: 0.010 (0.012)"
        ),
        (2001, 1000.5),
    ),
    "syslog": (lambda n: f"Mar  1 10:00:{5 * n:02d} gpu17 train[4242]: step={n * 10} loss=1.{n} lr=0.001", (50, 25)),
    "ray": (
        lambda n: (
            f"(Worker pid=42, ip=10.0.0.7) 2026-03-01 10:00:{5 * n:02d},123\tINFO train.py:77 -- iteration {n} finished"
        ),
        (5, 25),
    ),
    "lines that a collector took": (
        lambda n: f"2026-03-01T10:00:{5 * n:02d}.000000001Z step {n}/100 loss=0.{n}",
        (5, 25),
    ),
    "nested JSON": (
        lambda n: (
            f'{{"@timestamp": "2026-03-01T10:00:{5 * n:02d}.000Z", "log": {{"level": "info"}}, '
            f'"data": {{"trainer": {{"iteration": {n * 5}}}, "loss": 1.0}}}}'
        ),
        (25, 25),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_logs_of_other_programs(tmp_path: Path, name: str) -> None:
    """Six lines 5 s apart, or at logged distances; the time between is training."""
    line, (steps, training) = OTHERS[name]
    analysis = drafted(tmp_path, "".join(f"{line(n)}\n" for n in range(6)))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, steps)
    assert seconds(analysis)["productive"] == training
