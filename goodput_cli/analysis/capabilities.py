"""All capabilities, in the order of their lines. Callers iterate over them and name none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from goodput_cli.analysis.accelerators.hooks import ACCELERATORS
from goodput_cli.analysis.capability import Capability
from goodput_cli.analysis.hangs.hooks import HANGS
from goodput_cli.analysis.kept_work.hooks import KEPT_WORK
from goodput_cli.analysis.recovery.hooks import RECOVERY
from goodput_cli.analysis.step_breakdown.hooks import STEP_BREAKDOWN

if TYPE_CHECKING:
    from goodput_cli.analysis.analysis_data import AnalysisData

CAPABILITIES: tuple[Capability, ...] = (STEP_BREAKDOWN, ACCELERATORS, KEPT_WORK, RECOVERY, HANGS)


AnswerHook = Literal["answer", "last_end", "steps_answer"]


def added_fields(hook: AnswerHook) -> list[tuple[str, type, str]]:
    """Return the key, type and description of each field that capabilities add to an answer."""
    return [(one.key, one.kind(), one.words) for capability in CAPABILITIES for one in getattr(capability, hook)]


def added_values(hook: AnswerHook, analysis: AnalysisData) -> dict[str, object | None]:
    """Return the values of these fields by their key."""
    return {one.key: one.of(analysis) for capability in CAPABILITIES for one in getattr(capability, hook)}
