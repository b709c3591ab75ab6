"""All capabilities, in the order of their lines. Callers iterate over them and name none."""

from __future__ import annotations

from goodput_cli.analysis.accelerators.hooks import ACCELERATORS
from goodput_cli.analysis.capability import Capability
from goodput_cli.analysis.hangs.hooks import HANGS
from goodput_cli.analysis.kept_work.hooks import KEPT_WORK
from goodput_cli.analysis.recovery.hooks import RECOVERY
from goodput_cli.analysis.step_breakdown.hooks import STEP_BREAKDOWN

CAPABILITIES: tuple[Capability, ...] = (STEP_BREAKDOWN, ACCELERATORS, KEPT_WORK, RECOVERY, HANGS)


def answer_fields() -> list[tuple[str, type, str]]:
    """Return the key, type and description of each field that capabilities add to the answer."""
    return [(one.key, one.kind(), one.words) for capability in CAPABILITIES for one in capability.answer]


def last_end_fields() -> list[tuple[str, type, str]]:
    """Return the same for `last_end` in the answer."""
    return [(one.key, one.kind(), one.words) for capability in CAPABILITIES for one in capability.last_end]


def steps_fields() -> list[tuple[str, type, str]]:
    """Return the same for the answer of `goodput steps`."""
    return [(one.key, one.kind(), one.words) for capability in CAPABILITIES for one in capability.steps_answer]
