"""The chart of a sheet alone, as SVG."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.html.sheet_charts import drawn_alone


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The chart as SVG text on white. It holds no script, and loads nothing."""
    return drawn_alone(sheet)
