"""What the recovery of outages adds to the answers about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_cli.analysis.capability import Capability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.sheet import Sheet


def _notes(analysis: AnalysisData) -> Iterable[str]:
    from goodput_cli.analysis.recovery.links import recovery_notes

    return recovery_notes(analysis)


def _sections(analysis: AnalysisData) -> Iterable[Sheet]:
    from goodput_cli.analysis.recovery.links import chain_sheets

    return chain_sheets(analysis)


RECOVERY = Capability(
    name="recovery",
    about="who noticed an outage, who restarted the job, and how long each phase took",
    disruption_notes=_notes,
    disruption_sections=_sections,
)
