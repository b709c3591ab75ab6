"""Healthy logs contain no failure: no root cause in any sample of the repository except in those known to have died."""

from __future__ import annotations

from pathlib import Path

import pytest

from goodput_cli.errors import GoodputError
from goodput_cli.events.read import read_events

ROOT = Path(__file__).parents[2]
DIED = {
    "sample_logs/trainers/nemo-ft_launcher.log": {"python_error"},
    "sample_logs/trainers/own-loop.log": {"device_error"},
    "sample_logs/trainers/megatron-slurm/slurm-4102.out": {"time_limit"},
    "sample_logs/trainers/megatron-slurm/sacct.txt": {"time_limit"},
    "tests/real/wandb-0.31/wandb/offline-run-20261123_011653-abc12345/run-abc12345.wandb": {"python_error"},
    "tests/real/wandb-why/wandb/offline-run-20261123_181734-why/run-why.wandb": {"host_oom"},
    "tests/real/wandb-why/wandb/offline-run-20261123_181734-why/files/output.log": {"host_oom"},
    "tests/real/transformers-bars/out_raise.txt": {"not_finite"},
    "tests/real/slurm/llm-20b/sacct.txt": {"cancelled", "preempted", "time_limit"},
    "tests/real/slurm/llm-20b/slurm-32.out": {"device_error"},
    "tests/real/slurm/llm-20b/slurm-37.out": {"preempted"},
    "tests/real/slurm/llm-20b/slurm-42.out": {"time_limit"},
}
"""Causes of the samples that died, as a person reads them."""
LOGS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("sample_logs", "tests/real")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in (".py", ".md", ".json", ".parquet", ".pyc")
)


@pytest.mark.parametrize("name", LOGS)
def test_sample_logs_have_only_known_causes(name: str) -> None:
    try:
        observed = read_events([str(ROOT / name)]).table.observed
    except GoodputError:
        pytest.skip("no log")
    assert {one.code for one in observed.rows if one.role == "root"} == DIED.get(name, set())
