"""The chart of a sheet alone, as PNG."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.html.sheet_charts import painted_alone


def render(sheet: Sheet, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The chart as PNG on white, two dots a unit."""
    return painted_alone(sheet)
