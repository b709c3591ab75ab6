"""An analysis as text in the formats that write what any answer offers."""

from __future__ import annotations

from goodput_cli.analysis.document import Losses, Picture
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.goodput.document import AnalysisDocument
from goodput_cli.report.base import Page, load_renderer


def rendered(name: str, analysis: Analysis, page: Page) -> str:
    """Render in any text format."""
    text = load_renderer(name)(analysis, page)
    assert isinstance(text, str)
    return text


def as_json(analysis: Analysis, page: Page) -> str:
    return rendered("json", analysis, page)


def as_table(analysis: Analysis, page: Page) -> str:
    return rendered("table", analysis, page)


def as_markdown(analysis: Analysis, page: Page) -> str:
    return rendered("markdown", analysis, page)


def losses(analysis: Analysis) -> Losses:
    """Return the losses, as terminal and Markdown receive them."""
    return next(block for block in AnalysisDocument(analysis).blocks() if isinstance(block, Losses))


def picture(analysis: Analysis) -> Picture:
    """The window in a line, as they get it."""
    return next(block for block in AnalysisDocument(analysis).blocks() if isinstance(block, Picture))
