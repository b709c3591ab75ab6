"""The renderers of `Sheet`, one module a format."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from goodput_cli.analysis.sheet import Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page

_MODULES = {
    "table": "goodput_cli.report.sheets.table",
    "json": "goodput_cli.report.sheets.json",
    "csv": "goodput_cli.report.sheets.csv",
    "markdown": "goodput_cli.report.sheets.markdown",
    "html": "goodput_cli.report.sheets.html",
    "parquet": "goodput_cli.report.sheets.parquet",
}


class SheetRenderer(Protocol):
    """A sheet as text, ending with a newline, or as bytes."""

    def __call__(self, sheet: Sheet, page: Page) -> str | bytes: ...


def load_sheet_renderer(name: str) -> SheetRenderer:
    """The function that writes a sheet in a format. `UsageError` for formats that only `analyze` can write."""
    if name not in _MODULES:
        raise UsageError(f"the format {name!r} is for analyze; this command writes {', '.join(_MODULES)}")
    renderer: SheetRenderer = import_module(_MODULES[name]).render
    return renderer
