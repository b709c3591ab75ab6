"""A sheet with figures as OpenMetrics text: as an analysis, see `report/formats/openmetrics.py`."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.formats.openmetrics import END, exposition, threshold_families


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The figures of the answer, and its gates."""
    assert sheet.published is not None  # as `report.base` has checked: the command offers it
    answer = sheet.published()
    families = (*answer.families, *threshold_families(answer.thresholds, answer.diagnostics))
    return exposition(families, {"job_name": answer.job}) + END
