"""What the step breakdown adds to the answers about a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from goodput_cli.analysis.capability import By, Capability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from goodput_cli.analysis.analysis_data import AnalysisData
    from goodput_cli.analysis.insights.kinds import Candidate
    from goodput_cli.analysis.sheet import Family, Sheet
    from goodput_cli.diagnostics.diagnostic import Diagnostic


def _lines(analysis: AnalysisData) -> Iterator[str]:
    if not analysis.table.inside:
        return
    from goodput_cli.analysis.step_breakdown.sheet import inside_line

    if line := inside_line(analysis):
        yield line


def _families(analysis: AnalysisData) -> Iterable[Family]:
    from goodput_cli.analysis.step_breakdown.sheet import breakdown_families

    return breakdown_families(analysis)


def _sections(analysis: AnalysisData, by: By) -> Iterable[Sheet]:
    from goodput_cli.analysis.step_breakdown.sheet import inside_sheets

    return inside_sheets(analysis, by)


def _insights(analysis: AnalysisData, _: int) -> Iterable[Candidate]:
    from goodput_cli.analysis.step_breakdown.breakdown import inside_of
    from goodput_cli.analysis.step_breakdown.insights import find_inside

    return find_inside(analysis, analysis.part(inside_of))


def _diagnostics(analysis: AnalysisData) -> Iterator[Diagnostic]:
    from goodput_cli.analysis.step_breakdown.breakdown import inside_of
    from goodput_cli.diagnostics.diagnostic import Diagnostic
    from goodput_cli.vocabulary.text import duration, safe

    for one in analysis.part(inside_of):
        if one.overlaps:
            of = f" of {safe(one.program)}" if one.program else ""
            text = f"step phases{of} take {duration(one.overlap_ns)} longer than their steps"
            yield Diagnostic.of("phases_overlap", text, 1)


STEP_BREAKDOWN = Capability(
    name="step_breakdown",
    about="where the time inside steps went, by phase and rank",
    has_inputs=lambda table: bool(table.inside),
    report_lines=_lines,
    screen_lines=lambda analysis, _: _lines(analysis),
    families=_families,
    step_sections=_sections,
    insights=_insights,
    diagnostics=_diagnostics,
)
