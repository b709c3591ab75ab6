"""The main picture alone, as PNG: step against wall clock, and what the time went to."""

from __future__ import annotations

from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import main_chart
from goodput_cli.report.html.drawing import painted
from goodput_cli.report.html.figures import standing_alone


def render(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The picture as PNG on white, two dots a unit."""
    columns, title = standing_alone(analysis)
    return painted(main_chart(columns, title), columns)
