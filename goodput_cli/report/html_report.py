"""The analysis as an HTML page."""

from __future__ import annotations

from goodput_cli.analysis.results import Analysis
from goodput_cli.report import facts
from goodput_cli.report.base import Page
from goodput_cli.report.html.page import document
from goodput_cli.report.sheet import Column, Sheet
from goodput_cli.report.sheet_html import html_table


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as one HTML page."""
    share, amount = facts.headline(analysis)
    rows = facts.category_rows(analysis)
    sheet = Sheet(
        title=f"Goodput of {analysis.job.name}: {share}",
        summary=(amount, facts.window_text(analysis)),
        columns=(Column("category", "text"), Column("time", "duration"), Column("share", "text"), Column("", "share")),
        rows=tuple((row.name, row.ns, row.percent, row.share / 100) for row in rows),
        data={},
    )
    return document("sheet.html", title=sheet.title, table=html_table(sheet))
