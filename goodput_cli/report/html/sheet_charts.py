"""The charts of sheets: each kind of `Chart` and what draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goodput_cli.analysis.advice.chart import IntervalChart
from goodput_cli.analysis.compare.chart import ChangeChart
from goodput_cli.analysis.sheet import Chart, Sheet
from goodput_cli.errors import UsageError
from goodput_cli.report.html.change_chart import change_spec
from goodput_cli.report.html.drawing import Drawing, drawing, drawn, narrowed, painted
from goodput_cli.report.html.interval_chart import interval_spec
from goodput_cli.report.html.vegalite import Spec

_SPECIFICATIONS: dict[type[Chart], Callable[[Any], Spec]] = {
    ChangeChart: change_spec,
    IntervalChart: interval_spec,
}


def inside_a_page(chart: Chart, name: str) -> tuple[Drawing, Drawing]:
    """A chart as an SVG element of a page, and the same for a phone. name: as in `Drawing`."""
    spec = _specification(chart)
    return drawing(spec, None, name), drawing(narrowed(spec), None, f"{name}-narrow")


def drawn_alone(sheet: Sheet) -> str:
    """The chart of a sheet as SVG on white. `UsageError` where it has nothing to show."""
    return drawn(_specification(_chart(sheet)), None, background="#ffffff") + "\n"


def painted_alone(sheet: Sheet) -> bytes:
    """The same as PNG."""
    return painted(_specification(_chart(sheet)), None)


def _chart(sheet: Sheet) -> Chart:
    if sheet.chart is None:
        raise UsageError(f"{sheet.title}: there is nothing to draw; the table says why (--format table)")
    return sheet.chart


def _specification(chart: Chart) -> Spec:
    return _SPECIFICATIONS[type(chart)](chart)
