"""A sheet with gates as JUnit XML: as an analysis, see `report/formats/junit.py`."""

from __future__ import annotations

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.report.base import Page
from goodput_cli.report.formats.junit import document


def render(sheet: Sheet, page: Page) -> str:  # noqa: ARG001 - a renderer's signature
    """The gates of the answer, and its figures as properties."""
    assert sheet.published is not None  # as `report.base` has checked: the command offers it
    return document(sheet.published())
