"""Drafts for logs of known trainers, with their format disabled, agree with the format or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.errors import NotEnoughData
from goodput_cli.events.mappings import registry
from goodput_cli.events.mappings.registry import Mappings
from goodput_cli.events.text.programs import megatron, progress_bars
from tests.text.support import SAMPLES

TRAINERS = Path("sample_logs/trainers")
LOGS = {
    "a job of Megatron": (TRAINERS / "megatron-slurm", "megatron"),
    "its first life": (TRAINERS / "megatron-slurm/slurm-4101.out", "megatron"),
    "its second life": (TRAINERS / "megatron-slurm/slurm-4102.out", "megatron"),
    "its last life": (TRAINERS / "megatron-slurm/slurm-4103.out", "megatron"),
    "an old Megatron": (SAMPLES / "megatron-2021-log-interval-10.out", "megatron"),
    "Megatron-DeepSpeed": (SAMPLES / "megatron-deepspeed-bloom.txt", "megatron"),
    "torchtitan": (TRAINERS / "torchtitan/train.log", "torchtitan"),
    "NeMo": (TRAINERS / "nemo-ft_launcher.log", "nemo2"),
    "a crash and a restart of NeMo": (SAMPLES / "nemo2-crash-and-restart.log", "nemo2"),
    "MaxText": (TRAINERS / "maxtext-gke/entries.jsonl", "maxtext"),
}
"""Logs, and the format that reads their steps."""
REFUSED = ("MaxText",)
"""Lines in a collector's records: no draft can be proven."""


def without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the format with this name, and progress bars."""
    monkeypatch.setattr(registry, "SHIPPED", tuple(one for one in registry.SHIPPED if one != name))
    monkeypatch.setattr(registry, "_without_own", Mappings().with_shipped)  # not what an earlier log was read with
    monkeypatch.setattr(progress_bars, "RULES", ())
    if name == "megatron":
        monkeypatch.setattr(megatron, "RULES", ())


def drafted_or_none(log: Path) -> Analysis | None:
    """Return the analysis with inferred rules; None if no steps are read."""
    try:
        analysis = goodput_cli.analyze(log)
    except NotEnoughData:
        return None
    return None if analysis.goodput_percent is None else analysis


@pytest.mark.parametrize("name", LOGS)
def test_draft_agrees_with_the_format(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log, format_name = LOGS[name]
    native = goodput_cli.analyze(log)
    assert native.inferred_rules is None
    without(format_name, monkeypatch)
    analysis = drafted_or_none(log)
    assert (analysis is None) == (name in REFUSED)
    if analysis is not None:
        assert analysis.inferred_rules is not None
        assert analysis.goodput_percent == pytest.approx(native.goodput_percent, abs=2)
        assert analysis.job.kept_steps == native.job.kept_steps
        assert analysis.job.attempts == native.job.attempts
