"""A sheet's whole answer as JSON."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page
from goodput_cli.report.json_text import json_text


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The answer as one JSON object. `UsageError` for a sheet that has none."""
    if sheet.answer is None:
        raise UsageError(f"{sheet.title}: is a part of an answer and no JSON object of its own")
    return json_text(sheet.answer())
