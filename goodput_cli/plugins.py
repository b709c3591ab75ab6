"""Stable names for packages that add a log format, a source or a renderer.

docs/architecture.md shows an example of each, and their entry points.
"""

from __future__ import annotations

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.sheet import Sheet
from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.errors import GoodputError, SourceError, UsageError
from goodput_cli.events.formats.base import Format, Output, Records
from goodput_cli.events.schema import Edge, Kind
from goodput_cli.report.base import OutputFormat, Page, Renderer, SheetRenderer
from goodput_cli.sources.base import Batch, RawBatch, ReadContext, RecordBatch, Source
from goodput_cli.vocabulary.text import safe, safe_lines

__all__ = [
    "Format",
    "Records",
    "Output",
    "Kind",
    "Edge",
    "Source",
    "ReadContext",
    "Batch",
    "RawBatch",
    "RecordBatch",
    "OutputFormat",
    "Renderer",
    "SheetRenderer",
    "Sheet",
    "Page",
    "Analysis",
    "safe",
    "safe_lines",
    "Diagnostic",
    "GoodputError",
    "SourceError",
    "UsageError",
]
