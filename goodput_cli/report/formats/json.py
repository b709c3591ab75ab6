"""`analyze --format json`."""

from __future__ import annotations

from goodput_cli.analysis.goodput.answer import analysis_answer
from goodput_cli.analysis.results import Analysis
from goodput_cli.report.base import Page
from goodput_cli.report.json_text import json_text


def render(analysis: Analysis, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The analysis as one JSON object."""
    return json_text(analysis_answer(analysis))
