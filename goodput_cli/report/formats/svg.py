"""The main picture alone, as SVG: step against wall clock, and what the time went to."""

from __future__ import annotations

from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import main_chart
from goodput_cli.report.html.drawing import drawn
from goodput_cli.report.html.figures import standing_alone


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The picture as SVG text on white. It holds no script, and loads nothing."""
    columns, title = standing_alone(analysis)
    return drawn(main_chart(columns, title), columns, background="#ffffff") + "\n"
