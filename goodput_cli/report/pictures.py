"""SVG and PNG: the picture of an answer alone, on white. An SVG holds no script, and loads nothing.

The picture of `analyze` is step against wall clock, and what the time went to; other answers name their chart.
"""

from __future__ import annotations

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from goodput_cli.report.html.charts import main_chart, standing_alone
from goodput_cli.report.html.columns import ChartColumns
from goodput_cli.report.html.drawing import Spec, drawn, painted
from goodput_cli.report.html.sheet import specification

_WHITE = "#ffffff"


def svg(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The chart of an answer as SVG text. `UsageError` where it has nothing to show."""
    return drawn(_chart(sheet), None, background=_WHITE) + "\n"


def png(sheet: Sheet, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The same as PNG, two dots a unit."""
    return painted(_chart(sheet), None)


def svg_of_analysis(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The picture of a job as SVG text."""
    return drawn(*_main(analysis), background=_WHITE) + "\n"


def png_of_analysis(analysis: Analysis, page: Page) -> bytes:  # noqa: ARG001 - a renderer's signature
    """The same as PNG, two dots a unit."""
    return painted(*_main(analysis))


def _chart(sheet: Sheet) -> Spec:
    if sheet.chart is None:
        raise UsageError(f"{sheet.title}: there is nothing to draw; the table says why (--format table)")
    return specification(sheet.chart)


def _main(analysis: Analysis) -> tuple[Spec, ChartColumns]:
    columns, title = standing_alone(analysis)
    return main_chart(columns, title), columns
