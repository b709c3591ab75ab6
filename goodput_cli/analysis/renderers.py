"""Renderers with which results display themselves. `report` registers them: results import no output format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RenderAnalysis = Callable[[Any, str], str]
"""Writes an `Analysis` in a format, by its name."""
RenderSheet = Callable[[Any, str, int], str | bytes]
"""Writes a `Sheet` in a format, by its name. The number is the width in columns."""

_registered: list[tuple[RenderAnalysis, RenderSheet]] = []


def register_renderers(analysis: RenderAnalysis, sheet: RenderSheet) -> None:
    """Set the renderers of all results."""
    _registered[:] = [(analysis, sheet)]


def render_analysis(analysis: Any, format_name: str) -> str:
    """Return an `Analysis` in a format."""
    return _registered[0][0](analysis, format_name)


def render_sheet(sheet: Any, format_name: str, width: int) -> str | bytes:
    """Return a `Sheet` in a format. width: in columns."""
    return _registered[0][1](sheet, format_name, width)
